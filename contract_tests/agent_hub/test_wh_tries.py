"""Tries of a webhook that are repeated: when, how often, with what (decisions B7)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from contract_tests.agent_hub.receiver import BROKEN, HELD, WITHIN
from contract_tests.agent_hub.webhooks import (
    BATCH,
    CANCELLED,
    COMPLETED,
    DONE,
    EXACT,
    FAILED,
    FATAL,
    all_told_of_cancel,
    answering,
    cancel,
    comes,
    ends,
    events,
    only,
    project,
    repeats,
    retry,
    settle,
    told,
    told_of_cancel,
    tried,
)
from contract_tests.checks import CheckFailed, about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.agent_hub.receiver import Hook

FIRST, SECOND, THIRD, FOURTH = 5.0, 30.0, 120.0, 600.0
"""Seconds from the end of a try to the next one."""
LIMIT = 10.0
"""Seconds in which a try is to be answered."""
REPEATED = "a repeated try"
HOUR = 3600.0


@requirement("HUB-WH-65")
async def test_what_is_not_accepted_is_repeated(given: HubGiven) -> None:
    """An answer that is no 2xx, or a connection that breaks instead, leads to another try; a 2xx ends them."""
    answers = {"a 500": 500, "a 503": 503, "a 404": 404, "a 302": 302, "a connection that breaks": BROKEN}
    hooks = {what: given.hook(answering(CANCELLED, answer, 200)) for what, answer in answers.items()}
    own_events = await all_told_of_cancel(given, list(hooks.values()))
    await settle(given)
    await given.clock.advance(FIRST + given.clock.margin)
    for (what, hook), own in zip(hooks.items(), own_events, strict=True):
        if not await tried(hook, own, 2, given.clock.grace + WITHIN):
            raise CheckFailed(f"another try {FIRST:g} s after {what}", f"none; {hook.so_far()}")
    await given.clock.advance(SECOND)
    for hook, own in zip(hooks.values(), own_events, strict=True):
        await only(given, hook, own[1], CANCELLED, CANCELLED)


@requirement("HUB-WH-65")
async def test_what_is_accepted_is_not_repeated(given: HubGiven) -> None:
    """Any 2xx is an acceptance: there is no other try."""
    hooks = [given.hook([answer]) for answer in (200, 201, 204, 299)]
    own_events = await all_told_of_cancel(given, hooks)
    await settle(given)
    await given.clock.advance(FIRST + given.clock.margin)
    await settle(given)
    for hook, own in zip(hooks, own_events, strict=True):
        came = len(events(hook, *own))
        expect(came == 1, f"no other try after a {hook.answered[0].status}", f"{came}; {hook.so_far()}")


@requirement("HUB-WH-65", "HUB-WH-66")
async def test_an_answer_that_is_late_does_not_count(given: HubGiven) -> None:
    """A try that is not answered within 10 s has ended then, whatever comes later; the next one comes 5 s after it."""
    clock, hook = given.clock, given.hook(answering(CANCELLED, HELD, 200))
    job = await given.running_job(callbackUrl=hook.url)
    own, began, passed = (CANCELLED, job.id), time.monotonic(), 0.0
    await cancel(given, job)
    await comes(hook, *own)
    if clock.advances:
        for seconds in (LIMIT - EXACT, 2 * EXACT):  # what is answered a moment later, is late
            await clock.advance(seconds)
        hook.release()
        passed = LIMIT + FIRST - (2 * EXACT if clock.stands else min(4 * clock.margin, FIRST - EXACT))
        await clock.advance(passed - LIMIT - EXACT)
        if clock.stands:
            with about("HUB-WH-66"):
                early = len(events(hook, *own)) - 1
                expect(not early, f"no other try {passed:g} s after one that is not answered", f"{early}")
            await clock.advance(3 * EXACT)  # whether the limit has passed at its very millisecond, is open
    real = 0.0 if clock.stands else (LIMIT + FIRST - passed) / clock.rate + clock.grace
    with about("HUB-WH-65"):
        if not await tried(hook, own, 2, real + WITHIN):
            raise CheckFailed("another try 15 s after one that is not answered", f"none; {hook.so_far()}")
    if not clock.stands:
        after = (events(hook, *own)[1].at - began) * clock.rate + passed
        with about("HUB-WH-66"):
            expect(after >= LIMIT + FIRST - clock.margin, "another try after 15 s", f"after {after:.2f} s")


@requirement("HUB-WH-66")
async def test_the_first_repetitions(given: HubGiven) -> None:
    """A try that is not accepted is repeated after 5 s, and that one after 30 s."""
    hook = given.hook(answering(CANCELLED, 500, 500, 200))
    own = await told_of_cancel(given, hook)
    for number, seconds in ((2, FIRST), (3, SECOND)):
        await repeats(given, hook, own, number, seconds, ("HUB-WH-66",))


@requirement("HUB-WH-57", "HUB-WH-66", "HUB-WH-67")
async def test_four_repetitions_and_no_more(given: HubGiven) -> None:
    """What nobody accepts is tried again after 5 s, 30 s, 2 min and 10 min, then never; `batch.completed` waits."""
    given.clock.needs_advance()
    hook, batch = given.hook(answering(CANCELLED, 500)), given.unique("batch")
    own = await told_of_cancel(given, hook, batch=batch)
    for number, seconds in enumerate((FIRST, SECOND, THIRD, FOURTH), 2):
        await repeats(given, hook, own, number, seconds, ("HUB-WH-66",))
    told_now = await tried(hook, (BATCH, batch), 1, WITHIN)
    await given.clock.advance(HOUR)
    with about("HUB-WH-67"):
        await only(given, hook, own[1], *[CANCELLED] * 5)
    with about("HUB-WH-57"):
        last = events(hook, *own)[-1].number
        good = told_now and events(hook, BATCH, batch)[0].number > last
        expect(good, "`batch.completed` when the last job's own event is given up", hook.so_far())


@requirement("HUB-WH-60")
async def test_the_id_is_the_events(given: HubGiven) -> None:
    """`webhook-id` is the same for every try of one event, and another one for another event."""
    hook = given.hook(answering(CANCELLED, 500, 200))
    own, other = await told_of_cancel(given, hook), await ends(given, hook)
    await is_repeated(given, hook, own, 2, FIRST)
    tries, done = events(hook, *own), await comes(hook, COMPLETED, other.id)
    ids = [one.headers.get("webhook-id", "") for one in (*tries, done)]
    expect(bool(ids[0]), "a webhook-id", "none", "webhook-id")
    expect(ids[1] == ids[0], f"webhook-id {ids[0]} again", ids[1], "webhook-id")
    expect(ids[2] != ids[0], "another webhook-id for another event", ids[2], "webhook-id")


async def is_repeated(given: HubGiven, hook: Hook, own: tuple[str, str], number: int, seconds: float) -> None:
    """Try ``number`` of an event has come after so many seconds: what checks start from."""
    await settle(given)
    await given.clock.advance(seconds)
    if not await tried(hook, own, number, given.clock.grace + WITHIN):
        with about("HUB-WH-65", step=REPEATED):
            raise CheckFailed(f"try {number} within {seconds:g} s", f"none; {hook.so_far()}")


@requirement("HUB-WH-62")
async def test_the_timestamp_is_the_trys(given: HubGiven) -> None:
    """`webhook-timestamp` is when the try was made, by the build's clock, not when the event happened."""
    clock, hook = given.clock, given.hook(answering(CANCELLED, 500, 200))
    own = await told_of_cancel(given, hook)
    at = await clock.now() if clock.stands else 0
    again = await repeats(given, hook, own, 2, FIRST, ("HUB-WH-66",), step=REPEATED)
    stamps = [one.headers.get("webhook-timestamp", "") for one in events(hook, *own)]
    for stamp in stamps:
        good = stamp.isascii() and stamp.isdecimal()
        expect(good, "webhook-timestamp, whole seconds since 1970", stamp or "left out", "webhook-timestamp")
    seconds = [int(stamp) for stamp in stamps]
    if clock.stands:
        wanted = [at // 1000, (at + 5_000) // 1000]
        expect(seconds == wanted, f"webhook-timestamp {wanted} of the tries", str(seconds), "webhook-timestamp")
    passed = seconds[1] - seconds[0]
    good = abs(passed - again.after) <= 1 + clock.margin
    expect(good, f"webhook-timestamp {again.after:.1f} s after the one before", f"{passed} s", "webhook-timestamp")


@requirement("HUB-WH-68")
async def test_the_body_stays_as_it_was(given: HubGiven) -> None:
    """Every try of an event has the same bytes, though the job was retried by hand meanwhile."""
    hook, on = given.hook(answering(FAILED, 500, 500, 200)), await project(given, FATAL)
    job = await given.job(on, callbackUrl=hook.url)
    await given.until(job, "failed")
    await comes(hook, FAILED, job.id)
    await is_repeated(given, hook, (FAILED, job.id), 2, FIRST)
    await given.script(on, {"afterSeconds": 100, "result": "done"})
    await retry(given, job)
    await given.until(job, "running")
    await is_repeated(given, hook, (FAILED, job.id), 3, SECOND)
    bodies = [one.body for one in events(hook, FAILED, job.id)]
    for body in bodies[1:]:
        expect(body == bodies[0], f"the same body again, {bodies[0][:300]!r}", repr(body[:300]))


@requirement("HUB-WH-69")
async def test_a_redirect_is_not_followed(given: HubGiven) -> None:
    """Where an answer points is never called, by no method."""
    target = given.hook()
    hooks = [
        given.hook(answering(CANCELLED, status, 200), redirect_to=target.url) for status in (301, 302, 303, 307, 308)
    ]
    own_events = await all_told_of_cancel(given, hooks)
    for hook, own in zip(hooks, own_events, strict=True):
        await hook.answer_given(events(hook, *own)[0].number)
    await settle(given)
    await given.clock.advance(FIRST)
    await settle(given)
    came = [f"{one.method} of {len(one.body)} bytes" for one in target.deliveries]
    expect(not came, "no call of where a redirect points", ", ".join(came))


@requirement("HUB-WH-70")
async def test_a_later_event_waits_for_the_earlier_one(given: HubGiven) -> None:
    """A job that failed and, retried by hand, is done: `job.completed` comes when `job.failed` was accepted."""
    hook, on = given.hook(answering(FAILED, 500, 500, 200)), await project(given, FATAL)
    job = await given.job(on, callbackUrl=hook.url)
    await given.until(job, "failed")
    await comes(hook, FAILED, job.id)
    await given.script(on, DONE)
    await retry(given, job)
    await given.until(job, "done")
    await settle(given)
    came = told(hook, job.id)
    expect(
        came.count(FAILED) > 2 or COMPLETED not in came, "`job.completed` after the last `job.failed`", ", ".join(came)
    )
    within = given.clock.grace + WITHIN
    for number, seconds in ((2, FIRST), (3, SECOND)):
        await given.clock.advance(seconds + given.clock.margin)
        await tried(hook, (FAILED, job.id), number, within)
        await settle(given)
    await hook.receiver.wait(lambda: bool(events(hook, COMPLETED, job.id)), within)
    await only(given, hook, job.id, FAILED, FAILED, FAILED, COMPLETED)


@requirement("HUB-WH-70")
async def test_events_of_one_job_come_in_order(given: HubGiven) -> None:
    """A job that fails, is retried and cancelled, again and again, is told of in that order."""
    hook, on = given.hook(answering(FAILED, 500, 200)), await project(given, FATAL)
    job = await given.job(on, callbackUrl=hook.url)
    await given.until(job, "failed")
    await comes(hook, FAILED, job.id)
    await given.script(on, {"afterSeconds": 100, "result": "done"})
    await retry(given, job)
    await cancel(given, job)
    await given.clock.advance(FIRST + given.clock.margin)
    await hook.receiver.wait(lambda: bool(events(hook, CANCELLED, job.id)), given.clock.grace + WITHIN)
    await only(given, hook, job.id, FAILED, FAILED, CANCELLED)
