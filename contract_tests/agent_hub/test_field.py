"""The texts and ids of an item: which it needs, how long they may be, what refuses it (seed 002 section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import BASE, item
from contract_tests.agent_hub.given import job_ids
from contract_tests.agent_hub.submitting import (
    CHINESE,
    DECOMPOSED,
    EMOJI,
    FAMILY,
    INVALID,
    NOT_FOUND,
    a_place,
    details_of,
    each_invalid,
    each_refused,
    entries_of,
    listed,
    nothing_queued,
    refused_with_400,
    text_of,
)
from contract_tests.calls import UNSET
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven

LONGEST = 8000
LONGEST_ID = 128
ONE = "n"
WIDE = {"Chinese": CHINESE, "emoji": EMOJI, "both": f"a{CHINESE}{EMOJI}", "joined emoji": FAMILY, "accents": DECOMPOSED}
BLANK = {"empty": "", "a space": " ", "white space": " \t\r\n ", "an ideographic space": "\u3000"}


@requirement("HUB-FIELD-01")
async def test_kind_is_ai_or_script(api: HubApi, given: HubGiven) -> None:
    """Both kinds are accepted and shown; without a kind, or with another one: refused."""
    project = await given.project()
    answer = await api.submit(item(project), item(project, kind="script")).succeeds()
    shown = [(await given.detail(id_)).get("kind") for id_ in job_ids(answer)]
    expect("ai" in shown and "script" in shown and len(shown) == 2, "kind ai and script", str(shown), "/data/kind")
    await each_refused(api, [item(project, kind=kind) for kind in (UNSET, "agent", "AI", "", "shell")])


@requirement("HUB-FIELD-02")
async def test_a_project_is_required(api: HubApi, given: HubGiven) -> None:
    """An item without `projectId` is refused, with its node named, too."""
    project = await a_place(given)
    await each_refused(api, [item(), item(nodeId=project.node.id), item(kind="script")])


@requirement("HUB-FIELD-03")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_a_project_that_does_not_exist_is_400(api: HubApi, given: HubGiven, kind: str) -> None:
    """An item of a project that does not exist: 400."""
    await refused_with_400(api.submit(item(given.unique("no-such-proj"), kind=kind)))


@requirement("HUB-FIELD-06")
async def test_kind_ai_needs_a_prompt(api: HubApi, given: HubGiven) -> None:
    """kind ai without `prompt` is refused, with a command in its place, too; with one it is accepted."""
    project = await given.project()
    await api.submit(item(project, prompt="look")).succeeds()
    await each_refused(api, [item(project, prompt=UNSET), item(project, prompt=UNSET, command="ls")])


@requirement("HUB-FIELD-08")
async def test_kind_script_needs_a_command(api: HubApi, given: HubGiven) -> None:
    """kind script without `command` is refused, with a prompt in its place, too; with one it is accepted."""
    project = await given.project()
    await api.submit(item(project, kind="script", command="ls")).succeeds()
    script = item(project, kind="script", command=UNSET)
    await each_refused(api, [script, {**script, "prompt": "look"}])


@requirement("HUB-FIELD-07")
async def test_a_prompt_has_8000_characters_at_most(api: HubApi, given: HubGiven) -> None:
    """8000 characters are accepted, 8001 and 80,000 refused."""
    project = await a_place(given)
    await api.submit(item(project, prompt=text_of(LONGEST))).succeeds()
    await each_refused(api, [item(project, prompt=text_of(size)) for size in (LONGEST + 1, 10 * LONGEST)])


@requirement("HUB-FIELD-09")
async def test_a_command_has_8000_characters_at_most(api: HubApi, given: HubGiven) -> None:
    """8000 characters are accepted, 8001 and 80,000 refused."""
    project = await a_place(given)
    await api.submit(item(project, kind="script", command=text_of(LONGEST))).succeeds()
    scripts = [item(project, kind="script", command=text_of(size)) for size in (LONGEST + 1, 10 * LONGEST)]
    await each_refused(api, scripts)


@requirement("HUB-FIELD-21")
async def test_an_external_id_has_128_characters_at_most(api: HubApi, given: HubGiven) -> None:
    """128 characters are accepted, 129 and 10,000 refused."""
    project = await a_place(given)
    await api.submit(item(project, externalId=text_of(LONGEST_ID, "task-"))).succeeds()
    await each_refused(api, [item(project, externalId=text_of(size)) for size in (LONGEST_ID + 1, 10_000)])


@requirement("HUB-FIELD-55")
@pytest.mark.parametrize("name", WIDE)
async def test_characters_are_code_points(api: HubApi, given: HubGiven, name: str) -> None:
    """Prompt and command of 8000 code points, externalId of 128: accepted, whatever they are; one more: 400."""
    project, pattern = await a_place(given), WIDE[name]
    for fields, field, most in (
        ({"kind": "ai"}, "prompt", LONGEST),
        ({"kind": "script"}, "command", LONGEST),
        ({"kind": "ai"}, "externalId", LONGEST_ID),
    ):
        longest = text_of(most, pattern)
        await api.submit(item(project, **{**fields, field: longest})).succeeds()
        await api.submit(item(project, **{**fields, field: longest + pattern[0]})).fails(400, INVALID)


EXTERNAL_IDS = (
    "TASK-1024",
    " leading and trailing ",
    "任务-17 \U0001f642",
    "a/b?c=d&e#f%20",
    '<b>"it\'s"</b>\\',
    "é and e\u0301",
    "00042",
    "null",
)


@requirement("HUB-FIELD-20")
async def test_an_external_id_is_returned_unchanged(api: HubApi, given: HubGiven) -> None:
    """Ids with spaces, Chinese, signs that mean something elsewhere: the same in the answer, in detail and list."""
    project, batch = await given.project(), given.unique("batch")
    answer = await given.accepted(*(item(project, externalId=id_) for id_ in EXTERNAL_IDS), batch=batch)
    told = [entry.get("externalId") for entry in entries_of(answer)]
    expect(sorted(map(str, told)) == sorted(EXTERNAL_IDS), f"{EXTERNAL_IDS}", str(told), "/data/items")
    found = [job.get("externalId") for job in await listed(given, batchId=batch)]
    with about("HUB-SUB-08", step="queueing what was accepted"):
        expect(len(found) == len(EXTERNAL_IDS), f"{len(EXTERNAL_IDS)} jobs", str(len(found)), "/data/items")
    expect(sorted(map(str, found)) == sorted(EXTERNAL_IDS), f"{EXTERNAL_IDS}", str(found), "/data/items")
    for entry in entries_of(answer):
        expect_fields(await given.detail(entry["id"]), {"externalId": entry["externalId"]}, "/data")


@requirement("HUB-FIELD-20")
@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=["NUL", "half a surrogate pair"])
async def test_a_strange_external_id_breaks_nothing(api: HubApi, given: HubGiven, text: str) -> None:
    """An id that not every database stores: returned unchanged, or the submission is refused (4xx); never a 5xx."""
    call = api.raw("POST", f"{BASE}/jobs", content=strange(await given.project(), text), envelope="HUB-SUB-06")
    answer = await call.answers()
    if answer.status >= 300:
        expect(400 <= answer.status < 500, "a success or an error (4xx)", call.dialect.describe(answer.response))
        return
    expect_fields(await given.detail(job_ids(answer)[0]), {"externalId": text}, "/data")


def strange(project: Any, text: str) -> bytes:
    """A submission with an externalId that is written with escapes alone."""
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in text)
    head = f'{{"items": [{{"kind": "ai", "projectId": "{project.id}", "prompt": "look", "externalId": "'
    return f'{head}{escaped}"}}]}}'.encode()


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "HUB-FIELD-56": ("script", {"prompt": "look"}),
    "HUB-FIELD-57": ("ai", {"command": "ls"}),
    "HUB-FIELD-58": ("ai", {"timeoutSeconds": 60}),
    "HUB-FIELD-59": ("script", {"mode": "auto"}),
}
"""What an item of a kind must not have, by the rule that says so."""


@requirement("HUB-FIELD-56", "HUB-FIELD-57", "HUB-FIELD-58", "HUB-FIELD-59")
@pytest.mark.parametrize("rule", REFUSED)
async def test_a_field_of_the_other_kind_is_400(api: HubApi, given: HubGiven, rule: str) -> None:
    """prompt or mode with script, command or timeoutSeconds with ai: 400 invalid_request, though its value is right."""
    kind, fields = REFUSED[rule]
    with about(rule):
        await api.submit(item(await given.project(), kind=kind, **fields)).fails(400, INVALID)


UNKNOWN = ("promt", "Prompt", "time_out", "callback_url", "callbackURL", "maxattempts", "id", "status", "account", "")


@requirement("HUB-FIELD-60")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_an_unknown_property_of_an_item_is_400(api: HubApi, given: HubGiven, kind: str) -> None:
    """A misspelt field, one of another object, a nameless one: 400 invalid_request, and nothing is queued."""
    project, batch = await given.project(), given.unique("batch")
    for name in UNKNOWN:
        await api.submit({**item(project, kind=kind), name: "x"}, batch=batch).fails(400, INVALID)
    await nothing_queued(given, batch)


@requirement("HUB-FIELD-60")
async def test_an_unknown_property_of_the_body_is_400(api: HubApi, given: HubGiven) -> None:
    """A misspelt `batchId`, a field of an item beside `items`, anything else: 400 invalid_request."""
    one = item(await given.project(), externalId=given.unique("task"))
    for name in ("batch_id", "batchID", "batch", "priority", "callbackUrl", "Items", "dryRun", ""):
        await api.raw("POST", f"{BASE}/jobs", body={"items": [one], name: "x"}).fails(400, INVALID)
    found = await listed(given, externalId=one["externalId"])
    expect(not found, "no job", f"{len(found)} jobs", "/data/items")


@requirement("HUB-FIELD-61")
@pytest.mark.parametrize("name", BLANK)
async def test_a_blank_prompt_or_command_is_400(api: HubApi, given: HubGiven, name: str) -> None:
    """A prompt or command that is empty or white space alone: 400 invalid_request; with one sign more it is right."""
    project, blank = await a_place(given), BLANK[name]
    await each_invalid(api, [item(project, prompt=blank), item(project, kind="script", command=blank)])
    await api.submit(item(project, prompt=f"{blank}."), item(project, kind="script", command=f".{blank}")).succeeds()


@requirement("HUB-FIELD-62")
@pytest.mark.parametrize("name", ["externalId", "projectId", "nodeId"])
async def test_an_empty_id_is_400(api: HubApi, given: HubGiven, name: str) -> None:
    """An empty `externalId`, `projectId` or `nodeId`: 400 invalid_request, not taken for one that was left out."""
    await api.submit(item(await given.project(), **{name: ""})).fails(400, INVALID)


@requirement("HUB-FIELD-62")
@pytest.mark.parametrize("name", ["externalId", "projectId", "nodeId"])
async def test_an_id_of_one_character_is_not_empty(api: HubApi, given: HubGiven, name: str) -> None:
    """An `externalId`, `projectId` or `nodeId` of a single character: accepted, and shown as it is."""
    node = await given.node(
        [ONE if name == "projectId" else given.unique("proj")], id_=ONE if name == "nodeId" else None
    )
    task = ONE if name == "externalId" else given.unique("task")
    answer = await api.submit(item(node.projects[0], nodeId=node.id, externalId=task)).succeeds(202)
    with about("HUB-SUB-09", step="the ids of an accepted submission"):
        expect_fields(entries_of(answer)[0], {name: ONE}, "/data/items/0")


@requirement("HUB-FIELD-02", "HUB-FIELD-04")
async def test_equal_names_of_projects_and_nodes_are_apart(api: HubApi, given: HubGiven) -> None:
    """A project that is named as a node is: each is looked up as what it is."""
    name = (await given.node()).id
    node = await given.node([name])
    with about("HUB-FIELD-04"):
        [detail] = await details_of(given, item(name))
        expect_fields(detail, {"nodeId": node.id, "projectId": name}, "/data")
    with about("HUB-FIELD-02"):
        answer = await api.submit(item(node.id)).refused()
        came = api.submit().dialect.code_of(answer.response)
        expect(came != "ambiguous_project", f"{NOT_FOUND}", str(came), "/error/code")
