"""Looks at a target before it is judged: whether it can be, and with which keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.http_transport import ANSWER_SECONDS, HttpTransport
from contract_tests.checks import CheckFailed, CheckSkipped, Silent, TargetVanished

if TYPE_CHECKING:
    from conformance.systems import Secret, System

REFUSED = (401, 403)


async def preflight(
    system: System, base_url: str, settings: dict[str, Any], *, seconds: float = ANSWER_SECONDS
) -> str | None:
    """What makes judging the target pointless, in a sentence; None where it can be judged.

    A target that is down, one that never answered, and one that refuses a key are not shown to be wrong. A further key
    that was not given and can be guessed is added to ``settings`` where the target takes it. ``seconds`` is how long an
    answer may take.
    """
    transport = HttpTransport(base_url, answer_seconds=seconds)
    for secret in system.secrets:
        if secret.probe is not None:
            problem = await _tried(transport, secret, settings, first=secret is system.key)
            if problem is not None:
                return problem
    return None


async def _tried(transport: HttpTransport, secret: Secret, settings: dict[str, Any], *, first: bool) -> str | None:
    given = settings.get(secret.setting)
    value = given or (secret.guess(settings) if secret.guess else None)
    if value is None or secret.probe is None:
        return None
    try:
        answer = await transport.send(secret.probe(value))
    except TargetVanished as vanished:
        return f"{vanished}. Is the build running, and is --base-url right?" if first else None
    except Silent as silence:
        return f"{transport.base_url} takes connections and never answers: {silence.actual}" if first else None
    except (CheckFailed, CheckSkipped):
        return None  # it does answer: what is wrong with that is for the checks to tell
    if not given:
        if 200 <= answer.status < 300:
            settings[secret.setting] = value
    elif answer.status in REFUSED:
        mend = f"give {secret.what} as {secret.variable} or {secret.option}"
        return f"{transport.base_url} refuses {secret.title} ({answer.status}); {mend}"
    return None
