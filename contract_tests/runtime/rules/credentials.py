"""RT-CRED: asking for the credential, and what follows when there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules.troubles import CREDENTIAL, has_to_fail
from contract_tests.runtime.rules.wire_shapes import ABSENT, carries, endpoint, is_string, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.history import History

MODES = ("platform_key", "user_deepseek_key")


@monitor("RT-CRED-01")
def resolve_endpoint(history: History) -> Iterator[Finding]:
    """Credentials are resolved by POST /internal/runtime/model-credentials/resolve."""
    where = "POST /internal/runtime/model-credentials/resolve"
    yield from endpoint(history, CREDENTIAL, "(model-)?credential", where)


@monitor("RT-CRED-02")
def resolve_body(history: History) -> Iterator[Finding]:
    """A resolve carries ``jobId``, ``apiKeyMode``, ``provider``, and ``credentialId`` in the mode of a user's key."""
    for call in history.of(CREDENTIAL):
        if call.cut:
            continue
        body = call.body if isinstance(call.body, dict) else {}
        needed = ["jobId", "apiKeyMode", "provider"]
        if body.get("apiKeyMode") == "user_deepseek_key":
            needed.append("credentialId")
        wrong = [name for name in needed if not is_string(body.get(name))]
        if "credentialId" not in needed and not isinstance(body.get("credentialId"), str | None):
            wrong.append("credentialId")
        for name in wrong:
            yield broken(call, f"{name}: a string", f"{name}: {shown(body.get(name, ABSENT))} in {call.name}")
        if not wrong:
            yield kept(call)


@monitor("RT-CRED-03")
def resolve_mode(history: History) -> Iterator[Finding]:
    """``apiKeyMode`` of a resolve is one of the two modes."""
    yield from carries(history.of(CREDENTIAL), "apiKeyMode", lambda value: value in MODES, " or ".join(MODES))


@monitor("RT-CRED-70")
def refused(history: History) -> Iterator[Finding]:
    """After 404 or 422 on the credential comes the failure INVALID_CREDENTIAL, not retryable."""
    yield from has_to_fail(history, CREDENTIAL, "refused", {"INVALID_CREDENTIAL"}, retryable=False, no_model=True)


@monitor("RT-CRED-71")
def no_key(history: History) -> Iterator[Finding]:
    """With no key, neither resolved nor of its own, comes the failure INVALID_CREDENTIAL, not retryable."""
    yield from has_to_fail(history, CREDENTIAL, "no key", {"INVALID_CREDENTIAL"}, retryable=False)


@monitor("RT-CRED-72")
def failed(history: History) -> Iterator[Finding]:
    """When the resolve keeps failing the failure is INTERNAL_ERROR or NETWORK_ERROR, retryable."""
    yield from has_to_fail(history, CREDENTIAL, "failed", {"INTERNAL_ERROR", "NETWORK_ERROR"}, retryable=True)
