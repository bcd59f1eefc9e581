"""What a request breaks is told: every violation, its place, what was expected, what came."""

from __future__ import annotations

import json

import pytest

POLL = "/internal/runtime/jobs/poll"
GOOD = {"runtimeInstanceId": "r", "supportedJobTypes": ["quiz_generation"], "limit": 5}
JSON = {"content-type": "application/json"}


def details(answer):
    assert answer.status_code == 400, answer.text
    body = answer.json()
    assert body["errorCode"] == "INVALID_REQUEST"
    for entry in body["details"]:
        assert set(entry) == {"location", "rule", "expected", "actual", "message"}
        assert entry["message"]
    return {(entry["location"], entry["rule"]): (entry["expected"], entry["actual"]) for entry in body["details"]}


SINGLE = {
    "missing": ({"supportedJobTypes": ["x"]}, ("/runtimeInstanceId", "required"), ("a value", None)),
    "wrong type": (GOOD | {"limit": "5"}, ("/limit", "type"), ("integer", "5")),
    "a boolean is no number": (GOOD | {"limit": True}, ("/limit", "type"), ("integer", True)),
    "a fraction": (GOOD | {"limit": 1.5}, ("/limit", "type"), ("integer", 1.5)),
    "null": (GOOD | {"limit": None}, ("/limit", "type"), ("integer", None)),
    "too large": (GOOD | {"limit": 51}, ("/limit", "maximum"), (50, 51)),
    "too small": (GOOD | {"limit": 0}, ("/limit", "minimum"), (1, 0)),
    "huge": (GOOD | {"limit": 10**30}, ("/limit", "maximum"), (50, 1e30)),
    "too short": (GOOD | {"runtimeInstanceId": ""}, ("/runtimeInstanceId", "minLength"), (1, "")),
    "empty list": (GOOD | {"supportedJobTypes": []}, ("/supportedJobTypes", "minItems"), (1, "a list of 0 items")),
    "inside a list": (GOOD | {"supportedJobTypes": ["a", 7]}, ("/supportedJobTypes/1", "type"), ("string", 7)),
    "deep inside": (
        GOOD | {"capabilities": {"supportedSnapshotVersions": {"a": 1}}},
        ("/capabilities/supportedSnapshotVersions", "type"),
        ("array", "an object with 1 properties"),
    ),
    "not an object": ([], ("", "type"), ("object", "a list of 0 items")),
}


@pytest.mark.parametrize(("body", "place", "told"), SINGLE.values(), ids=SINGLE)
def test_one_fault_is_told_alone(world, body, place, told):
    assert details(world.send("POST", POLL, content=json.dumps(body).encode(), headers=JSON)) == {place: told}


def test_five_faults_are_told_at_once(world):
    body = {"runtimeInstanceId": 7, "supportedJobTypes": [], "limit": 99, "capabilities": 3}
    answer = world.send("POST", POLL, json=body, headers={"x-runtime-instance-id": None})
    assert list(details(answer)) == [
        ("x-runtime-instance-id", "required"),
        ("/runtimeInstanceId", "type"),
        ("/supportedJobTypes", "minItems"),
        ("/limit", "maximum"),
        ("/capabilities", "type"),
    ]


UNREADABLE = {
    "empty": (b"", "empty"),
    "blank": (b" \r\n", "empty"),
    "cut": (b'{"a": 1', "json"),
    "text behind": (b"{} x", "json"),
    "not a number": (b'{"limit": NaN}', "json"),
    "single quotes": (b"{'limit': 1}", "json"),
    "not UTF-8": (b'{"runtimeInstanceId": "\xff"}', "utf8"),
    "UTF-16": ('{"limit": 1}'.encode("utf-16"), "utf8"),
    "byte order mark": (b"\xef\xbb\xbf{}", "json"),
    "half a surrogate": (b'{"runtimeInstanceId": "\\ud800"}', "json"),
    "10,000 deep": (b"[" * 10_000 + b"]" * 10_000, "depth"),
    "10,000 objects deep": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "depth"),
}


@pytest.mark.parametrize(("content", "rule"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_json_is_told_as_such(world, content, rule):
    assert list(details(world.send("POST", POLL, content=content, headers=JSON))) == [("", rule)]


@pytest.mark.parametrize("value", ["1.0", "1e0", "10.00"])
def test_a_whole_number_may_be_written_with_a_fraction(world, value):
    for _ in range(3):
        world.state("job")
    body = f'{{"runtimeInstanceId": "r", "supportedJobTypes": ["learning_state_analysis"], "limit": {value}}}'
    answer = world.send("POST", POLL, content=body.encode(), headers=JSON)
    assert len(answer.json()["jobs"]) == min(3, int(float(value)))


def test_unknown_properties_are_ignored(world):
    assert world.poll(newer={"things": [1]}).status_code == 200


@pytest.mark.parametrize(
    "media",
    [
        "application/json; charset=utf-8",
        "Application/JSON",
        'application/json;charset="UTF-8"',
        "application/json; v=1",
    ],
)
def test_json_may_have_parameters(world, media):
    assert world.send("POST", POLL, content=json.dumps(GOOD), headers={"content-type": media}).status_code == 200


@pytest.mark.parametrize(
    "media",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "application/json-patch+json",
        "",
        "json",
    ],
)
def test_another_media_type_is_refused(world, media):
    answer = world.send("POST", POLL, content=json.dumps(GOOD), headers={"content-type": media})
    assert (answer.status_code, answer.json()["errorCode"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_without_a_media_type_is_refused(world):
    assert world.send("POST", POLL, content=json.dumps(GOOD)).status_code == 415


@pytest.mark.parametrize("id_", ["", "x" * 129])
def test_an_instance_id_has_1_to_128_characters(world, id_):
    answer = world.send("POST", POLL, json=GOOD, headers={"x-runtime-instance-id": id_})
    assert [place for place, _ in details(answer)] == ["x-runtime-instance-id"]


def test_of_two_instance_ids_the_bodys_counts(world):
    job = world.state("job")["jobId"]
    world.send(
        "POST",
        f"/internal/runtime/jobs/{job}/lock",
        json={"runtimeInstanceId": "r2"},
        headers={"x-runtime-instance-id": "r1"},
    )
    assert world.state("inspect-job", jobId=job)["lockedBy"] == "r2"


def test_a_refused_request_changes_nothing(world):
    job = world.state("job")["jobId"]
    before = world.state("inspect-job", jobId=job)
    for content in (b"{}", b"", b'{"runtimeInstanceId": null}', b"{"):
        assert (
            world.send("POST", f"/internal/runtime/jobs/{job}/lock", content=content, headers=JSON).status_code == 400
        )
    assert world.state("inspect-job", jobId=job) == before


@pytest.mark.parametrize("secret", ["sk-abc_DEF-123", "test-internal-key", "dGVzdC1pbnRlcm5hbC1rZXk="])
def test_a_secret_is_not_told_again(world, secret):
    answer = world.send(
        "POST", POLL, json=GOOD | {"limit": f"{secret}", "capabilities": {"supportedSnapshotVersions": secret}}
    )
    assert len(details(answer)) == 2
    assert secret.rstrip("=") not in answer.text
    assert answer.text.count("[redacted]") == 2


def test_a_long_value_is_cut(world):
    answer = world.send("POST", POLL, json=GOOD | {"runtimeInstanceId": "x" * 5000})
    ((_, actual),) = details(answer).values()
    assert len(actual) < 200
    assert actual.endswith("(5000 characters)")


def test_the_time_of_an_error_is_the_worlds(world):
    now = world.state("advance-time", seconds=86_400 * 365)["now"]
    answer = world.send("POST", POLL, json={})
    text = answer.json()["timestamp"]
    assert text.endswith("Z")
    import datetime as dt

    assert round(dt.datetime.fromisoformat(text).timestamp() * 1000) == now


@pytest.mark.parametrize("levels", [10, 250, 300, 1000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
def test_a_value_as_deep_as_json_goes_is_a_wrong_value(world, levels, opening, closing):
    deep = opening * levels + "1" + closing * levels
    body = '{"runtimeInstanceId": "r", "supportedJobTypes": ["x"], "unknown": DEEP, "limit": DEEP}'.replace(
        "DEEP", deep
    )
    assert ("/limit", "type") in details(world.send("POST", POLL, content=body.encode(), headers=JSON))
    logs = f'{{"logs": [{{"jobId": {deep}}}], "a": {{"apiKey": {deep}}}}}'
    answer = world.send("POST", "/internal/runtime/invocation-logs", content=logs.encode(), headers=JSON)
    assert {("/logs/0/jobId", "type"), ("/a/apiKey", "x-forbidden-names")} <= set(details(answer))
    assert world.state("job", params={"a": 1})["jobId"]
    state = f'{{"action": "setup", "state": "job", "params": {{"priority": {deep}}}}}'
    assert world.control("POST", "/provider-states/runtime-api", content=state, headers=JSON).status_code == 400


def test_a_job_may_have_deep_params(world):
    deep = "[" * 500 + "]" * 500
    state = f'{{"action": "setup", "state": "job", "params": {{"params": {{"a": {deep}}}}}}}'
    assert world.control("POST", "/provider-states/runtime-api", content=state, headers=JSON).status_code == 200
    answer = world.poll()
    assert answer.status_code == 200
    assert deep in answer.text
