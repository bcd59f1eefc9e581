"""RT-CRED: the credential, whom the Runtime calls with it; secrets in the wrong place."""

import pytest
from rule_cases import begun, said
from tape import BASE, Tape

NO_KEY = {"content": {"apiKey": ""}}


def read(**runtime) -> Tape:
    tape = Tape().poll("j").lock("j").heartbeat("j").snapshot("j")
    tape.runtime.update(runtime)
    return tape


def test_the_place_and_the_form_of_a_resolve():
    said(begun(), "RT-CRED-01", "passed")
    said(read(), "RT-CRED-01", "untested")
    actual = said(read().call("GET", f"{BASE}/model-credentials/resolve", status=405), "RT-CRED-01", "failed")
    assert actual == "GET /internal/runtime/model-credentials/resolve"
    said(begun(), "RT-CRED-02", "passed")
    said(read().resolve("j", body={"credentialId": None}), "RT-CRED-02", "passed")
    mode = {"apiKeyMode": "user_deepseek_key"}
    said(read().resolve("j", body={**mode, "credentialId": "cred-1"}), "RT-CRED-02", "passed")
    said(read().resolve("j", 400, body=mode), "RT-CRED-02", "failed")
    actual = said(read().resolve("j", 400, body={"provider": 1}), "RT-CRED-02", "failed")
    assert actual == "provider: 1 in resolveCredential of j"
    said(begun(), "RT-CRED-03", "passed")
    said(read().resolve("j", 400, body={"apiKeyMode": "mine"}), "RT-CRED-03", "failed")
    said(read(), "RT-CRED-02", "untested")
    said(read(), "RT-CRED-03", "untested")


@pytest.mark.parametrize(
    ("rule", "resolve", "code", "flag"),
    [
        ("RT-CRED-70", {"status": 404}, "INVALID_CREDENTIAL", False),
        ("RT-CRED-70", {"status": 422, "code": "CREDENTIAL_INVALID"}, "INVALID_CREDENTIAL", False),
        ("RT-CRED-71", NO_KEY, "INVALID_CREDENTIAL", False),
        ("RT-CRED-72", {"status": 500}, "INTERNAL_ERROR", True),
        ("RT-CRED-72", {"lost": True}, "NETWORK_ERROR", True),
    ],
)
def test_no_credential(rule, resolve, code, flag):
    def tape():
        return read(ownKey=False).resolve("j", **resolve)

    said(tape().fail("j", code, retryable=flag), rule, "passed")
    said(tape().fail("j", "MODEL_TIMEOUT", retryable=True), rule, "failed")
    said(tape().poll(at=5), rule, "untested")
    said(tape().heartbeat("j", at=30).heartbeat("j", at=80).poll(at=150), rule, "failed")
    said(tape().heartbeat("j", cancel=True).fail("j", "JOB_CANCELLED", retryable=False), rule, "untested")
    said(begun(), rule, "untested")


def test_a_job_that_is_gone_is_no_credential_that_is_missing():
    said(read().resolve("j", 404, "JOB_NOT_FOUND").poll(at=100), "RT-CRED-70", "untested")


def test_a_key_of_ones_own():
    own = read(ownKey=True).resolve("j", **NO_KEY)
    said(own.model("j", key="right").result("j").log("j"), "RT-CRED-11", "passed")
    said(own, "RT-CRED-76", "passed")
    said(own, "RT-CRED-71", "untested")
    both = read(ownKey=True).resolve("j")
    body = both.entries[-1]["response"]["content"]["text"]
    both.entries[-1]["_fault"] = {"plans": [], "handled": True, "got": "altered", "body": body}
    said(both.model("j").result("j").log("j"), "RT-CRED-11", "passed")
    theirs = read(ownKey=True).resolve("j").model("j", key="wrong").result("j").log("j")
    assert said(theirs, "RT-CRED-11", "failed") == "another key in a model call for j"
    said(read(ownKey=True).resolve("j").model("j").result("j").log("j"), "RT-CRED-11", "untested")
    without = read(ownKey=True).resolve("j", **NO_KEY).model("j", key="none", status=401).log("j", success=False)
    assert without.said("RT-CRED-11").broken[0].actual == "no key in a model call for j"
    unread = read(ownKey=True).resolve("j", **NO_KEY).fail("j", "INVALID_CREDENTIAL", retryable=False)
    said(unread, "RT-CRED-76", "failed")
    elsewhere = read(ownKey=False).resolve("j", **NO_KEY).model("j", key="wrong").result("j").log("j")
    assert said(elsewhere, "RT-CRED-76", "failed", "RT-CRED-71") == "a model call with a key for j"
    said(
        read(ownKey=False).resolve("j", **NO_KEY).fail("j", "INVALID_CREDENTIAL", retryable=False),
        "RT-CRED-76",
        "passed",
    )
    said(begun(), "RT-CRED-76", "untested")
    said(begun().model("j"), "RT-CRED-11", "untested")


def test_the_model_is_called_as_resolved():
    said(Tape().whole("j"), "RT-CRED-73", "passed")
    other = begun().call("POST", "/v1/chat/completions", {"model": "deepseek-chat", "messages": []}, 404)
    assert said(other, "RT-CRED-73", "failed") == "POST /v1/chat/completions"
    model = begun().model("j", answer={"error": {}}, status=400)
    model.entries[-1]["request"]["postData"]["text"] = '{"model": "gpt", "messages": []}'
    assert said(model, "RT-CRED-73", "failed") == 'model "gpt" in a call for j'
    said(begun().model("j", key="none", status=401), "RT-CRED-73", "failed")
    user = {"content": {"apiKeyMode": "user_deepseek_key"}, "body": {"apiKeyMode": "user_deepseek_key"}}
    user["body"]["credentialId"] = "cred-1"
    said(read(ownKey=True).resolve("j", **user).model("j", key="wrong", status=401), "RT-CRED-73", "failed")
    said(read(ownKey=False).resolve("j").model("j", key="wrong", status=401), "RT-CRED-73", "failed")
    said(begun().model("j", key="wrong", status=401), "RT-CRED-73", "untested")
    said(begun(), "RT-CRED-73", "untested")


def test_a_credential_is_for_one_lock():
    said(Tape().whole("j").whole("k"), "RT-CRED-74", "passed")
    old = begun()
    base = old.base("j")
    old.model("j", 503).log("j", success=False, entry=dict.fromkeys(("inputTokens", "outputTokens", "totalTokens"), 0))
    old.fail("j", "TEMPORARY_PROVIDER_ERROR", retryable=True).poll("j").lock("j", grant={"attemptNo": 1}).snapshot("j")
    old.model("j", base=base).result("j", body={"attemptNo": 1}).log("j")
    assert "before the lock" in said(old, "RT-CRED-74", "failed")
    after = Tape().whole("j").model("j").log("j")
    assert "later" in said(after, "RT-CRED-74", "failed")
    said(begun(), "RT-CRED-74", "untested")


STOLEN = "/__model__/stolen/v1/chat/completions"


def redirected() -> Tape:
    to = {"location": f"http://127.0.0.1:1{STOLEN}"}
    return begun().model("j", 307, outcome="redirect", answer="", answer_headers=to)


def test_redirects_are_not_followed_with_the_key():
    said(redirected().fail("j", "INVALID_CREDENTIAL", retryable=False).poll(at=9), "RT-CRED-75", "passed")
    bearer = {"authorization": "[redacted]", "x-internal-api-key": "", "x-runtime-instance-id": ""}
    for method in ("POST", "GET"):
        tape = redirected().call(method, STOLEN, {"model": "m"} if method == "POST" else None, 404, headers=bearer)
        assert said(tape.poll(at=9), "RT-CRED-75", "failed") == f"{method} {STOLEN} with authorization"
    said(redirected().call("POST", STOLEN, {"model": "m"}, 404).poll(at=9), "RT-CRED-75", "passed")
    said(redirected().fail("j", "INVALID_CREDENTIAL", retryable=False), "RT-CRED-75", "passed")
    said(redirected(), "RT-CRED-75", "untested")
    said(Tape().whole("j"), "RT-CRED-75", "untested")


def seen(secret: str, place: str, form: str = "plain") -> dict:
    return {"_sightings": [{"secret": secret, "place": place, "form": form}]}


KEY, TOKEN = "model key", "service token"
SEARCHED = ("RT-AUTH-63", "RT-CRED-08", "RT-CRED-77", "RT-CRED-78", "RT-CRED-79")


def searched() -> Tape:
    tape = begun().model("j", 503).log("j", success=False, entry=dict.fromkeys(TOKENS, 0))
    for entry in tape.entries:
        entry["_sightings"] = []
    return tape


TOKENS = ("inputTokens", "outputTokens", "totalTokens")
DOWN = {"error": "TEMPORARY_PROVIDER_ERROR", "retryable": True}
LEAK = {"rawError": "Bearer [redacted]"}
FAULTS = [
    ("RT-FAIL-09", lambda tape: tape.fail("j", **DOWN, body=LEAK, **seen(KEY, "body"))),
    ("RT-CRED-08", lambda tape: tape.fail("j", **DOWN, body={"errorMessage": "[redacted]"}, **seen(KEY, "body"))),
    ("RT-CRED-08", lambda tape: tape.poll(**seen(KEY, "header x-key"))),
    ("RT-CRED-08", lambda tape: tape.log("i", entry={"errorMessage": "[redacted]"}, **seen(KEY, "body"))),
    ("RT-LOG-08", lambda tape: tape.log("i", status=400, entry={"apiKey": "[redacted]"}, **seen(KEY, "body"))),
    ("RT-LOG-08", lambda tape: tape.log("i", status=400, entry={"APIKEY": None})),
    ("RT-CRED-77", lambda tape: tape.poll(**seen(KEY, "query"))),
    ("RT-CRED-79", lambda tape: tape.poll(**seen(KEY, "body", "encoded"))),
    ("RT-CRED-79", lambda tape: tape.event("output", secret=KEY, form="encoded", text="a [redacted] b")),
    ("RT-CRED-78", lambda tape: tape.event("output", secret=KEY, form="plain", text="a [redacted] b")),
    ("RT-AUTH-63", lambda tape: tape.poll(**seen(TOKEN, "body"))),
    ("RT-AUTH-63", lambda tape: tape.poll(**seen(TOKEN, "query", "encoded"))),
    ("RT-AUTH-63", lambda tape: tape.event("output", secret=TOKEN, form="plain", text="[redacted]")),
]


@pytest.mark.parametrize(("rule", "fault"), FAULTS)
def test_each_place_of_a_secret_breaks_one_rule(rule, fault):
    said(fault(searched()), rule, "failed")


@pytest.mark.parametrize("rule", [*SEARCHED, "RT-FAIL-09", "RT-LOG-08"])
def test_no_secret_anywhere(rule):
    said(searched().fail("j", **DOWN), rule, "passed")


@pytest.mark.parametrize("rule", [*SEARCHED, "RT-FAIL-09"])
def test_nothing_is_said_of_what_was_not_searched(rule):
    said(begun().model("j", 503).fail("j", **DOWN), rule, "untested")


def test_output_that_nobody_saw():
    tape = searched()
    tape.events.clear()
    said(tape, "RT-CRED-78", "untested")


def test_a_key_in_two_places_of_a_failure():
    tape = searched().fail("j", **DOWN, body={**LEAK, "errorMessage": "[redacted]"}, **seen(KEY, "body"))
    said(tape, "RT-FAIL-09", "failed", "RT-CRED-08")
