"""Scenarios that are played with Runtimes of a few lines: what is recorded, and how everything comes to its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
from tiny_runtimes import POLLER, python

from conformance.runtimes.environment import Template, surroundings
from conformance.runtimes.playing import Attached, Command, Pace, PortTaken, play
from conformance.runtimes.process import CannotStart
from contract_tests.runtime.recorded import histories
from contract_tests.runtime.stage import Scenario, Timing

TIMING = Timing(lock=3, heartbeat=0.75, timeout=6, poll_interval=0.1)
PACE = Pace(start=15, grace=10)


def played(plays, runtime, pace=PACE, timing=TIMING, **options):
    """Play functions as scenarios; what came of each."""
    plays = plays if isinstance(plays, list) else [plays]
    scenarios = [Scenario(f"t.{i}-{one.__name__}", f"scenario {i}", one, **options) for i, one in enumerate(plays)]
    command = runtime if isinstance(runtime, Command | Attached) else Command(runtime)
    before = psutil.Process().children()
    found = asyncio.run(play(scenarios, command, timing, pace))
    assert psutil.Process().children() == before
    assert [one.scenario for one in found] == [one.id for one in scenarios]
    return found


async def nothing(_):
    """It is started and ended."""


def test_a_recording_tells_the_polls_and_what_happened_beside_them():
    async def a_job(stage):
        job = await stage.job(priority=1)
        assert await stage.until(lambda history: history.of("failJob"), 10, "a failure")
        assert await stage.done(job)
        assert (await stage.inspect(job))["status"] == "failed"
        stage.note("it failed")
        probe = await stage.health()
        assert (probe.status, probe.body["activeJobs"]) == (200, 0)

    (one,) = played(a_job, python(POLLER))
    assert (one.problems, one.begun, one.polled, one.exit_status) == ([], True, True, 7)
    (history,) = histories(one.log)
    assert len(history.polls) >= 2
    assert all(poll.ok for poll in history.polls)
    (hold,) = history.holds
    assert [call.operation for call in hold.calls] == ["heartbeatJob", "failJob"]
    assert history.facts.instance_id.startswith("runtime-")
    assert (history.facts.lock, history.facts.heartbeat, history.facts.poll) == (3, 0.75, 0.1)
    assert (history.facts.model_timeout, history.facts.own_key) == (2, False)
    kinds = [event.kind for event in history.events]
    assert kinds == ["note", "started", "note", "signal", "exited"]
    assert "API_BASE_URL" in history.events[1].data["env"]
    ((term, end),) = history.terms
    assert end is not None
    assert 0 <= end - term < 5
    assert history.probes
    assert all(probe.status == 200 and probe.body["status"] == "ok" for probe in history.probes)
    assert history.events[1].at <= history.polls[0].sent


def test_scenarios_are_played_side_by_side_each_with_ports_and_secrets_of_its_own():
    seen = []

    async def look(stage):
        seen.append((stage.world.base_url, stage.facts.instance_id))
        await stage.wait(1)

    found = played([look] * 5, python(POLLER), Pace(at_once=4, start=15, grace=10))
    assert [one.problems for one in found] == [[]] * 5
    assert len({url for url, _ in seen}) == len({name for _, name in seen}) == 5
    begun = sorted(histories(one.log)[0].polls[0].sent + histories_zero(one.log) for one in found)
    assert begun[3] - begun[0] < 1  # four at once
    assert begun[4] - begun[0] > 1


def histories_zero(log):
    (told,) = log["_scenarios"].values()
    return told["events"][0]["at"] / 1000


def test_rivals_compete_and_are_told_apart():
    async def rivalry(stage):
        await stage.faults({"match": {"operationId": "pollJobs"}, "fault": {"kind": "status", "status": 500}})
        job = await stage.job()
        assert await stage.rival("lockJob", job) == 200
        assert await stage.rival("heartbeat", job) == 204
        await stage.clear_faults()
        assert await stage.rival("lock", job) == 409
        assert await stage.rival("failJob", job, retryable=False, errorCode="INTERNAL_ERROR") == 200
        with pytest.raises(ValueError, match="lockJob"):
            await stage.rival("lockjob", job)

    (one,) = played(rivalry, python(POLLER))
    assert one.problems == []
    (history,) = histories(one.log)
    assert [call.operation for call in history.others] == ["lockJob", "heartbeatJob", "lockJob", "failJob"]
    assert {call.operation for call in history.calls} == {"pollJobs"}


def test_a_secret_in_the_output_is_an_event_and_shown_nowhere():
    async def a_job(stage):
        await stage.done(await stage.job())

    (one,) = played(a_job, python(POLLER, "say"))
    (history,) = histories(one.log)
    ((_, sighting, text),) = history.output
    assert (sighting.secret, sighting.form, text) == ("service token", "plain", "the key is [redacted]")
    assert one.said == "the key is [redacted]"


def test_a_runtime_that_ignores_sigterm_is_killed_when_its_time_is_over():
    (one,) = played(nothing, python(POLLER, "stubborn"), Pace(start=15, grace=0.5))
    assert (one.problems, one.exit_status) == ([], -signal.SIGKILL)
    (history,) = histories(one.log)
    assert len(history.signalled("TERM")) == len(history.signalled("KILL")) == 1
    assert 0.5 <= history.signalled("KILL")[0] - history.signalled("TERM")[0] < 2


def test_a_play_signals_waits_for_the_exit_and_starts_anew():
    async def ends(stage):
        await stage.signal("STOP")
        assert await stage.health() is None
        assert await stage.exited(0.3) is None
        await stage.signal("CONT")
        await stage.signal("KILL")
        assert await stage.exited(5) == -signal.SIGKILL
        await stage.restart()
        before = len((await stage.history()).polls)
        assert await stage.until(lambda history: len(history.polls) > before, 10, "a poll of the new process")
        await stage.signal("TERM")
        assert await stage.exited(5) == 7
        await stage.signal("TERM")  # of which there is nobody to hear

    (one,) = played(ends, python(POLLER))
    assert (one.problems, one.exit_status) == ([], 7)
    (history,) = histories(one.log)
    kinds = [event.data.get("signal", event.kind) for event in history.events[1:]]
    assert kinds == ["started", "STOP", "CONT", "KILL", "exited", "started", "TERM", "exited", "note"]
    assert not [probe for probe in history.probes if probe.status is None]


def test_who_ends_by_himself_is_not_waited_for():
    async def waits(stage):
        await stage.job()
        assert not await stage.until(lambda history: len(history.holds) > 1, 60, "a second lock")
        assert not await stage.done("some-job")

    began = time.monotonic()
    (one,) = played(waits, python(POLLER, "crash"))
    assert time.monotonic() - began < 30
    assert (one.problems, one.begun, one.exit_status) == ([], True, 3)
    (history,) = histories(one.log)
    notes = [event.data["text"] for event in history.happened("note")]
    assert any("for a second lock, which did not come: the Runtime had ended by itself" in note for note in notes)
    assert not history.signalled("TERM")


def test_a_late_runtime_is_started_by_its_play():
    async def late(stage):
        assert not stage.running
        job = await stage.job()
        await stage.wait(0.3)
        await stage.restart()
        assert await stage.done(job)

    (one,) = played(late, python(POLLER), late=True)
    assert (one.problems, one.polled) == ([], True)
    (history,) = histories(one.log)
    assert history.probes
    assert next(history.happened("started")).at >= 0.3


def test_what_a_world_is_made_with_is_what_its_scenario_says():
    async def looks(stage):
        world = await stage.world.control("GET", f"worlds/{stage.world.id}")
        assert (world["timing"], world["sightings"]) == ({"lock": 3}, True)
        assert [plan["id"] for plan in (await stage.world.control("GET", "faults"))["faults"]] == ["first"]
        assert await stage.until(lambda history: history.polls, 10, "a poll that comes through")

    def world(timing):
        first = {"match": {"operationId": "pollJobs"}, "when": {"nth": [1]}, "fault": {"kind": "hang", "seconds": 2}}
        return {"faults": [{"id": "first", **first}], "platformKey": None}

    (one,) = played(looks, python(POLLER), world=world, own_key=True, model_timeout=1.5)
    assert (one.problems, one.polled) == ([], True)
    (history,) = histories(one.log)
    assert (history.facts.own_key, history.facts.model_timeout) == (True, 4.5)
    assert "PLATFORM_MODEL_API_KEY" in next(history.happened("started")).data["env"]
    assert not history.polls[0].heard
    assert one.log["entries"][0]["_sightings"] == []


def test_one_that_serves_no_health_is_asked_no_more():
    async def waits(stage):
        assert await stage.health() is None
        await stage.wait(1)

    (one,) = played(waits, python(POLLER, "deaf"))
    (history,) = histories(one.log)
    assert (one.problems, history.probes) == ([], [])


def test_a_play_that_breaks_or_hangs_leaves_a_problem_and_its_recording():
    async def breaks(_):
        raise KeyError("job")

    async def hangs(_):
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
                continue
            return

    async def refused(stage):
        await stage.job(jobType="no such type")

    found = played([breaks, hangs, refused], python(POLLER), Pace(start=15, grace=10, bound=1))
    assert found[0].problems == ["the scenario broke: KeyError: 'job'"]
    assert found[1].problems == ["the scenario did not come to its end within 1 s; what was recorded is judged"]
    assert "the mock refused POST /__control__/provider-states/runtime-api: 400" in found[2].problems[0]
    for one in found:
        assert one.polled
        assert one.exit_status == 7
        assert histories(one.log)[0].polls


def test_a_runtime_that_ends_at_once_is_told_with_its_last_words():
    code = "import sys; sys.exit('no such option: --please')"
    found = played([nothing] * 4, python(code), Pace(starting=1, start=15))
    begun = [one for one in found if one.exit_status is not None]
    assert len(begun) == 2
    for one in begun:
        assert one.problems == ["the Runtime ended before its first poll, with exit status 1"]
        assert (one.begun, one.polled, one.exit_status, one.said) == (False, False, 1, "no such option: --please")
    for one in found:
        assert one.never_polled
        if one not in begun:
            assert one.problems[0].startswith("it was not begun: in ")
            assert " and ".join(other.scenario for other in begun) in one.problems[0]


def test_a_runtime_that_never_polls_is_waited_for_as_long_as_was_said():
    began = time.monotonic()
    (one,) = played(nothing, python("import time; time.sleep(600)"), Pace(start=1, grace=5))
    assert time.monotonic() - began < 15
    assert (one.problems, one.polled) == (["the Runtime did not poll within 1 s"], False)
    assert one.exit_status == -signal.SIGTERM


def test_a_command_that_cant_be_started_ends_it_all():
    with pytest.raises(CannotStart, match="/no/such/program can't be started"):
        played([nothing] * 3, ["/no/such/program"])


def test_of_a_runtime_that_never_polled_is_told_what_it_called():
    code = """
        import os, urllib.error, urllib.request
        for path in ("/api/internal/runtime/jobs/poll", "/api/internal/runtime/jobs/poll", "/b", "/c", "/d"):
            try:
                url = os.environ["API_BASE_URL"] + path + "?" + os.environ["RUNTIME_SERVICE_TOKEN"]
                urllib.request.urlopen(urllib.request.Request(url, b"{}", method="POST"))
            except urllib.error.HTTPError:
                pass
    """
    (one,) = played(nothing, python(textwrap.dedent(code)))
    assert one.problems == [
        "the Runtime ended before its first poll, with exit status 0; it called POST /api/internal/runtime/jobs/poll "
        "(404), POST /b (404), POST /c (404), ..."
    ]


def test_what_a_runtime_said_last_is_kept_when_it_ended_as_it_should():
    (one,) = played(nothing, python('print("ready for work", flush=True)\n' + POLLER))
    assert (one.problems, one.exit_status) == ([], 7)
    assert "ready for work" in one.said


def test_a_port_that_cant_be_had_is_told_with_the_mend():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        with pytest.raises(PortTaken, match=f"^port {port} is in use; choose another --port$"):
            played(nothing, Attached(port, "the-token-of-the-user", "by-hand", free()))


def test_variables_of_other_names_are_enough():
    code = (
        'import os\nfor name in ("API_BASE_URL", "POLL_INTERVAL_MS"): os.environ[name] = os.environ.pop("MY_" + name)\n'
    )
    templates = [Template.parse("MY_API_BASE_URL={base_url}"), Template.parse("MY_POLL_INTERVAL_MS=50")]
    (one,) = played(nothing, Command(python(code + POLLER), templates))
    assert (one.problems, one.polled) == ([], True)


def free():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def test_a_runtime_that_was_started_by_hand_plays_one_scenario_after_the_other():
    attached = Attached(free(), "the-token-of-the-user", "by-hand", free())
    variables = {
        "API_BASE_URL": f"http://127.0.0.1:{attached.port}",
        "RUNTIME_SERVICE_TOKEN": attached.token,
        "RUNTIME_INSTANCE_ID": attached.instance_id,
        "RUNTIME_HEALTH_PORT": str(attached.health_port),
        "POLL_INTERVAL_MS": "100",
    }
    environment = surroundings({}, variables, "")

    async def a_job(stage):
        assert stage.attached
        assert await stage.done(await stage.job())
        assert (await stage.health()).status == 200
        with pytest.raises(RuntimeError, match="by hand"):
            await stage.signal("TERM")

    with subprocess.Popen(python(POLLER), env=environment) as process:
        try:
            found = played([a_job, a_job], attached)
            assert process.poll() is None
        finally:
            process.kill()
    assert [(one.problems, one.polled, one.exit_status) for one in found] == [([], True, None)] * 2
    for one in found:
        (history,) = histories(one.log)
        assert len(history.holds) == 1
        assert history.facts.instance_id == "by-hand"


INTERRUPTED = """
import asyncio, sys
from conformance.commands.running import interruptible
from conformance.runtimes.playing import Command, play
from contract_tests.runtime.stage import Scenario, Timing

async def waits(stage):
    print("playing", flush=True)
    await stage.wait(600)

scenarios = [Scenario("a", "a", waits), Scenario("b", "b", waits)]
with interruptible():
    asyncio.run(play(scenarios, Command(sys.argv[1:]), Timing(lock=3)))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_interrupted_leaves_nothing_behind(number):
    command = [sys.executable, "-c", INTERRUPTED, *python(POLLER, "stubborn")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == process.stdout.readline() == "playing\n"
        below = psutil.Process(process.pid).children(recursive=True)
        assert len(below) >= 3  # the mock and two Runtimes
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert "interrupted" in errors
    assert psutil.wait_procs(below, timeout=5)[1] == []
