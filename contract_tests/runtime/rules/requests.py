"""What stands in every request: the key, the instance id, names, and what follows when they are refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.calls import MODEL
from contract_tests.runtime.history import entries_of, jobs_listed
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules._common import (
    BASE,
    WIRE,
    ended_itself,
    follows,
    idle_since,
    is_text,
    ran_until,
    same_life,
    silence,
    span,
    to_api,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History

KEY, INSTANCE = "x-internal-api-key", "x-runtime-instance-id"
ENDPOINTS = (
    *("jobs/poll", "jobs/{jobId}/lock", "jobs/{jobId}/heartbeat", "jobs/{jobId}/snapshot", "model-credentials/resolve"),
    *("jobs/{jobId}/result", "jobs/{jobId}/fail", "invocation-logs", "health"),
)
_PATHS = [re.compile(BASE + re.escape(path).replace(r"\{jobId\}", ".+")) for path in ENDPOINTS]
_USAGE = ("inputTokens", "outputTokens", "totalTokens", "latencyMs", "costEstimate")
_VERSIONS = ("supportedSnapshotVersions", "supportedOutputSchemaVersions")
FIELDS: dict[str, tuple[str, ...]] = {
    "pollJobs": ("runtimeInstanceId", "supportedJobTypes", "limit", "capabilities", *_VERSIONS),
    "lockJob": ("runtimeInstanceId",),
    "heartbeatJob": ("runtimeInstanceId",),
    "resolveCredential": ("jobId", "apiKeyMode", "credentialId", "provider"),
    "submitResult": (
        *("runtimeInstanceId", "schemaVersion", "status", "rawOutput", "validatedOutput", "validationErrors", "usage"),
        *("attemptNo", "outputHash", *_USAGE),
    ),
    "failJob": ("runtimeInstanceId", "errorCode", "errorMessage", "retryable", "rawError"),
    "submitInvocationLogs": (
        *("logs", "jobId", "provider", "model", "apiKeyMode", "credentialId", "promptName", "promptVersion"),
        *("outputSchemaVersion", "success", "errorCode", "errorMessage", "retryCount", "runtimeInstanceId", "traceId"),
        *("correlationId", *_USAGE),
    ),
}


@monitor("RT-AUTH-02")
def service_token(history: History) -> Iterator[Finding]:
    """Every request to the API has the header x-internal-api-key with the service token."""
    for call in to_api(history):
        if not call.headers.get(KEY):
            what = "without it" if KEY not in call.headers else "with an empty one"
            yield broken(call, f"the header {KEY} in every request", f"{call.name} {what}")
        elif call.status == 401 and (call.fault is None or call.fault.get("handled")):
            wanted = f"RUNTIME_SERVICE_TOKEN in the header {KEY}"
            yield broken(call, wanted, f"{call.name} with another value, which the API refused with 401")
        else:
            yield kept(call)


@monitor("RT-AUTH-04")
def instance_header(history: History) -> Iterator[Finding]:
    """Every request to the API has the header x-runtime-instance-id."""
    for call in to_api(history):
        if call.headers.get(INSTANCE):
            yield kept(call)
        else:
            what = "without it" if INSTANCE not in call.headers else "with an empty one"
            yield broken(call, f"the header {INSTANCE} in every request", f"{call.name} {what}")


@monitor("RT-AUTH-09")
def pulls(history: History) -> Iterator[Finding]:
    """The Runtime gets its jobs by asking the API: whatever it locks was listed by a poll before."""
    listed = jobs_listed(history.polls)
    unread = [poll for poll in history.polls if poll.garbled or poll.cut]
    for call in history.of("lockJob"):
        if call.job in listed and listed[call.job][0].sent <= call.sent:
            yield kept(call)
        elif not unread:
            yield broken(call, f"a poll whose answer lists {call.job} before it is locked", "no poll had listed it")


@monitor("RT-AUTH-60")
def one_id(history: History) -> Iterator[Finding]:
    """The instance id is the one that the Runtime was given, in header and body alike."""
    for call in to_api(history):
        told = list(_ids(call))
        own = history.facts.instance_id or next((value for _, value in told), None)
        for place, value in told:
            if value != own:
                yield broken(call, f"the instance id {own} in header and body alike", f"{value!r} in the {place}")
                break
        else:
            if told:
                yield kept(call)


def _ids(call: Call) -> Iterator[tuple[str, str]]:
    """The instance ids of a request, each with its place."""
    if call.headers.get(INSTANCE):
        yield f"header {INSTANCE} of {call.name}", call.headers[INSTANCE]
    if is_text(call.get("runtimeInstanceId")):
        yield f"body of {call.name}", call.get("runtimeInstanceId")
    logs = call.get("logs") if call.operation == "submitInvocationLogs" else None
    for i, entry in enumerate(logs if isinstance(logs, list) else ()):
        if isinstance(entry, dict) and is_text(entry.get("runtimeInstanceId")):
            yield f"body of {call.name} (logs/{i})", entry["runtimeInstanceId"]


@monitor("RT-AUTH-61")
def refused_once_more(history: History) -> Iterator[Finding]:
    """A request that was refused with 401 or 403 is sent again at most once."""
    refused: dict[tuple[Any, ...], list[Call]] = {}
    for call in history.calls:
        if call.operation == MODEL or call.operation is None:
            continue
        key = _request(history, call)
        chain = refused.get(key, [])
        if chain and _new_reason(history, chain[-1], call):
            chain = []
        if len(chain) > 1 and follows(call, chain[-1]):
            code = chain[-1].status
            yield broken(call, f"{call.name} at most once more after {code}", f"it was sent {len(chain) + 1} times")
        if call.heard and call.status in (401, 403):
            refused[key] = [*chain, call]
            yield kept(call)
        elif call.heard:
            refused.pop(key, None)


def _request(history: History, call: Call) -> tuple[Any, ...]:
    """What makes two requests the same request; a hold's are its own."""
    if call.operation == "submitInvocationLogs":
        return call.operation, call.text
    hold = history.hold_of(call) if call.operation != "lockJob" else None
    return call.operation, call.job, id(hold) if hold else None


def _new_reason(history: History, before: Call, call: Call) -> bool:
    """Whether a request is made anew: by another process, at a poll's time, after a poll that lists the job."""
    if not same_life(history, before.sent, call.sent):
        return True
    if call.operation == "pollJobs":
        return call.sent - before.ended >= 0.8 * (history.facts.poll or 0) - 0.02
    if call.operation == "lockJob":
        later = [poll for poll in history.polls if before.sent < poll.ended <= call.sent + WIRE]
        return any(entry["id"] == call.job for poll in later for entry in entries_of(poll))
    return False


@monitor("RT-AUTH-62")
def polls_on_when_refused(history: History) -> Iterator[Finding]:
    """After 401 or 403 the Runtime polls on."""
    for call in to_api(history):
        if not call.heard or call.status not in (401, 403):
            continue
        following = next((poll for poll in history.polls if follows(poll, call)), None)
        if following is not None and same_life(history, call.sent, following.sent):
            yield kept(following)
            continue
        end = ended_itself(history, call.ended)
        if end is not None:
            actual = f"{call.name} was refused, and the process ended by itself {span(end.at - call.ended)} later"
            yield broken(end.at, f"further polls after {call.status}", actual)
            continue
        begin, stop = idle_since(history, call.ended), ran_until(history, call.ended)
        if stop - begin > silence(history):
            actual = f"none for {span(stop - begin)} after {call.name} was refused"
            yield broken(call, f"further polls after {call.status}", actual)


@monitor("RT-AUTH-64")
def own_paths(history: History) -> Iterator[Finding]:
    """No request goes to a path of the API outside /internal/runtime."""
    for call in history.calls:
        if call.operation == MODEL or call.path.startswith("/__model__/"):
            continue
        if call.path.startswith(BASE) and ".." not in call.path.split("/"):
            yield kept(call)
        else:
            yield broken(call, "requests to paths below /internal/runtime alone", f"{call.method} {call.path[:200]}")


@monitor("RT-DB-38")
def exact_names(history: History) -> Iterator[Finding]:
    """Endpoints and fields have exactly the names of the contract."""
    for call in to_api(history):
        if call.operation is None and not any(path.fullmatch(call.path) for path in _PATHS):
            yield broken(call, "an endpoint of the contract", f"{call.method} {call.path[:200]}")
        elif isinstance(call.body, dict) and call.operation in FIELDS:
            right = {_plain(name): name for name in FIELDS[call.operation]}
            names = list(_names(call))
            wrong = [name for name in names if right.get(_plain(name), name) != name]
            for name in wrong:
                yield broken(call, f"the field {right[_plain(name)]} in {call.name}", f"the field {name}")
            if not wrong and any(name in FIELDS[call.operation] for name in names):
                yield kept(call)


def _plain(name: str) -> str:
    return re.sub(r"[_\W]", "", name).lower()


def _names(call: Call) -> Iterator[str]:
    """The names in a body at which the contract has a say, in order."""
    for name, value in call.body.items():
        yield name
        inner: list[Any] = []
        if _plain(name) in ("capabilities", "usage"):
            inner = [value]
        elif _plain(name) == "logs" and isinstance(value, list):
            inner = value
        for part in inner:
            yield from part if isinstance(part, dict) else ()


def wrong_way(history: History, operation: str, word: str, right: str) -> Iterator[Finding]:
    """For rules that name an endpoint: requests that are right, and those that only mean it (``word`` in the path)."""
    for call in to_api(history):
        if call.operation == operation:
            yield kept(call)
        elif call.operation is None and word in call.path.removeprefix(BASE).rstrip("/").rpartition("/")[2].lower():
            yield broken(call, right, f"{call.method} {call.path[:200]}")
