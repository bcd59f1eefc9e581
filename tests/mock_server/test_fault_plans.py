"""Fault plans: what may be planned, which requests are met, what is listed, counted and removed."""

from __future__ import annotations

import asyncio
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest
from asgi import ask
from fault_world import IMPATIENT, FaultyWorld, by_http_client, eventually, world_on
from mock_world import KEY, start, stop
from test_serve_command import refused

import openapi
from mock_server.control import Guard
from mock_server.fault_plans import MAX_APART, FaultPlans, plans_of, read_plans
from mock_server.fault_rules import PlanError
from mock_server.fault_targets import Asked, Targets
from mock_server.server import Server
from mock_server.worlds import Options, Worlds

TARGETS = Targets(openapi.load())
STATUS = {"kind": "status", "status": 503}
LOCK = "/internal/runtime/jobs/{jobId}/lock"


@pytest.fixture
def faulty(base_url):
    with world_on(base_url) as world:
        yield world


def counted(when, asked=(), count=20, fault=STATUS, match=None):
    """The requests, by number, that a plan meets."""
    plans = FaultPlans(plans_of({"match": match or {}, "when": when, "fault": fault}, TARGETS))
    asked = asked or [Asked(TARGETS.by_id["lockJob"])] * count
    return [n for n, one in enumerate(asked, 1) if plans.choose(one)]


@pytest.mark.parametrize(
    ("when", "met"),
    [
        ({}, [*range(1, 21)]),
        ({"nth": [2, 7]}, [2, 7]),
        ({"from": 18}, [18, 19, 20]),
        ({"every": 6}, [6, 12, 18]),
        ({"every": 6, "from": 2}, [2, 8, 14, 20]),
        ({"times": 2}, [1, 2]),
        ({"from": 5, "times": 2}, [5, 6]),
        ({"nth": [3, 4, 5], "times": 1}, [3]),
        ({"share": 1}, [*range(1, 21)]),
    ],
    ids=str,
)
def test_when_says_which_of_the_matching_requests_are_met(when, met):
    assert counted(when) == met


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_a_share_is_the_same_in_each_run_and_about_as_large_as_said(share):
    met = counted({"share": share, "seed": 7}, count=10_000)
    assert met == counted({"share": share, "seed": 7}, count=10_000)
    assert met != counted({"share": share, "seed": 8}, count=10_000)
    assert abs(len(met) - 10_000 * share) < 4 * math.sqrt(10_000 * share * (1 - share))


def test_a_share_is_the_same_on_every_machine():
    assert counted({"share": 0.3}, count=12) == [1, 2, 11]


@pytest.mark.parametrize(
    ("shape", "least", "middle", "most"),
    [
        ({"uniform": [0.1, 0.3]}, 0.1, 0.2, 0.3),
        ({"uniform": [2, 2]}, 2, 2, 2),
        ({"lognormal": {"median": 0.05, "sigma": 0.5}}, 0, 0.05, 1),
        ({"lognormal": {"median": 60, "sigma": 10}}, 0, 60, 3600),
    ],
    ids=str,
)
def test_delays_are_distributed_as_said(shape, least, middle, most):
    (plan,) = plans_of({"fault": {"kind": "delay", "distribution": shape}}, TARGETS)
    drawn = sorted(plan.seconds(n, "") for n in range(1, 2001))
    assert least <= drawn[0] <= drawn[-1] <= most
    assert abs(drawn[1000] - middle) <= 0.1 * middle or "uniform" not in shape
    assert 0.5 * middle <= drawn[1000] <= 2 * middle
    assert drawn == sorted(plan.seconds(n, "") for n in range(1, 2001))


def test_jobs_and_callers_can_be_counted_apart():
    asked = [
        Asked(TARGETS.by_id["lockJob"], job, caller)
        for job, caller in [("a", "x"), ("b", "x"), ("a", "y"), ("a", "x"), ("b", "y"), ("b", "x")]
    ]
    assert counted({"nth": [2], "perJob": True}, asked) == [3, 5]
    assert counted({"nth": [2], "perCaller": True}, asked) == [2, 5]
    assert counted({"nth": [2], "perJob": True, "perCaller": True}, asked) == [4, 6]
    assert counted({"times": 1, "perJob": True}, asked) == [1, 2]


def test_what_is_counted_apart_is_bounded():
    plans = FaultPlans(plans_of({"when": {"times": 1, "perJob": True}, "fault": STATUS}, TARGETS))
    lock = TARGETS.by_id["lockJob"]
    for n in range(MAX_APART + 1):
        assert plans.choose(Asked(lock, f"job-{n}"))
    assert not plans.choose(Asked(lock, f"job-{MAX_APART}"))
    assert plans.choose(Asked(lock, "job-0"))  # forgotten: the one not seen for longest
    (counts,) = [item.view() for item in plans]
    assert (counts["matched"], counts["applied"]) == (MAX_APART + 3, MAX_APART + 2)


MATCHES = {
    "everything": ({}, ["lock", "poll", "snapshot", "resolve", "unknown"]),
    "an operation": ({"operationId": "lockJob"}, ["lock"]),
    "a method": ({"method": "GET"}, ["snapshot"]),
    "a path as specified": ({"path": LOCK}, ["lock"]),
    "a path as asked": ({"path": "/internal/runtime/jobs/j/lock"}, ["lock"]),
    "a job": ({"jobId": "job-1"}, ["lock", "resolve"]),
    "a caller": ({"caller": "runtime-1"}, ["lock", "resolve"]),
    "a job and an operation": ({"jobId": "job-1", "operationId": "resolveCredential"}, ["resolve"]),
}


@pytest.mark.parametrize(("match", "met"), MATCHES.values(), ids=MATCHES)
def test_match_says_which_requests_count(match, met):
    asked = {
        "lock": Asked(TARGETS.by_id["lockJob"], "job-1", "runtime-1"),
        "poll": Asked(TARGETS.by_id["pollJobs"], None, "runtime-2"),
        "snapshot": Asked(TARGETS.by_id["getSnapshot"], "job-2"),
        "resolve": Asked(TARGETS.by_id["resolveCredential"], "job-1", "runtime-1"),
        "unknown": Asked(None),
    }
    numbers = counted({}, list(asked.values()), match=match)
    assert [list(asked)[n - 1] for n in numbers] == met


def fault(kind, **fields):
    return {"fault": {"kind": kind, **fields}}


def lock(plan, **match):
    return {**plan, "match": {"operationId": "lockJob", **match}}


def heartbeat(plan):
    return {**plan, "match": {"operationId": "heartbeatJob"}}


WRONG = {
    "no fault": ({}, "/fault: is required"),
    "no kind": ({"fault": {}}, "/fault/kind: is required"),
    "unknown kind": (fault("dealy", seconds=1), "`dealy` (did you mean `delay`?)"),
    "unknown field": ({**fault("reset"), "macth": {}}, "/macth: is not known here (did you mean `match`?)"),
    "unknown field of match": ({**fault("reset"), "match": {"job": "j"}}, "/match/job: is not known here"),
    "unknown field of when": ({**fault("reset"), "when": {"evry": 2}}, "did you mean `every`?"),
    "a field that the kind does not take": (fault("reset", seconds=1), "/fault/seconds: is not known here (known are"),
    "a misspelt field of a kind": (fault("drip", bytes=1, secnds=1), "did you mean `seconds`?"),
    "unknown operation": (lock(fault("reset"), operationId="lockjob"), "did you mean `lockJob`?"),
    "unknown path": ({**fault("reset"), "match": {"path": "/internal/runtime/jobs/pol"}}, "did you mean `/internal"),
    "unknown method of a path": (lock(fault("reset"), method="GET"), "/match/method: no operation that the plan"),
    "a method that no operation has": ({**fault("reset"), "match": {"method": "PATCH"}}, "(use GET, POST, or"),
    "operation and path disagree": (lock(fault("reset"), path="/internal/runtime/jobs/poll"), f"lockJob is at {LOCK}"),
    "a job too long to be one": (lock(fault("reset"), jobId="j" * 129), "at most 128"),
    "a job where none is": (
        {**fault("reset"), "match": {"operationId": "pollJobs", "jobId": "j"}},
        "/match/jobId: no request of pollJobs names a job (leave it out)",
    ),
    "jobs apart where none is": (
        {**fault("reset"), "match": {"operationId": "pollJobs"}, "when": {"perJob": True}},
        "/when/perJob: no request that the plan is for names a job",
    ),
    "nth of nothing": ({**fault("reset"), "when": {"nth": []}}, "/when/nth: must have at least 1"),
    "nth from 0": ({**fault("reset"), "when": {"nth": [0]}}, "/when/nth/0: must be at least 1"),
    "nth and every": ({**fault("reset"), "when": {"nth": [1], "every": 2}}, "/when/every: does not go together"),
    "share 0": ({**fault("reset"), "when": {"share": 0}}, "/when/share: must be greater than 0"),
    "share over 1": ({**fault("reset"), "when": {"share": 1.1}}, "/when/share: must be at most 1"),
    "times 0": ({**fault("reset"), "when": {"times": 0}}, "/when/times: must be at least 1"),
    "a delay of nothing": (fault("delay"), "give one of the two"),
    "a delay of both": (fault("delay", seconds=1, distribution={"uniform": [0, 1]}), "give one of the two"),
    "a delay of 0": (fault("delay", seconds=0), "/fault/seconds: must be greater than 0"),
    "a delay backwards": (fault("delay", distribution={"uniform": [2, 1]}), "the least seconds, then the most"),
    "two distributions": (
        fault("delay", distribution={"uniform": [0, 1], "lognormal": {"median": 1, "sigma": 1}}),
        "/fault/distribution: must have at most 1",
    ),
    "unknown errorCode": (fault("status", status=503, errorCode="SERVICE_UNAVAILBLE"), "did you mean `SERVICE_UNAV"),
    "a code without a body": (fault("status", status=204, errorCode="NOT_FOUND"), "an answer 204 has no body"),
    "a status that is none": (fault("status", status=999), "/fault/status: must be at most 599"),
    "a header that frames": (fault("status", status=503, headers={"Content-Length": "3"}), "wrong-length"),
    "a header with a line break": (fault("status", status=503, headers={"a": "b\r\nc: d"}), "/fault/headers/a: must"),
    "a header that is none": (fault("status", status=503, headers={"a b": "c"}), "`a b` is no name"),
    "half of an empty body": (
        heartbeat(fault("reset", at="mid-body")),
        "/fault/at: heartbeatJob answers without a body: there is nothing for `mid-body` to spoil (use after-commit)",
    ),
    "an empty body spoilt": (heartbeat(fault("truncated-json")), "heartbeatJob answers without a body"),
    "skew where no lockUntil is": (heartbeat(fault("skew", seconds=1)), "has a `lockUntil` (meet lockJob)"),
    "skew by nothing": (fault("skew", seconds=0), "must not be 0"),
    "length by nothing": (fault("wrong-length", by=0), "must not be 0"),
    "unknown field of the answer": (lock(fault("wrong-types", field="lockUntl")), "did you mean `lockUntil`?"),
    "an id with a space": ({**fault("reset"), "id": "a b"}, "/id: must match"),
    "no plan at all": (3, "must be of type object"),
}


@pytest.mark.parametrize(("plan", "told"), WRONG.values(), ids=WRONG)
def test_a_plan_that_can_not_be_meant_is_told_with_place_and_mend(faulty, plan, told):
    answer = faulty.try_plans([fault("reset"), plan])
    assert answer.status_code == 400
    said = answer.json()["error"]
    assert told in said
    assert said.startswith("/1")
    assert "FaultPlan in" in said or "(" in said
    assert faulty.counts() == {}  # all or none


@pytest.mark.parametrize(("plan", "told"), WRONG.values(), ids=WRONG)
def test_a_plan_of_a_file_is_told_with_its_line(tmp_path, plan, told):
    path = tmp_path / "plans.yaml"
    path.write_text(f"- fault: {{kind: reset}}\n\n- {json.dumps(plan)}\n")
    with pytest.raises(PlanError) as raised:
        read_plans([path], TARGETS)
    said = str(raised.value)
    assert f"{path}:3: " in said
    assert told.rpartition(": ")[2].split(" (")[0].split("`")[0] in said


def test_every_problem_is_told_at_once(faulty):
    answer = faulty.try_plans([{}, fault("dealy"), lock(fault("skew", seconds=1), operationId="pollJob")])
    said = answer.json()["error"].split("; ")
    assert [text.split(":")[0] for text in said] == ["/0/fault", "/1/fault/kind", "/2/match/operationId"]


FILES = {
    "no YAML": ("- [1", ":", "mend the YAML"),
    "nothing": ("", ":1: ", "mapping"),
    "a key twice": ("fault: {kind: reset}\nfault: {kind: close}", ":2: ", "twice"),
    "a date": ("- id: 2026-01-01\n  fault: {kind: reset}", ":1: ", "in quotes"),
    "a circle": ("- &a [*a]", ":1: ", "alias of itself"),
    "no number": ("fault:\n  kind: delay\n  seconds: .inf", ":3: ", "finite"),
    "an id twice": ("- {id: a, fault: {kind: reset}}\n- {id: a, fault: {kind: close}}", ":2: ", "/0/id"),
}


@pytest.mark.parametrize(("text", "line", "told"), FILES.values(), ids=FILES)
def test_a_file_that_can_not_be_used_is_told_with_its_line(tmp_path, text, line, told):
    path = tmp_path / "plans.yaml"
    path.write_text(text)
    with pytest.raises(PlanError) as raised:
        read_plans([path], TARGETS)
    assert f"{path}{line}" in str(raised.value)
    assert told in str(raised.value)


def test_an_id_of_two_files_is_told(tmp_path):
    one, other = tmp_path / "one.yaml", tmp_path / "other.json"
    one.write_text("{id: a, fault: {kind: reset}}")
    other.write_text('[{"id": "b", "fault": {"kind": "reset"}},\n {"id": "a", "fault": {"kind": "close"}}]')
    with pytest.raises(PlanError, match=r"other\.json:2: `a` is in another file already"):
        read_plans([one, other], TARGETS)


def test_plans_are_listed_with_their_counts_and_removed(faulty):
    job = faulty.state("job")["jobId"]
    made = faulty.try_plans(
        [
            {"id": "mine", **lock(fault("status", status=503)), "when": {"nth": [2]}},
            fault("drip", bytes=9, seconds=0.001),
        ]
    )
    assert [plan["id"] for plan in made.json()["faults"]] == ["mine", "fault-1"]
    assert [faulty.lock(job).status_code for _ in range(3)] == [200, 503, 409]
    assert faulty.control("GET", "/faults/mine").json() == {
        "id": "mine",
        "match": {"operationId": "lockJob"},
        "when": {"nth": [2]},
        "fault": {"kind": "status", "status": 503},
        "matched": 3,
        "applied": 1,
    }
    assert faulty.counts() == {"mine": (3, 1), "fault-1": (3, 2)}
    taken = faulty.try_plans({"id": "mine", **fault("reset")})
    assert (taken.status_code, "`mine` already" in taken.json()["error"]) == (400, True)
    assert faulty.control("DELETE", "/faults/mine").status_code == 204
    gone = faulty.control("DELETE", "/faults/mine")
    assert (gone.status_code, "fault-1" in gone.json()["error"]) == (404, True)
    assert faulty.control("GET", "/faults/mine").status_code == 404
    assert faulty.control("DELETE", "/faults").status_code == 204
    assert faulty.control("GET", "/faults").json() == {"faults": []}
    assert faulty.plan({"kind": "reset"}) == "fault-2"  # never an id that was another plan's


def test_a_reset_keeps_the_plans_with_counts_at_zero(faulty):
    plan = faulty.plan(STATUS, when={"nth": [1]})
    assert [faulty.poll().status_code for _ in range(2)] == [503, 200]
    assert faulty.counts() == {plan: (2, 1)}
    id_ = faulty.path.rpartition("/")[2]
    assert faulty.client.post(f"{faulty.base_url}/__control__/worlds/{id_}/reset").status_code == 204
    assert faulty.counts() == {plan: (0, 0)}
    assert [faulty.poll().status_code for _ in range(2)] == [503, 200]


def test_too_many_plans_are_refused(faulty):
    assert faulty.try_plans([fault("reset")] * 1000).status_code == 201
    answer = faulty.try_plans(fault("reset"))
    assert (answer.status_code, "at most 1000" in answer.json()["error"]) == (400, True)


def test_the_credentials_job_is_found_in_the_body(faulty):
    plan = faulty.plan(STATUS, {"jobId": "job-1"})
    body = {"jobId": "job-1", "apiKeyMode": "platform_key", "provider": "deepseek"}
    url = "/internal/runtime/model-credentials/resolve"
    assert faulty.send("POST", url, json={**body, "jobId": "job-2"}).status_code != 503
    assert faulty.send("POST", url, json=body).status_code == 503
    assert faulty.send("POST", url, content=b"[").status_code != 503
    assert faulty.counts() == {plan: (1, 1)}
    assert [entry["jobId"] for entry in faulty.journal(status=503)] == ["job-1"]


def test_a_plan_is_older_than_the_key(faulty):
    faulty.plan(STATUS)
    headers = {"x-internal-api-key": "wrong"}
    assert faulty.send("POST", "/internal/runtime/jobs/poll", headers=headers).status_code == 503


def test_no_secret_leaves_with_a_fault(faulty):
    job = faulty.state("job")["jobId"]
    key = faulty.state("credential")["apiKey"]
    id_ = faulty.plan({"kind": "status", "status": 503, "message": f"it is {key}"}, when={"nth": [1]}, id_=key[:20])
    faulty.plan({"kind": "wrong-types", "field": "status"}, when={"nth": [2]})
    answers = [faulty.lock(job, by=key) for _ in range(2)]
    seen = [*(answer.text for answer in answers), *map(repr, faulty.journal()), repr(faulty.counts()), id_]
    assert all(key[:20] not in text for text in seen)
    assert key not in faulty.try_plans({**fault("reset"), "match": {"operationId": key}}).text


def test_plans_of_files_hold_for_every_world(tmp_path):
    path, more = tmp_path / "plans.yaml", tmp_path / "more.json"
    path.write_text("- id: lost\n  match: {operationId: lockJob}\n  when: {nth: [1]}\n  fault: {kind: reset}\n")
    more.write_text('{"match": {"operationId": "pollJobs"}, "fault": {"kind": "status", "status": 503}}')
    process, url = start("--fault", str(path), "--fault", str(more))
    with world_on(url) as world, httpx.Client(trust_env=False) as client:
        for counts in (
            world.counts(),
            {plan["id"]: (0, 0) for plan in client.get(f"{url}/__control__/faults").json()["faults"]},
        ):
            assert counts == {"lost": (0, 0), "fault-1": (0, 0)}
        assert world.poll().status_code == 503
        assert by_http_client(world.lock_url("job-1")) == "ConnectionResetError"
        assert by_http_client(world.lock_url("job-1"))[0] == 404
        assert client.get(f"{url}/__control__/faults/lost").json()["matched"] == 0
    assert stop(process) == ""


def test_a_wrong_file_is_refused_before_it_serves(tmp_path):
    path = tmp_path / "plans.yaml"
    path.write_text("- fault:\n    kind: rest\n")
    said = refused("--port", "0", "--fault", str(path))
    assert f"{path}:2: " in said
    assert "did you mean `reset`?" in said
    assert "nothing.yaml" in refused("--port", "0", "--fault", str(tmp_path / "nothing.yaml"))


def test_a_server_stops_while_requests_hang_or_wait():
    process, url = start()
    with httpx.Client(trust_env=False) as client:
        world = FaultyWorld(client, url, "")
        world.plan({"kind": "hang"}, when={"nth": [1]})
        world.plan({"kind": "delay", "seconds": 600}, when={"nth": [2]})
        for _ in range(2):
            assert by_http_client(world.lock_url("job-1"), patience=IMPATIENT) == "TimeoutError"
        with ThreadPoolExecutor(1) as pool:
            world.plan({"kind": "hang"}, when={"nth": [1]})
            hanging = pool.submit(by_http_client, world.lock_url("job-1"))
            eventually(lambda: list(world.counts().values())[-1] == (1, 1))
            begin = time.monotonic()
            assert stop(process) == ""
            assert time.monotonic() - begin < 4  # not only when uvicorn's patience ends
            assert hanging.result() == "RemoteDisconnected"
    assert process.returncode == 0


def test_in_its_own_process_a_cut_is_an_error():
    server = Server(Worlds(Options(api_key=KEY, clock="manual")), Guard(None, None))
    plans = [
        lock(fault("reset")),
        lock(fault("delay", seconds=0.001)),
        lock({"fault": STATUS}),
    ]
    server.worlds.default.faults.add(plans_of(plans[:2], TARGETS))
    with pytest.raises(ConnectionError):
        ask(server, "POST", "/internal/runtime/jobs/job-1/lock", {"runtimeInstanceId": "runtime-1"})
    server.worlds.default.faults.clear()
    server.worlds.default.faults.add(plans_of(plans[1:], TARGETS))
    assert ask(server, "POST", "/internal/runtime/jobs/job-1/lock", {"runtimeInstanceId": "runtime-1"})[0] == 503


def test_a_stream_passes_what_spoils_bodies():
    worlds = Worlds(Options(api_key=KEY, clock="manual"))
    world = worlds.default
    world.faults.add(plans_of(fault("truncated-json"), TARGETS))

    async def stream(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in (b"a", b"b"):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    async def run():
        from mock_server import fault_layer
        from mock_server.calls import Exchange

        sent = []
        exchange = Exchange(world, "POST", "/p", {}, 0)

        async def send(message):
            sent.append(message.get("body"))

        scope = {"method": "POST", "raw_path": b"/p"}
        api = SimpleNamespace(asgi=stream, errors=None)
        await fault_layer.serve(api, TARGETS, exchange, scope, None, send)
        return sent, exchange.fault

    assert asyncio.run(run()) == ([None, b"a", b"b", None], None)
    assert [counts.total.applied for counts in world.faults] == [0]
