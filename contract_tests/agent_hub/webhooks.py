"""What checks of webhooks share: events picked out of what came, what was due waited for, repeated tries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.given import LONG
from contract_tests.agent_hub.receiver import WITHIN
from contract_tests.checks import CheckFailed, about, expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contract_tests.agent_hub.given import HubGiven, Job, Project
    from contract_tests.agent_hub.receiver import Delivery, Hook

COMPLETED, FAILED, CANCELLED = "job.completed", "job.failed", "job.cancelled"
BATCH = "batch.completed"
RULES = {COMPLETED: "HUB-WH-50", FAILED: "HUB-WH-51", CANCELLED: "HUB-WH-52", BATCH: "HUB-WH-02"}
"""The rule by which an event is sent, under its type, at all."""
TYPES = {"done": COMPLETED, "failed": FAILED, "cancelled": CANCELLED}
"""What is told of a job that came into a state."""
QUIET = 0.3
"""Real seconds after which, on a clock that flows, nothing is taken to come any more of what was due before."""
EXACT = 0.001
"""The smallest step of a build's clock, seconds."""


def event_of(delivery: Delivery) -> tuple[str | None, str | None]:
    """The type of an event and the id of its job or batch; None for what is not there."""
    try:
        body = json.loads(delivery.body)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(body, dict):
        return None, None
    data = body.get("data")
    name = "batchId" if body.get("type") == BATCH else "id"
    return _text(body.get("type")), _text(data.get(name)) if isinstance(data, dict) else None


def names(delivery: Delivery, id_: str) -> bool:
    """Whether an id stands in what came, whatever its form."""
    return id_ in says(delivery)


def says(delivery: Delivery) -> str:
    """All texts that came, whatever their form and however JSON spells them."""
    try:
        return "\n".join(_texts(json.loads(delivery.body)))
    except (ValueError, RecursionError):
        return delivery.body.decode("utf-8", "replace")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts(item)


def events(hook: Hook, kind: str, of: str | None = None) -> list[Delivery]:
    """The deliveries of a type that came so far, of a job or a batch, in order; repeated tries stand for themselves."""
    found = [(delivery, *event_of(delivery)) for delivery in list(hook.deliveries)]
    return [delivery for delivery, type_, id_ in found if type_ == kind and of in (None, id_)]


def told(hook: Hook, of: str) -> list[str]:
    """The types of the protocol's events that came of a job or a batch, in order."""
    found = [event_of(delivery) for delivery in list(hook.deliveries)]
    return [type_ for type_, id_ in found if id_ == of and type_ in RULES]


def finished(hook: Hook, batch: str) -> list[Delivery]:
    """What came to a hook and says `batch.completed` of a batch, whatever its form: the seed shows none."""
    return [one for one in list(hook.deliveries) if _says_finished(one) and names(one, batch)]


def _says_finished(delivery: Delivery) -> bool:
    return BATCH in says(delivery) or BATCH in delivery.headers.values()


async def comes(hook: Hook, kind: str, of: str, number: int = 1) -> Delivery:
    """The delivery of an event of a job or a batch, of that number, from 1; waits for it.

    Where it is what a check starts from, its failure is told under the rule that is to blame: nothing at all was told,
    or not in the form of an event, or under another type.
    """
    if not await hook.receiver.wait(lambda: len(events(hook, kind, of)) >= number, WITHIN):
        failure = CheckFailed(f"a webhook `{kind}` of {of} within {WITHIN:g} s", f"none; {hook.so_far()}")
        if number > 1:
            raise failure
        with about(blamed(hook, kind, of), step=f"a webhook `{kind}`"):
            raise failure
    return events(hook, kind, of)[number - 1]


def blamed(hook: Hook, kind: str, of: str) -> str:
    """The rule that is broken where an event is not there."""
    came = [event_of(delivery)[0] for delivery in hook.deliveries if names(delivery, of)]
    if came and not any(came):
        return "HUB-WH-53"
    return "HUB-WH-01" if not came and kind == COMPLETED else RULES[kind]


async def settle(given: HubGiven) -> None:
    """Whatever is due by now has come, as far as it ever does."""
    if given.clock.stands:
        await given.clock.advance(0)
    else:
        await given.receiver.wait(lambda: False, QUIET)


async def begins(given: HubGiven) -> None:
    """The jobs of a submission, whose ``queuedAt`` are milliseconds apart, have all had their time to start."""
    if given.clock.stands:
        await given.clock.advance(1)


async def ends(given: HubGiven, hook: Hook | None, how: str = "done", **fields: Any) -> Job:
    """A job that came into a final state: ``done``, ``failed`` for good, or ``cancelled`` while it ran."""
    if hook is not None:
        fields["callbackUrl"] = hook.url
    if how == "cancelled":
        job = await given.running_job(**fields)
        await cancel(given, job)
        return job
    return await given.in_state(how, **fields)


async def cancel(given: HubGiven, job: Job | str) -> None:
    """A job is cancelled, which checks start from."""
    with about("HUB-CANCEL-01", step="cancelling a job"):
        await given.api.cancel(job).succeeds()
    await given.until(job, "cancelled")


async def told_of_cancel(given: HubGiven, hook: Hook, **fields: Any) -> tuple[str, str]:
    """A running job was cancelled just now, and its event was tried once; the event, as of :func:`repeats`.

    A cancel happens at the instant of the request: of what happens by itself one knows less well when it was told.
    """
    job = await given.running_job(callbackUrl=hook.url, **fields)
    await cancel(given, job)
    await comes(hook, CANCELLED, job.id)
    return CANCELLED, job.id


async def all_told_of_cancel(given: HubGiven, hooks: Sequence[Hook]) -> list[tuple[str, str]]:
    """Jobs of one batch, one for each hook, were cancelled together just now, and their events tried once."""
    batch, on = given.unique("batch"), await project(given, ENDLESS)
    jobs = await given.submitted([item(on, callbackUrl=hook.url) for hook in hooks], batch=batch)
    with about("HUB-BATCH-16", step="cancelling a batch"):
        await given.api.cancel_batch(batch).succeeds()
    for hook, id_ in zip(hooks, jobs, strict=True):
        await comes(hook, CANCELLED, id_)
    return [(CANCELLED, id_) for id_ in jobs]


async def retry(given: HubGiven, job: Job | str) -> None:
    """A job is retried by hand, which checks start from."""
    with about("HUB-RETRY-06", step="retrying a job by hand"):
        await given.api.retry(job).succeeds()


async def project(given: HubGiven, *attempts: Mapping[str, Any]) -> Project:
    """A project of its own whose jobs go by these attempts; without any they are done as soon as they start."""
    made = await given.project()
    await given.script(made, *(attempts or [{"afterSeconds": 0, "result": "done"}]))
    return made


FATAL = {"afterSeconds": 0, "result": "failed", "failureType": "engine_error", "message": "the engine broke"}
"""An attempt that fails as soon as it starts, for good."""
DONE = {"afterSeconds": 0, "result": "done"}
"""An attempt that is done as soon as it starts."""
ENDLESS = {"afterSeconds": LONG, "result": "done"}
"""An attempt that runs for as long as a check looks."""


@dataclass(frozen=True)
class Again:
    """A repeated try, and how long after the end of the one before it came, seconds of the build's time."""

    delivery: Delivery
    after: float


async def repeats(
    given: HubGiven,
    hook: Hook,
    event: tuple[str, str],
    number: int,
    seconds: float,
    rules: Sequence[str],
    step: str | None = None,
) -> Again:
    """Try ``number`` (from 2) of an event comes so many seconds after the end of the one before, as ``rules`` have it.

    ``event`` is its type, and the id of its job or batch; ``step`` is set where this is no part of what the check
    judges. On a clock that stands it comes at the millisecond, where the try before ended since the clock was moved;
    on one that flows not earlier, and within the sweep.
    """
    first, clock = events(hook, *event)[number - 2], given.clock
    before = await hook.answer_given(first.number)
    if clock.stands:
        await clock.advance(0)  # the build has the answer when its clock goes on
        await clock.advance(seconds - EXACT)
        with about(*rules, step=step):
            came = len(events(hook, *event))
            early = f"{number - 1} tries {seconds - EXACT:g} s after the end of the last one"
            expect(came == number - 1, early, f"{came}; {hook.so_far()}")
            await clock.advance(EXACT)
            return Again(await _arrives(hook, event, number, seconds, WITHIN), seconds)
    skipped, real = 0.0, seconds / clock.rate
    if clock.advances:
        skipped = max(seconds - 4 * clock.margin, 0)
        await clock.advance(skipped)
        real = (seconds - skipped) / clock.rate
    with about(*rules, step=step):
        delivery = await _arrives(hook, event, number, seconds, real + clock.grace + WITHIN)
        after = (delivery.at - before.at) * clock.rate + skipped
        expect(after >= seconds - clock.margin, f"try {number} after {seconds:g} s", f"after {after:.2f} s")
    return Again(delivery, after)


async def _arrives(hook: Hook, event: tuple[str, str], number: int, seconds: float, within: float) -> Delivery:
    if not await tried(hook, event, number, within):
        what = f"try {number} of `{event[0]}` {seconds:g} s after the end of the one before"
        raise CheckFailed(what, f"it did not come; {hook.so_far()}")
    return events(hook, *event)[number - 1]


async def tried(hook: Hook, event: tuple[str, str], number: int, within: float) -> bool:
    """Whether an event was tried so often within so many real seconds."""
    return await hook.receiver.wait(lambda: len(events(hook, *event)) >= number, within)


def answering(kind: str, *statuses: int) -> Callable[[Delivery], int]:
    """A script: the deliveries of one type are answered with these, the last one repeats; all others with 200."""
    met: list[str] = []

    def answer(delivery: Delivery) -> int:
        if event_of(delivery)[0] != kind:
            return 200
        met.append(kind)
        return statuses[min(len(met), len(statuses)) - 1]

    return answer


async def only(given: HubGiven, hook: Hook, of: str, *kinds: str) -> None:
    """Of a job or a batch these events were told, in this order, and no others are to come by now."""
    await settle(given)
    await hook.receiver.wait(lambda: len(told(hook, of)) >= len(kinds), WITHIN)
    came = told(hook, of)
    expect(came == list(kinds), f"of {of} told: {', '.join(kinds) or 'nothing'}", ", ".join(came) or "nothing", "/type")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
