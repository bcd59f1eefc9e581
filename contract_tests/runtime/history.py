"""What was seen of one Runtime: its requests, its holds of locks, probes of its health, what its process did.

Monitors judge a :class:`History` and nothing else, so that a live run and a recording are judged alike. It is made of a
recording by ``recorded.histories``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.calls import MODEL, REPORTS, Call, Sighting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LOCK_SECONDS = 60.0
"""How long a lock lasts (RT-TIME-01)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the Runtime's surroundings; seconds. Defaults are the seed's."""

    scenario: str = "recording"
    instance_id: str | None = None
    """The RUNTIME_INSTANCE_ID that it was given; None where that is not known."""
    lock: float = LOCK_SECONDS
    heartbeat: float | None = None
    """The HEARTBEAT_INTERVAL_MS that it was given, in seconds."""
    poll: float | None = None
    """The POLL_INTERVAL_MS that it was given, in seconds."""
    model_timeout: float | None = None
    own_key: bool | None = None
    """Whether it was given a PLATFORM_MODEL_API_KEY; None where that is not known."""
    searched: bool = False
    """Whether its requests were searched for secrets: without that no sighting says nothing."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened beside requests. ``kind``: ``started``, ``signal``, ``exited``, ``output``, ``note``."""

    at: float
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Probe:
    """One request of ours for the Runtime's health. ``status`` None: no answer came within ``seconds``.

    ``instead`` tells what came in its place, where that is known: ``hung`` (it was taken, and the time ran out),
    ``garbled`` (bytes that are no HTTP, or that end too early), ``closed`` (a connection without a byte, or none).
    """

    at: float
    seconds: float
    status: int | None
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    instead: str | None = None

    @property
    def ended(self) -> float:
        """When it was answered, or given up."""
        return self.at + self.seconds


@dataclass(eq=False)
class Hold:
    """One grant of a job's lock to the Runtime, with all that it did about the job until the next grant.

    A grant whose answer was lost is one, too: ``lock.heard`` is False then.
    """

    job: str
    lock: Call
    calls: list[Call] = field(default_factory=list)
    """Everything about the job from sending the lock on, without the lock itself; model calls included, in order."""
    next_lock: Call | None = None
    """The Runtime's next request for this job's lock."""

    @property
    def begin(self) -> float:
        """When the lock was sent: spans count from here (RT-HB-60)."""
        return self.lock.sent

    def of(self, *operations: str) -> list[Call]:
        """Its calls of these operations."""
        return [call for call in self.calls if call.operation in operations]

    @property
    def heartbeats(self) -> list[Call]:
        """In order."""
        return self.of("heartbeatJob")

    @property
    def model_calls(self) -> list[Call]:
        """In order."""
        return self.of(MODEL)

    @property
    def reports(self) -> list[Call]:
        """Results and failures, in order."""
        return self.of(*REPORTS)

    @cached_property
    def known(self) -> float | None:
        """When the Runtime learnt that it holds the lock: by the lock's answer, or a heartbeat's; None: never."""
        if self.lock.ok:
            return self.lock.ended
        return next((call.ended for call in self.heartbeats if call.ok), None)

    @cached_property
    def stop(self) -> Call | None:
        """The first call whose answer asks to stop the job: a cancel request."""
        return next((call for call in self.calls if call.asks_to_stop), None)

    @cached_property
    def dropped(self) -> Call | None:
        """The first call whose answer says that the lock is not held or the job is not there (RT-HB-62)."""
        return next((call for call in self.calls if call.drops_work), None)

    @cached_property
    def settled(self) -> Call | None:
        """The first report whose answer ends the work: a success, or a refusal that no report can mend."""
        return next((call for call in self.reports if call.ok or (call.heard and call.status in (404, 409))), None)

    @cached_property
    def end(self) -> float | None:
        """When the Runtime knew that it is over: settled or dropped, whichever came first; None: never."""
        ends = [call.ended for call in (self.settled, self.dropped) if call is not None]
        return min(ends, default=None)

    def granted(self, name: str) -> Any:
        """A property of the lock's answer (``attemptNo``, ``timeoutSeconds``, ...)."""
        return self.lock.told(name)

    @property
    def limit(self) -> float | None:
        """The job's ``timeoutSeconds``."""
        seconds = self.granted("timeoutSeconds")
        return float(seconds) if isinstance(seconds, int | float) and not isinstance(seconds, bool) else None

    @property
    def final(self) -> Call | None:
        """The last report that was tried."""
        return self.reports[-1] if self.reports else None


@dataclass(eq=False)
class History:
    """One Runtime in one scenario. ``calls`` are its own, ``others`` those of other Runtimes, both in order."""

    facts: Facts
    calls: list[Call]
    others: list[Call] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    zero: float = 0.0
    """The instant from which all others count, epoch seconds: to compare what bodies say with."""

    def of(self, *operations: str | None) -> list[Call]:
        """Its calls of these operations."""
        return [call for call in self.calls if call.operation in operations]

    @property
    def polls(self) -> list[Call]:
        """In order."""
        return self.of("pollJobs")

    @cached_property
    def holds(self) -> list[Hold]:
        """Every grant of a lock, in order."""
        found: list[Hold] = []
        latest: dict[str, Hold] = {}
        for call in self.calls:
            if call.job is None:
                continue
            hold = latest.get(call.job)
            if call.operation == "lockJob":
                if hold is not None and hold.next_lock is None:
                    hold.next_lock = call
                if call.status == 200:
                    latest[call.job] = Hold(call.job, call)
                    found.append(latest[call.job])
                    continue
            if hold is not None and call.operation != "submitInvocationLogs":
                hold.calls.append(call)
        return found

    @cached_property
    def logs(self) -> list[tuple[Call, dict[str, Any]]]:
        """Every entry of every log submission, with the submission; one that was sent twice is there twice."""
        return [
            (call, entry)
            for call in self.of("submitInvocationLogs")
            for entry in (call.get("logs") if isinstance(call.get("logs"), list) else [])
            if isinstance(entry, dict)
        ]

    def hold_of(self, call: Call) -> Hold | None:
        """The hold that a call belongs to."""
        return self._hold_of.get(id(call))

    @cached_property
    def _hold_of(self) -> dict[int, Hold]:
        return {id(call): hold for hold in self.holds for call in (hold.lock, *hold.calls)}

    def happened(self, kind: str, **data: Any) -> Iterator[Event]:
        """Events of a kind whose data has these values."""
        for event in self.events:
            if event.kind == kind and all(event.data.get(name) == value for name, value in data.items()):
                yield event

    def signalled(self, name: str) -> list[float]:
        """When a signal (``TERM``, ``KILL``, ``STOP``, ``CONT``) was sent."""
        return [event.at for event in self.happened("signal", signal=name)]

    @cached_property
    def terms(self) -> list[tuple[float, float | None]]:
        """Each first SIGTERM of a process, with when that process ended; None: it did not."""
        found: list[tuple[float, float | None]] = []
        for at in self.signalled("TERM"):
            if not found or (found[-1][1] is not None and found[-1][1] < at):
                found.append((at, next((event.at for event in self.happened("exited") if event.at >= at), None)))
        return found

    def term_before(self, at: float) -> float | None:
        """When the process that lived at an instant had got SIGTERM before it; None where it had not."""
        begun = max((event.at for event in self.happened("started") if event.at <= at), default=-1.0)
        return next((term for term, _ in self.terms if begun <= term <= at), None)

    def interrupted(self, begin: float, end: float) -> bool:
        """Whether the process did not run all the time between two instants: it was stopped, killed, or had ended."""
        gone = [event.at for event in self.events if event.kind == "exited"]
        gone += [*self.signalled("KILL"), *self.signalled("STOP"), *self.signalled("CONT")]
        if any(begin <= at <= end for at in gone):
            return True
        stopped = [at for at in self.signalled("STOP") if at < begin]
        resumed = [at for at in self.signalled("CONT") if at < begin]
        return bool(stopped) and (not resumed or max(resumed) < max(stopped))

    def process_end(self, at: float) -> float | None:
        """When the process that lived at an instant ended (killed, or exited); None: not within the recording."""
        ends = [event.at for event in self.happened("exited")] + self.signalled("KILL")
        return min((end for end in ends if end >= at), default=None)

    @cached_property
    def end(self) -> float:
        """The last instant of which something is known."""
        instants = [call.ended for call in (*self.calls, *self.others)]
        instants += [event.at for event in self.events] + [probe.ended for probe in self.probes]
        return max(instants, default=0.0)

    @cached_property
    def output(self) -> list[tuple[float, Sighting, str]]:
        """Secrets on the process's own output: when, which, and the text around, the secret replaced."""
        return [
            (event.at, Sighting(event.data["secret"], "output", event.data["form"]), event.data.get("text", ""))
            for event in self.happened("output")
        ]


def jobs_listed(polls: Sequence[Call]) -> dict[str, tuple[Call, dict[str, Any]]]:
    """Every job that a poll's answer listed, with the first such poll and its entry there."""
    found: dict[str, tuple[Call, dict[str, Any]]] = {}
    for poll in polls:
        for entry in entries_of(poll):
            found.setdefault(entry["id"], (poll, entry))
    return found


def entries_of(poll: Call) -> list[dict[str, Any]]:
    """The jobs that a poll's answer lists, as the client got it; what is no entry is left out."""
    jobs = poll.told("jobs") if poll.ok else None
    return (
        [job for job in jobs if isinstance(job, dict) and isinstance(job.get("id"), str)]
        if isinstance(jobs, list)
        else []
    )
