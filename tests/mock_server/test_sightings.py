"""Sightings: secrets of a world where its raw requests should not have them."""

from __future__ import annotations

import base64
import json
import urllib.parse

import httpx
import pytest
from har_schema import check_har
from mock_world import KEY, World, start, stop

from openapi.redaction import Finder

TOKEN = "tok+en/of~a%world=1"
PLATFORM = "plat+form/key~1234"
CANARY = 'canary "é" 0123456789'
POLL = {"runtimeInstanceId": "runtime-1", "supportedJobTypes": ["learning_state_analysis"]}
JOBS = "/internal/runtime/jobs"


@pytest.fixture
def watched(make):
    """A world that asks for sightings, with a key of its own, a platform key and a canary."""
    return make(sightings=True, apiKey=TOKEN, platformKey=PLATFORM, search=[CANARY])


def ask(world, method="POST", path=f"{JOBS}/poll", **options):
    """A request with the world's own key, unless it has another; what it is sighted for."""
    headers = {"x-internal-api-key": TOKEN, **options.pop("headers", {})}
    world.send(method, path, headers=headers, **options)
    return told(world)


def told(world):
    """The sightings of the last exchange, as texts."""
    entry = world.journal(order="desc", limit=1)[0]
    text = json.dumps(entry)
    assert not any(secret in text for secret in (TOKEN, PLATFORM, CANARY, json.dumps(CANARY)[1:-1]))
    return [f"{item['secret']}, {item['place']}, {item['form']}" for item in entry["sightings"]]


def test_secrets_where_they_belong_are_no_sightings(watched):
    assert ask(watched, json=POLL) == []
    job = watched.state("job")["jobId"]
    assert ask(watched, path=f"{JOBS}/{job}/lock", json={"runtimeInstanceId": "runtime-1"}) == []
    body = {"jobId": job, "apiKeyMode": "platform_key", "provider": "deepseek"}
    assert ask(watched, path="/internal/runtime/model-credentials/resolve", json=body) == []
    assert watched.journal()[-1]["status"] == 200


SECRETS = {"service token": TOKEN, "model key": PLATFORM, "canary": CANARY}


@pytest.mark.parametrize("name", SECRETS)
def test_every_place_of_a_request_is_searched(watched, name):
    secret = SECRETS[name]
    quoted = urllib.parse.quote(secret, safe="")
    assert ask(watched, "GET", f"/nothing/{quoted}/x") == [f"{name}, path, encoded"]
    assert ask(watched, "GET", f"{JOBS}/poll?a=1&b={quoted}") == [f"{name}, query, encoded"]
    coded = base64.b64encode(b"user:" + secret.encode()).decode()
    assert ask(watched, json=POLL, headers={"x-note": f"Basic {coded}"}) == [f"{name}, header x-note, encoded"]
    assert ask(watched, json=POLL, headers={"Cookie": f"a={secret.encode().hex()}"}) == [
        f"{name}, header cookie, encoded"
    ]
    body = json.dumps({**POLL, "hint": [secret]})
    form = "encoded" if name == "canary" else "plain"
    assert ask(watched, content=body, headers={"content-type": "application/json"}) == [f"{name}, body, {form}"]
    assert ask(watched, content=f"not json: {secret}".encode()) == [f"{name}, body, plain"]


def test_plain_is_told_where_its_own_text_stands(watched):
    assert ask(watched, json=POLL, headers={"user-agent": f"runtime {TOKEN}"}) == [
        "service token, header user-agent, plain"
    ]
    assert ask(watched, json=POLL, headers={"authorization": f"Bearer {PLATFORM}"}) == [
        "model key, header authorization, plain"
    ]
    assert ask(watched, "GET", f"/nothing/{PLATFORM}") == ["model key, path, plain"]
    assert ask(watched, "GET", f"/nothing?key={PLATFORM}") == ["model key, query, plain"]


def test_what_is_escaped_a_little_is_found_in_paths_and_queries(watched):
    escaped = f"%{ord(PLATFORM[0]):02x}{PLATFORM[1:]}".replace("+", "%2b")
    assert ask(watched, "GET", f"/nothing/{escaped}") == ["model key, path, encoded"]
    assert ask(watched, "GET", f"/nothing?key={escaped}") == ["model key, query, encoded"]


def test_a_model_key_does_not_belong_into_the_header_of_the_service_token(watched):
    assert ask(watched, json=POLL, headers={"x-internal-api-key": PLATFORM}) == [
        "model key, header x-internal-api-key, plain"
    ]
    assert watched.journal()[-1]["status"] == 401


def test_the_same_is_told_once_for_each_place_and_form(watched):
    coded = TOKEN.encode().hex()
    body = json.dumps([TOKEN, TOKEN, coded, PLATFORM])
    assert ask(watched, content=body, headers={"x-a": TOKEN, "x-b": TOKEN}) == [
        "service token, header x-a, plain",
        "service token, header x-b, plain",
        "model key, body, plain",
        "service token, body, encoded",
        "service token, body, plain",
    ]


def test_every_field_of_a_repeated_header_is_searched(watched):
    lines = [
        f"GET {watched.path}/nothing HTTP/1.1",
        f"host: 127.0.0.1:{watched.port}",
        f"x-internal-api-key: {TOKEN}",
        f"X-Tag: {PLATFORM}",
        "X-Tag: harmless",
        "connection: close",
    ]
    watched.raw("\r\n".join([*lines, "", ""]).encode())
    assert told(watched) == ["model key, header x-tag, plain"]


def test_a_header_name_that_is_a_secret_is_not_told(make):
    world = make(sightings=True, search=["x-canary-0123456789"])
    world.poll()
    world.send("GET", "/nothing", headers={"x-canary-0123456789": "x-canary-0123456789"})
    entry = world.journal()[-1]
    assert entry["sightings"] == [{"secret": "canary", "place": "header [redacted]", "form": "plain"}]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (f"{JOBS}/poll", {"x-internal-api-key": "wrong"}, 401),
        ("/internal/runtime/nothing", {}, 404),
        (f"{JOBS}/poll", {"content-type": "text/plain"}, 415),
        (f"{JOBS}/poll", {"x-runtime-instance-id": ""}, 400),
    ],
)
def test_bodies_of_refused_requests_are_searched(watched, path, headers, status):
    assert ask(watched, path=path, content=f'{{"a": "{PLATFORM}"}}', headers=headers) == ["model key, body, plain"]
    assert watched.journal()[-1]["status"] == status


def test_the_whole_body_is_searched_and_what_is_too_large_as_well(watched):
    limit = 2**20
    for size, status in ((limit - 100, 400), (limit + 2**18, 413)):
        body = b'{"a": "' + b"x" * size + PLATFORM.encode() + b'"}'
        assert ask(watched, content=body, headers={"content-type": "application/json"}) == ["model key, body, plain"]
        assert watched.journal()[-1]["status"] == status


def test_what_a_fault_plan_meets_is_searched(watched):
    watched.control("POST", "/faults", json={"fault": {"kind": "status", "status": 503}})
    assert ask(watched, content=f'{{"a": "{PLATFORM}"}}') == ["model key, body, plain"]
    assert watched.journal()[-1]["status"] == 503


def test_a_body_that_is_no_utf_8_is_searched(watched):
    assert ask(watched, content=b"\xff\xfe" + PLATFORM.encode()) == ["model key, body, plain"]


def test_keys_of_credentials_count_from_when_they_are_made(make):
    data = {"credentials": [{"id": "cred-1", "userId": "user-1", "apiKey": "sk-of-the-data-0123"}]}
    world = make(sightings=True, data=data)
    later = world.state("credential")["apiKey"]
    body = json.dumps({"a": "sk-of-the-data-0123", "b": later, "c": "sk-nobodys-0123456789"})
    world.send("POST", f"{JOBS}/poll", content=body)
    assert told(world) == ["model key, body, plain"]
    world.send("GET", f"/nothing/{later}")
    assert told(world) == ["model key, path, plain"]
    world.send("GET", "/nothing/sk-nobodys-0123456789")
    assert told(world) == []


def test_a_made_up_platform_key_is_searched(make):
    world = make(sightings=True)
    key = world.resolve(world.locked()).json()["apiKey"]
    assert key.startswith("platform-")
    world.send("POST", f"{JOBS}/poll", json={"a": key})
    assert told(world) == ["model key, body, plain"]


def test_calls_of_a_model_may_have_the_key_and_nothing_else(watched):
    headers = {"authorization": f"Bearer {PLATFORM}", "x-internal-api-key": "none"}
    path = "/__model__/0123456789abcdef/v1/chat/completions"
    assert ask(watched, path=path, json={"messages": []}, headers=headers) == []
    assert ask(watched, path=path, json={"messages": [PLATFORM]}, headers={**headers, "x-internal-api-key": TOKEN}) == [
        "service token, header x-internal-api-key, plain",
        "model key, body, plain",
    ]
    assert ask(watched, path="/__model__x", headers=headers) == ["model key, header authorization, plain"]


def test_another_worlds_secrets_are_none_of_this_one(make, watched):
    other = make(sightings=True)
    other.send("POST", f"{JOBS}/poll", json={"a": [TOKEN, PLATFORM, KEY]})
    entry = other.journal()[-1]
    assert entry["sightings"] == [{"secret": "service token", "place": "body", "form": "plain"}]


def test_a_world_that_does_not_ask_is_told_nothing(make):
    world = make(platformKey=PLATFORM, search=[CANARY])
    world.send("POST", f"{JOBS}/poll", json={"a": [KEY, PLATFORM, CANARY]})
    (entry,) = world.journal()
    assert entry["sightings"] is None
    assert (make.made[-1]["sightings"], make.made[-1]["timing"]) == (False, {})
    assert not any(secret in json.dumps(entry) for secret in (KEY, PLATFORM))


def test_the_platforms_key_is_that_of_the_option(make):
    world = make(platformKey=PLATFORM)
    assert world.resolve(world.locked()).json()["apiKey"] == PLATFORM
    text = json.dumps([make.made, world.journal()])
    assert PLATFORM not in text


def test_without_a_platform_key_answers_have_none(make):
    world = make(platformKey=None, sightings=True)
    answer = world.resolve(world.locked())
    assert answer.status_code == 200
    assert "apiKey" not in answer.json()
    user = world.state("credential")
    job = world.locked(apiKeyMode="user_deepseek_key", credentialId=user["credentialId"])
    own = world.resolve(job, apiKeyMode="user_deepseek_key", credentialId=user["credentialId"]).json()
    assert own["apiKey"] == user["apiKey"]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"platformKey": "short"}, "/platformKey"),
        ({"platformKey": "with a blank in it"}, "/platformKey"),
        ({"platformKey": 12345678}, "/platformKey"),
        ({"search": "text"}, "/search"),
        ({"search": ["abc"]}, "/search/0"),
        ({"search": [None]}, "/search/0"),
        ({"sightings": "yes"}, "/sightings"),
        ({"sighting": True}, "did you mean `sightings`?"),
    ],
)
def test_options_that_can_not_be_are_refused_and_not_repeated(base_url, client, options, place):
    answer = client.post(f"{base_url}/__control__/worlds", json=options)
    assert answer.status_code == 400
    assert place in answer.json()["error"]
    assert "with a blank" not in answer.text
    assert "12345678" not in answer.text
    assert '"abc"' not in answer.text


def test_a_har_tells_sightings_and_what_the_journal_knows_of_the_job(watched):
    job = watched.state("job")["jobId"]
    assert ask(watched, path=f"{JOBS}/{job}/lock?x={PLATFORM}", json={"runtimeInstanceId": "runtime-1"})
    ask(watched, json=POLL)
    archive = watched.control("GET", "/journal/har")
    locked, polled = check_har(archive.json())
    assert locked["request"]["url"].endswith("/lock?x=%5Bredacted%5D")
    assert locked["_sightings"] == [{"secret": "model key", "place": "query", "form": "plain"}]
    assert (locked["_caller"], locked["_jobStatus"], locked["_lockedBy"]) == ("runtime-1", "locked", "runtime-1")
    assert locked["_lockUntil"] == locked["_at"] + 60_000
    assert (polled["_sightings"], polled["_caller"]) == ([], "runtime-1")
    assert (polled["_jobStatus"], polled["_lockedBy"], polled["_lockUntil"]) == (None, None, None)
    assert PLATFORM not in archive.text


def test_a_recording_has_the_sightings_of_all_worlds(tmp_path):
    path = tmp_path / "run.har"
    process, url = start("--record", str(path))
    with httpx.Client() as client:
        made = client.post(f"{url}/__control__/worlds", json={"sightings": False}).json()
        for prefix in ("", made["path"]):
            World(client, url, prefix).send("POST", f"{JOBS}/poll", json={"a": KEY})
        assert made["sightings"] is True
    stop(process)
    entries = check_har(json.loads(path.read_bytes()))
    assert [entry["_sightings"] for entry in entries] == [
        [{"secret": "service token", "place": "body", "form": "plain"}]
    ] * 2
    assert KEY not in path.read_text()


def test_a_finder_tells_which_secret_and_whether_it_is_its_own_text():
    finder = Finder()
    finder.add("first-secret", "one")
    finder.add("secret", "two")
    finder.add("abc", "too short")
    assert finder.find("abc") == set()
    assert finder.find("a first-secret") == {("one", True), ("two", True)}
    assert finder.find(b"first-secret".hex()) == {("one", False), ("two", False)}
    finder.add("third+secret", "three")
    assert finder.find("third%2Bsecret") == {("three", False), ("two", True)}
