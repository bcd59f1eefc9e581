"""RT-LOG: the form of logs, and that every model call has one in time."""

import pytest
from rule_cases import begun, said
from tape import BASE, Tape

NO_TOKENS = dict.fromkeys(("inputTokens", "outputTokens", "totalTokens"), 0)
DOWN = {"error": "TEMPORARY_PROVIDER_ERROR", "retryable": True}


def done() -> Tape:
    """A job that is done, without its log."""
    return begun().model("j").result("j")


def down() -> Tape:
    """A job whose model call failed, without its log."""
    return begun().model("j", 503).fail("j", **DOWN)


def no(tape: Tape, **more) -> Tape:
    return tape.log("j", success=False, entry={**NO_TOKENS, **more})


FORMS = ("01", "02", "03", "04", "05", "06", "07", "08")


@pytest.mark.parametrize("rule", [f"RT-LOG-{n}" for n in FORMS])
def test_logs_in_good_form(rule):
    said(done().log("j"), rule, "passed")
    said(done().log("j", "k", "j2"), rule, "passed")
    said(done(), rule, "untested")


NULLS = ("traceId", "correlationId", "credentialId", "promptName", "promptVersion", "outputSchemaVersion")


@pytest.mark.parametrize(
    ("rule", "entry"),
    [
        ("RT-LOG-03", {"runtimeInstanceId": 1}),
        ("RT-LOG-03", {"correlationId": 1}),
        ("RT-LOG-04", {"model": None}),
        ("RT-LOG-04", {"apiKeyMode": "mine"}),
        ("RT-LOG-04", {"credentialId": 1}),
        ("RT-LOG-05", {"promptVersion": 1}),
        ("RT-LOG-06", {"latencyMs": 1.5}),
        ("RT-LOG-06", {"costEstimate": "free"}),
        ("RT-LOG-07", {"success": "yes"}),
        ("RT-LOG-07", {"retryCount": None}),
        ("RT-LOG-08", {"more": {"ApiKey": "[redacted]"}}),
    ],
)
def test_logs_in_bad_form(rule, entry):
    said(done().log("j", status=400, entry=entry), rule, "failed")


@pytest.mark.parametrize("rule", [f"RT-LOG-{n}" for n in ("03", "04", "05")])
def test_logs_with_null(rule):
    tape = done().log("j", entry=dict.fromkeys(NULLS))
    assert tape.status(rule) == "passed"


def test_logs_in_the_wrong_place_or_no_batch():
    actual = said(done().call("POST", f"{BASE}/logs", {"logs": []}, 404), "RT-LOG-01", "failed")
    assert actual == "POST /internal/runtime/logs"
    said(done().call("POST", f"{BASE}/invocation-logs", {"jobId": "j"}, 400), "RT-LOG-02", "failed")
    said(done().call("POST", f"{BASE}/invocation-logs", [{"jobId": "j"}], 400), "RT-LOG-02", "failed")


def test_every_call_has_a_log():
    for rule in ("RT-LOG-71", "RT-LOG-72"):
        assert done().log("j").poll(at=60).status(rule) == "passed"
        assert done().log("j", status=500).poll(at=60).status(rule) == "passed"
    said(done().log("j"), "RT-LOG-71", "passed")
    assert said(done().poll(at=60), "RT-LOG-71", "failed") == "0 logs"
    said(done(), "RT-LOG-71", "untested")
    said(begun(), "RT-LOG-71", "untested")
    said(done().event("signal", signal="KILL").event("exited", status=-9).poll(at=60), "RT-LOG-71", "untested")
    ended = done().event("signal", signal="TERM").event("exited", status=0)
    said(ended, "RT-LOG-71", "failed")


def test_traces():
    two = begun().model("j", 503).model("j").result("j")
    tape = no(two, traceId="t").log("j", entry={"traceId": "t"})
    assert said(tape, "RT-LOG-71", "failed") == "2 logs with 1 different traceIds"
    said(done().log("j", entry={"traceId": None}), "RT-LOG-71", "failed")
    said(done().log("j").log("j"), "RT-LOG-71", "failed")
    same = {"traceId": "t"}
    said(done().log("j", status=500, entry=same).log("j", entry=same), "RT-LOG-71", "passed")


def test_a_call_that_the_connection_sent_again_by_itself_may_have_no_log():
    def twice(gap: float) -> Tape:
        tape = begun().model("j", lost=True, outcome="close", status=0)
        return tape.model("j", at=tape.now + 0.01 + gap).result("j").log("j").poll(at=60)

    said(twice(0.02), "RT-LOG-71", "passed")
    said(twice(0.5), "RT-LOG-09", "failed")


def test_failed_calls():
    assert no(down()).poll(at=60).status("RT-LOG-09") == "passed"
    said(no(down()), "RT-LOG-09", "passed")
    actual = said(down().log("j", entry=NO_TOKENS).poll(at=60), "RT-LOG-09", "failed")
    assert actual == "0 with success false, 1 logs in all"
    said(down().poll(at=60), "RT-LOG-09", "failed")
    said(down(), "RT-LOG-09", "untested")
    said(done().log("j"), "RT-LOG-09", "untested")


@pytest.mark.parametrize("cause", ["cancel", "lost", "shutdown"])
def test_aborted_calls(cause):
    def aborted() -> Tape:
        tape = begun().model("j", lost=True, outcome="hang", status=0, took=5)
        if cause == "shutdown":
            tape.event("signal", signal="TERM").fail("j", "INTERNAL_ERROR", retryable=True, at=tape.now + 5)
            return tape
        tape.heartbeat("j", cancel=True) if cause == "cancel" else tape.heartbeat("j", 409)
        if cause == "cancel":
            tape.fail("j", "JOB_CANCELLED", retryable=False, at=tape.now + 5)
        return tape.poll(at=tape.now + 6)

    said(no(aborted()), "RT-LOG-70", "passed")
    said(aborted().poll(at=60), "RT-LOG-70", "failed")
    said(aborted().log("j", entry=NO_TOKENS).poll(at=60), "RT-LOG-70", "failed")
    said(aborted(), "RT-LOG-70", "untested")
    assert no(aborted()).status("RT-LOG-09") == "untested"


def test_late_logs():
    said(done().log("j", at=30).poll(at=60), "RT-LOG-72", "failed")
    said(done().log("j", at=12).poll(at=60), "RT-LOG-72", "passed")
    said(done().log("j"), "RT-LOG-72", "untested")


def test_tokens_that_nobody_knows():
    said(no(down()), "RT-LOG-73", "passed")
    for tokens in ({"inputTokens": 12}, {"totalTokens": None}):
        said(no(down(), **tokens), "RT-LOG-73", "failed")
    unused = begun().model("j")
    content = unused.entries[-1]["response"]["content"]
    content["text"] = content["text"].replace("usage", "used")
    said(unused.result("j").log("j"), "RT-LOG-73", "failed")
    said(done().log("j"), "RT-LOG-73", "untested")
    mixed = no(begun().model("j", 503).model("j").result("j")).log("j")
    said(mixed, "RT-LOG-73", "passed")


@pytest.mark.parametrize("bad", [{"status": 500}, {"status": 400}, {"lost": True}])
def test_a_submission_that_fails_changes_nothing(bad):
    def model() -> Tape:
        return begun().model("j").log("j", **bad)

    said(model().result("j"), "RT-LOG-10", "passed")
    said(done().log("j", **bad).poll(), "RT-LOG-10", "passed")
    actual = said(model().fail("j", "INTERNAL_ERROR", retryable=True), "RT-LOG-10", "failed")
    assert actual == "fail INTERNAL_ERROR with retryable true of j"
    said(model().heartbeat("j", at=20).poll(at=30), "RT-LOG-10", "failed")
    said(done().log("j", **bad).event("exited", status=101), "RT-LOG-10", "failed")
    said(done().log("j", **bad), "RT-LOG-10", "untested")
    said(done().log("j"), "RT-LOG-10", "untested")
    said(model().event("signal", signal="TERM").fail("j", "INTERNAL_ERROR", retryable=True), "RT-LOG-10", "untested")
