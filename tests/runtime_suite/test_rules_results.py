"""RT-RES, RT-FAIL: the form of reports, hashes, and what follows an answer."""

import pytest
from rule_cases import begun, said
from tape import BASE, Tape


def ready(**more) -> Tape:
    """A job whose model answered."""
    return begun(**more).model("j").log("j")


def failing() -> Tape:
    """A job whose model did not."""
    none = dict.fromkeys(("inputTokens", "outputTokens", "totalTokens"), 0)
    return begun().model("j", 503).log("j", success=False, entry=none)


def failed(tape: Tape, **more) -> Tape:
    return tape.fail("j", "TEMPORARY_PROVIDER_ERROR", retryable=True, **more)


RESULT = ["01", "03", "04", "05", "07", "08", "09", "10", "11", "12", "80", "88", "02"]
FAIL = ["01", "02", "03", "04", "05", "06", "70"]


@pytest.mark.parametrize("rule", [*(f"RT-RES-{n}" for n in RESULT), *(f"RT-FAIL-{n}" for n in FAIL)])
def test_reports_in_good_form(rule):
    kept, other = (
        (ready().result("j"), failed(failing())) if "RES" in rule else (failed(failing()), ready().result("j"))
    )
    said(kept, rule, "passed")
    said(other, rule, "untested")


USAGE = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("RT-RES-03", {"runtimeInstanceId": 1}),
        ("RT-RES-04", {"schemaVersion": None}),
        ("RT-RES-05", {"status": "done"}),
        ("RT-RES-07", {"validatedOutput": []}),
        ("RT-RES-08", {"validationErrors": "none"}),
        ("RT-RES-09", {"usage": None}),
        ("RT-RES-09", {"usage": {**USAGE, "inputTokens": "10"}}),
        ("RT-RES-09", {"usage": {**USAGE, "costEstimate": "free"}}),
        ("RT-RES-09", {"usage": {"totalTokens": 15}}),
        ("RT-RES-10", {"usage": {**USAGE, "totalTokens": 14}}),
        ("RT-RES-11", {"attemptNo": "0"}),
        ("RT-RES-12", {"outputHash": 7}),
        ("RT-RES-80", {"attemptNo": 1}),
        ("RT-RES-88", {"schemaVersion": "quiz_output_v1"}),
    ],
)
def test_results_in_bad_form(rule, body):
    said(ready().result("j", body=body), rule, "failed")


@pytest.mark.parametrize(
    "body",
    [{"usage": USAGE}, {"rawOutput": "text"}, {"rawOutput": None}, {"validationErrors": ["a"]}, {"more": 1}],
)
def test_results_that_are_good_in_another_way(body):
    for rule in ("RT-RES-08", "RT-RES-09", "RT-RES-10"):
        said(ready().result("j", body=body), rule, "passed")


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("RT-FAIL-02", {"runtimeInstanceId": None}),
        ("RT-FAIL-03", {"errorCode": 503}),
        ("RT-FAIL-04", {"errorMessage": None}),
        ("RT-FAIL-05", {"retryable": "true"}),
        ("RT-FAIL-06", {"rawError": {"status": 503}}),
    ],
)
def test_failures_in_bad_form(rule, body):
    outcome = failed(failing(), body=body).said(rule)
    assert [finding.actual for finding in outcome.broken] == [f"{next(iter(body))}: {_json(body)} in failJob of j"]


def _json(body: dict) -> str:
    import json

    return json.dumps(next(iter(body.values())))


def test_reports_in_the_wrong_place():
    said(ready().call("PUT", f"{BASE}/jobs/j/result", {}, 405), "RT-RES-01", "failed")
    said(failing().call("POST", f"{BASE}/jobs/j/failure", {}, 404), "RT-FAIL-01", "untested")
    said(failing().call("POST", f"{BASE}/fail/j", {}, 404), "RT-FAIL-01", "failed")


def test_a_result_needs_a_model_call_that_answered():
    assert said(failing().result("j"), "RT-RES-02", "failed") == "a result of j after 1 model calls: 5xx"
    nothing = begun("k").model("k").result("k").log("k").lock("j").result("j")
    assert said(nothing, "RT-RES-02", "failed") == "a result of j after no model call"
    said(begun().result("j"), "RT-RES-02", "untested")
    kept = ready().result("j", 500).result("j", 409, "LOCK_NOT_HELD").lock("j").result("j")
    said(kept, "RT-RES-02", "passed")


def test_a_granted_attempt_that_the_runtime_could_not_know():
    tape = ready(grant={"attemptNo": 2}, lost=True).result("j")
    assert tape.status("RT-RES-80") == "untested"


def outputs(*results: tuple[dict, str]) -> Tape:
    tape = Tape()
    for i, (output, mark) in enumerate(results):
        tape.poll(f"j{i}").lock(f"j{i}").heartbeat(f"j{i}").snapshot(f"j{i}").resolve(f"j{i}").model(f"j{i}")
        tape.result(f"j{i}", body={"validatedOutput": output, "outputHash": mark}).log(f"j{i}")
    return tape


def test_hashes():
    same = outputs(({"a": 1, "b": 2}, "x"), ({"b": 2.0, "a": 1}, "x"))
    said(same, "RT-RES-81", "passed")
    said(same, "RT-RES-82", "untested")
    assert "outputHash y in submitResult of j1" in said(
        outputs(({"a": 1}, "x"), ({"a": 1}, "y")), "RT-RES-81", "failed"
    )
    different = outputs(({"a": 1}, "x"), ({"a": 2}, "y"))
    said(different, "RT-RES-82", "passed")
    said(different, "RT-RES-81", "untested")
    said(outputs(({"a": 1}, "x"), ({"a": 2}, "x")), "RT-RES-82", "failed")
    said(outputs(({"a": 1}, "x")), "RT-RES-81", "untested")


@pytest.mark.parametrize("status", [200, 201])
def test_done_is_done(status):
    said(ready().result("j", status).poll(), "RT-RES-83", "passed")
    said(ready().result("j", status).result("j", 200), "RT-RES-83", "failed")
    assert failed(ready().result("j", status)).said("RT-RES-83").status == "failed"
    said(ready().result("j", status, lost=True).result("j", 200).poll(), "RT-RES-83", "passed")
    said(ready().result("j", status), "RT-RES-83", "untested")


def test_a_result_that_exists():
    said(ready().result("j", 409).poll(), "RT-RES-84", "passed")
    said(ready().result("j", 409).result("j", 409), "RT-RES-84", "failed")
    said(failed(ready().result("j", 409)), "RT-RES-84", "failed")
    said(ready().result("j"), "RT-RES-84", "untested")


@pytest.mark.parametrize("lost", [True, False])
def test_reports_are_sent_again(lost):
    bad = {"lost": True} if lost else {"status": 503}
    thrice = ready().result("j", **bad).result("j", at=9).result("j", at=10)
    for rule in ("RT-RES-85", "RT-RES-86"):
        said(ready().result("j", **bad).result("j"), rule, "passed")
        said(ready().result("j", **bad).result("j", **bad).result("j", **bad).poll(at=60), rule, "passed")
        said(ready().result("j", **bad), rule, "untested")
        said(ready().result("j"), rule, "untested")
    assert thrice.status("RT-RES-86") == "passed"
    said(ready().result("j", **bad).heartbeat("j", at=20).poll(at=30), "RT-RES-86", "failed", "RT-RES-85")
    once = ready().result("j", **bad).result("j", **bad).heartbeat("j", at=20).poll(at=30)
    assert said(once, "RT-RES-86", "failed") == "1 further"
    for body in ({"outputHash": "other"}, {"attemptNo": 1}):
        other = ready().result("j", **bad).result("j", body=body)
        assert other.said("RT-RES-85").status == "failed"
    given_up = ready().result("j", **bad).fail("j", "NETWORK_ERROR", retryable=True)
    assert said(given_up, "RT-RES-85", "failed") == "fail NETWORK_ERROR with retryable true of j"


@pytest.mark.parametrize("lost", [True, False])
def test_failures_are_sent_again(lost):
    bad = {"lost": True} if lost else {"status": 503}
    said(failed(failed(failing(), **bad)), "RT-FAIL-71", "passed")
    said(failed(failing(), **bad).poll(at=30), "RT-FAIL-71", "failed", "RT-RES-86")
    other = failed(failing(), **bad).fail("j", "NETWORK_ERROR", retryable=True)
    said(other, "RT-FAIL-71", "failed")
    said(failed(failing()), "RT-FAIL-71", "untested")
    said(failed(failed(failing(), **bad), status=409), "RT-RES-86", "passed")


def test_half_an_answer_that_says_created_may_be_taken_as_done_or_as_lost():
    half = {"got": "part", "bytes": 5, "plans": [], "handled": True}
    said(ready().result("j", _fault=half).poll(at=60), "RT-RES-86", "untested")
    said(ready().result("j", _fault=half).result("j", 200).poll(at=60), "RT-RES-83", "passed")
    said(ready().result("j", 503).result("j", _fault=half).poll(at=60), "RT-RES-86", "passed")


def test_reports_that_need_not_be_sent_again():
    for end in (
        lambda tape: tape.event("signal", signal="KILL").event("exited", status=-9),
        lambda tape: tape.heartbeat("j", 409),
        lambda tape: tape.event("signal", signal="TERM").event("exited", status=0),
    ):
        tape = end(ready().result("j", 503)).poll(at=60)
        said(tape, "RT-RES-85", "untested")
        said(tape, "RT-RES-86", "untested")
    crashed = ready().result("j", 503).event("exited", status=1).poll(at=60)
    said(crashed, "RT-RES-85", "failed", "RT-RES-86")


def test_a_job_whose_time_ends_before_the_tries_have_to():
    def short(limit: int) -> Tape:
        return ready(grant={"timeoutSeconds": limit}).result("j", 503).poll(at=60)

    said(short(8), "RT-RES-86", "failed", "RT-RES-85")
    said(short(6), "RT-RES-86", "untested")
    once = ready(grant={"timeoutSeconds": 8}).result("j", 503).result("j", 503).poll(at=60)
    said(once, "RT-RES-86", "untested")


def test_time_in_which_a_try_waits_for_its_answer_does_not_count():
    tape = ready().result("j", lost=True, took=9).heartbeat("j")
    tape.result("j", lost=True, took=9, at=tape.now + 10).result("j", lost=True, took=9, at=tape.now + 11)
    said(tape.poll(at=90), "RT-RES-86", "passed")


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_result(status):
    def refused():
        return ready().result("j", status, "INVALID_REQUEST")

    said(refused().fail("j", "INVALID_SCHEMA", retryable=False), "RT-RES-87", "passed")
    said(refused().fail("j", "INTERNAL_ERROR", retryable=True), "RT-RES-87", "failed")
    assert said(refused().result("j", status, "INVALID_REQUEST"), "RT-RES-87", "failed") == "a result of j"
    said(refused().heartbeat("j", at=20).poll(at=30), "RT-RES-87", "failed")
    said(refused(), "RT-RES-87", "untested")
    said(ready().result("j"), "RT-RES-87", "untested")
