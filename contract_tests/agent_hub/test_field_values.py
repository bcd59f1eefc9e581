"""The numbers, modes and URLs of an item: their limits, and what they are where left out (seed 002 section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import describe, item
from contract_tests.agent_hub.given import SOON, job_ids
from contract_tests.agent_hub.shapes import instant
from contract_tests.agent_hub.submitting import INVALID, a_place, details_of, each_invalid, each_refused
from contract_tests.agent_hub.webhooks import names
from contract_tests.checks import about, alone, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.clock import Clock

FAR = (10**6, -(10**6), 2**31, 2**53)
MODES = ("auto", "discuss", "plan", "interactive")


def script(project: Any, **fields: Any) -> dict[str, Any]:
    """A script."""
    return item(project, kind="script", **fields)


@requirement("HUB-FIELD-11")
async def test_a_timeout_is_1_to_300_seconds(api: HubApi, given: HubGiven) -> None:
    """1 and 300 are accepted; 0, 301 and what is far from them is refused."""
    project = await a_place(given)
    await api.submit(*(script(project, timeoutSeconds=seconds) for seconds in (1, 2, 299, 300))).succeeds()
    await each_refused(api, [script(project, timeoutSeconds=seconds) for seconds in (0, 301, -1, *FAR)])


@requirement("HUB-FIELD-10")
async def test_a_timeout_is_for_scripts_alone(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """A script may have `timeoutSeconds`; with kind ai it is refused, or does nothing to a round of 2 s."""
    project = await a_place(given)
    await api.submit(script(project, timeoutSeconds=5)).succeeds()
    own, task = await given.project(), given.unique("task")
    await given.script(own, {"afterSeconds": 2, "result": "done"}, external_id=task)
    answer = await api.submit(item(own, timeoutSeconds=1, externalId=task)).answers()
    if answer.status < 300:
        await given.until(job_ids(answer)[0], "done", rule="HUB-FIELD-10")
    else:
        expect(400 <= answer.status < 500, "a success or an error (4xx)", str(answer.status))


@requirement("HUB-FIELD-12")
async def test_a_script_has_60_seconds_unless_it_says_so(given: HubGiven, clock: Clock) -> None:
    """A script without `timeoutSeconds` runs on shortly before 60 s, and has failed by `timeout` after them."""
    project, task = await given.project(), given.unique("task")
    await given.script(project, {"afterSeconds": 250, "result": "done"}, external_id=task)
    [id_] = await given.submitted(script(project, externalId=task))
    await given.until(id_, "running")
    began = instant(await given.detail(id_), "startedAt")
    if clock.stands:
        await clock.reach(began + 60_000 - 1, "HUB-GET-10")
    else:
        await clock.advance(60 - 5 - 2 * clock.margin)
    expect_fields(await given.detail(id_), {"status": "running"}, "/data")
    await clock.advance(0.1 if clock.stands else 5 + 4 * clock.margin)
    detail = await given.until(id_, "failed", rule="HUB-FIELD-12")
    failure = detail.get("failure") or {}
    with about("HUB-FAIL-05", step="a script over its limit"):
        expect_fields(failure, {"type": "timeout"}, "/data/failure")
    ended = instant(detail, "finishedAt")
    late = 500 if clock.stands else 20_000  # until it is seen, or the node tells it
    expect(0 <= ended - began - 60_000 <= late, "a round of 60 s", f"{ended - began} ms", "/data/finishedAt")


@requirement("HUB-FIELD-13")
async def test_there_are_four_modes(api: HubApi, given: HubGiven) -> None:
    """auto, discuss, plan and interactive are accepted, other words refused."""
    project = await a_place(given)
    await api.submit(*(item(project, mode=mode) for mode in MODES)).succeeds()
    await each_refused(api, [item(project, mode=mode) for mode in ("Auto", "AUTO", "", "autopilot", "auto ")])


@requirement("HUB-FIELD-14")
async def test_without_a_mode_a_job_runs_unattended(api: HubApi, given: HubGiven) -> None:
    """An item without `mode` is accepted and runs to its end by itself; a mode that the detail shows is auto."""
    project = await given.project()
    answer = await api.submit(item(project), item(project, mode="auto")).succeeds()
    for id_ in job_ids(answer):
        detail = await given.until(id_, "done", seconds=2 * SOON, rule="HUB-FIELD-14")
        expect(detail.get("mode", "auto") == "auto", "mode auto, where it is shown", str(detail.get("mode")))


@requirement("HUB-FIELD-16")
async def test_a_priority_is_minus_100_to_100(api: HubApi, given: HubGiven) -> None:
    """-100, 0 and 100 are accepted and shown; 101, -101 and what is far from them is refused."""
    project = await a_place(given)
    answer = await api.submit(*(item(project, priority=value) for value in (-100, -99, 0, 99, 100))).succeeds()
    with about("HUB-GET-09", step="a job's priority"):
        shown = [(await given.detail(id_)).get("priority") for id_ in job_ids(answer)]
        good = all(value in shown for value in (-100, -99, 0, 99, 100))
        expect(good, "the priorities sent", str(shown), "/data/priority")
    await each_refused(api, [item(project, priority=value) for value in (-101, 101, *FAR)])


@requirement("HUB-FIELD-50")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_the_priority_is_0_unless_it_is_given(given: HubGiven, kind: str) -> None:
    """An item without `priority`: its detail says 0."""
    [detail] = await details_of(given, item(await given.project(), kind=kind))
    expect_fields(detail, {"priority": 0}, "/data")


@requirement("HUB-FIELD-18")
async def test_there_are_1_to_4_attempts(api: HubApi, given: HubGiven) -> None:
    """1 to 4 are accepted and shown; 0, 5 and what is far from them is refused."""
    project = await a_place(given)
    answer = await api.submit(*(item(project, maxAttempts=value) for value in (1, 2, 3, 4))).succeeds()
    with about("HUB-GET-07", step="a job's maxAttempts"):
        shown = [(await given.detail(id_)).get("maxAttempts") for id_ in job_ids(answer)]
        expect(all(value in shown for value in (1, 2, 3, 4)), "the numbers sent", str(shown), "/data/maxAttempts")
    await each_refused(api, [item(project, maxAttempts=value) for value in (0, 5, -1, *FAR)])


@requirement("HUB-FIELD-19")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_there_are_4_attempts_unless_it_is_said(given: HubGiven, kind: str) -> None:
    """An item without `maxAttempts`: its detail says 4."""
    [detail] = await details_of(given, item(await given.project(), kind=kind))
    expect_fields(detail, {"maxAttempts": 4}, "/data")


NO_WEB = ("ftp://127.0.0.1/x", "file:///etc/passwd", "javascript:alert(1)", "ws://127.0.0.1/x", "mailto:a@example.com")
NO_URL = ("", "callback", "/callback", "//127.0.0.1/callback", "127.0.0.1:80/callback")


@requirement("HUB-FIELD-63")
async def test_a_callback_url_is_http_or_https(api: HubApi, given: HubGiven) -> None:
    """Another scheme, none, no URL at all: 400 invalid_request; http and https are accepted."""
    project, hook = await given.project(), given.hook()
    await given.running_job(project)
    with about("HUB-SUB-05", step="submitting jobs"):
        secure = hook.url.replace("http://", "https://")
        await api.submit(*(item(project, callbackUrl=url) for url in (hook.url, secure))).succeeds()
    await given.offline(project.node)  # they never run, so nothing is delivered
    online = await given.project()
    await each_invalid(api, [item(online, callbackUrl=url) for url in (*NO_WEB, *NO_URL)])


@requirement("HUB-FIELD-24")
@alone
async def test_a_callback_url_overrides_the_default(given: HubGiven) -> None:
    """One job with `callbackUrl` and one without: each is told to its own URL, the first not to the key's default."""
    default, own = given.hook(), given.hook()
    await given.default_callback("a", default.url)
    try:
        project = await given.project()
        first = await given.job(project, callbackUrl=own.url)
        second = await given.job(project)
        for job in (first, second):
            await given.until(job, "done", rule="HUB-FIELD-24")
        with about("HUB-AUTH-02", step="telling a job to the key's default"):
            await given.receiver.wait(lambda: told(default, second.id), 5)
            expect(told(default, second.id), f"a webhook of {second.id} at the default", default.so_far())
        await given.receiver.wait(lambda: told(own, first.id), 5)
        expect(told(own, first.id), f"a webhook of {first.id} at its callbackUrl", own.so_far())
        expect(not told(own, second.id), f"no webhook of {second.id} there", own.so_far())
        expect(not told(default, first.id), f"no webhook of {first.id} at the default", default.so_far())
    finally:
        await given.default_callback("a", None)


def told(hook: Any, id_: str) -> bool:
    """Whether a hook was told of a job."""
    return any(names(delivery, id_) for delivery in list(hook.deliveries))


LIMITS = {
    "timeoutSeconds": "HUB-FIELD-11",
    "priority": "HUB-FIELD-16",
    "maxAttempts": "HUB-FIELD-18",
    "mode": "HUB-FIELD-13",
    "kind": "HUB-FIELD-01",
}
"""The rule by which a value beyond its limits is refused at all."""


@requirement("HUB-SUB-53")
@pytest.mark.parametrize("name", LIMITS)
async def test_a_value_out_of_its_limits_is_invalid_request(api: HubApi, given: HubGiven, name: str) -> None:
    """A value beyond each limit: 400, and the code is invalid_request."""
    project = await given.project()
    wrong: dict[str, list[dict[str, Any]]] = {
        "timeoutSeconds": [script(project, timeoutSeconds=value) for value in (0, 301)],
        "priority": [item(project, priority=value) for value in (-101, 101)],
        "maxAttempts": [item(project, maxAttempts=value) for value in (0, 5)],
        "mode": [item(project, mode="autopilot")],
        "kind": [item(project, kind="agent")],
    }
    for one in wrong[name]:
        answer = await api.submit(one).answers()
        with about(LIMITS[name], step=f"refusing a {name} beyond its limits"):
            expect(answer.status >= 400, "a refusal", describe(answer.response))
        good = (answer.status, api.submit().dialect.code_of(answer.response)) == (400, INVALID)
        expect(good, f"400 {INVALID}", describe(answer.response))
