"""The situations in which generated requests meet a job, and the jobs that wait in them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contract_tests.client import JobRef
from contract_tests.fuzz import trials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract_tests.given import Given

HOLDER, OTHER = "runtime-a", "runtime-b"
STORED_HASH = "sha256-abc123"
"""The hash of the result that :meth:`Given.api.result` stores."""


@dataclass(frozen=True, eq=False)
class Situation:
    """A job's way to where it waits: provider states and calls, then ``state``, held by ``holder`` if by anybody."""

    name: str
    state: str
    way: tuple[str, ...] = ()
    holder: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    credential: str | None = None
    """Whose key the job is to use: ``valid``, ``invalid``, ``others``, ``unknown``; None: the platform's."""
    stop_asked: bool = False

    @property
    def needs(self) -> frozenset[str]:
        """The provider states without which it can't be reached."""
        more = {"cancel": "cancel-job", "revoke": "revoke-ai-consent", "lapse": "advance-time"}
        found = {"job", *(more[step] for step in self.way if step in more)}
        return frozenset(found | ({"credential"} if self.credential not in (None, "unknown") else set()))


def _held(name: str, *way: str, by: str = HOLDER, **more: Any) -> Situation:
    return Situation(name, "running" if "heartbeat" in way else "locked", way, by, **more)


NO_RETRY = {"maxRetryCount": 0}
PENDING = Situation("pending", "pending")
LOCKED = _held("locked", "lock")
RUNNING = _held("running", "lock", "heartbeat")
WAITING = (
    PENDING,
    Situation("pending after a retry", "pending", ("lock", "fail")),
    Situation("pending after a lapse", "pending", ("lock", "lapse")),
)
HELD = (
    LOCKED,
    RUNNING,
    _held("locked by another", "lock", by=OTHER),
    _held("running for another", "lock", "heartbeat", by=OTHER),
)
STOPPED = (
    _held("locked, to be stopped", "lock", "revoke", stop_asked=True),
    _held("running, to be stopped", "lock", "heartbeat", "revoke", stop_asked=True),
)
LAST = (
    _held("locked for the last time", "lock", params=NO_RETRY),
    _held("running for the last time", "lock", "heartbeat", params=NO_RETRY),
)
FINISHED = (
    Situation("succeeded", "succeeded", ("lock", "heartbeat", "result")),
    Situation("failed", "failed", ("lock", "heartbeat", "fail"), params=NO_RETRY),
    Situation("failed by a lapse", "failed", ("lock", "lapse"), params=NO_RETRY),
    Situation("cancelled", "cancelled", ("cancel",)),
)
EVERY = (*WAITING, *HELD, *FINISHED)
SNAPSHOTS = tuple(
    _held(f"running, snapshot {kind}", "lock", "heartbeat", params={"snapshot": kind})
    for kind in ("expired", "missing", "none")
)
CREDENTIALS = tuple(
    _held(f"running, credential {kind}", "lock", "heartbeat", credential=kind)
    for kind in ("valid", "invalid", "others", "unknown")
)

OF: Mapping[str, tuple[Situation, ...]] = {
    "pollJobs": (PENDING,),
    "lockJob": (*EVERY, *WAITING),
    "heartbeatJob": (*EVERY, *STOPPED),
    "getSnapshot": (*EVERY, *SNAPSHOTS, RUNNING),
    "resolveCredential": (*EVERY, *CREDENTIALS, RUNNING),
    "submitResult": (*EVERY, *STOPPED, LOCKED, RUNNING),
    "failJob": (*EVERY, *STOPPED, *LAST),
    "submitInvocationLogs": (PENDING, RUNNING),
}
"""Where valid requests of an operation find a job."""
READY: Mapping[str, tuple[Situation, ...]] = {
    **dict.fromkeys(("heartbeatJob", "submitResult", "failJob"), (RUNNING, LOCKED)),
    **dict.fromkeys(("getSnapshot",), (RUNNING,)),
    **dict.fromkeys(("resolveCredential",), (RUNNING, CREDENTIALS[0])),
    **dict.fromkeys(("pollJobs", "lockJob", "submitInvocationLogs"), (PENDING,)),
}
"""Where a valid request of an operation would succeed: what accepts an invalid one, too, shows it there."""
OFFERED = (
    PENDING,
    PENDING,
    Situation("pending for the last time", "pending", params=NO_RETRY),
    Situation("pending, snapshot expired", "pending", params={"snapshot": "expired"}),
    Situation("pending, credential valid", "pending", credential="valid"),
)
"""Jobs that wait at the start of a sequence."""


@dataclass
class Job:
    """A job in a situation, and what is known of it."""

    ref: JobRef
    situation: Situation
    state: str
    holder: str | None
    credential: str | None = None
    row: dict[str, Any] | None = None
    """Every column as it was last seen; None where the build does not show them."""
    refused: list[trials.Step[Job]] = field(default_factory=list)
    """Requests that were refused since ``row`` was seen."""
    made: float = field(default_factory=time.monotonic)

    @property
    def id(self) -> str:
        """The job's id."""
        return self.ref.id

    @property
    def names(self) -> list[str]:
        """What another job in its place has other values of: its ids."""
        return [name for name in (self.ref.id, self.ref.user_id, self.credential) if name]


async def make(given: Given, situation: Situation, **params: Any) -> Job:
    """A job of its own in a situation. Skips the check where the build does not offer a provider state for it."""
    user, credential = given.unique("user"), None
    columns = {"userId": user, **situation.params, **params}
    if situation.credential == "unknown":
        credential = given.unique("credential")
    elif situation.credential:
        owner = given.unique("user") if situation.credential == "others" else user
        status = "invalid" if situation.credential == "invalid" else "valid"
        values = await given.states.set_up("credential", {"userId": owner, "status": status})
        credential = values["credentialId"]
    if credential:
        columns |= {"apiKeyMode": "user_deepseek_key", "credentialId": credential}
    job = Job(await given.job(**columns), situation, situation.state, situation.holder, credential)
    for step in situation.way:
        await _go(given, job, step)
    await look(given, job)
    return job


async def _go(given: Given, job: Job, step: str) -> None:
    by = job.holder or HOLDER
    match step:
        case "lock":
            await given.api.lock(job.ref, by=by).succeeds()
        case "heartbeat":
            await given.api.heartbeat(job.ref, by=by).succeeds()
        case "result":
            await given.api.result(job.ref, by=by, hash=STORED_HASH).succeeds()
        case "fail":
            await given.api.fail(job.ref, by=by).succeeds()
        case "cancel":
            await given.states.set_up("cancel-job", {"jobId": job.ref.id})
        case "revoke":
            await given.revoke_ai_consent(job.ref.user_id)
        case "lapse":
            await given.lapse()
            await given.settles(job.ref)


async def look(given: Given, job: Job) -> None:
    """See every column of the job, where the build shows them."""
    if "inspect-job" in given.states.offered:
        job.row = await given.inspect(job.ref)
        job.state = str(job.row.get("status"))
    job.refused.clear()


class Stock(trials.Stock[Job]):
    """Jobs that wait in situations; one that a request has changed is taken out, and the next is made anew."""

    def __init__(self, given: Given, situations: Sequence[Situation]) -> None:
        offered = given.states.offered
        super().__init__(item for item in situations if item.needs <= offered)
        self.given = given
        clock = given.clock
        life = given.timing.lock / max(clock.rate, 1) * 0.4
        self._life = float("inf") if clock.stands else life

    async def open(self) -> None:
        """Make what has to lapse first: that takes time, in which other locks would lapse, too."""
        lapsing = [item for item in self.situations if "lapse" in item.way]
        for situation in dict.fromkeys(lapsing):
            self.kept[situation.name] = await make(self.given, situation)

    async def make(self, situation: Situation) -> Job | None:
        """A job in the situation; None where it can't be made again without letting the others lapse."""
        return None if "lapse" in situation.way else await make(self.given, situation)

    def stale(self, job: Job) -> bool:
        """Whether the job's lock may lapse by itself before long."""
        return job.holder is not None and time.monotonic() - job.made > self._life
