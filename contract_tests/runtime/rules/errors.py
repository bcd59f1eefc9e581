"""What a Runtime makes of refusals: the table's retryable column, codes and properties that it does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.runtime.calls import MODEL, WORK
from contract_tests.runtime.history import entries_of
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules._common import (
    GRACE,
    JOB_TYPES,
    STOPS,
    WIRE,
    ended_itself,
    flawless,
    follows,
    idle_since,
    late,
    over,
    passed_over,
    ran_until,
    renewals,
    same_life,
    silence,
    span,
    unknown_code,
    watched,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

FINAL = {
    *("JOB_NOT_FOUND", "SNAPSHOT_NOT_FOUND", "CREDENTIAL_NOT_FOUND", "CREDENTIAL_INVALID", "RESULT_ALREADY_EXISTS"),
    *("RESULT_SCHEMA_UNSUPPORTED",),
}
"""Codes of the table that are not retryable. After RUNTIME_VERSION_INCOMPATIBLE, which polls get, it polls on."""
_SECONDS = 10.0
"""Within this a report is tried again (RT-RES-86)."""
_ENTRY = {
    *("id", "jobType", "targetType", "targetId", "priority", "snapshotId", "promptVersion", "outputSchemaVersion"),
    *("attemptNo", "apiKeyMode", "credentialId", "modelProvider", "modelName", "timeoutSeconds", "params"),
}
PROPERTIES = {
    "pollJobs": {"jobs"},
    "lockJob": {"jobId", "status", "lockUntil", *_ENTRY},
    "getSnapshot": {
        *("jobId", "snapshotId", "snapshotVersion", "privacyScope", "userProfile", "aiSettings", "constraints"),
        *("learningBehaviorSummary", "materialProgressSummary", "behaviorSignals", "scoreSignals"),
        *("allowedModelFields", "documentContent"),
    },
    "resolveCredential": {"provider", "model", "baseUrl", "apiKey", "apiKeyMode"},
    "submitResult": {"jobId", "status", "resultIdempotencyKey"},
    "failJob": {"jobId", "status", "retryCount"},
    "submitInvocationLogs": {"accepted"},
}
"""What answers hold that a Runtime knows."""


@monitor("RT-ERR-16")
def final_codes(history: History) -> Iterator[Finding]:
    """A call that was refused with a code that is not retryable is not repeated."""
    for hold in history.holds:
        # What drops the work is RT-HB-62's.
        for call in hold.calls:
            if call.operation == MODEL or not call.heard or call.code not in FINAL or call.drops_work:
                continue
            again = next((c for c in hold.of(call.operation or "") if c.sent >= call.ended), None)
            if again is not None and (call.operation != "submitResult" or again.get("outputHash") == _hash(call)):
                actual = f"the same request again after {span(again.sent - call.ended)}"
                yield broken(again, f"no {call.name} again after {call.code}, which is not retryable", actual)
            elif watched(history, call.ended):
                yield kept(call)
    for call in history.of("lockJob"):
        if call.heard and call.code == "JOB_NOT_FOUND":
            again = next((c for c in history.of("lockJob") if c.job == call.job and c.sent > call.ended + GRACE), None)
            if again is None:
                yield kept(call)
            elif not _listed(history, call, again):
                yield broken(again, f"no {call.name} again after JOB_NOT_FOUND", "it was sent again, listed by no poll")


def _hash(call: Call) -> object:
    return call.get("outputHash")


def _listed(history: History, since: Call, until: Call) -> bool:
    """Whether a poll's answer between two calls lists their job."""
    polls = [poll for poll in history.polls if since.sent < poll.ended <= until.sent + WIRE]
    return any(entry["id"] == since.job for poll in polls for entry in entries_of(poll))


@monitor("RT-ERR-84")
def by_status(history: History) -> Iterator[Finding]:
    """A refusal whose code the Runtime can't know is judged by its HTTP status."""
    for call in history.of("lockJob"):
        if unknown_code(call):
            yield from _no_lock(history, call)
    for hold in history.holds:
        for call in hold.calls:
            if not unknown_code(call) or call.operation == MODEL:
                continue
            if call.operation in ("submitResult", "failJob"):
                yield from _report(history, hold, call)
            elif call.operation in ("getSnapshot", "resolveCredential"):
                yield from _input(hold, call)


def _no_lock(history: History, call: Call) -> Iterator[Finding]:
    end = next((c.sent for c in history.of("lockJob") if c.job == call.job and c.sent > call.sent), float("inf"))
    work = [c for c in history.of(*WORK) if c.job == call.job and call.ended + GRACE < c.sent < end]
    if any(hold.job == call.job and hold.begin < call.sent for hold in history.holds):
        return
    if work:
        yield broken(work[0], f"{call.job} left alone after {call.status} {call.code} on its lock", f"{work[0].name}")
    elif watched(history, call.ended):
        yield kept(call)


def _report(history: History, hold: Hold, call: Call) -> Iterator[Finding]:
    """5xx: the same again; 4xx: never the same again."""
    again = next((c for c in hold.of(call.operation or "") if c.sent > call.sent), None)
    told = f"{call.status} {call.code} on {call.name}"
    if call.status >= 500:
        lapse = max(c.sent for c in renewals(hold) if c.sent <= call.sent) + history.facts.lock
        deadline = min(call.ended + late(_SECONDS), lapse)
        if again is not None:
            yield kept(again)
        elif hold.dropped is None and deadline - call.ended > STOPS and ran_until(history, call.ended) >= deadline:
            wanted = f"the same report again within 10 s of {told}, while the lock holds"
            yield broken(call, wanted, f"no further one in {span(deadline - call.ended)}")
    elif again is not None and again.sent >= call.ended and again.text == call.text:
        yield broken(again, f"no repetition after {told}", f"the same again after {span(again.sent - call.ended)}")
    elif watched(history, call.ended):
        yield kept(call)


def _input(hold: Hold, call: Call) -> Iterator[Finding]:
    """A snapshot or credential: after 5xx and 410 a failure is retryable, after another 4xx it is not."""
    if call.status in (401, 403, 408, 429):
        return
    retryable = call.status >= 500 or call.status == 410
    told = f"{call.status} {call.code} on {call.name}"
    later = [c for c in hold.calls if follows(c, call)]
    if any(c.operation == call.operation and c.ok for c in later):
        yield from () if not retryable else (kept(call),)
        return
    used = next((c for c in later if c.operation == MODEL and c.sent > call.ended + GRACE), None)
    fail = next((c for c in later if c.operation == "failJob"), None)
    if used is not None:
        yield broken(used, f"no model call after {told}", f"a model call after {span(used.sent - call.ended)}")
    elif fail is not None and fail.get("retryable") is not retryable:
        wanted = f"a failure with retryable {str(retryable).lower()} after {told}"
        yield broken(fail, wanted, f"{fail.get('errorCode')} with retryable {fail.get('retryable')}")
    elif fail is not None:
        yield kept(fail)


@monitor("RT-ERR-85")
def goes_on(history: History) -> Iterator[Finding]:
    """An error code or property in an answer that it can't know stops neither the Runtime nor its work on the job."""
    for call in history.calls:
        what = strange(call)
        if what is None:
            continue
        ignored = _ignored(history, call)
        if ignored is not None:
            since = span(ignored[1].sent - call.ended)
            actual = f"{ignored[0]} was listed for {since}, and its lock was never asked for"
            yield broken(ignored[1], f"a Runtime that goes on after {what}", actual)
            continue
        hold = history.hold_of(call)
        following = next((c for c in history.calls if follows(c, call)), None)
        stopped = _stopped(history, call)
        if stopped is not None:
            yield broken(call, f"a Runtime that goes on after {what}", stopped)
            continue
        if hold is not None and call.ok and call.operation in ("lockJob", "getSnapshot", "resolveCredential"):
            fail = next((c for c in hold.of("failJob") if follows(c, call)), None)
            odd = [c for c in (hold.lock, *hold.calls) if strange(c) is not None]
            wanted = f"work on {hold.job} that goes on after {what}"
            if fail is not None and flawless(history, hold, fail, odd):
                actual = f"{hold.job} was failed with {fail.get('errorCode')} though nothing else had happened"
                yield broken(fail, wanted, actual)
                continue
            quiet = ran_until(history, call.ended) - call.ended
            if call is [hold.lock, *hold.calls][-1] and quiet > late(history.facts.lock):
                yield broken(call, wanted, f"nothing about {hold.job} for {span(quiet)}")
                continue
            if not any(follows(c, call) for c in hold.calls):
                continue
        if following is not None and same_life(history, call.sent, following.sent):
            yield kept(following)


def _ignored(history: History, call: Call) -> tuple[str, Call] | None:
    """A job that a poll listed and the idle Runtime never asked for, with the poll at which that was plain."""
    for entry in entries_of(call) if call.operation == "pollJobs" else ():
        if entry.get("jobType") in JOB_TYPES and entry["jobType"] in (call.get("supportedJobTypes") or ()):
            at = passed_over(history, entry["id"], call.sent)
            if at is not None:
                return entry["id"], at
    return None


def strange(call: Call) -> str | None:
    """What an answer has that a Runtime can't know; None: nothing."""
    if unknown_code(call) and call.operation != MODEL:
        return f"the unknown error code {call.code} on {call.name}"
    if not call.ok or not isinstance(call.answer, dict) or call.operation not in PROPERTIES:
        return None
    unknown = set(call.answer) - PROPERTIES[call.operation]
    for entry in entries_of(call) if call.operation == "pollJobs" else ():
        unknown |= set(entry) - _ENTRY
    return f"the unknown property {min(unknown)} in the answer to {call.name}" if unknown else None


def _stopped(history: History, call: Call) -> str | None:
    """What shows that the Runtime stopped after a call: its process ended by itself, or is silent though idle."""
    later = [c for c in history.calls if follows(c, call) and same_life(history, call.sent, c.sent)]
    end = ended_itself(history, call.ended)
    if end is not None and not any(c.operation == "pollJobs" for c in later):
        return f"the process ended by itself {span(end.at - call.ended)} later"
    begin, stop = idle_since(history, call.ended), ran_until(history, call.ended)
    hold = history.hold_of(call)
    if hold is not None and over(history, hold) is None:
        return None
    if not any(c.operation == "pollJobs" for c in later) and stop - begin > silence(history):
        return f"no poll for {span(stop - begin)}"
    return None
