"""``contract check runtime`` end to end, as a Runtime team uses it: verdicts, timelines, recordings, wrong usage."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jsonschema
import psutil
import pytest

import conformance
from conformance.processes import python
from conformance.runtimes.faults import EXAMPLE

SCHEMA = json.loads((Path(conformance.__file__).parent / "schemas" / "report.schema.json").read_text("utf-8"))
SHORT = ("--timing", "lock=3")
ONE = (*SHORT, "--scenario", "polling.empty-queue")
SECRETS = re.compile(r"(?:service|platform)-[0-9a-f]{32}|sk-[0-9a-f]{32}")


def check(*arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run ``contract check runtime``."""
    command = python("conformance", "check", "runtime", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done


def script(tmp_path: Path, code: str) -> list[str]:
    """A Runtime of a few lines, as a command."""
    path = tmp_path / "runtime.py"
    path.write_text(textwrap.dedent(code), encoding="utf-8")
    return [sys.executable, "-P", str(path)]


def statuses(report: Path) -> dict[str, str]:
    data = json.loads(report.read_text("utf-8"))
    jsonschema.validate(data, SCHEMA)
    assert data["target"]["kind"] == "runtime"
    return {rule["id"]: rule["status"] for rule in data["requirements"]}


def test_a_right_runtime_is_conformant_and_its_recording_is_judged_alike(tmp_path):
    report, har, again = tmp_path / "report.json", tmp_path / "traffic.har", tmp_path / "again.json"
    scenarios = ("--scenario", "life.each-type", "--scenario", "inputs.absent", "--scenario", "process.ends-with-a-job")
    done = check(*SHORT, *scenarios, "--report", f"json={report}", "--report", f"har={har}", "--", *EXAMPLE)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "conformant"), done.stdout
    found = statuses(report)
    for rule in ("RT-LOCK-14", "RT-SNAP-60", "RT-CRED-70", "RT-RES-81", "RT-LOG-71", "RT-HEALTH-60", "RT-CRED-78"):
        assert found[rule] == "passed", rule
    assert found["RT-SCHED-62"] == "untested"  # no poll failed: its situation did not arise
    assert found["RT-LOCK-13"] == "untested"
    assert "bound to server" in done.stdout

    recorded = check("--recording", str(har), "--report", f"json={again}")
    assert (recorded.returncode, recorded.stdout.splitlines()[-1]) == (0, "conformant"), recorded.stdout
    assert statuses(again) == found
    assert not SECRETS.search(har.read_text("utf-8") + report.read_text("utf-8") + done.stdout)


def test_a_failure_shows_what_happened_and_how_to_see_it_again(tmp_path):
    har = tmp_path / "traffic.har"
    wrong = [*EXAMPLE, "--fault", "works-on-after-refusal"]
    done = check(*SHORT, "--scenario", "locks.told-so", "--report", f"har={har}", "--", *wrong)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "non-conformant"), done.stdout
    told = done.stdout.partition("RT-HB-62, level decision")[2]
    for part in (
        "After 409 `LOCK_NOT_HELD` or 404",
        "seconds  lock   what the Runtime did -> what the mock answered",
        "-- the Runtime is started",
        "409 LOCK_NOT_HELD",
        "<== here",
        "contract check runtime --only RT-HB-62 --scenario locks.told-so --timing lock=3 -- ",
    ):
        assert part in told, part
    recorded = check("--recording", str(har), "--only", "RT-HB-62")
    assert recorded.returncode == 1, recorded.stdout
    assert "RT-HB-62" in recorded.stdout


def test_a_leaked_key_is_told_and_stands_in_no_report(tmp_path):
    report, har = tmp_path / "report.json", tmp_path / "traffic.har"
    for fault, rule in (("key-on-output", "RT-CRED-78"), ("key-in-raw-error-encoded", "RT-CRED-79")):
        wrong = [*EXAMPLE, "--fault", fault]
        reports = ("--report", f"json={report}", "--report", f"har={har}")
        done = check(*SHORT, "--scenario", "model.keys-at-risk", "--scenario", "life.each-type", *reports, "--", *wrong)
        assert done.returncode == 1, done.stdout
        assert statuses(report)[rule] == "failed"
        assert not SECRETS.search(har.read_text("utf-8") + report.read_text("utf-8") + done.stdout + done.stderr)


def test_one_that_ends_at_once_gives_no_verdict_but_its_last_words(tmp_path):
    code = "import sys; print('config: no such file', file=sys.stderr); sys.exit(78)"
    done = check(*SHORT, "--", *script(tmp_path, code))
    assert done.returncode == 3
    assert "ended before its first poll, with exit status 78" in done.stderr
    assert "config: no such file" in done.stderr
    assert done.stderr.strip().endswith("inconclusive")


def test_one_that_never_polls_gives_no_verdict_after_the_start_limit(tmp_path):
    done = check(*SHORT, "--start-limit", "1", "--", *script(tmp_path, "import time; time.sleep(600)"))
    assert done.returncode == 3
    assert "the Runtime did not poll within 1 s" in done.stderr
    assert "API_BASE_URL" in done.stderr


def test_one_that_floods_is_told_so(tmp_path):
    done = check(*ONE, "--", *EXAMPLE, "--fault", "hot-polling")
    assert done.returncode == 1
    assert "RT-SCHED-60" in done.stdout


def test_one_that_prints_megabytes_is_judged_like_any_other():
    loud = f"head -c 30000000 /dev/zero; exec {' '.join(EXAMPLE)}"
    done = check(*ONE, "--", "sh", "-c", loud)
    assert done.returncode == 0, done.stdout


def test_no_process_is_left_behind(tmp_path):
    code = f"""
        import os, runpy, sys, time
        if os.fork() == 0:  # a child that goes its own way, with a session of its own and a child again
            os.setsid()
            os.fork()
            while True:
                time.sleep(1)
        sys.argv = {[*EXAMPLE[2:]]!r}
        runpy.run_path({EXAMPLE[2]!r}, run_name="__main__")
    """
    command = script(tmp_path, code)
    done = check(*ONE, "--", *command)
    assert done.returncode == 0, done.stdout + done.stderr
    left = [process.pid for process in psutil.process_iter() if command[-1] in _words(process)]
    assert left == []


FORKING = """
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    waits = [sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]]
    if os.fork() == 0:  # one with a session of its own, whose child has not even our environment
        os.setsid()
        subprocess.Popen(waits)
        subprocess.Popen(waits, env={})
    else:
        subprocess.Popen(waits)
        open(sys.argv[1], "a").write("x")
    time.sleep(600)
"""


@pytest.mark.parametrize("again", [0, 3])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_is_asked_to_end_ends_every_process_first(tmp_path, number, again):
    begun = tmp_path / "begun"
    command = [*script(tmp_path, FORKING), str(begun)]
    arguments = python("conformance", "check", "runtime", *SHORT, "--scenario", "process.*", "--", *command)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as checking:
        deadline = time.monotonic() + 60
        while not begun.exists() or begun.stat().st_size < 2:
            assert time.monotonic() < deadline, "two Runtimes do not start"
            assert checking.poll() is None
            time.sleep(0.05)
        checking.send_signal(number)
        for _ in range(again):  # who is impatient
            time.sleep(0.1)
            checking.send_signal(number)
        said, _ = checking.communicate(timeout=60)
    left = [process.pid for process in psutil.process_iter() if str(begun) in _words(process)]
    assert left == []
    assert (checking.returncode, said) == (3, "interrupted\ninconclusive\n")


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_the_time_limit_ends_it_without_a_verdict():
    done = check(*SHORT, "--scenario", "heartbeats.*", "--time-limit", "3", "--", *EXAMPLE)
    assert done.returncode == 3
    assert "the time limit of 3 s came before the end" in done.stdout


def test_fail_fast_ends_with_the_first_failure():
    wrong = [*EXAMPLE, "--fault", "attempt-always-0"]
    whole = ("--scenario", "reports.attempts", "--scenario", "heartbeats.longer-than-the-lock")
    done = check(*SHORT, *whole, "--workers", "1", "--fail-fast", "--only", "RT-RES-80", "--", *wrong)
    assert done.returncode == 1, done.stdout


def test_the_scenarios_are_listed():
    done = check("--list", "--only", "RT-HEALTH-64")
    assert done.returncode == 0
    assert "process.told-twice" in done.stdout
    assert "(not with --attach)" in done.stdout
    assert "life.each-type" not in done.stdout


def test_a_runtime_started_by_hand_is_judged_by_the_same_scenarios():
    scenarios = ("--scenario", "life.each-type", "--scenario", "inputs.absent", "--scenario", "process.ends-idle")
    command = python("conformance", "check", "runtime", *SHORT, *scenarios, "--attach")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as checking:
        assert checking.stdout is not None
        given = {}
        for line in checking.stdout:
            name, _, value = line.strip().removeprefix("export ").partition("=")
            if value:
                given[name] = value
            if line.startswith("Waiting"):
                break
        assert given.keys() >= {"API_BASE_URL", "RUNTIME_SERVICE_TOKEN", "RUNTIME_INSTANCE_ID", "POLL_INTERVAL_MS"}
        with subprocess.Popen(EXAMPLE, env={**os.environ, **given}, stdout=subprocess.DEVNULL) as runtime:
            said = checking.stdout.read()
            runtime.terminate()
        assert checking.wait(60) == 0, said
    assert said.splitlines()[-1] == "conformant"
    assert "RT-SNAP" in said


def test_variables_can_have_other_names(tmp_path):
    code = f"""
        import os, runpy, sys
        os.environ["API_BASE_URL"] = os.environ.pop("MY_URL")
        os.environ["RUNTIME_SERVICE_TOKEN"] = os.environ.pop("MY_TOKEN").removeprefix("Token ")
        sys.argv = {[*EXAMPLE[2:]]!r}
        runpy.run_path({EXAMPLE[2]!r}, run_name="__main__")
    """
    renamed = ("--env", "MY_URL={base_url}", "--env", "MY_TOKEN=Token {token}", "--env", "API_BASE_URL=http://nowhere")
    done = check(*ONE, *renamed, "--", *script(tmp_path, code))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "neither a command nor --attach nor --recording"),
        (("--attach", "--", "true"), "a command and --attach together"),
        (("--scenario", "nothing.*", "--", "true"), "--scenario nothing.* matches none"),
        (("--env", "A={url}", "--", "true"), "there is no placeholder {url}; there are {base_url}"),
        (("--env", "=x", "--", "true"), "is no NAME=TEMPLATE"),
        (("--timing", "lock=x", "--", "true"), "`x` is no number of seconds"),
        (("--timing", "lapse=3", "--", "true"), "write one of lock, heartbeat, timeout, poll-interval"),
        (("--only", "RT-NOTHING-*", "--", "true"), "matches no rule of runtime-api"),
        (("--report", "pdf=x", "--", "true"), "the format is one of json, har"),
        (("--recording", "missing.har"), "can't be read: No such file"),
        (("--recording", "missing.har", "--scenario", "life.*"), "--scenario has no effect on --recording"),
        (("--port", "8080", "--", "true"), "--port is for --attach"),
        (("--only", "RT-AUTH-01", "--", "true"), "none of these rules binds Runtimes"),
        (("--timing", "lock=3,heartbeat=5", "--", "true"), "can't keep a lock of 3 s"),
        (("--", ""), "the command is empty"),
        ((*SHORT, "--", "./no-such-runtime"), "no-such-runtime"),
    ],
)
def test_wrong_usage_is_told_with_the_mend(arguments, said):
    done = check(*arguments)
    assert done.returncode == 2, done.stderr + done.stdout
    assert said in " ".join(done.stderr.split())


def test_a_recording_that_is_none_is_wrong_usage(tmp_path):
    path = tmp_path / "traffic.har"
    path.write_text('{"log": {"entries": [{}]}}', encoding="utf-8")
    done = check("--recording", str(path))
    assert done.returncode == 2
    assert "/log/entries/0" in done.stderr


def test_timing_can_stand_in_a_file_that_other_checks_share(tmp_path):
    path = tmp_path / "timing.txt"
    path.write_text("# short times\nlock = 3\nping = 1   # of the hub\n\nbackoff = 3/4/5\n", encoding="utf-8")
    done = check("--timing", str(path), "--scenario", "locks.lost-answers", "--", *EXAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    path.write_text("lapse = 3\n", encoding="utf-8")
    done = check("--timing", str(path), "--", *EXAMPLE)
    assert done.returncode == 2
    assert "lapse" in done.stderr
