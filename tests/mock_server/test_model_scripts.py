"""Model scripts: which one fits, at which call, and what the control plane takes, shows and refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from model_world import BODY, ModelWorld, world_on

from mock_server.model import memory
from mock_server.model.memory import ModelMemory
from mock_server.model.scripts import ScriptError, scripts_of


@pytest.fixture
def model(base_url):
    with world_on(base_url) as world:
        yield world


def text(words):
    return {"kind": "text", "text": words}


def script(words, **fields):
    return {**fields, "calls": [text(words)]}


def test_the_nth_call_of_a_job_is_answered_by_the_nth_outcome_and_the_last_one_repeats(model):
    first, second = model.resolved(), model.resolved()
    model.script({"calls": [text("one"), {"kind": "status", "status": 503}, text("three")]})
    assert model.text(first) == "one"
    assert model.text(second) == "one"
    assert model.ask(first).status_code == 503
    assert [model.text(first) for _ in range(3)] == ["three"] * 3
    assert model.ask(second).status_code == 503
    assert model.answered() == [7]
    assert [entry["model"]["call"] for entry in model.calls(5, jobId=first.job)] == [1, 2, 3, 4, 5]


def test_calls_are_counted_across_attempts_and_resolves(model):
    resolved = model.resolved()
    model.script({"calls": [text("one"), text("two"), text("three")]})
    assert model.text(resolved) == "one"
    assert model.text(model.resolved_again(resolved.job)) == "two"
    assert model.fail(resolved.job).status_code == 200
    assert model.lock(resolved.job, "runtime-2").status_code == 200
    again = model.resolved_again(resolved.job, "runtime-2")
    assert model.text(again) == "three"
    facts = [entry["model"] for entry in model.calls(3)]
    assert [(fact["attemptNo"], fact["caller"], fact["call"]) for fact in facts] == [
        (0, "runtime-1", 1),
        (0, "runtime-1", 2),
        (1, "runtime-2", 3),
    ]


def test_a_call_that_is_refused_is_not_counted(model):
    resolved = model.resolved()
    model.script({"calls": [text("one"), text("two")]})
    assert model.ask(resolved, key="another").status_code == 401
    assert model.ask(resolved, {}).status_code == 400
    assert model.answered() == [0]
    assert model.text(resolved) == "one"


def test_the_most_specific_script_wins_then_the_last(model):
    quiz, other, plan = (
        model.resolved(jobType=kind) for kind in ("quiz_generation", "quiz_generation", "next_action_planning")
    )
    model.script(
        script("of the job, older", jobId=quiz.job),
        script("of the job", jobId=quiz.job),
        script("of another type", jobId=other.job, jobType="flashcard_generation"),
        script("of quizzes, older", jobType="quiz_generation"),
        script("of quizzes", jobType="quiz_generation"),
        script("of any, older"),
        script("of any"),
    )
    assert [model.text(resolved) for resolved in (quiz, other, plan)] == ["of the job", "of quizzes", "of any"]
    assert model.answered() == [0, 1, 0, 0, 1, 0, 1]
    model.script(script("both", jobId=quiz.job, jobType="quiz_generation"), script("of the job", jobId=quiz.job))
    assert model.text(quiz) == "both"


def test_calls_that_come_at_once_are_counted_exactly(base_url):
    with world_on(base_url) as world:
        resolved = world.resolved()
        world.script({"calls": [text(str(n)) for n in range(20)]})

        def call(_):
            with world_on(base_url) as other:
                return ModelWorld(other.client, base_url, world.path).text(resolved)

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(call, range(20)), key=int) == [str(n) for n in range(20)]


def test_scripts_are_shown_with_defaults_replaced_and_removed(model):
    assert model.control("GET", "/model/scripts").json() == {"scripts": []}
    shown = model.script(
        {"jobType": "quiz_generation", "calls": [{"kind": "good"}, {"kind": "hang", "seconds": 1}]},
        {"calls": [{"kind": "status", "status": 429.0}, {"kind": "close"}, {"kind": "redirect"}]},
    )
    assert shown == [
        {
            "jobType": "quiz_generation",
            "calls": [{"kind": "good", "variant": 0, "usage": True}, {"kind": "hang", "seconds": 1}],
            "answered": 0,
        },
        {
            "calls": [
                {"kind": "status", "status": 429, "echoKey": False},
                {"kind": "close", "at": "before"},
                {"kind": "redirect", "status": 307},
            ],
            "answered": 0,
        },
    ]
    assert model.control("GET", "/model/scripts").json() == {"scripts": shown}
    resolved = model.resolved()
    model.script(script("other"))
    assert model.text(resolved) == "other"
    assert model.control("DELETE", "/model/scripts").status_code == 204
    assert model.control("GET", "/model/scripts").json() == {"scripts": []}
    assert model.text(resolved) != "other"


def test_scripts_are_their_worlds_own(base_url, model):
    with world_on(base_url, model=[script("of the option")]) as other:
        assert other.answered() == [0]
        resolved = other.resolved()
        assert other.text(resolved) == "of the option"
        assert model.text(model.resolved()) != "of the option"
        assert model.answered() == []
        # A token leads to the model of its own world alone.
        stray = resolved.url.replace(other.path, model.path)
        assert (
            model.client.post(stray, json=BODY, headers={"authorization": f"Bearer {resolved.key}"}).status_code == 404
        )


def test_a_reset_keeps_scripts_and_forgets_the_rest(base_url):
    with world_on(base_url, model=[{"calls": [text("one"), text("two")]}]) as world:
        resolved = world.resolved()
        assert [world.text(resolved) for _ in range(2)] == ["one", "two"]
        assert world.answered() == [2]
        assert world.control("POST", f"/worlds/{world.path.rpartition('/')[2]}/reset").status_code == 204
        assert world.answered() == [0]
        assert world.ask(resolved).status_code == 404
        assert world.text(world.resolved()) == "one"


def test_a_snapshot_holds_scripts_counts_and_resolves(model):
    resolved = model.resolved()
    model.script({"calls": [text("one"), text("two"), text("three")]})
    assert model.text(resolved) == "one"
    name = model.path.rpartition("/")[2]
    assert model.control("POST", f"/worlds/{name}/snapshots", json={"name": "s"}).status_code == 201
    for _ in range(2):
        assert model.text(resolved) == "two"
        later = model.resolved()
        model.script(script("other"))
        assert model.control("POST", f"/worlds/{name}/snapshots/s/restore").status_code == 204
        assert model.answered() == [1]
        assert model.ask(later).status_code == 404
    assert model.text(resolved) == "two"


REFUSED = {
    "no list": ({}, ["/: must be of type array", 'such as [{"calls"']),
    "no calls": ([{}], ["/0/calls: is required", 'such as [{"kind": "good"}]']),
    "no outcome": ([{"calls": []}], ["/0/calls: must have at least 1 item(s)", "give a list of outcomes"]),
    "misspelt": ([{"calls": [{"kind": "good"}], "jobID": "x"}], ["/0/jobID: is not known here", "`jobId`?"]),
    "job type": ([script("x", jobType="quiz_generatoin")], ["/0/jobType: no job type is named", "`quiz_generation`?"]),
    "kind": ([script("x"), {"calls": [{"kind": "god"}]}], ["/1/calls/0/kind: no kind of outcome", "`good`?"]),
    "no kind": ([{"calls": [{}]}], ["/0/calls/0/kind: is required"]),
    "field": ([{"calls": [{"kind": "good", "varient": 1}]}], ["/0/calls/0/varient: is not known here", "`variant`?"]),
    "of another kind": (
        [{"calls": [{"kind": "hang", "status": 500}]}],
        ["/0/calls/0/status: is not known here", "known are kind, seconds, afterSeconds"],
    ),
    "no status": ([{"calls": [{"kind": "status"}]}], ["/0/calls/0/status: is required"]),
    "success": ([{"calls": [{"kind": "status", "status": 200}]}], ["/0/calls/0/status: must be at least 400"]),
    "header": (
        [{"calls": [{"kind": "status", "status": 500, "headers": {"content-length": "1"}}]}],
        ["/0/calls/0/headers/content-length: says how the answer is framed"],
    ),
    "wait": ([{"calls": [{"kind": "good", "afterSeconds": -1}]}], ["/0/calls/0/afterSeconds: must be at least 0"]),
    "several": (
        [{"calls": [{"kind": "text"}, 7, {"kind": "nothing"}], "x": 1}],
        ["/0/calls/0/text: is required", "/0/calls/1: must be of type object", "/0/calls/2/kind", "/0/x:"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_scripts_that_can_not_be_used_are_refused_with_place_and_mend(base_url, model, name):
    body, told = REFUSED[name]
    kept = model.script(script("kept"))
    answer = model.try_scripts(body)
    assert answer.status_code == 400
    assert all(part in answer.json()["error"] for part in told), answer.text
    assert model.control("GET", "/model/scripts").json()["scripts"] == kept
    made = model.client.post(f"{base_url}/__control__/worlds", json={"model": body})
    assert made.status_code == 400
    for part in told:
        where, colon, _ = part.partition(": ")
        wanted = f"/model{where.removesuffix('/')}: " if colon and where.startswith("/") else part
        assert wanted in made.json()["error"], made.text


def test_a_world_remembers_so_many_resolves_and_no_more(monkeypatch):
    monkeypatch.setattr(memory, "MOST", 3)
    kept = ModelMemory(scripts_of([{"calls": [{"kind": "prose"}, {"kind": "good"}]}]))
    jobs = [{"id": f"job-{n}", "jobType": "t", "attemptNo": 0, "apiKeyMode": "platform_key"} for n in range(5)]
    tokens = [kept.resolved(job, "runtime-1", "a-key") for job in jobs]
    calls = [kept.called(token, b"a-key", "a-key") for token in tokens]
    assert [call.resolve is None for call in calls] == [True, True, False, False, False]
    assert [kept.decide(call)["kind"] for call in calls[2:]] == ["prose"] * 3
    assert kept.decide(calls[2])["kind"] == "good"
    more = kept.called(kept.resolved(jobs[0], "runtime-1", "a-key"), b"a-key", "a-key")
    assert kept.decide(more)["kind"] == "prose"  # for which job-3, that did not call for longest, is forgotten
    assert kept.decide(calls[2])["kind"] == "good"
    assert kept.decide(calls[3])["kind"] == "prose"
    with pytest.raises(ValueError, match="refused"):
        kept.decide(calls[0])


def test_an_error_lists_its_problems():
    with pytest.raises(ScriptError) as error:
        scripts_of([{"calls": [{"kind": "god"}]}, {}], place="/model")
    assert len(error.value.problems) == 2
