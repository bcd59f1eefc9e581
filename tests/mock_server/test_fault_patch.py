"""Faults of kind `patch`, and plans for answers of one status."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_world import eventually, world_on
from hub_world import HubWorld
from mock_world import SERVE, start, stop

from mock_server.builds import fault_targets
from mock_server.fault_patches import patched
from mock_server.fault_plans import plans_of, read_plans
from mock_server.fault_rules import SPOILING, PlanError

LOCKED = {"op": "replace", "path": "/status", "value": "running"}


@pytest.fixture
def faulty(server):
    with world_on(server) as world:
        yield world


def patch(*operations):
    return {"kind": "patch", "operations": list(operations)}


def test_a_client_gets_the_patched_answer_and_the_row_stays(faulty):
    operations = [
        LOCKED,
        {"op": "remove", "path": "/lockUntil"},
        {"op": "add", "path": "/extra", "value": {"a": [1, None, "é"]}},
    ]
    plan = faulty.plan(patch(*operations), match={"operationId": "lockJob"})
    job = faulty.state("job")["jobId"]
    answer = faulty.lock(job)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    body = answer.json()
    assert (body["status"], body["extra"], "lockUntil" in body) == ("running", {"a": [1, None, "é"]}, False)
    assert faulty.inspect(job)["status"] == "locked"
    assert faulty.counts() == {plan: (1, 1)}

    (entry,) = faulty.journal(operationId="lockJob")
    assert json.loads(entry["responseBody"])["status"] == "locked"
    assert entry["verdict"] == "faulted"
    assert entry["fault"]["plans"] == [{"id": plan, "kind": "patch"}]
    assert (entry["fault"]["handled"], entry["fault"]["got"]) == (True, "altered")
    assert json.loads(entry["fault"]["body"]) == body


def test_errors_are_patched_like_successes_and_keep_their_status(faulty):
    faulty.plan(patch({"op": "replace", "path": "/statusCode", "value": 200}))
    answer = faulty.lock("job-none")
    assert answer.status_code == 404
    assert (answer.json()["statusCode"], answer.json()["errorCode"]) == (200, "JOB_NOT_FOUND")


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "replace", "path": "/nothing", "value": 1}],
        [{"op": "test", "path": "/status", "value": "other"}, LOCKED],
        [LOCKED, {"op": "remove", "path": "/params/0/a"}],
        [{"op": "replace", "path": "/status", "value": "locked"}],
        [{"op": "test", "path": "/status", "value": "locked"}],
    ],
    ids=["no such place", "a test that fails", "a later one fails", "nothing changes", "a test alone"],
)
def test_an_answer_that_a_patch_leaves_as_it_is_passes_and_is_not_counted(faulty, operations):
    plan = faulty.plan(patch(*operations), match={"operationId": "lockJob"})
    assert faulty.lock(faulty.state("job")["jobId"]).json()["status"] == "locked"
    assert faulty.counts() == {plan: (1, 0)}
    assert faulty.met(operationId="lockJob") == [None]


def test_an_answer_without_a_body_has_nothing_to_patch(faulty):
    job = faulty.locked()
    plan = faulty.plan(patch({"op": "add", "path": "/a", "value": 1}))
    assert faulty.heartbeat(job).status_code == 204
    assert faulty.counts() == {plan: (1, 0)}


def test_a_condition_goes_by_a_test(faulty):
    faulty.plan(
        patch({"op": "test", "path": "/errorCode", "value": "JOB_NOT_FOUND"}, {"op": "remove", "path": "/message"})
    )
    assert "message" in faulty.send("POST", "/internal/runtime/jobs/poll", json={}).json()
    assert "message" not in faulty.lock("job-none").json()


def test_a_patch_is_the_same_each_time(faulty):
    """An operation may change what an earlier one put there; the plan's own values stay."""
    operations = [
        {"op": "add", "path": "/extra", "value": {"list": []}},
        {"op": "add", "path": "/extra/list/-", "value": 1},
    ]
    plan = faulty.plan(patch(*operations), match={"operationId": "lockJob"})
    for _ in range(3):
        assert faulty.lock(faulty.state("job")["jobId"]).json()["extra"] == {"list": [1]}
    assert faulty.control("GET", f"/faults/{plan}").json()["fault"]["operations"] == operations


def test_the_whole_answer_can_be_another_value(faulty):
    faulty.plan(patch({"op": "replace", "path": "", "value": []}), match={"operationId": "pollJobs"})
    assert faulty.poll().json() == []
    assert faulty.journal()[-1]["fault"]["body"] == "[]"


@pytest.mark.parametrize("body", [b"", b"no json", b"\xff", b"[" * 3000, b'{"a":'])
def test_what_is_no_json_stays(body):
    assert patched([{"op": "add", "path": "/a", "value": 1}], body) == body


PLACES = [
    ([{"op": "zap", "path": "/a"}], "/fault/operations/0/op"),
    ([{"op": "add", "value": 1}], "/fault/operations/0"),
    ([{"op": "add", "path": "/a"}], "/fault/operations/0: `add` has no `value`"),
    ([LOCKED, {"op": "copy", "path": "/a"}], "/fault/operations/1: `copy` has no `from`"),
    ([{"op": "test", "path": "a", "value": 1}], "/fault/operations/0/path: `a` is no JSON Pointer (begin it with /"),
    ([{"op": "move", "from": "/a~2", "path": "/b"}], "/fault/operations/0/from: `/a~2` is no JSON Pointer"),
    ([{"op": "move", "from": "/a", "path": "/a/b"}], "/fault/operations/0/path: moves a value into itself (use copy"),
    ([{"op": "remove", "path": ""}], "/fault/operations/0/path: removes the whole answer (use replace"),
    ([{"op": "remove", "path": 1}], "/fault/operations/0/path"),
    ([], "/fault/operations"),
    ("remove /a", "/fault/operations"),
]


@pytest.mark.parametrize(("operations", "told"), PLACES)
def test_what_is_no_json_patch_is_refused_with_place_and_mend(operations, told):
    with pytest.raises(PlanError) as refused:
        plans_of({"fault": {"kind": "patch", "operations": operations}}, fault_targets())
    assert told in str(refused.value)
    assert str(refused.value).endswith(")")


def test_a_control_plane_refuses_it_too_and_adds_nothing(faulty):
    answer = faulty.try_plans([{"fault": patch(LOCKED)}, {"fault": patch({"op": "add", "path": "/a"})}])
    assert answer.status_code == 400
    assert "/1/fault/operations/0: `add` has no `value`" in answer.json()["error"]
    assert faulty.counts() == {}


def test_a_file_of_plans_tells_the_line(tmp_path):
    path = tmp_path / "plans.yaml"
    path.write_text(
        "fault:\n  kind: patch\n  operations:\n    - {op: remove, path: /a}\n    - {op: add, path: b, value: 1}\n"
    )
    with pytest.raises(PlanError, match=r"plans.yaml:5: .*`b` is no JSON Pointer"):
        read_plans([path], fault_targets())
    path.write_text("fault: {kind: patch, operations: [{op: add, path: /a, value: 99999999999999999999}]}\n")
    with pytest.raises(PlanError, match="64 bits"):
        read_plans([path], fault_targets())


# Plans for answers of one status.


def test_a_plan_with_a_status_counts_these_answers_alone(faulty):
    plan = faulty.plan(
        patch({"op": "replace", "path": "/message", "value": "spoilt"}),
        match={"operationId": "lockJob", "status": 409},
        when={"nth": [2]},
    )
    job = faulty.state("job")["jobId"]
    answers = [faulty.lock(job) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 409, 409, 409]
    assert [answer.json().get("message") == "spoilt" for answer in answers] == [False, False, True, False]
    assert faulty.counts() == {plan: (3, 1)}
    assert [fault is not None for fault in faulty.met(operationId="lockJob")] == [False, False, True, False]
    assert faulty.lock("job-none").status_code == 404
    assert faulty.counts() == {plan: (3, 1)}


def test_a_status_can_be_one_of_a_list(faulty):
    plan = faulty.plan({"kind": "truncated-json"}, match={"status": [404, 409]})
    job = faulty.locked()
    faulty.lock(job)
    faulty.lock("job-none")
    faulty.poll()
    assert faulty.counts() == {plan: (2, 2)}
    assert faulty.control("GET", f"/faults/{plan}").json()["match"] == {"status": [404, 409]}


def test_counts_by_job_and_limits_hold_for_answers(faulty):
    plan = faulty.plan(
        patch({"op": "add", "path": "/first", "value": True}),
        match={"operationId": "lockJob", "status": 409},
        when={"nth": [1], "perJob": True},
    )
    jobs = [faulty.locked() for _ in range(2)]
    told = [faulty.lock(job).json().get("first") for job in (*jobs, *jobs)]
    assert told == [True, True, None, None]
    assert faulty.counts() == {plan: (4, 2)}


def test_of_two_plans_the_one_for_requests_meets_and_the_other_counts(faulty):
    late = faulty.plan(patch({"op": "add", "path": "/by", "value": "status"}), match={"status": 404})
    early = faulty.plan(patch({"op": "add", "path": "/by", "value": "request"}), when={"times": 1})
    assert [faulty.lock("job-none").json()["by"] for _ in range(2)] == ["request", "status"]
    assert faulty.counts() == {late: (2, 1), early: (2, 1)}


def test_the_first_of_two_plans_for_a_status_meets(faulty):
    plans = [faulty.plan(patch({"op": "add", "path": "/by", "value": n}), match={"status": 404}) for n in (1, 2)]
    assert faulty.lock("job-none").json()["by"] == 1
    assert faulty.counts() == {plans[0]: (1, 1), plans[1]: (1, 0)}


def test_an_answer_that_a_fault_makes_is_none_of_the_apis(faulty):
    plan = faulty.plan(patch({"op": "add", "path": "/by", "value": 1}), match={"status": 503})
    faulty.plan({"kind": "status", "status": 503}, when={"times": 1})
    assert "by" not in faulty.poll().json()
    assert faulty.counts()[plan] == (0, 0)


def test_a_delay_and_a_plan_for_a_status_go_together(faulty):
    faulty.plan({"kind": "delay", "seconds": 0.05, "at": "answer"}, id_="slow")
    faulty.plan({"kind": "malformed-json"}, match={"status": 404}, id_="bad")
    faulty.lock("job-none")
    faulty.poll()
    first, second = faulty.met()
    assert [plan["id"] for plan in first["plans"]] == ["slow", "bad"]
    assert [plan["id"] for plan in second["plans"]] == ["slow"]
    assert (first["got"], second["got"]) == ("altered", "whole")


def test_a_connection_can_be_cut_for_a_status(faulty):
    plan = faulty.plan({"kind": "close", "at": "mid-body"}, match={"operationId": "heartbeatJob", "status": 409})
    with pytest.raises(Exception, match="peer closed connection"):
        faulty.heartbeat(faulty.state("job")["jobId"])
    assert faulty.counts() == {plan: (1, 1)}


def test_counts_of_answers_are_exact_however_many_come_at_once(faulty):
    plan = faulty.plan({"kind": "malformed-json"}, match={"status": 404}, when={"every": 2})
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: faulty.lock("job-none").text, range(40)))
    assert sum(answer.endswith("]") for answer in answers) == 20
    assert faulty.counts() == {plan: (40, 20)}


def test_a_snapshot_brings_back_counts_of_answers(faulty):
    plan = faulty.plan(patch({"op": "add", "path": "/by", "value": 1}), match={"status": 404}, when={"nth": [2]})
    assert "by" not in faulty.lock("job-none").json()
    worlds = f"{faulty.base_url}/__control__/worlds/{faulty.path.rpartition('/')[2]}"
    assert faulty.client.post(f"{worlds}/snapshots", json={"name": "one"}).status_code == 201
    for _ in range(2):
        assert faulty.lock("job-none").json()["by"] == 1
        assert faulty.client.post(f"{worlds}/snapshots/one/restore").status_code == 204
    assert faulty.counts() == {plan: (1, 0)}


def test_an_event_stream_passes_as_it_is_and_is_not_met(faulty):
    hub = HubWorld(faulty)
    hub.state("node", nodeId="node-1", projects=["proj"])
    plan = faulty.plan({"kind": "malformed-json"}, match={"status": 200})
    job = hub.submit()[0]
    hub.state("advance-time", seconds=1)
    names = [line for line in hub.send("GET", f"/v1/jobs/{job}/events").text.splitlines() if line.startswith("event")]
    assert names == ["event: job.state", "event: job.completed"]
    eventually(lambda: faulty.counts() == {plan: (1, 0)})  # counted when the stream is over, a moment after its end
    assert faulty.met(operationId="streamJob") == [None]


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "delay", "seconds": 1},
        {"kind": "delay", "seconds": 1, "at": "answer"},
        {"kind": "status", "status": 503},
        {"kind": "rate-limit"},
        {"kind": "hang"},
        {"kind": "empty"},
        {"kind": "reset"},
        {"kind": "close", "at": "before"},
    ],
    ids=lambda fault: f"{fault['kind']} {fault.get('at', '')}",
)
def test_kinds_that_spoil_no_answer_have_no_status(fault):
    with pytest.raises(PlanError, match=r"^/match/status: .*(after-commit|patch)") as refused:
        plans_of({"match": {"status": 409}, "fault": fault}, fault_targets())
    assert "never" in str(refused.value)


@pytest.mark.parametrize("status", [99, 600, "409", [], [409, 409], None, {}])
def test_what_is_no_status_is_refused_with_its_place(status):
    with pytest.raises(PlanError, match=r"^/match/status"):
        plans_of({"match": {"status": status}, "fault": {"kind": "malformed-json"}}, fault_targets())


def test_a_plan_that_can_meet_nothing_is_refused():
    match = {"operationId": "heartbeatJob", "status": 204}
    with pytest.raises(PlanError, match="answers without a body"):
        plans_of({"match": match, "fault": patch(LOCKED)}, fault_targets())
    for kind in (*SPOILING, "close"):
        if kind == "skew":
            continue
        more = {"wrong-length": {"by": 1}, "drip": {"bytes": 1, "seconds": 1}, "close": {"at": "mid-body"}}.get(
            kind, {}
        )
        more = patch(LOCKED) if kind == "patch" else {"kind": kind, **more}
        assert plans_of({"match": {**match, "status": [204, 409]}, "fault": more}, fault_targets())
    assert plans_of({"match": {"operationId": "heartbeatJob"}, "fault": patch(LOCKED)}, fault_targets())


def test_a_file_gives_a_server_such_plans(tmp_path):
    path = tmp_path / "plans.yaml"
    path.write_text("match: {status: 404}\nfault: {kind: patch, operations: [{op: remove, path: /message}]}\n")
    process, url = start("--clock", "manual", "--fault", str(path))
    with world_on(url) as world:
        assert "message" not in world.lock("job-none").json()
    stop(process)
    path.write_text("match: {status: 404}\nfault: {kind: hang}\n")
    done = subprocess.run([*SERVE, "--fault", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "plans.yaml:1" in done.stderr
