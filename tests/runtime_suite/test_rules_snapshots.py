"""RT-SNAP: what follows a snapshot's answer, and what of it reaches the model."""

import base64
import json

import pytest
from rule_cases import said
from tape import BASE, Tape

SECRET, SHOWN, PAGE = "cnry-5ec5e7", "cnry-0a11", "cnry-d0c"


def locked() -> Tape:
    return Tape().poll("j").lock("j").heartbeat("j")


def test_snapshots_are_read_by_get():
    said(locked().snapshot("j"), "RT-SNAP-01", "passed")
    actual = said(locked().call("POST", f"{BASE}/jobs/j/snapshot", {}, 405), "RT-SNAP-01", "failed")
    assert actual == "POST /internal/runtime/jobs/j/snapshot"
    said(locked(), "RT-SNAP-01", "untested")


NO_ANALYSIS = {"content": {"aiSettings": {"allowAiAnalysis": False}}}
SITUATIONS = {
    "RT-SNAP-18": ({"status": 410, "code": "SNAPSHOT_EXPIRED"}, "SNAPSHOT_EXPIRED", True),
    "RT-SNAP-60": ({"status": 410, "code": "SNAPSHOT_EXPIRED"}, "SNAPSHOT_EXPIRED", True),
    "RT-SNAP-61": ({"status": 404}, "INVALID_SNAPSHOT", False),
    "RT-SNAP-62": ({"content": {"snapshotVersion": "ai_snapshot_v9"}}, "INVALID_SNAPSHOT", False),
    "RT-SNAP-63": ({"status": 503}, "INTERNAL_ERROR", True),
    "RT-SNAP-66": (NO_ANALYSIS, "INVALID_SNAPSHOT", False),
}


@pytest.mark.parametrize("rule", SITUATIONS)
def test_the_failure_that_is_asked_for(rule):
    situation, code, flag = SITUATIONS[rule]
    said(locked().snapshot("j", **situation).fail("j", code, retryable=flag), rule, "passed")


@pytest.mark.parametrize(
    ("rule", "code", "flag", "also"),
    [
        ("RT-SNAP-18", "SNAPSHOT_EXPIRED", False, "RT-FAIL-70"),
        ("RT-SNAP-60", "NETWORK_ERROR", True, ""),
        ("RT-SNAP-60", "INVALID_SNAPSHOT", False, "RT-SNAP-18"),
        ("RT-SNAP-61", "INTERNAL_ERROR", True, ""),
        ("RT-SNAP-62", "INVALID_SCHEMA", False, ""),
        ("RT-SNAP-63", "INVALID_SNAPSHOT", False, ""),
        ("RT-SNAP-66", "INTERNAL_ERROR", True, ""),
    ],
)
def test_another_failure(rule, code, flag, also):
    tape = locked().snapshot("j", **SITUATIONS[rule][0]).fail("j", code, retryable=flag)
    assert said(tape, rule, "failed", also) == f"fail {code} with retryable {str(flag).lower()} of j"


@pytest.mark.parametrize("rule", ["RT-SNAP-61", "RT-SNAP-62", "RT-SNAP-66"])
def test_no_model_call(rule):
    situation, code, flag = SITUATIONS[rule]
    tape = locked().snapshot("j", **situation).resolve("j").model("j").log("j").fail("j", code, retryable=flag)
    assert said(tape, rule, "failed") == "a model call for j"


@pytest.mark.parametrize("rule", ["RT-SNAP-18", "RT-SNAP-61", "RT-SNAP-62", "RT-SNAP-63", "RT-SNAP-66"])
def test_no_report_at_all(rule):
    tape = locked().snapshot("j", **SITUATIONS[rule][0])
    said(tape.poll(at=8), rule, "untested")
    for at in range(10, 200, 10):
        tape.heartbeat("j", at=at)
    assert said(tape, rule, "failed") == "no report of j by then"
    relocked = locked().snapshot("j", **SITUATIONS[rule][0]).lock("j", at=9)
    assert relocked.status(rule) == "failed"


@pytest.mark.parametrize("rule", ["RT-SNAP-61", "RT-SNAP-63"])
def test_silence_that_has_a_reason(rule):
    def tape():
        return locked().snapshot("j", **SITUATIONS[rule][0])

    said(tape().heartbeat("j", 409).poll(at=200), rule, "untested")
    said(tape().event("signal", signal="KILL").poll(at=200), rule, "untested")
    said(tape().event("signal", signal="TERM").event("exited", status=0).poll(at=200), rule, "untested")
    crashed = tape().event("exited", status=101).poll(at=200)
    assert said(crashed, rule, "failed") == "no report of j by then"


def test_snapshots_that_came_in_the_end_or_in_trouble_with_the_credential():
    again = locked().snapshot("j", 503).snapshot("j").resolve("j").model("j").result("j").log("j")
    said(again, "RT-SNAP-63", "untested")
    both = locked().snapshot("j", 404).resolve("j", 404).fail("j", "INVALID_CREDENTIAL", retryable=False)
    said(both, "RT-SNAP-61", "untested")
    lost = locked().snapshot("j", lost=True).fail("j", "NETWORK_ERROR", retryable=True)
    said(lost, "RT-SNAP-63", "passed")
    late = locked().snapshot("j", 503).fail("j", "JOB_TIMEOUT", retryable=True, at=110)
    said(late, "RT-SNAP-63", "passed")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ({"allowedModelFields": None}, "failed"),
        ({"allowedModelFields": [1]}, "failed"),
        ({"userProfile": "no"}, "failed"),
        ({"scoreSignals": []}, "failed"),
        ({"snapshotVersion": 1}, "failed"),
        ({"more": 1}, "untested"),
    ],
)
def test_what_is_malformed(content, status):
    tape = locked().snapshot("j", content=content).resolve("j").model("j").result("j").log("j")
    said(tape, "RT-SNAP-62", status)


def test_a_body_that_is_no_json_may_be_taken_as_no_answer():
    for code, flag in (("INVALID_SNAPSHOT", False), ("NETWORK_ERROR", True)):
        tape = locked().snapshot("j", answer="<html>").fail("j", code, retryable=flag)
        said(tape, "RT-SNAP-62", "passed")
    said(locked().snapshot("j", answer="<html>").resolve("j").model("j").log("j"), "RT-SNAP-62", "failed")


def test_a_long_snapshot_is_not_malformed_because_the_recording_cut_it():
    tape = locked().snapshot("j", answer='{"jobId": "j"')
    content = tape.entries[-1]["response"]["content"]
    tape.entries[-1]["response"]["content"] = {**content, "comment": "cut", "size": 99999}
    said(tape.resolve("j").model("j").result("j").log("j"), "RT-SNAP-62", "untested")


def planted(*named: str, allow: bool = True, params: str | None = None, **content) -> Tape:
    """A job whose snapshot holds canaries."""
    content = {
        "userProfile": {"learningGoal": SHOWN, "currentLevel": "x"},
        "behaviorSignals": {"note": SECRET},
        "documentContent": {"text": PAGE},
        "privacyScope": {"allowDocumentContent": allow},
        "allowedModelFields": list(named),
        **content,
    }
    lock = {"grant": {"params": {"topic": params}}} if params else {}
    return Tape().poll("j").lock("j", **lock).heartbeat("j").snapshot("j", content=content).resolve("j")


def prompted(tape: Tape, prompt: str) -> Tape:
    return tape.model("j", prompt=prompt).result("j").log("j")


def test_what_may_reach_the_model():
    said(prompted(planted("learningGoal"), f"goal {SHOWN}"), "RT-SNAP-64", "passed")
    said(prompted(planted("learningGoal"), "nothing of it"), "RT-SNAP-64", "passed")
    said(prompted(planted("learningGoal", "behaviorSignals"), f"{SHOWN} {SECRET}"), "RT-SNAP-64", "untested")
    said(prompted(planted("learningGoal", params=SECRET), f"{SECRET}"), "RT-SNAP-64", "untested")
    said(Tape().whole("j"), "RT-SNAP-64", "untested")


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize("form", ["plain", "json", "base64", "hex"])
def test_what_may_not_reach_the_model_in_any_form(form, shift):
    text = "x" * shift + SECRET + " and more"
    prompt = {
        "plain": text,
        "json": json.dumps({"note": json.dumps({"note": text})}),
        "base64": base64.b64encode(text.encode()).decode(),
        "hex": text.encode().hex(),
    }[form]
    actual = said(prompted(planted("learningGoal"), prompt), "RT-SNAP-64", "failed")
    assert actual == "something of behaviorSignals in a model call for j"


def test_a_canary_that_another_one_begins_with_is_another_one():
    said(prompted(planted("learningGoal"), f"{SECRET}00"), "RT-SNAP-64", "passed")


def test_document_content():
    said(prompted(planted("learningGoal", allow=False), "nothing"), "RT-SNAP-65", "passed")
    said(prompted(planted("documentContent", "learningGoal"), PAGE), "RT-SNAP-65", "untested")
    assert (
        said(prompted(planted("learningGoal"), PAGE), "RT-SNAP-65", "failed") == "documentContent in a model call for j"
    )
    said(prompted(planted("documentContent", "learningGoal", allow=False), PAGE), "RT-SNAP-65", "failed")
    said(Tape().whole("j"), "RT-SNAP-65", "untested")
