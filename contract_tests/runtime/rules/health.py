"""The health operation that a Runtime may serve: what it answers, and whether that is true.

Where nobody serves it (it is optional) nothing is judged; who takes requests at its port and answers none serves it
ill. It is asked at 127.0.0.1: who answers, serves it there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.calls import MODEL, REPORTS, WORK
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules._common import (
    BASE,
    begun,
    is_integer,
    is_number,
    is_text,
    lapsed,
    renewals,
    same_life,
    span,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contract_tests.runtime.history import History, Hold, Probe

_TRUE = 0.5
"""Within this activeJobs is true (RT-HEALTH-53)."""
_IN_VAIN = 0.5
"""A probe without any answer counts where a job ran for so long while it waited, and as long before and after."""
_GIVEN_UP = 0.8
"""Of the lock's length: a Runtime whose heartbeats go unanswered need not work any longer."""
_CLOCK = 1.5
"""So far may two readings of one clock be apart that stand for the same event."""
_MILLISECONDS = (1e12, 1e14)
"""Epoch milliseconds from 2001 to 5138: seconds, microseconds and nanoseconds are outside."""


def _alive(history: History, probe: Probe) -> bool:
    """Whether the process ran when it was asked."""
    gone = [event.at for event in history.happened("exited") if begun(history, probe.at) <= event.at <= probe.ended]
    killed = [at for at in history.signalled("KILL") if begun(history, probe.at) <= at <= probe.ended]
    return not gone and not killed and not history.interrupted(probe.at, probe.ended)


def _answers(history: History) -> Iterator[tuple[Probe, dict[str, Any]]]:
    """Probes that were answered 200, with the body; one that is no object is an empty one."""
    for probe in history.probes:
        if probe.status == 200:
            yield probe, probe.body if isinstance(probe.body, dict) else {}


def _field(
    history: History, name: str, wanted: str, right: Callable[[Probe, Any], bool], needs: bool = True
) -> Iterator[Finding]:
    for probe, body in _answers(history):
        if name not in body:
            if needs:
                yield broken(probe.at, f"{name} in the answer of health ({wanted})", "none")
        elif right(probe, body[name]):
            yield kept(probe.at)
        else:
            yield broken(probe.at, f"{name} of health: {wanted}", repr(body[name])[:200])


@monitor("RT-HEALTH-02")
def served_by_the_runtime(history: History) -> Iterator[Finding]:
    """The Runtime serves health, and does not ask the API for it."""
    for call in history.calls:
        if call.path.rstrip("/") == f"{BASE}health":
            yield broken(call, "health served by the Runtime", f"{call.method} {call.path} sent to the API")
    for probe, _ in _answers(history):
        yield kept(probe.at)


@monitor("RT-HEALTH-03")
def success(history: History) -> Iterator[Finding]:
    """Health is answered with 200: by HTTP, and where somebody listens at its port, at all."""
    hung = _never_answered(history)
    if hung:
        wanted = "200 from health, or nobody who listens there (it is optional)"
        yield broken(hung[0].at, wanted, f"{len(hung)} requests were taken, and none was answered, whatever it was")
    for probe in history.probes:
        if probe.status == 200:
            yield kept(probe.at)
        elif probe.instead == "garbled" and _alive(history, probe) and history.term_before(probe.ended) is None:
            yield broken(probe.at, "200 from health", "bytes that are no answer in HTTP, or that end too early")
        elif probe.status is None or probe.status in (401, 403, 404, 405) or history.term_before(probe.at) is not None:
            continue
        else:
            yield broken(probe.at, "200 from health", f"{probe.status}")


def _never_answered(history: History) -> list[Probe]:
    """Probes that somebody took and left without any answer, where not one was answered, and it was so twice."""
    if any(probe.status is not None for probe in history.probes):
        return []
    hung = [
        probe
        for probe in history.probes
        if probe.instead == "hung" and _alive(history, probe) and history.term_before(probe.ended) is None
    ]
    return hung if len(hung) > 1 else []


@monitor("RT-HEALTH-04")
def instance(history: History) -> Iterator[Finding]:
    """Health says which Runtime it is: runtimeInstanceId."""
    own = history.facts.instance_id
    wanted = "the Runtime's instance id, a string" if own is None else f"{own!r}, its RUNTIME_INSTANCE_ID"
    yield from _field(history, "runtimeInstanceId", wanted, lambda _, value: is_text(value) and own in (None, value))


@monitor("RT-HEALTH-05")
def status(history: History) -> Iterator[Finding]:
    """Health has the status ok; another string only while the Runtime drains."""

    def right(probe: Probe, value: Any) -> bool:
        draining = history.term_before(probe.ended) is not None
        return isinstance(value, str) if draining else value == "ok"

    yield from _field(history, "status", "'ok' (while it drains any string)", right)


@monitor("RT-HEALTH-06")
def version(history: History) -> Iterator[Finding]:
    """Health has a version, a string."""
    yield from _field(history, "version", "a string such as '0.1.0'", lambda _, value: is_text(value))


@monitor("RT-HEALTH-07")
def started_at(history: History) -> Iterator[Finding]:
    """Health has startedAt, a number: when the process started."""

    def right(probe: Probe, value: Any) -> bool:
        if not is_number(value):
            return False
        if not _MILLISECONDS[0] <= value <= _MILLISECONDS[1]:
            return True  # what it counts is RT-TIME-05's
        at, known = value / 1000 - history.zero, begun(history, probe.at)
        return known == float("-inf") or known - _CLOCK <= at <= probe.ended + _CLOCK

    yield from _field(history, "startedAt", "a number, the epoch milliseconds at which it was started", right)


@monitor("RT-HEALTH-08")
def last_job_at(history: History) -> Iterator[Finding]:
    """Health has lastJobAt, a number, or null."""
    yield from _field(history, "lastJobAt", "a number, or null", lambda _, value: value is None or is_number(value))


@monitor("RT-HEALTH-09")
def active_jobs(history: History) -> Iterator[Finding]:
    """Health has activeJobs, a whole number."""
    yield from _field(history, "activeJobs", "a whole number from 0", lambda _, value: is_integer(value) and value >= 0)


@monitor("RT-HEALTH-10")
def without_key(history: History) -> Iterator[Finding]:
    """Health answers without a key."""
    for probe in history.probes:
        if probe.status in (401, 403):
            yield broken(probe.at, "an answer of health without x-internal-api-key", f"{probe.status}")
        elif probe.status == 200:
            yield kept(probe.at)


@monitor("RT-TIME-05")
def milliseconds(history: History) -> Iterator[Finding]:
    """Instants in the answer of health are epoch milliseconds."""
    for name in ("startedAt", "lastJobAt"):
        for probe, body in _answers(history):
            value = body.get(name)
            if is_number(value):
                right = _MILLISECONDS[0] <= value <= _MILLISECONDS[1]
                wanted = f"{name} of health in epoch milliseconds (13 digits)"
                yield kept(probe.at) if right else broken(probe.at, wanted, f"{value}")


@monitor("RT-HEALTH-51")
def null_before(history: History) -> Iterator[Finding]:
    """Before the process's first job lastJobAt is null."""
    for probe, body in _answers(history):
        locks = [
            call
            for call in history.of("lockJob", *WORK)
            if call.sent <= probe.ended and _here(history, call.sent, probe)
        ]
        # Of a process that was there before it can't be told what it did then.
        born = any(event.at <= probe.at for event in history.happened("started"))
        if born and not locks and "lastJobAt" in body:
            value = body["lastJobAt"]
            right = value is None
            yield kept(probe.at) if right else broken(probe.at, "lastJobAt null before the first job", f"{value}")


def _here(history: History, at: float, probe: Probe) -> bool:
    return same_life(history, at, probe.at)


def _seen(history: History, probe: Probe, later: float = 0.0) -> list[Hold]:
    """Holds of the process that was asked, up to an instant after the answer."""
    return [hold for hold in history.holds if hold.begin <= probe.ended + later and _here(history, hold.begin, probe)]


def _ended(hold: Hold, before: float) -> float | None:
    """When a hold was settled, where that was before an instant."""
    return hold.end if hold.end is not None and hold.end <= before else None


@monitor("RT-HEALTH-52")
def start_or_end(history: History) -> Iterator[Finding]:
    """After the first job lastJobAt is the start or the end of the last."""
    for probe, body in _answers(history):
        holds, value = _seen(history, probe), body.get("lastJobAt")
        done = [hold for hold in holds if _ended(hold, probe.at - _TRUE) is not None and hold.lock.ok]
        if not done or (is_number(value) and not _MILLISECONDS[0] <= value <= _MILLISECONDS[1]):
            continue
        if not is_number(value):
            yield broken(probe.at, "lastJobAt of health a number after the first job", repr(value)[:80])
            continue
        told = value / 1000 - history.zero
        last = [hold for hold in holds if not any(_ended(hold, later.begin - _CLOCK) is not None for later in done)]
        if any(first - _CLOCK <= told <= until + _CLOCK for hold in last for first, until in _spans(hold, probe)):
            yield kept(probe.at)
        else:
            job = max(done, key=lambda hold: hold.end or 0)
            wanted = (
                f"lastJobAt the start or the end of the last job ({job.job}, ended {span(job.end or 0)} from the start)"
            )
            yield broken(probe.at, wanted, f"{span(told)} from the start")


def _spans(hold: Hold, probe: Probe) -> list[tuple[float, float]]:
    """Where the start and the end of a hold may lie, as the Runtime sees them."""
    if hold.known is None or hold.end is None or hold.end > probe.at - _TRUE:
        return [(hold.begin, probe.ended)]
    reports = [call.sent for call in hold.calls if call.operation in REPORTS]
    return [(hold.begin, hold.known), (min([*reports, hold.end]), max([*reports, hold.end]))]


@monitor("RT-HEALTH-53")
def true_count(history: History) -> Iterator[Finding]:
    """activeJobs is true to the work within 0.5 s."""
    for probe, body in _answers(history):
        value = body.get("activeJobs")
        if not is_integer(value):
            continue
        least = sum(_surely(history, hold, probe) for hold in _seen(history, probe))
        most = sum(_perhaps(history, hold, probe) for hold in _seen(history, probe, _TRUE))
        # A slot may be taken before a lock is answered, though it be refused.
        most += sum(
            lock.status != 200 and lock.sent - _TRUE <= probe.ended and lock.ended + _TRUE >= probe.at
            for lock in history.of("lockJob")
        )
        # What it works on without a lock is RT-LOCK-14's.
        held = {hold.job for hold in history.holds}
        most += len({call.job for call in history.of(*WORK) if call.sent <= probe.ended} - held)
        if least <= value <= most:
            yield kept(probe.at)
        else:
            jobs = f"{least}" if least == most else f"{least} to {most}"
            yield broken(probe.at, f"activeJobs {jobs}, true within 0.5 s", f"{value}")


def _surely(history: History, hold: Hold, probe: Probe) -> bool:
    """Whether the Runtime worked on it for sure, half a second before a probe and after."""
    ends = [call.ended for call in (hold.stop, hold.dropped) if call is not None]
    ends += [call.sent for call in hold.reports[:1]]
    gone = lapsed(history, hold)
    if gone is not None:
        ends.append(gone)
    if not ends:
        ends = [max((call.ended if call.operation == MODEL else call.sent for call in hold.calls), default=hold.begin)]
    if hold.known is not None and hold.heartbeats and not hold.heartbeats[-1].ok:
        # Who hears nothing may give it up while the lock still holds.
        ends.append(max(call.sent for call in renewals(hold)) + _GIVEN_UP * history.facts.lock)
    # One that is locked may wait for its turn.
    begins = [call.sent for call in hold.of(*WORK)]
    if hold.known is None or not begins:
        return False
    return max(hold.known, begins[0]) <= probe.at - _TRUE and min(ends) >= probe.ended + _TRUE


def _perhaps(history: History, hold: Hold, probe: Probe) -> bool:
    """Whether the Runtime may have worked on it: its logs belong to it, too."""
    if hold.end is None:
        return True
    # Whoever works on after the end is told by other rules.
    end = max([hold.end, *(call.ended for call in hold.calls)])
    for call, entry in history.logs:
        if entry.get("jobId") == hold.job and call.sent <= end + _TRUE:
            end = max(end, call.ended)
    return end >= probe.at - _TRUE


@monitor("RT-HEALTH-54")
def while_jobs_run(history: History) -> Iterator[Finding]:
    """Health answers while jobs run."""
    served = any(True for _ in _answers(history)) or bool(_never_answered(history))
    waited = _waited(history)
    if waited:
        actual = f"it came {span(waited[0].seconds)} later, when no job ran any more; so did {len(waited) - 1} more"
        yield broken(waited[0].at, "an answer of health while jobs run", actual)
    for probe in history.probes:
        asked = probe if probe.status is not None else replace(probe, seconds=min(probe.seconds, _IN_VAIN))
        running = [hold for hold in _seen(history, probe) if _surely(history, hold, asked)]
        if not served or not running or not _alive(history, probe):
            continue
        if probe.status == 200:
            yield kept(probe.at)
        elif probe.status is None or probe.status >= 500:
            what = "no answer" if probe.status is None else f"{probe.status}"
            yield broken(
                probe.at, f"an answer of health while {running[0].job} runs", f"{what} in {span(probe.seconds)}"
            )


def _waited(history: History) -> list[Probe]:
    """Probes whose answers waited for the end of the work, where none was answered earlier, and it was so twice."""
    found = []
    for probe, _ in _answers(history):
        holds = [
            hold for hold in _seen(history, probe) if hold.known is not None and hold.known <= probe.at - _TRUE / 10
        ]
        ends = [hold.end or probe.ended + 1 for hold in holds if hold.end is None or hold.end > probe.at]
        if ends and probe.seconds < _TRUE and max(ends) > probe.ended:
            return []
        if ends and probe.seconds >= _TRUE and probe.ended - _TRUE <= max(ends) <= probe.ended + _TRUE / 10:
            found.append(probe)
    return found if len(found) > 1 else []
