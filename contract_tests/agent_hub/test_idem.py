"""`Idempotency-Key`: the first answer again for 24 hours, and nothing created (seed 002 section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.client import describe, item
from contract_tests.agent_hub.given import LONG, job_ids
from contract_tests.agent_hub.submitting import INVALID, OFFLINE, listed, ready, repeated, resent, same_data, same_jobs
from contract_tests.calls import UNSET
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.clock import Clock

MINUTE = 60
TIMES = ("at once", "after a minute", "after 12 hours")


@requirement("HUB-IDEM-02", "HUB-IDEM-03", "HUB-IDEM-04")
@pytest.mark.parametrize("when", TIMES)
async def test_a_repetition_gets_the_first_answer(api: HubApi, given: HubGiven, clock: Clock, when: str) -> None:
    """The same key and body again: 200 with the first answer's data, and no further job."""
    key, body, first = await ready(given)
    if when == "after 12 hours":
        clock.needs_advance()
    window = given.timing.idempotency
    await clock.advance({"at once": 0, "after a minute": min(MINUTE, window / 4)}.get(when, window / 2))
    for _ in range(2):
        answer = await resent(api, key, body).answers()
        with about("HUB-IDEM-02"):
            same_jobs(first, answer)
            if when == "at once":
                same_data(first, answer)
        with about("HUB-IDEM-03"):
            expect(answer.status == 200, "200", describe(answer.response))
    found = {job.get("id") for job in await listed(given, batchId=body["batchId"])}
    with about("HUB-IDEM-04"):
        expect(found == {*job_ids(first)}, "the first submission's jobs alone", f"{len(found)} jobs", "/data/items")


@requirement("HUB-IDEM-02", "HUB-IDEM-04")
async def test_a_batch_id_that_was_made_is_repeated(api: HubApi, given: HubGiven) -> None:
    """Without `batchId`, three items: the repetition tells the same batchId and the same three ids in their order."""
    key, project = given.unique("order"), await given.project()
    items = [item(project, externalId=given.unique("task")) for _ in range(3)]
    first = await given.accepted(*items, key=key)
    again = await api.submit(*items, key=key).answers()
    with about("HUB-IDEM-02"):
        same_jobs(first, again)
        same_data(first, again)
    with about("HUB-IDEM-04"):
        for one in items:
            found = await listed(given, externalId=one["externalId"])
            expect(len(found) == 1, "one job of each item", f"{len(found)} jobs", "/data/items")


@requirement("HUB-IDEM-04")
async def test_an_answer_that_was_lost_costs_no_second_job(api: HubApi, given: HubGiven) -> None:
    """The client goes away before it has the answer and sends the same again: one job, whichever came through."""
    key, project, task = given.unique("order"), await given.project(), given.unique("task")
    call = api.submit(item(project, externalId=task), key=key)
    stream = await api.transport.open(call.request)
    await stream.close()
    with about("HUB-IDEM-02", step="repeating a submission"):
        again = await call.succeeds()
    found = {job.get("id") for job in await listed(given, externalId=task)}
    expect(found == {*job_ids(again)}, "one job, that of the answer", f"{len(found)} jobs", "/data/items")


@requirement("HUB-IDEM-05")
async def test_a_key_holds_for_24_hours(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """Shortly before 24 hours have passed the first answer comes again; shortly after them there are new jobs."""
    clock.needs_advance()
    kept, past = await ready(given), await ready(given)
    await clock.advance(given.timing.idempotency - MINUTE - 2 * clock.margin)
    same_jobs(kept[2], await resent(api, *kept[:2]).answers())
    await clock.advance(2 * MINUTE + 4 * clock.margin)
    fresh = await resent(api, *past[:2]).succeeds()
    expect(not {*job_ids(fresh)} & {*job_ids(past[2])}, "new jobs", "the first ones", "/data/items")


@requirement("HUB-IDEM-54")
async def test_a_key_is_new_after_24_hours(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """After 24 hours: 202 and new jobs, which the key means from then on; another body is as welcome."""
    clock.needs_advance()
    key, body, first = await ready(given)
    other, changed, _ = await ready(given)
    await clock.advance(given.timing.idempotency + 2 * clock.margin + MINUTE)
    fresh = await resent(api, key, body).answers()
    expect(fresh.status == 202, "202", describe(fresh.response))
    expect(not {*job_ids(fresh)} & {*job_ids(first)}, "new jobs", "the first ones", "/data/items")
    same_jobs(fresh, await resent(api, key, body).answers())
    changed["items"][0]["prompt"] = "something else"
    await resent(api, other, changed).succeeds(202)


@requirement("HUB-IDEM-54")
async def test_the_24_hours_end_to_the_millisecond(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """At 24 hours to the millisecond after the 202 the first answer comes again; a millisecond later the key is new."""
    clock.needs_to_stand()
    key, body, first = await ready(given)
    other, changed, _ = await ready(given)
    await clock.advance(given.timing.idempotency)
    same_jobs(first, await resent(api, key, body).answers())
    await clock.advance(0.001)
    fresh = await resent(api, other, changed).answers()
    expect(fresh.status == 202, "202", describe(fresh.response))


@requirement("HUB-IDEM-53")
async def test_a_repetition_does_not_extend_the_24_hours(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """Repeated after 12 hours and shortly before 24: the key is new after 24 hours all the same."""
    clock.needs_advance()
    key, body, first = await ready(given)
    rest = given.timing.idempotency
    for hours in (given.timing.idempotency / 2, given.timing.idempotency / 2 - MINUTE - 2 * clock.margin):
        await clock.advance(hours)
        rest -= hours
        await repeated(resent(api, key, body), first)
    await clock.advance(rest + 0.001 + (0 if clock.stands else 2 * clock.margin))
    fresh = await resent(api, key, body).answers()
    expect(fresh.status == 202, "202", describe(fresh.response))


@requirement("HUB-IDEM-52", "HUB-IDEM-60")
async def test_the_24_hours_run_from_the_first_202(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """Refused first, accepted an hour later: the key holds for 24 hours from then, not from the refusal."""
    clock.needs_advance()
    key, project = given.unique("order"), await given.project()
    await api.submit(item(project, prompt=UNSET), key=key).refused()
    await clock.advance(3600)
    with about("HUB-IDEM-60"):
        first = await api.submit(item(project), key=key).succeeds(202)
    await clock.advance(given.timing.idempotency - 30 * MINUTE)
    with about("HUB-IDEM-52"):
        same_jobs(first, await api.submit(item(project), key=key).answers())


@requirement("HUB-IDEM-50")
@pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
async def test_the_first_data_comes_whatever_became_of_the_job(api: HubApi, given: HubGiven, state: str) -> None:
    """The job has ended meanwhile: the repetition's data is that of the first answer, `status` queued included."""
    key, project, task = given.unique("order"), await given.project(), given.unique("task")
    ends = {
        "done": {"afterSeconds": 1, "result": "done"},
        "failed": {"afterSeconds": 1, "result": "failed", "failureType": "engine_error", "message": "broken"},
        "cancelled": {"afterSeconds": LONG, "result": "done"},
    }
    await given.script(project, ends[state], external_id=task)
    one = item(project, externalId=task)
    first = await given.accepted(one, key=key)
    [id_] = job_ids(first)
    await repeated(api.submit(one, key=key), first)
    if state == "cancelled":
        with about("HUB-CANCEL-02", step="cancelling a job"):
            await api.cancel(id_).succeeds()
    await given.until(id_, state)
    again = await api.submit(one, key=key).answers()
    same_jobs(first, again)
    same_data(first, again)


@requirement("HUB-IDEM-50")
async def test_the_first_data_comes_when_the_node_is_gone(api: HubApi, given: HubGiven) -> None:
    """The node is offline meanwhile, its project gone: the repetition is not judged anew."""
    key, project = given.unique("order"), await given.project()
    first, call = await given.accepted(item(project), key=key), api.submit(item(project), key=key)
    await repeated(call, first)
    await given.without_projects(project.node)
    await given.offline(project.node)
    again = await call.answers()
    same_jobs(first, again)
    same_data(first, again)


@requirement("HUB-IDEM-51")
async def test_a_repetition_has_a_request_id_of_its_own(api: HubApi, given: HubGiven) -> None:
    """Two repetitions: three different `requestId`s."""
    key, body, first = await ready(given)
    ids = [first.fields.get("requestId")]
    for _ in range(2):
        answer = await repeated(resent(api, key, body), first)
        ids.append(answer.fields.get("requestId"))
    good = all(isinstance(id_, str) for id_ in ids) and len(set(map(str, ids))) == len(ids)
    expect(good, "three different requestIds", str(ids), "/requestId")


LONGEST = 255
ALL_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
NO_KEYS = {"empty": "", "256": "k" * 256, "1000": "k" * 1000, "a space": "order 1", "not ASCII": "ordre-\u00e9"}


@requirement("HUB-IDEM-59")
@pytest.mark.parametrize("name", NO_KEYS)
async def test_a_key_of_another_form_is_400(api: HubApi, given: HubGiven, name: str) -> None:
    """Empty, longer than 255, with a space, not ASCII: 400 invalid_request, and no job."""
    project, task = await given.project(), given.unique("task")
    await api.submit(item(project, externalId=task), key=NO_KEYS[name]).fails(400, INVALID)
    found = await listed(given, externalId=task)
    expect(not found, "no job", f"{len(found)} jobs", "/data/items")


@requirement("HUB-IDEM-59")
@pytest.mark.parametrize("name", ["255 signs", "every visible sign"])
async def test_keys_of_1_to_255_visible_signs_are_accepted(api: HubApi, given: HubGiven, name: str) -> None:
    """255 signs, and each visible ASCII sign: 202, and 200 when it is repeated; the last sign counts."""
    project, unique = await given.project(), given.unique("order")
    key = unique + (ALL_VISIBLE if name == "every visible sign" else "~" * (LONGEST - len(unique)))
    one = item(project)
    first = await api.submit(one, key=key).succeeds(202)
    await repeated(api.submit(one, key=key), first)
    other = await api.submit(one, key=f"{key[:-1]}!").succeeds(202)
    expect(not {*job_ids(other)} & {*job_ids(first)}, "another key's own jobs", "the first ones", "/data/items")


@requirement("HUB-IDEM-59")
async def test_a_key_of_one_sign_is_accepted(api: HubApi, given: HubGiven) -> None:
    """A key of a single sign is judged as any other: accepted, or known from before."""
    answer = await api.submit(item(await given.project()), key="~").answers()
    expect(answer.status in (200, 202, 422), "202 (or 200, 422 where it was used)", describe(answer.response))


@requirement("HUB-SUB-05")
async def test_keys_differ_by_case(api: HubApi, given: HubGiven) -> None:
    """Keys are compared as they are: under one that differs by its case alone the same body is 202."""
    key, project = given.unique("order"), await given.project()
    first = await given.accepted(item(project), key=key)
    other = await api.submit(item(project), key=key.upper()).succeeds(202)
    expect(not {*job_ids(other)} & {*job_ids(first)}, "jobs of its own", "the first ones", "/data/items")


@requirement("HUB-IDEM-60")
async def test_a_refused_submission_can_be_corrected(api: HubApi, given: HubGiven) -> None:
    """Refused by its form, for its project, for its node: the same key is free for another body, which is 202."""
    away, project = await given.project(online=False), await given.project()
    for bad in (item(project, prompt=UNSET), item(given.unique("no-such-proj")), item(away)):
        key = given.unique("order")
        for _ in range(2):
            await api.submit(bad, key=key).refused()
        first = await api.submit(item(project), key=key).succeeds(202)
        await repeated(api.submit(item(project), key=key), first)


@requirement("HUB-IDEM-60")
async def test_a_refused_submission_can_be_sent_again(api: HubApi, given: HubGiven) -> None:
    """Refused for its node, which is back then: the very same submission is 202."""
    project, key = await given.project(online=False), given.unique("order")
    with about("HUB-NODE-05", step="submitting to a node that is offline"):
        await api.submit(item(project), key=key).fails(409, OFFLINE)
    await given.online(project.node)
    await api.submit(item(project), key=key).succeeds(202)


@requirement("HUB-IDEM-61")
async def test_keys_of_two_api_keys_are_apart(api: HubApi, given: HubGiven, other: HubApi) -> None:
    """The same `Idempotency-Key` under two API keys, with the same body and another: each has its own answer."""
    key, project = given.unique("order"), await given.project()
    one = item(project)
    first = await given.accepted(one, key=key)
    await repeated(api.submit(one, key=key), first)
    second = await other.submit(one, key=key).succeeds(202)
    expect(not {*job_ids(first)} & {*job_ids(second)}, "jobs of its own", "the other API key's", "/data/items")
    for hub, mine in ((api, first), (other, second)):
        same_jobs(mine, await hub.submit(one, key=key).answers())
    third = given.unique("order")
    await given.accepted(one, key=third)
    await other.submit(item(project, prompt="another body"), key=third).succeeds(202)
