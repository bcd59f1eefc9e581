"""What happened, for a person: what the Runtime sent, what the mock answered, when, and whether the lock was held."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.calls import MODEL, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contract_tests.runtime.history import Event, History
    from contract_tests.runtime.monitors import Finding

HEAD = " seconds  lock   what the Runtime did -> what the mock answered"
MOST = 40
_AROUND = 6.0
_HERE = "  <== here"


def timeline(history: History, finding: Finding, most: int = MOST) -> list[str]:
    """The lines around a finding: all about its job, or all that happened near it, with the finding marked."""
    job = finding.call.job if finding.call else None
    rows = [(call.sent, _call_row(history, call, call is finding.call)) for call in _concerned(history, finding, job)]
    rows += [(event.at, _event_row(event)) for event in history.events if event.kind != "health"]
    if finding.call is None:
        rows.append((finding.at, (finding.at, "", _said_of(history, finding), True)))
    rows.sort(key=lambda row: row[0])
    lines = [HEAD, *_lines([row for _, row in rows])]
    if len(lines) <= most + 1:
        return lines
    here = next((i for i, line in enumerate(lines) if line.endswith(_HERE)), len(lines) - 1)
    begin = max(1, min(here - most * 3 // 4, len(lines) - most))
    shown = lines[begin : begin + most]
    before, after = begin - 1, len(lines) - begin - len(shown)
    return [
        HEAD,
        *([f"          ... {before} earlier lines"] if before else []),
        *shown,
        *([f"          ... {after} later lines"] if after else []),
    ]


def _said_of(history: History, finding: Finding) -> str:
    """A finding that is no call: the probe of its instant, or the finding's own words."""
    probe = next((probe for probe in history.probes if probe.at == finding.at), None)
    if probe is None:
        return f"-- {finding.actual}"
    if probe.status is None:
        return f"health is asked -> no answer within {probe.seconds:.1f} s"
    body = probe.body if isinstance(probe.body, dict) else {}
    first = [name for name in ("activeJobs", "lastJobAt", "status") if name in body]
    told = " ".join(f"{name}={body[name]}" for name in [*first, *(name for name in body if name not in first)])
    return f"health is asked -> {probe.status} {told}".rstrip()


Row = tuple[float, str, str, bool]


def _concerned(history: History, finding: Finding, job: str | None) -> Iterator[Call]:
    for call in sorted((*history.calls, *history.others), key=lambda call: (call.sent, call.number)):
        near = abs(call.sent - finding.at) <= _AROUND
        about = call.job == job if call.job is not None else _tells_of(call, job)
        if call is finding.call or (about if job is not None else near):
            yield call


def _tells_of(call: Call, job: str | None) -> bool:
    return job is not None and (job in call.text or (call.operation == "pollJobs" and f'"{job}"' in call.answer_text))


def _lines(rows: list[Row]) -> Iterator[str]:
    """The rows; many alike after each other are one line."""
    for _, group in groupby(rows, key=lambda row: None if row[3] else (row[1], row[2])):
        alike = list(group)
        at, lock, text, here = alike[0]
        line = f"{at:8.3f}  {lock:<5}  {text}"
        if here:
            line += _HERE
        elif len(alike) > 1:
            line += f" ({len(alike)} times, the last at {alike[-1][0]:.3f})"
        yield line


def _event_row(event: Event) -> Row:
    said: dict[str, Callable[[Any], str]] = {
        "started": lambda _: "the Runtime is started",
        "signal": lambda data: f"SIG{data['signal']} is sent to the Runtime",
        "exited": lambda data: f"the Runtime's process ended with status {data['status']}",
        "output": lambda data: f"the Runtime printed a {data['secret']} ({data['form']}): {data.get('text', '')}",
        "note": lambda data: str(data["text"]),
    }
    return event.at, "", f"-- {said[event.kind](event.data)}" if event.kind in said else f"-- {event.kind}", False


def _call_row(history: History, call: Call, here: bool) -> Row:
    other = "" if call not in history.others else "another Runtime: "
    took = call.ended - call.sent
    slow = f" after {took:.1f} s" if took >= 0.5 else ""
    text = f"{other}{_asked(call)} -> {_answered(call)}{slow}"
    return call.sent, "" if other else _lock(history, call), text, here


def _lock(history: History, call: Call) -> str:
    """``held`` where the mock had the job locked for the Runtime when the request came."""
    if call.job is None:
        return ""
    hold = history.hold_of(call)
    if hold is None:
        return "-"
    if call is hold.lock:
        return "taken"
    until = hold.lock.sent + history.facts.lock
    for earlier in hold.calls:
        if earlier is call:
            break
        if earlier.operation == "heartbeatJob" and earlier.status == 204:
            until = earlier.sent + history.facts.lock
        elif earlier.operation in ("submitResult", "failJob") and 200 <= earlier.status < 300:
            return "over"
    return "held" if call.sent <= until else "lapsed"


def _asked(call: Call) -> str:
    job = f" {call.job}" if call.job else ""
    match call.operation:
        case "pollJobs":
            return "poll" if call.get("limit") is None else f"poll, limit {call.get('limit')}"
        case "failJob":
            return f"fail{job} {call.get('errorCode')} retryable={str(call.get('retryable')).lower()}"
        case "submitResult":
            return f"result{job} attempt {call.get('attemptNo')} hash {str(call.get('outputHash'))[:16]}"
        case "submitInvocationLogs":
            logs = call.get("logs")
            entries = [entry for entry in logs if isinstance(entry, dict)] if isinstance(logs, list) else []
            told = ", ".join(
                f"{entry.get('jobId')} success={str(entry.get('success')).lower()}" for entry in entries[:3]
            )
            return f"logs of {len(entries)} calls ({told}{', ...' if len(entries) > 3 else ''})"
        case None:
            return f"{call.method} {call.path[:70]}"
    words = {"lockJob": "lock", "heartbeatJob": "heartbeat", "getSnapshot": "snapshot", "resolveCredential": "resolve"}
    return f"{words.get(call.operation, 'model call' if call.operation == MODEL else call.operation)}{job}"


def _answered(call: Call) -> str:
    got = (call.fault or {}).get("got")
    if call.status == 0:
        return "no answer, the connection ended"
    code = f" {call.code}" if call.code else ""
    jobs = call.told("jobs") if call.operation == "pollJobs" else None
    listed = [job.get("id") for job in jobs if isinstance(job, dict)] if isinstance(jobs, list) else []
    more = f": {', '.join(map(str, listed[:4]))}{', ...' if len(listed) > 4 else ''}" if listed else ""
    if call.operation == "pollJobs" and not listed and call.status == 200:
        more = ": no job"
    if call.asks_to_stop:
        more = " with x-job-cancel-requested"
    kept = {"nothing": ", which never arrived", "part": ", of which a part arrived", "altered": " (spoilt)"}.get(
        got or ""
    )
    return f"{call.status}{code}{more}{kept or ''}"
