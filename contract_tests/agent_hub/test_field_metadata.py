"""`metadata`: any JSON, how much of it, and that it comes back (seed 002 section 1)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import describe, item
from contract_tests.agent_hub.given import job_ids
from contract_tests.agent_hub.submitting import (
    CHINESE,
    EMOJI,
    INVALID,
    a_place,
    compact,
    filled,
    raw_submission,
    text_of,
)
from contract_tests.calls import UNSET
from contract_tests.checks import expect, requirement, same_json

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven, Project

MOST = 2048

ANY_JSON: dict[str, Any] = {
    "an object": {"owner": "team-a", "n": 7, "flags": {"x": True, "y": None}, "list": [1, [], {}]},
    "a list": [1, "two", None, [3]],
    "a string": '任务 \U0001f642 <b>&amp;</b> "x" \\ / \n',
    "a number": 42,
    "a fraction": 0.1,
    "true": True,
    "false": False,
    "zero": 0,
    "an empty object": {},
    "an empty list": [],
    "an empty string": "",
}
ODD: dict[str, Any] = {
    "names of other objects": {"__proto__": 1, "constructor": {"a": 1}, "$ref": "#", "": 0, "a.b": 1, "$where": 2},
    "nulls": {"a": None, "b": [None, None]},
    "numbers": [-0.5, 1e-7, 1.5e10, 2**53 - 1, -(2**53) + 1],
    "numbers as strings": ["1", "1.0", "true", "null", "2026-11-09T10:05:00Z", "2026-11-09"],
    "control signs": "\0\x01\x1f\x7f\u2028\ufeff",
    "accents": ["é", "e\u0301", "ﬁ"],
    "deep": json.loads("[" * 30 + "]" * 30),
}


async def comes_back(api: HubApi, given: HubGiven, values: list[Any]) -> None:
    """Fail the check unless each value is accepted, and is in the detail as it was sent."""
    project = await a_place(given)
    for value in values:
        [id_] = job_ids(await api.submit(item(project, metadata=value)).succeeds())
        came = (await given.detail(id_)).get("metadata")
        expect(same_json(came, value), f"metadata {json.dumps(value)[:300]}", json.dumps(came)[:300], "/data/metadata")


@requirement("HUB-FIELD-22")
async def test_any_json_comes_back(api: HubApi, given: HubGiven) -> None:
    """Objects, lists, texts, numbers, truth values, empty ones too: each is accepted and shown unchanged."""
    await comes_back(api, given, [*ANY_JSON.values()])


@requirement("HUB-FIELD-52")
@pytest.mark.parametrize("name", ODD)
async def test_odd_json_comes_back_equal(api: HubApi, given: HubGiven, name: str) -> None:
    """Values that are easily changed on their way: each is accepted and is the same JSON value in the detail."""
    await comes_back(api, given, [ODD[name]])


@requirement("HUB-FIELD-52")
async def test_the_text_of_metadata_means_nothing(api: HubApi, given: HubGiven) -> None:
    """Written with spaces, escapes and its keys turned round, metadata is the JSON value that it is."""
    project = await a_place(given)
    text = '{ "b" : [ 1 ,\n2.50 ] , "\\u4e2d" : "\\u6587\\/\\ud83d\\ude42" , "a" : 1e2 }'
    head = f'{{"items": [{{"metadata": {text}, "kind": "ai", "projectId": "{project.id}", "prompt": "look"}}]}}'
    [id_] = job_ids(await raw_submission(api, head).succeeds())
    came = (await given.detail(id_)).get("metadata")
    wanted = {"a": 100, "b": [1, 2.5], "中": "文/\U0001f642"}
    expect(same_json(came, wanted), f"metadata {json.dumps(wanted)}", json.dumps(came)[:300], "/data/metadata")


@requirement("HUB-FIELD-22")
@pytest.mark.parametrize("keyed", [False, True], ids=["without a key", "with a key"])
async def test_very_deep_metadata_breaks_nothing(api: HubApi, given: HubGiven, keyed: bool) -> None:
    """Lists in lists, 300 and 1000 levels: shown unchanged, or the submission is refused (4xx); never a 5xx."""
    project = await a_place(given)
    for levels in (300, 1000):
        text = "[" * levels + "]" * levels
        head = f'{{"items": [{{"kind": "ai", "projectId": "{project.id}", "prompt": "look", "metadata": '
        answer = await raw_submission(api, f"{head}{text}}}]}}", given.unique("order") if keyed else UNSET).answers()
        if answer.status >= 300:
            expect(400 <= answer.status < 500, "a success or an error (4xx)", describe(answer.response))
        else:
            shown = (await api.job(job_ids(answer)[0]).succeeds(200)).response.text
            expect(text in "".join(shown.split()), f"{levels} levels", shown[:200], "/data/metadata")


@requirement("HUB-FIELD-53")
async def test_large_numbers_are_accepted(api: HubApi, given: HubGiven) -> None:
    """Numbers beyond 2^53 are accepted; they come back as numbers of that size, some digits may be lost."""
    project, sent = await a_place(given), [2**53 + 1, -(2**60) - 1, 2**63 - 1, 1.7e308]
    [id_] = job_ids(await api.submit(item(project, metadata={"numbers": sent})).succeeds())
    held = (await given.detail(id_)).get("metadata")
    came = held.get("numbers") if isinstance(held, dict) else None
    numbers = [one for one in came if type(one) in (int, float)] if isinstance(came, list) else []
    good = len(numbers) == len(sent) and all(map(nearly, numbers, sent))
    expect(good, f"about {sent}", json.dumps(held)[:300], "/data/metadata/numbers")


def nearly(came: float, sent: float) -> bool:
    """Whether a number is another one but for the last digits that a double holds."""
    return abs(came / sent - 1) < 1e-12


@requirement("HUB-FIELD-54")
async def test_null_is_accepted(api: HubApi, given: HubGiven) -> None:
    """`metadata` null is accepted, and shown as null."""
    project = await a_place(given)
    [id_] = job_ids(await api.submit(item(project, metadata=None)).succeeds())
    came = (await given.detail(id_)).get("metadata")
    expect(came is None, "metadata null", json.dumps(came)[:300], "/data/metadata")


@requirement("HUB-FIELD-23")
async def test_metadata_has_2_kilobytes_at_most(api: HubApi, given: HubGiven) -> None:
    """Well below 2 KB by any count it is accepted, above it refused: as one text, and as many small values."""
    project = await a_place(given)
    for make in (lambda size: {"note": text_of(size)}, lambda size: {f"k{i:03}": 1 for i in range(size // 10)}):
        small, large = make(1800), make(2600)
        await api.submit(item(project, metadata=small)).succeeds()
        await api.submit(item(project, metadata=large)).refused()


MAKES: dict[str, Any] = {
    "a text": (lambda text: text, "x"),
    "an object": (lambda text: {"owner": "team-a", "note": text}, "x"),
    "a list": (lambda text: [1, True, None, -2.5, {"a": [text]}], "x"),
    "Chinese": (lambda text: {"备注": text}, CHINESE),
    "emoji": (lambda text: {"note": text}, EMOJI),
    "signs that need escapes": (lambda text: {"note": text}, '"\\\n'),
    "signs that need none": (lambda text: {"note": text}, "/<>&'\u00e9\u2028"),
}


@requirement("HUB-FIELD-51")
@pytest.mark.parametrize("name", MAKES)
async def test_metadata_has_2048_bytes_at_most(api: HubApi, given: HubGiven, name: str) -> None:
    """2048 bytes of compact UTF-8 JSON are accepted, and come back; 2049 are 400 invalid_request."""
    project, (make, pattern) = await a_place(given), MAKES[name]
    largest, larger = filled(make, MOST, pattern), filled(make, MOST + 1, pattern)
    if (len(compact(largest)), len(compact(larger))) != (MOST, MOST + 1):
        raise ValueError("the check sends other sizes than it says")
    [id_] = job_ids(await api.submit(item(project, metadata=largest)).succeeds())
    came = (await given.detail(id_)).get("metadata")
    expect(same_json(came, largest), "metadata as sent", f"{len(compact(came))} bytes of it", "/data/metadata")
    await api.submit(item(project, metadata=larger)).fails(400, INVALID)


@requirement("HUB-FIELD-51")
async def test_metadata_is_measured_compact(api: HubApi, given: HubGiven) -> None:
    """How it is written does not count: with spaces or with escapes that are not needed 2048 bytes are accepted."""
    project = await a_place(given)
    for name, pattern in (("spaces", "x"), ("escapes", CHINESE)):
        value = spread(project, pattern)
        text = json.dumps(value, indent=40) if name == "spaces" else json.dumps(value, ensure_ascii=True)
        head = f'{{"items": [{{"kind": "ai", "projectId": "{project.id}", "prompt": "look", "metadata": '
        await raw_submission(api, f"{head}{text}}}]}}").succeeds(202)


def spread(project: Project, pattern: str) -> Any:
    """A value of 2048 bytes with a list in it."""
    return filled(lambda text: {"project": project.id, "list": [*range(9)], "note": text}, MOST, pattern)
