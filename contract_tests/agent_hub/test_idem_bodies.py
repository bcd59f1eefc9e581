"""One `Idempotency-Key` with two bodies: what is the same body, and what another one is answered."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.given import job_ids
from contract_tests.agent_hub.submitting import listed, raw_submission, ready, repeated, resent, same_jobs
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from collections.abc import Callable

    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven

REUSED = "idempotency_key_reused"
METADATA: dict[str, Any] = {
    "flag": True,
    "n": 1,
    "list": [1, 2],
    "text": "文件 / é",
    "none": None,
    "in": {"a": 1, "b": 2},
}


def changed(body: dict[str, Any], change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """A body after a change."""
    other = copy.deepcopy(body)
    change(other)
    return other


def first_item(**fields: Any) -> Callable[[dict[str, Any]], Any]:
    """A change of fields of the first item."""
    return lambda body: body["items"][0].update(fields)


def metadata(**fields: Any) -> Callable[[dict[str, Any]], Any]:
    """A change of fields of the first item's metadata."""
    return lambda body: body["items"][0]["metadata"].update(fields)


GOOD: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another prompt": first_item(prompt="something else"),
    "one item more": lambda body: body["items"].append(body["items"][0]),
    "another batchId": lambda body: body.update(batchId=body["batchId"] + "-2"),
    "no batchId": lambda body: body.pop("batchId"),
    "another priority": first_item(priority=1),
    "metadata": metadata(n=2),
}
"""Changes that leave a body right."""
BAD: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no prompt": lambda body: body["items"][0].pop("prompt"),
    "an unknown property": lambda body: body.update(unknown=1),
    "no items": lambda body: body.update(items=[]),
    "a priority beyond its limit": first_item(priority=1000),
    "a project that does not exist": first_item(projectId="no-such-project"),
    "items of another type": lambda body: body.update(items="none"),
}
"""Changes after which a body breaks a rule."""


@requirement("HUB-IDEM-55", "HUB-IDEM-56")
@pytest.mark.parametrize("name", GOOD)
async def test_another_body_is_422(api: HubApi, given: HubGiven, name: str) -> None:
    """The same key with another body: 422 idempotency_key_reused, nothing is created, the first answer stands."""
    key, body, first = await ready(given, metadata=METADATA)
    other = changed(body, GOOD[name])
    with about("HUB-IDEM-55"):
        await resent(api, key, other).fails(422, REUSED)
    found = {job.get("id") for job in await listed(given, externalId=body["items"][0]["externalId"])}
    with about("HUB-IDEM-56"):
        expect(found == {*job_ids(first)}, "the first submission's job alone", f"{len(found)} jobs", "/data/items")
    await repeated(resent(api, key, body), first)


@requirement("HUB-IDEM-58")
@pytest.mark.parametrize("name", BAD)
async def test_another_body_is_422_even_where_it_is_bad(api: HubApi, given: HubGiven, name: str) -> None:
    """The same key with a body that would be refused by itself: 422 idempotency_key_reused, not 400."""
    key, body, _ = await ready(given)
    await resent(api, key, changed(body, BAD[name])).fails(422, REUSED)


@requirement("HUB-IDEM-58")
@pytest.mark.parametrize("body", [[], "order", 7, None, {}], ids=["a list", "a string", "a number", "null", "empty"])
async def test_no_submission_at_all_is_422(api: HubApi, given: HubGiven, body: Any) -> None:
    """The same key with JSON that is no submission: 422 idempotency_key_reused, not 400."""
    key, _, _ = await ready(given)
    await resent(api, key, body).fails(422, REUSED)


def turned(value: Any) -> Any:
    """The value with the keys of every object in reverse order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(one) for one in value] if isinstance(value, list) else value


SAME: dict[str, Callable[[Any], str]] = {
    "other spaces": lambda body: f"\r\n\t {json.dumps(body, indent=3, separators=(' ,', ' : '))} ",
    "no spaces": lambda body: json.dumps(body, separators=(",", ":"), ensure_ascii=False),
    "keys turned round": lambda body: json.dumps(turned(body), ensure_ascii=False),
    "escapes": lambda body: json.dumps(body, ensure_ascii=True).replace("/", "\\/"),
    "capitals in escapes": lambda body: json.dumps(body, ensure_ascii=True).replace("\\u00e9", "\\u00E9"),
}
"""Other texts of the same JSON value."""
OTHER: dict[str, Callable[[dict[str, Any]], Any]] = {
    "true for 1": metadata(n=True),
    "1 for true": metadata(flag=1),
    "a text for a number": metadata(n="1"),
    "a list turned round": metadata(list=[2, 1]),
    "null left out": lambda body: body["items"][0]["metadata"].pop("none"),
    "null for an object": metadata(**{"in": None}),
    "a default that is said": first_item(priority=0),
    "other capitals": first_item(prompt="Look for TODO in src"),
    "a space more": first_item(prompt="look for TODO in src "),
    "accents written otherwise": metadata(text="文件 / e\u0301"),
}
"""Changes that make another JSON value."""


@requirement("HUB-IDEM-57")
@pytest.mark.parametrize("name", SAME)
async def test_the_same_json_value_is_the_same_body(api: HubApi, given: HubGiven, name: str) -> None:
    """The same JSON value, written otherwise: 200 with the first answer."""
    key, body, first = await ready(given, metadata=METADATA)
    same_jobs(first, await raw_submission(api, SAME[name](body), key).answers())


@requirement("HUB-IDEM-57")
@pytest.mark.parametrize("name", OTHER)
async def test_another_json_value_is_another_body(api: HubApi, given: HubGiven, name: str) -> None:
    """A body that looks alike but is another JSON value: 422 idempotency_key_reused."""
    key, body, _ = await ready(given, metadata=METADATA)
    with about("HUB-IDEM-55", step="refusing another body"):
        await resent(api, key, changed(body, first_item(prompt="something else"))).fails(422, REUSED)
    await resent(api, key, changed(body, OTHER[name])).fails(422, REUSED)


@requirement("HUB-IDEM-57")
async def test_the_order_of_items_is_a_part_of_the_body(api: HubApi, given: HubGiven) -> None:
    """The same items in another order: 422 idempotency_key_reused."""
    key, project = given.unique("order"), await given.project()
    items = [{"kind": "ai", "projectId": project.id, "prompt": f"number {i}"} for i in range(2)]
    await given.accepted(*items, key=key)
    with about("HUB-IDEM-55", step="refusing another body"):
        await api.submit(items[0], key=key).fails(422, REUSED)
    await api.submit(items[::-1], key=key).fails(422, REUSED)
