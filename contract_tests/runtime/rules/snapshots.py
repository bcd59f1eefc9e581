"""RT-SNAP: what follows a snapshot's answer, and what of it reaches the model."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.history import jobs_listed
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules.troubles import SNAPSHOT, has_to_fail
from contract_tests.runtime.rules.wire_shapes import endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

CANARY = re.compile(r"cnry-[0-9a-f]+")
"""Texts that the mock plants in snapshots, so that they can be found again."""
_CONTENT = "documentContent"


@monitor("RT-SNAP-01")
def snapshot_endpoint(history: History) -> Iterator[Finding]:
    """Snapshots are read by GET /internal/runtime/jobs/{jobId}/snapshot."""
    yield from endpoint(history, SNAPSHOT, "snapshot", "GET /internal/runtime/jobs/{jobId}/snapshot")


@monitor("RT-SNAP-18")
def expired_is_retryable(history: History) -> Iterator[Finding]:
    """After 410 on the snapshot comes a failure with ``retryable`` true."""
    yield from has_to_fail(history, SNAPSHOT, "expired", None, retryable=True)


@monitor("RT-SNAP-60")
def expired_code(history: History) -> Iterator[Finding]:
    """After 410 on the snapshot the failure's code is SNAPSHOT_EXPIRED."""
    yield from has_to_fail(history, SNAPSHOT, "expired", {"SNAPSHOT_EXPIRED"}, retryable=None, silence=False)


@monitor("RT-SNAP-61")
def absent(history: History) -> Iterator[Finding]:
    """After 404 SNAPSHOT_NOT_FOUND comes the failure INVALID_SNAPSHOT, not retryable, and no model call."""
    yield from has_to_fail(history, SNAPSHOT, "absent", {"INVALID_SNAPSHOT"}, retryable=False, no_model=True)


@monitor("RT-SNAP-62")
def malformed(history: History) -> Iterator[Finding]:
    """After a snapshot that is malformed or of an unknown version comes INVALID_SNAPSHOT, and no model call."""
    yield from has_to_fail(history, SNAPSHOT, "malformed", {"INVALID_SNAPSHOT"}, retryable=False, no_model=True)
    either = {"INVALID_SNAPSHOT", "INTERNAL_ERROR", "NETWORK_ERROR"}
    yield from has_to_fail(history, SNAPSHOT, "unreadable", either, retryable=None, no_model=True)


@monitor("RT-SNAP-63")
def failed(history: History) -> Iterator[Finding]:
    """When the snapshot keeps failing the failure is INTERNAL_ERROR or NETWORK_ERROR, retryable."""
    yield from has_to_fail(history, SNAPSHOT, "failed", {"INTERNAL_ERROR", "NETWORK_ERROR"}, retryable=True)


@monitor("RT-SNAP-66")
def not_allowed(history: History) -> Iterator[Finding]:
    """With ``aiSettings.allowAiAnalysis`` false there is no model call but INVALID_SNAPSHOT, not retryable."""
    yield from has_to_fail(history, SNAPSHOT, "forbidden", {"INVALID_SNAPSHOT"}, retryable=False, no_model=True)


def planted(value: Any) -> set[str]:
    """Every canary in some JSON."""
    return set(CANARY.findall(json.dumps(value)))


def _named(value: Any, names: set[str]) -> set[str]:
    """Canaries under a property with one of these names, at whatever depth."""
    if isinstance(value, list):
        return set().union(*(_named(item, names) for item in value))
    if not isinstance(value, dict):
        return set()
    return set().union(*(planted(item) if name in names else _named(item, names) for name, item in value.items()))


def sent(call: Call, canaries: set[str]) -> set[str]:
    """Those of some canaries that a request holds: plain (in JSON of whatever depth, too), in base64 or hex."""
    parts = [call.path, call.query, *call.headers.values(), call.text, json.dumps(call.body)]
    text = "\n".join(parts)
    plain = set(CANARY.findall(text)) & canaries
    return plain | {canary for canary in canaries - plain if any(form in text for form in _encoded(canary))}


def _encoded(canary: str) -> Iterator[str]:
    raw = canary.encode()
    yield raw.hex()
    for shift in range(3):  # wherever in a longer text it stands
        code = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        yield code[(0, 2, 3)[shift] : len(code) - (1 if (shift + len(raw)) % 3 else 0)]


def _snapshot(hold: Hold, call: Call) -> dict[str, Any] | None:
    """The snapshot that a model call was made with."""
    read = [item.answer for item in hold.of(SNAPSHOT) if item.ok and item.sent < call.sent]
    return (
        read[-1]
        if read and isinstance(read[-1], dict) and isinstance(read[-1].get("allowedModelFields"), list)
        else None
    )


@monitor("RT-SNAP-64")
def only_allowed_fields(history: History) -> Iterator[Finding]:
    """Nothing of the snapshot reaches the model but what ``allowedModelFields`` names, and the job's ``params``."""
    listed = jobs_listed(history.polls)
    for hold in history.holds:
        entry = listed[hold.job][1] if hold.job in listed else {}
        params = planted([hold.granted("params"), entry.get("params")])
        for call in hold.model_calls:
            content = _snapshot(hold, call)
            if content is None:
                continue
            names = {name for name in content["allowedModelFields"] if isinstance(name, str)}
            rest = {name: value for name, value in content.items() if name != _CONTENT}
            forbidden = planted(rest) - _named(rest, names) - params - planted(content["allowedModelFields"])
            found = sent(call, forbidden)
            if found:
                where = sorted(name for name, value in rest.items() if planted(value) & found)
                actual = f"something of {', '.join(where)} in a model call for {hold.job}"
                yield broken(call, f"only {', '.join(sorted(names)) or 'nothing'} and params in the request", actual)
            elif forbidden and not call.cut:
                yield kept(call)


@monitor("RT-SNAP-65")
def document_content(history: History) -> Iterator[Finding]:
    """``documentContent`` reaches the model only when it is named and ``allowDocumentContent`` is true."""
    for hold in history.holds:
        for call in hold.model_calls:
            content = _snapshot(hold, call)
            if content is None or _CONTENT not in content:
                continue
            named = _CONTENT in content["allowedModelFields"]
            scope = content.get("privacyScope")
            allowed = isinstance(scope, dict) and scope.get("allowDocumentContent") is True
            canaries = planted(content[_CONTENT])
            if (named and allowed) or not canaries:
                continue
            if sent(call, canaries):
                why = "allowDocumentContent is not true" if named else "allowedModelFields does not name it"
                yield broken(call, f"no documentContent: {why}", f"documentContent in a model call for {hold.job}")
            elif not call.cut:
                yield kept(call)
