"""RT-RETRY, RT-FAIL-70: what is reported after each outcome of the model."""

import pytest
from rule_cases import begun, said
from tape import Tape

LOST = {"lost": True, "status": 0}
OBJECT = '{"riskLevel": "low"}'
OUTCOMES = {
    "hang": {"outcome": "hang", "took": 10, **LOST},
    "slow": {"outcome": "good", "took": 10, **LOST},
    "close": {"outcome": "close", **LOST},
    "401": {"outcome": "status", "status": 401},
    "402": {"outcome": "status", "status": 402},
    "403": {"outcome": "status", "status": 403},
    "404": {"outcome": "status", "status": 404},
    "408": {"outcome": "status", "status": 408},
    "429": {"outcome": "status", "status": 429},
    "503": {"outcome": "status", "status": 503},
    "prose": {"outcome": "text", "text": "As a model I would say it is low."},
    "cut": {"outcome": "text", "text": '{"weakPoints": [{"name": "a"}, {"na'},
    "empty": {"outcome": "text", "text": ""},
    "list": {"outcome": "text", "text": '[{"riskLevel": "low"}]'},
    "nothing": {"outcome": "no-completion", "answer": {"object": "nothing"}},
    "html": {"outcome": "not-json", "answer": "<html></html>"},
    "good": {},
}


def after(*outcomes: str) -> Tape:
    """A job whose model calls had these outcomes, with their logs."""
    tape = begun()
    for name in outcomes:
        tape.model("j", at=tape.now + 1, **OUTCOMES[name])
        tape.now += OUTCOMES[name].get("took", 0)
        tape.log("j", success=name == "good", entry={} if name in USED else NO_TOKENS)
    return tape


USED = ("good", "prose", "cut", "empty", "list")
NO_TOKENS = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}


def reported(*outcomes: str, code: str, retryable: bool) -> Tape:
    return after(*outcomes).fail("j", code, retryable=retryable)


@pytest.mark.parametrize(
    ("rule", "outcome", "code", "retryable"),
    [
        ("RT-RETRY-08", "hang", "MODEL_TIMEOUT", True),
        ("RT-RETRY-08", "slow", "MODEL_TIMEOUT", True),
        ("RT-RETRY-08", "hang", "JOB_TIMEOUT", True),
        ("RT-RETRY-64", "hang", "JOB_TIMEOUT", True),
        ("RT-RETRY-64", "hang", "MODEL_TIMEOUT", True),
        ("RT-RETRY-09", "429", "MODEL_RATE_LIMIT", True),
        ("RT-RETRY-10", "close", "NETWORK_ERROR", True),
        ("RT-RETRY-11", "503", "TEMPORARY_PROVIDER_ERROR", True),
        ("RT-RETRY-13", "prose", "INVALID_SCHEMA", False),
        ("RT-RETRY-14", "401", "INVALID_CREDENTIAL", False),
        ("RT-RETRY-15", "hang", "JOB_TIMEOUT", True),
        ("RT-RETRY-60", "402", "INVALID_CREDENTIAL", False),
        ("RT-RETRY-60", "403", "INVALID_CREDENTIAL", False),
        ("RT-RETRY-61", "408", "MODEL_TIMEOUT", True),
        ("RT-RETRY-62", "404", "INVALID_CREDENTIAL", False),
        ("RT-RETRY-62", "404", "TEMPORARY_PROVIDER_ERROR", False),
        ("RT-RETRY-62", "404", "MODEL_REFUSED", False),
        ("RT-RETRY-63", "nothing", "INVALID_SCHEMA", False),
        ("RT-RETRY-63", "html", "TEMPORARY_PROVIDER_ERROR", True),
        ("RT-RETRY-65", "prose", "INVALID_SCHEMA", False),
        ("RT-RETRY-65", "cut", "INVALID_SCHEMA", False),
        ("RT-RETRY-65", "empty", "INVALID_SCHEMA", False),
        ("RT-RETRY-65", "list", "INVALID_SCHEMA", False),
        ("RT-FAIL-70", "503", "TEMPORARY_PROVIDER_ERROR", True),
    ],
)
def test_what_fits(rule, outcome, code, retryable):
    said(reported(outcome, code=code, retryable=retryable), rule, "passed")


@pytest.mark.parametrize(
    ("rule", "outcome", "code", "retryable", "also"),
    [
        ("RT-RETRY-08", "slow", "NETWORK_ERROR", True, ""),
        ("RT-RETRY-64", "hang", "NETWORK_ERROR", True, "RT-RETRY-08"),
        ("RT-RETRY-08", "hang", "MODEL_TIMEOUT", False, "RT-FAIL-70"),
        ("RT-RETRY-09", "429", "TEMPORARY_PROVIDER_ERROR", True, ""),
        ("RT-RETRY-09", "429", "MODEL_RATE_LIMIT", False, "RT-FAIL-70"),
        ("RT-RETRY-10", "close", "MODEL_TIMEOUT", True, ""),
        ("RT-RETRY-10", "close", "JOB_TIMEOUT", True, ""),
        ("RT-RETRY-10", "close", "NETWORK_ERROR", False, "RT-FAIL-70"),
        ("RT-RETRY-11", "503", "NETWORK_ERROR", True, ""),
        ("RT-RETRY-11", "503", "MY_OWN_CODE", True, ""),
        ("RT-RETRY-13", "prose", "INVALID_SCHEMA", True, "RT-FAIL-70"),
        ("RT-RETRY-14", "401", "TEMPORARY_PROVIDER_ERROR", True, ""),
        ("RT-RETRY-14", "401", "INVALID_CREDENTIAL", True, "RT-FAIL-70"),
        ("RT-RETRY-15", "hang", "JOB_TIMEOUT", False, "RT-FAIL-70"),
        ("RT-RETRY-60", "402", "TEMPORARY_PROVIDER_ERROR", True, ""),
        ("RT-RETRY-61", "408", "TEMPORARY_PROVIDER_ERROR", True, ""),
        ("RT-RETRY-61", "408", "JOB_TIMEOUT", True, ""),
        ("RT-RETRY-62", "404", "TEMPORARY_PROVIDER_ERROR", True, ""),
        ("RT-RETRY-63", "html", "NETWORK_ERROR", True, ""),
        ("RT-RETRY-65", "prose", "TEMPORARY_PROVIDER_ERROR", True, "RT-RETRY-13"),
        ("RT-RETRY-65", "cut", "NETWORK_ERROR", True, "RT-RETRY-13"),
        ("RT-FAIL-70", "good", "INTERNAL_ERROR", False, ""),
    ],
)
def test_what_does_not_fit(rule, outcome, code, retryable, also):
    actual = said(reported(outcome, code=code, retryable=retryable), rule, "failed", also)
    assert actual == f"fail {code} with retryable {str(retryable).lower()} of j"


@pytest.mark.parametrize("outcome", ["prose", "cut", "empty", "list"])
def test_no_result_is_made_of_what_is_no_object(outcome):
    said(after(outcome).result("j"), "RT-RETRY-65", "failed", "RT-RETRY-13")


def test_a_result_of_no_completion_is_no_success():
    said(after("nothing").result("j"), "RT-RETRY-63", "failed")


@pytest.mark.parametrize(
    "text", ['```json\n{"a": 1}\n```', 'Here it is: {"a": 1}', '{"a": 1}\nThat is all.', '{"a": 1}']
)
def test_an_object_with_something_around_it_may_be_taken_or_not(text):
    for end in (lambda tape: tape.result("j"), lambda tape: tape.fail("j", "INVALID_SCHEMA", retryable=False)):
        tape = begun().model("j", outcome="text", text=text)
        assert end(tape).status("RT-RETRY-65") == "untested"
        assert tape.status("RT-RETRY-63") == "untested"


def streamed(text: str) -> Tape:
    chunk = '{"choices": [{"index": 0, "delta": {"content": %s}}]}'
    lines = [f"data: {chunk % part}" for part in text.split("|")]
    return begun().model("j", answer="\n\n".join([*lines, "data: [DONE]", ""]))


def test_streamed_completions_are_put_together():
    said(streamed('"As a "|"model"').fail("j", "INVALID_SCHEMA", retryable=False), "RT-RETRY-65", "passed")
    assert streamed('"{\\"a\\": "|"1}"').result("j").status("RT-RES-02") == "passed"
    assert streamed('"{\\"a\\": "|"1}"').result("j").status("RT-RETRY-63") == "untested"


@pytest.mark.parametrize("rule", ["RT-RETRY-09", "RT-RETRY-11", "RT-FAIL-70", "RT-RETRY-66"])
def test_untested_without_the_outcome(rule):
    said(after("good").result("j"), rule, "untested")


def test_what_a_cancel_a_shutdown_or_a_lost_lock_made_the_runtime_report_is_not_judged_by_the_model():
    cancelled = after("503").heartbeat("j", cancel=True).fail("j", "JOB_CANCELLED", retryable=False)
    said(cancelled, "RT-RETRY-11", "untested")
    said(cancelled, "RT-FAIL-70", "passed")
    shut = after("503").event("signal", signal="TERM").fail("j", "JOB_CANCELLED", retryable=True)
    said(shut, "RT-RETRY-11", "untested")
    said(shut, "RT-FAIL-70", "untested")
    said(after("503").heartbeat("j", 409).fail("j", "NETWORK_ERROR", retryable=True), "RT-RETRY-11", "untested")


def test_job_timeout_is_true_when_the_time_has_run_out():
    tape = after("503")
    said(tape.fail("j", "JOB_TIMEOUT", retryable=True, at=tape.now + 110), "RT-RETRY-11", "passed")


def test_what_failed_after_the_model_call_may_have_decided():
    tape = after("401").resolve("j", 500).resolve("j", 500).fail("j", "INTERNAL_ERROR", retryable=True)
    said(tape, "RT-RETRY-14", "untested")
    tape = after("hang").heartbeat("j", 401, "UNAUTHORIZED").fail("j", "INTERNAL_ERROR", retryable=True)
    said(tape, "RT-RETRY-08", "untested")


def test_own_repeats_are_judged_by_the_last_call():
    said(after("503", "good").result("j"), "RT-RETRY-66", "passed")
    said(reported("503", "429", code="MODEL_RATE_LIMIT", retryable=True), "RT-RETRY-66", "passed")
    actual = said(reported("503", "401", code="TEMPORARY_PROVIDER_ERROR", retryable=True), "RT-RETRY-66", "failed")
    assert actual == "fail TEMPORARY_PROVIDER_ERROR with retryable true of j"
    said(reported("503", "good", code="TEMPORARY_PROVIDER_ERROR", retryable=True), "RT-RETRY-66", "failed")
    said(reported("503", "429", code="INVALID_CREDENTIAL", retryable=False), "RT-RETRY-09", "failed")
    said(reported("prose", "good", code="INVALID_SCHEMA", retryable=False), "RT-RETRY-66", "passed")
    said(reported("503", code="TEMPORARY_PROVIDER_ERROR", retryable=True), "RT-RETRY-66", "untested")


def limited(report_at: float | None, *, model_at: float = 1.5, beats: int = 20) -> Tape:
    """A job of 6 s, locked at 1 s, whose model hangs."""
    tape = Tape(lock=3).poll("j").lock("j", grant={"timeoutSeconds": 6}, at=1.0)
    tape.snapshot("j").resolve("j").model("j", at=model_at, took=8, lost=True, outcome="hang", status=0)
    for i in range(beats):
        at = 2.0 + i * 0.75
        if report_at is None or at < report_at:
            tape.heartbeat("j", 204 if at < 7.3 else 409, at=at)
    if report_at is not None:
        tape.fail("j", "JOB_TIMEOUT", retryable=True, at=report_at)
    return tape.poll(at=20)


def test_the_time_limit_counts_from_sending_the_lock():
    assert limited(7.0).status("RT-RETRY-67") == "passed"
    assert limited(7.9).status("RT-RETRY-67") == "passed"
    assert limited(None).said("RT-RETRY-67").broken[0].actual == "no report of j by then"
    assert limited(8.9).said("RT-RETRY-67").status == "failed"
    assert limited(None, beats=4).said("RT-RETRY-67").status == "failed"
    assert after("good").result("j").status("RT-RETRY-67") == "untested"
    late = limited(None, model_at=9.0)
    assert late.said("RT-RETRY-67").broken[-1].actual.startswith("a model call 8.0 s after")
    assert limited(7.0, model_at=7.2).status("RT-RETRY-67") == "passed"
    assert limited(7.6, model_at=7.5).said("RT-RETRY-67").status == "failed"
    told = limited(None).said("RT-RETRY-64").broken[0]
    assert (round(told.at, 2), told.actual) == (8.01, "no report of j in the job's 6 s")


def test_the_time_limit_is_not_judged_where_the_lock_was_lost_before():
    tape = Tape(lock=3).poll("j").lock("j", grant={"timeoutSeconds": 6}).snapshot("j").resolve("j").model("j")
    assert tape.heartbeat("j", 409).poll(at=20).status("RT-RETRY-67") == "untested"
    tape = Tape(lock=3).poll("j").lock("j", grant={"timeoutSeconds": 6}).snapshot("j").resolve("j").model("j")
    assert tape.event("signal", signal="KILL").poll(at=20).status("RT-RETRY-67") == "untested"


def test_invalid_snapshot_has_a_flag_of_its_own():
    tape = Tape().poll("j").lock("j").snapshot("j", 404)
    said(tape.fail("j", "INVALID_SNAPSHOT", retryable=False), "RT-RETRY-12", "passed")
    tape = Tape().poll("j").lock("j").snapshot("j", 404)
    said(tape.fail("j", "INVALID_SNAPSHOT", retryable=True), "RT-RETRY-12", "failed", "RT-FAIL-70 RT-SNAP-61")
