"""resolveCredential over HTTP: for the holder alone, in the order of its rules, each resolve an address of its own."""

from __future__ import annotations

import re

import pytest


def code(answer):
    return answer.status_code, answer.json()["errorCode"]


def test_the_platform_key(world):
    job = world.locked()
    answer = world.resolve(job)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert (body["provider"], body["model"], body["apiKeyMode"]) == ("deepseek", "deepseek-chat", "platform_key")
    assert body["apiKey"].startswith("platform-")
    assert set(body) == {"provider", "model", "baseUrl", "apiKey", "apiKeyMode"}
    assert world.resolve(job, credentialId=None).json()["apiKey"] == body["apiKey"]


def test_each_resolve_has_an_address_of_its_own_in_its_world(world):
    job = world.locked()
    urls = [world.resolve(job).json()["baseUrl"] for _ in range(5)]
    assert len(set(urls)) == 5
    for url in urls:
        assert re.fullmatch(re.escape(f"{world.base_url}{world.path}/__model__/") + "[0-9a-f]{16}/v1", url)


@pytest.mark.parametrize("host", ['evil" x="', "a b", "", "x" * 300, "ho\\st"])
def test_the_address_is_never_made_of_a_strange_host(world, host):
    job = world.locked()
    answer = world.resolve(job)
    sent = world.send(
        "POST",
        "/internal/runtime/model-credentials/resolve",
        json={"jobId": job, "apiKeyMode": "platform_key", "provider": "deepseek"},
        headers={"host": host},
    )
    if sent.status_code == 200:  # otherwise the server below refused the request
        assert sent.json()["baseUrl"].startswith("http://127.0.0.1/")
    assert answer.status_code == 200


def test_a_users_own_key(world):
    made = world.state("credential", userId="u1")
    own = {"apiKeyMode": "user_deepseek_key", "credentialId": made["credentialId"]}
    job = world.locked(userId="u1", **own)
    answer = world.resolve(job, **own)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["apiKey"] == made["apiKey"]
    assert answer.json()["apiKeyMode"] == "user_deepseek_key"


def test_only_the_holder_resolves(world):
    job = world.state("job")["jobId"]
    assert code(world.resolve("job-x")) == (404, "JOB_NOT_FOUND")
    assert code(world.resolve(job)) == (409, "LOCK_NOT_HELD")
    world.lock(job)
    assert code(world.resolve(job, by="runtime-2")) == (409, "LOCK_NOT_HELD")
    assert world.resolve(job).status_code == 200
    world.state("advance-time", seconds=61)
    assert code(world.resolve(job)) == (409, "LOCK_NOT_HELD")


def test_rules_come_in_their_order(world):
    """Each request breaks the rule named and all that come after it."""
    invalid = world.state("credential", userId="u1", status="invalid")["credentialId"]
    others = world.state("credential", userId="u2", status="invalid")["credentialId"]
    user_key = {"apiKeyMode": "user_deepseek_key"}

    def job(credential):
        return world.locked(userId="u1", credentialId=credential, **user_key)

    mine, strangers, unknown = job(invalid), job(others), job("cred-x")
    assert code(world.resolve("job-x", **user_key, provider="other")) == (404, "JOB_NOT_FOUND")
    assert code(world.resolve(mine, by="runtime-2", **user_key, provider="other")) == (409, "LOCK_NOT_HELD")
    assert code(world.resolve(mine, **user_key, provider="other")) == (400, "INVALID_REQUEST")
    assert code(world.resolve(mine, **user_key, credentialId=None)) == (400, "INVALID_REQUEST")
    assert code(world.resolve(mine, **user_key, credentialId=others)) == (422, "CREDENTIAL_INVALID")
    assert code(world.resolve(mine, **user_key, credentialId=invalid, provider="o")) == (422, "CREDENTIAL_INVALID")
    assert code(world.resolve(mine)) == (422, "CREDENTIAL_INVALID")
    assert code(world.resolve(strangers, **user_key, credentialId=others)) == (404, "CREDENTIAL_NOT_FOUND")
    assert code(world.resolve(unknown, **user_key, credentialId="cred-x")) == (404, "CREDENTIAL_NOT_FOUND")
    assert code(world.resolve(mine, **user_key, credentialId=invalid)) == (422, "CREDENTIAL_INVALID")


def test_a_platform_job_takes_its_own_credential_id_and_no_other(world):
    job = world.locked(credentialId="cred-7")
    assert world.resolve(job, credentialId="cred-7").status_code == 200
    assert world.resolve(job).status_code == 200
    assert code(world.resolve(job, credentialId="cred-8")) == (422, "CREDENTIAL_INVALID")


@pytest.mark.parametrize("job", ["", "x" * 129, 7, None])
def test_an_ill_formed_job_id_is_400(world, job):
    assert code(world.resolve(job)) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("job", ["x" * 128, "a/b", "é"])
def test_any_other_job_id_is_one_that_no_job_has(world, job):
    assert code(world.resolve(job)) == (404, "JOB_NOT_FOUND")


def test_a_missing_credential_id_is_named(world):
    job = world.locked(apiKeyMode="user_deepseek_key", credentialId="cred-1")
    answer = world.resolve(job, apiKeyMode="user_deepseek_key")
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "INVALID_REQUEST")
    (violation,) = answer.json()["details"]
    assert (violation["location"], violation["rule"]) == ("/credentialId", "required")
    assert "/credentialId is required where apiKeyMode is user_deepseek_key" in answer.json()["message"]


def test_the_journal_says_which_job_a_key_was_for(world):
    job = world.locked()
    world.resolve(job)
    assert [entry["jobId"] for entry in world.journal() if entry["operationId"] == "resolveCredential"] == [job]
