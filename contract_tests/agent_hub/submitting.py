"""Submissions, as checks send and follow them: texts of an exact size, bad items, what a refusal leaves behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import BASE, HubAnswer, HubApi, describe, item
from contract_tests.agent_hub.given import Project, job_ids
from contract_tests.calls import UNSET
from contract_tests.checks import about, expect, is_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contract_tests.agent_hub.client import Call
    from contract_tests.agent_hub.given import HubGiven

INVALID = "invalid_request"
NOT_FOUND = "project_not_found"
AMBIGUOUS = "ambiguous_project"
OFFLINE = "node_offline"
PLACES = {"first": 0, "in the middle": 1, "last": 2}
"""Where among three items the bad one stands."""

CHINESE = "检查所有待办"
EMOJI = "\U0001f642"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
"""One sign to the eye, five code points."""
DECOMPOSED = "e\u0301"
"""One sign to the eye, two code points."""


def text_of(size: int, pattern: str = "x") -> str:
    """A text of exactly so many code points."""
    return (pattern * (size // len(pattern) + 1))[:size]


async def a_place(given: HubGiven) -> Project:
    """A project that takes a plain job: what checks of one field start from."""
    project = await given.project()
    await given.accepted(item(project))
    return project


async def listed(given: HubGiven, *, api: HubApi | None = None, **query: Any) -> list[dict[str, Any]]:
    """The jobs that a filter finds, 200 at most."""
    rule = "HUB-LIST-05" if "batchId" in query else "HUB-LIST-06"
    with about(rule, step="listing jobs"):
        return (await (api or given.api).jobs(limit=200, **query).succeeds(200)).entries


async def nothing_queued(given: HubGiven, batch: str) -> None:
    """Fail the check, under HUB-SUB-15, where a submission that was refused has left a job in its batch."""
    found = await listed(given, batchId=batch)
    with about("HUB-SUB-15", step="refusing a submission whole"):
        expect(not found, "no job of the refused submission", f"{len(found)} jobs of its batch", "/data/items")


async def first_three(given: HubGiven, bad: Mapping[str, Any], place: int) -> tuple[str, list[dict[str, Any]]]:
    """A batch of its own, and three items of which the one at ``place`` is ``bad`` and the others are good."""
    project = await given.project()
    items = [item(project, externalId=given.unique("task")) for _ in range(3)]
    items[place] = dict(bad)
    return given.unique("batch"), items


async def bad_item(given: HubGiven, code: str) -> dict[str, Any]:
    """An item that can be refused with this code alone."""
    if code == INVALID:
        return item(await given.project(), prompt=UNSET)
    if code == NOT_FOUND:
        return item(given.unique("no-such-proj"))
    if code == AMBIGUOUS:
        return item(await ambiguous(given))
    return item(await given.project(online=False))


async def ambiguous(given: HubGiven) -> str:
    """A project that two nodes have."""
    project = given.unique("proj")
    for _ in range(2):
        await given.node([project])
    return project


def entries_of(answer: HubAnswer) -> list[dict[str, Any]]:
    """The items of an accepted submission, which are objects with an ``id``."""
    job_ids(answer)
    return list(answer.data["items"])


async def refused_with_400(call: Call) -> HubAnswer:
    """The seed's own refusal: 400, whatever code."""
    answer = await call.refused()
    expect(answer.status == 400, "400", call.dialect.describe(answer.response))
    return answer


async def each_refused(api: HubApi, items: Sequence[Mapping[str, Any]]) -> None:
    """Every item, sent alone, is refused (4xx), as a seed says it."""
    for one in items:
        await api.submit(one).refused()


async def each_invalid(api: HubApi, items: Sequence[Mapping[str, Any]]) -> None:
    """Every item, sent alone, is 400 invalid_request."""
    for one in items:
        await api.submit(one).fails(400, INVALID)


async def details_of(given: HubGiven, *items: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The details of jobs that are submitted together, in the order sent."""
    ids = await given.submitted(*items)
    return [await given.detail(id_) for id_ in ids]


def details_from(answer: HubAnswer) -> list[dict[str, Any]]:
    """The entries of ``error.details``, each with an ``index``; where there are none that breaks HUB-SUB-54."""
    with about("HUB-SUB-54", step="the details of a refusal"):
        details = answer.details
        expect(bool(details), "an entry", "none", "/error/details")
        for i, entry in enumerate(details):
            expect("index" in entry, "`index` in each entry", json.dumps(entry)[:200], f"/error/details/{i}")
    return details


def named(details: Sequence[Mapping[str, Any]]) -> set[int]:
    """The items that entries of ``error.details`` name, counted from 0."""
    return {int(one["index"]) for one in details if is_integer(one.get("index"))}


def raw_submission(api: HubApi, content: bytes | str, key: Any = UNSET) -> Call:
    """A submission whose bytes are given."""
    sent = content.encode() if isinstance(content, str) else content
    headers = {"idempotency-key": key}
    return api.raw("POST", f"{BASE}/jobs", content=sent, headers=headers, envelope="HUB-SUB-06")


def compact(value: Any) -> bytes:
    """A JSON value as compact UTF-8 JSON with no unneeded escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def filled(make: Callable[[str], Any], size: int, pattern: str = "x") -> Any:
    """A JSON value with a text in it, of exactly so many bytes of compact JSON; ``make`` puts the text in."""
    left = size - len(compact(make("")))
    width = len(compact(pattern)) - 2
    pieces = [pattern] * (left // width) + ["x"] * (left % width)
    return make("".join(pieces))


def same_data(first: HubAnswer, again: HubAnswer) -> None:
    """Fail the check where the ``data`` of two answers is not the same JSON value."""
    expect(
        again.data == first.data,
        f"data {json.dumps(first.data)[:300]}",
        json.dumps(again.data)[:300],
        "/data",
    )


def same_jobs(first: HubAnswer, again: HubAnswer) -> None:
    """Fail the check unless an answer is a success that tells the jobs of another one."""
    good = 200 <= again.status < 300
    expect(good, "the first answer again", describe(again.response))
    came, wanted = job_ids(again), job_ids(first)
    expect(came == wanted, f"the jobs {wanted}", str(came), "/data/items")


async def repeated(call: Call, first: HubAnswer) -> HubAnswer:
    """The answer to a submission that was accepted before: what checks of repetitions start from."""
    again = await call.answers()
    with about("HUB-IDEM-02", step="repeating a submission"):
        same_jobs(first, again)
    return again


async def ready(given: HubGiven, **fields: Any) -> tuple[str, dict[str, Any], HubAnswer]:
    """A submission under a key of its own that was accepted, and repeated once: the key, the body, the first answer."""
    key, batch, project = given.unique("order"), given.unique("batch"), await given.project()
    one = item(project, externalId=given.unique("task"), **fields)
    first = await given.accepted(one, key=key, batch=batch)
    body = {"batchId": batch, "items": [one]}
    await repeated(resent(given.api, key, body), first)
    return key, body, first


def resent(api: HubApi, key: str, body: Any) -> Call:
    """A submission of any body under a key."""
    return raw_submission(api, json.dumps(body, ensure_ascii=False), key)
