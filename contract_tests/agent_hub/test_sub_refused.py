"""Submissions that are refused: whole, and with every bad item named (seed 002 section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import BASE, describe, item
from contract_tests.agent_hub.submitting import (
    AMBIGUOUS,
    INVALID,
    NOT_FOUND,
    OFFLINE,
    PLACES,
    bad_item,
    details_from,
    first_three,
    listed,
    named,
    nothing_queued,
    refused_with_400,
    text_of,
)
from contract_tests.calls import UNSET
from contract_tests.checks import CheckSkipped, about, expect, is_integer, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import Call, HubApi
    from contract_tests.agent_hub.given import HubGiven, Project

MOST = 500


@requirement("HUB-SUB-14")
@pytest.mark.parametrize("code", [INVALID, NOT_FOUND], ids=["no prompt", "no such project"])
async def test_one_bad_item_refuses_the_whole_submission(api: HubApi, given: HubGiven, code: str) -> None:
    """An item without prompt, or of a project that does not exist, between good ones: 400."""
    for place in PLACES.values():
        _, items = await first_three(given, await bad_item(given, code), place)
        await refused_with_400(api.submit(items))


@requirement("HUB-SUB-15")
@pytest.mark.parametrize("code", [INVALID, NOT_FOUND, AMBIGUOUS, OFFLINE])
@pytest.mark.parametrize("place", PLACES)
async def test_of_a_refused_submission_nothing_is_queued(api: HubApi, given: HubGiven, place: str, code: str) -> None:
    """One bad item, first, in the middle or last: no job of the others, in their batch or by their externalId."""
    batch, items = await first_three(given, await bad_item(given, code), PLACES[place])
    await api.submit(items, batch=batch).refused()
    await nothing_queued(given, batch)
    good = [one for i, one in enumerate(items) if i != PLACES[place]]
    found = await listed(given, externalId=good[0]["externalId"])
    expect(not found, "no job of the good items", f"{len(found)} jobs", "/data/items")
    ids = await given.submitted(*good, batch=batch)
    found = await listed(given, batchId=batch)
    expect({job.get("id") for job in found} == {*ids}, "the jobs submitted then, alone", f"{len(found)} jobs")


@requirement("HUB-SUB-15")
async def test_of_a_large_refused_submission_nothing_is_queued(api: HubApi, given: HubGiven) -> None:
    """500 items, the last one bad by its form, then by its project: no job of the 499 others."""
    project, batch = await given.project(), given.unique("batch")
    for code in (INVALID, NOT_FOUND):
        await api.submit([*[item(project)] * (MOST - 1), await bad_item(given, code)], batch=batch).refused()
        await nothing_queued(given, batch)


@requirement("HUB-SUB-51")
async def test_a_submission_has_1_to_500_items(api: HubApi, given: HubGiven) -> None:
    """None and 501 are 400 invalid_request and queue nothing; one is accepted."""
    project, batch = await given.project(), given.unique("batch")
    await api.submit([], batch=batch).fails(400, INVALID)
    await api.submit([item(project)] * (MOST + 1), batch=batch).fails(400, INVALID)
    await nothing_queued(given, batch)
    await api.submit(item(project), batch=batch).succeeds()


BODIES: dict[str, Any] = {
    "a list": [],
    "a string": "items",
    "a number": 1,
    "an empty object": {},
    "items as an object": {"items": {}},
    "items as a string": {"items": "[]"},
    "items of strings": {"items": ["ai"]},
    "items of lists": {"items": [[]]},
}


@requirement("HUB-SUB-53")
@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_is_no_submission_is_400(api: HubApi, name: str) -> None:
    """A body that is no object with a list of objects: 400 invalid_request."""
    await api.raw("POST", f"{BASE}/jobs", body=BODIES[name]).fails(400, INVALID)


@requirement("HUB-SUB-53")
async def test_a_field_of_a_wrong_type_is_400(api: HubApi, given: HubGiven) -> None:
    """A value of another type in each field of body and item: 400 invalid_request."""
    project = await given.project()
    wrong: list[dict[str, Any]] = [
        *({name: value} for name in ("kind", "projectId", "nodeId", "prompt", "mode") for value in (1, ["auto"])),
        *({name: value} for name in ("priority", "maxAttempts") for value in ("1", True, 1.5, [1])),
        *({"kind": "script", "timeoutSeconds": value} for value in ("60", True, 1.5)),
        {"kind": "script", "command": ["ls"]},
        {"externalId": 5},
        {"externalId": {}},
        {"callbackUrl": 80},
        {"callbackUrl": []},
    ]
    for fields in wrong:
        await api.submit(item(project, **fields)).fails(400, INVALID)
    batches: list[Any] = [7, ["b"], {}]
    for batch in batches:
        await api.submit(item(project), batch=batch).fails(400, INVALID)


async def faulty(
    given: HubGiven, project: Project, number: int, bad: dict[int, dict[str, Any]]
) -> list[dict[str, Any]]:
    """So many items of which those in ``bad`` have these fields in place of good ones."""
    return [item(project, **bad.get(i, {})) for i in range(number)]


BAD: dict[int, dict[str, Any]] = {
    0: {"prompt": UNSET},
    2: {"prompt": text_of(8001)},
    3: {"priority": 101},
    5: {"unknown": 1},
    6: {"kind": "nothing"},
    9: {"metadata": text_of(4000)},
    11: {"kind": "script", "command": UNSET},
    12: {"command": "ls"},
    14: {"externalId": ""},
}
"""Items that break a rule of their form, by their index; the others of the sixteen are good."""
FIELDS = {0: "prompt", 3: "priority", 5: "unknown", 6: "kind", 9: "metadata", 11: "command", 12: "command"}
"""The field that is at fault."""


@requirement("HUB-SUB-54", "HUB-SUB-56")
async def test_details_have_index_field_and_message(api: HubApi, given: HubGiven) -> None:
    """Each entry has `index` (a number or null), `field` and `message`, whatever further keys it has."""
    project = await given.project()
    details = details_from(await api.submit(await faulty(given, project, 16, BAD)).fails(400, INVALID))
    for i, entry in enumerate(details):
        more = {*entry} - {"index", "field", "message"}
        at = f"/error/details/{i}"
        with about("HUB-SUB-54", *(["HUB-SUB-56"] if more else [])):
            for name in ("index", "field", "message"):
                expect(name in entry, f"`{name}` in each entry", str(entry)[:200], at)
        with about("HUB-SUB-54"):
            good = entry["index"] is None or is_integer(entry["index"])
            expect(good, "`index`, an integer or null", str(entry["index"]), f"{at}/index")
            good = isinstance(entry["message"], str) and bool(entry["message"].strip())
            expect(good, "`message`, a string that is not empty", str(entry["message"]), f"{at}/message")
            good = entry["field"] is None or isinstance(entry["field"], str)
            expect(good, "`field`, a string or null", str(entry["field"]), f"{at}/field")
    for index, field in FIELDS.items():
        fields = [str(entry["field"]) for entry in details if entry["index"] == index]
        with about("HUB-SUB-54"):
            good = not fields or any(field in told for told in fields)
            expect(good, f"`field` names {field} for item {index}", ", ".join(fields), "/error/details")


@requirement("HUB-SUB-55", "HUB-SUB-57")
async def test_details_name_every_bad_item(api: HubApi, given: HubGiven) -> None:
    """Sixteen items, nine of them bad, each by another rule: the details name these nine, and no good one."""
    project = await given.project()
    found = named(details_from(await api.submit(await faulty(given, project, 16, BAD)).fails(400, INVALID)))
    with about("HUB-SUB-55"):
        expect({*BAD} <= found, f"entries for the items {[*BAD]}", f"for {sorted(found)}", "/error/details")
    with about("HUB-SUB-57"):
        expect(found <= {*BAD}, "no entry for a good item", f"for {sorted(found - {*BAD})}", "/error/details")


@requirement("HUB-SUB-55")
async def test_details_name_500_bad_items(api: HubApi, given: HubGiven) -> None:
    """500 items, all without prompt: each of them is named."""
    project = await given.project()
    refused = await api.submit([item(project, prompt=UNSET)] * MOST).fails(400, INVALID)
    missing = {*range(MOST)} - named(details_from(refused))
    expect(not missing, "an entry for each of 500 items", f"none for {len(missing)} of them", "/error/details")


@requirement("HUB-SUB-57", "HUB-SUB-55")
@pytest.mark.parametrize("code", [NOT_FOUND, AMBIGUOUS, OFFLINE])
async def test_details_may_name_faults_of_other_kinds(api: HubApi, given: HubGiven, code: str) -> None:
    """Bad by form and bad in another way: the first is named, the other may be, the good one is not."""
    items = [await bad_item(given, code), item(await given.project()), await bad_item(given, INVALID)]
    with about("HUB-SUB-63", step="answering the first of two kinds of fault"):
        refused = await api.submit(items).fails(400, INVALID)
    found = named(details_from(refused))
    with about("HUB-SUB-55"):
        expect(2 in found, "an entry for item 2", f"for {sorted(found)}", "/error/details")
    with about("HUB-SUB-57"):
        expect(1 not in found, "no entry for item 1", f"for {sorted(found)}", "/error/details")


REFUSING = {
    "unknown property": "HUB-FIELD-60",
    "batchId": "HUB-BATCH-50",
    "no items": "HUB-SUB-53",
    "none of them": "HUB-SUB-51",
    "501 items": "HUB-SUB-51",
    "a list": "HUB-SUB-53",
}
"""What a body has wrong, and the rule by which it is refused at all."""


@requirement("HUB-SUB-54", "HUB-SUB-58")
@pytest.mark.parametrize("name", REFUSING)
async def test_what_the_body_has_wrong_has_no_index(api: HubApi, given: HubGiven, name: str) -> None:
    """A fault of the body itself: `details` with an entry whose `index` is there and null, and none of an item."""
    one = item(await given.project())
    calls: dict[str, Call] = {
        "unknown property": api.submit(one, batchID="b"),
        "batchId": api.submit(one, batch="no spaces, please"),
        "no items": api.raw("POST", f"{BASE}/jobs", body={"batchId": "b"}),
        "none of them": api.submit([]),
        "501 items": api.submit([one] * (MOST + 1)),
        "a list": api.raw("POST", f"{BASE}/jobs", body=[one]),
    }
    with about(REFUSING[name], step=f"refusing a body: {name}"):
        answer = await calls[name].fails(400, INVALID)
    with about("HUB-SUB-58"):
        indexes = [entry["index"] for entry in details_from(answer)]
        expect(all(index is None for index in indexes), "index null", str(indexes), "/error/details")


@requirement("HUB-SUB-58", "HUB-SUB-55")
async def test_body_and_items_are_judged_together(api: HubApi, given: HubGiven) -> None:
    """A body with an unknown property and a bad item: an entry with `index` null, and one of the item."""
    items = [item(await given.project()), await bad_item(given, INVALID)]
    details = details_from(await api.submit(items, unknown=1).fails(400, INVALID))
    with about("HUB-SUB-55"):
        expect(1 in named(details), "an entry for item 1", f"for {sorted(named(details))}", "/error/details")
    with about("HUB-SUB-58"):
        indexes = [entry["index"] for entry in details]
        expect(0 not in named(details), "no entry for item 0", str(indexes), "/error/details")


@requirement("HUB-SUB-57")
@pytest.mark.parametrize("code", [NOT_FOUND, AMBIGUOUS, OFFLINE])
async def test_details_of_another_kind_name_no_good_item(api: HubApi, given: HubGiven, code: str) -> None:
    """Where a refusal of another kind has details, they name no good item."""
    items = [item(await given.project()), await bad_item(given, code), item(await given.project())]
    answer = await api.submit(items).refused()
    if not isinstance(answer.get("error"), dict) or "details" not in answer.get("error"):
        raise CheckSkipped("the build sends no details of it")
    found = named(answer.details)
    expect(found <= {1}, "no entry for a good item", f"{describe(answer.response)}: {sorted(found)}", "/error/details")
