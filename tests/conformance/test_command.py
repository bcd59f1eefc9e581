"""The ``contract`` command end to end, as a user runs it: exit status, verdict, messages, reports."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest
from fake_builds import FakeBuild, after_one_answer, html, never, no_such_key, nothing, too_short

import conformance
from conformance.processes import python

ONE_RULE = ("--only", "RT-LOCK-13", "--no-fuzz")
SCHEMA = json.loads((Path(conformance.__file__).parent / "schemas" / "report.schema.json").read_text("utf-8"))


def contract(*arguments: str, cwd: Path | None = None, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run the command; standard error is where wrong usage is told."""
    done = subprocess.run(
        python("conformance", *arguments), capture_output=True, text=True, timeout=timeout, cwd=cwd, check=False
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.strip().splitlines()[-1]


def test_the_self_check_is_conformant_and_its_report_is_of_its_schema(tmp_path):
    report = tmp_path / "report.json"
    done = contract("check", "--report", f"json={report}", cwd=tmp_path)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout
    data = json.loads(report.read_text("utf-8"))
    jsonschema.validate(data, SCHEMA)
    assert data["verdict"] == "conformant"
    assert data["target"]["kind"] == "reference"
    assert data["summary"]["failed"] == data["summary"]["skipped"] == 0
    assert data["summary"]["passed"] > 200


def test_a_seeded_fault_is_not_conformant_and_the_failure_says_all(tmp_path):
    report = tmp_path / "report.json"
    done = contract("check", "--mutant", "lock.wrong-code", *ONE_RULE, "--report", f"json={report}")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    for part in ("RT-LOCK-13", "If the update touches 0 rows", "影响行数 = 0", "runtime-api.yaml:"):
        assert part in done.stdout
    for part in ("Expected:  409 JOB_ALREADY_LOCKED", "Actual:    409 LOCK_NOT_HELD", "Reproduce:", "curl -sS"):
        assert part in done.stdout
    assert "$CONTRACT_API_KEY" in done.stdout
    data = json.loads(report.read_text("utf-8"))
    jsonschema.validate(data, SCHEMA)
    [rule] = [item for item in data["requirements"] if item["status"] == "failed"]
    failed = [check for check in rule["checks"] if check["status"] == "failed"]
    assert failed[0]["exchanges"][-1]["response"]["status"] == 409
    assert "curl" in failed[0]["reproduce"]


def test_the_key_is_in_no_report(tmp_path):
    report = tmp_path / "report.json"
    with FakeBuild(html) as build:
        key = "secret-key-of-this-test"
        done = contract("check", "runtime-api", "--base-url", build.url, "--api-key", key, "--report", f"json={report}")
    assert key not in done.stdout + done.stderr + report.read_text("utf-8")


def test_a_target_that_is_down_is_inconclusive_and_still_reported(tmp_path):
    report = tmp_path / "report.json"
    done = contract("check", "runtime-api", "--base-url", "http://127.0.0.1:9", "--report", f"json={report}")
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    assert "can't be reached" in done.stdout
    data = json.loads(report.read_text("utf-8"))
    jsonschema.validate(data, SCHEMA)
    assert data["verdict"] == "inconclusive"


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [(never, "never answers"), (no_such_key, "refuses the key")],
    ids=["never answers", "refuses the key"],
)
def test_a_target_that_can_not_be_judged_is_inconclusive(behaviour, told):
    with FakeBuild(behaviour) as build:
        done = contract("check", "runtime-api", "--base-url", build.url)
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    assert told in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [(html, "a JSON body"), (nothing, "closed"), (too_short, "broken")],
    ids=["answers HTML", "closes connections", "lies about its length"],
)
def test_a_target_that_answers_garbage_fails_rules(behaviour, told):
    with FakeBuild(behaviour) as build:
        only = ("--only", "RT-ERR-06", "--only", "RT-AUTH-03", "--no-fuzz")
        done = contract("check", "runtime-api", "--base-url", build.url, *only)
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert told in done.stdout


def test_a_target_that_hangs_fails_rules():
    with FakeBuild(after_one_answer(never)) as build:
        done = contract("check", "runtime-api", "--base-url", build.url, "--only", "RT-ERR-06", "--no-fuzz")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "none within" in done.stdout


def test_the_time_limit_leaves_it_inconclusive():
    with FakeBuild(after_one_answer(never)) as build:
        target = ("check", "runtime-api", "--base-url", build.url, "--only", "RT-ERR-06", "--no-fuzz")
        done = contract(*target, "--time-limit", "3")
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    assert "time limit of 3 s" in done.stdout


@pytest.mark.parametrize("system", ["runtime-api", "agent-hub"])
def test_the_time_limit_is_for_the_first_contact_too(system, tmp_path):
    report = tmp_path / "report.json"
    with FakeBuild(never) as build:
        done = contract("check", system, "--base-url", build.url, "--time-limit", "1", "--report", f"json={report}")
    assert 1 <= json.loads(report.read_text("utf-8"))["durationSeconds"] < 10  # an answer may take 15
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    assert "the time limit of 1 s came before" in " ".join(done.stdout.split())


def test_provider_states_that_can_not_be_used_are_inconclusive():
    with FakeBuild(html) as build:
        done = contract(
            "check", "runtime-api", "--base-url", build.url, "--provider-states", f"{build.url}/states", *ONE_RULE
        )
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    assert "provider-state endpoint" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("chek",), "did you mean `check`?"),
        (("check", "--onyl", "X"), "--only"),
        (("check", "--only", "RT-NOPE-*"), "RT-NOPE-* matches no rule"),
        (("check", "--only", "RT-LOCK-13", "--only", "NOPE"), "--only NOPE matches no rule"),
        (("check", "--only", "RT-LOCK-13", "--skip", "NOPE"), "--skip NOPE matches no rule"),
        (("check", "--only", "RT-LOCK-13", "--skip", "RT-LOCK-*"), "leave no rule"),
        (("check", "--report", "json=."), "is a folder"),
        (("check", "--only", "RT-LOCK-13", "runtime-api", "--base-url", "http://127.0.0.1:9"), "write it after"),
        (("check", "--report", "pdf=x"), "one of json"),
        (("check", "--report", "json=no/such/folder/x"), "does not exist"),
        (("check", "runtime-api"), "--base-url"),
        (("check", "runtime-api", "--base-url", "localhost:80"), "is no URL"),
        (("check", "runtime-api", "--base-url", "http://[::1"), "is no URL"),
        (("check", "runtime-api", "--base-url", "http://127.0.0.1:99999"), "is no URL"),
        (("check", "runtime-api", "--base-url", "http://u:p@127.0.0.1:9"), "leave it out"),
        (("check", "runtime-api", "--base-url", "http://127.0.0.1:9?a=b"), "query"),
        (("check", "runtime-api", "--base-url", "http://127.0.0.1:9", "--provider-states", "states"), "is no URL"),
        (("check", "runtime-api", "--base-url", "http://127.0.0.1:9", "--api-key", ""), "is empty"),
        (("check", "runtime-api", "--base-url", "http://127.0.0.1:9", "--api-key", "a\nb: c"), "no header can carry"),
        (("check", "runtime-api", "--base-url", "http://127.0.0.1:9", "--timing", "lock=nan"), "above 0"),
        (("check", "runtime-api", "--base-url", "http://127.0.0.1:9", "--timing", "lock=3,lock=4"), "twice"),
        (("check", "runtime-api", "--base-url", "http://127.0.0.1:9", "--timing", "lok=3"), "lock"),
        (("check", "runtime-api", "--base-url", "http://127.0.0.1:9", "--timing", "no-file"), "No such file"),
        (("check", "--level", "half"), "seed"),
        (("check", "--mutant", "lock.rac"), "did you mean `lock.race`?"),
        (("check", "--timing", "lock=3"), "for builds with limits of their own"),
        (("requirements", "--only", "nothing"), "no rule matches"),
    ],
)
def test_wrong_usage_is_exit_2_with_the_mend(arguments, told):
    done = contract(*arguments)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[chek]\n", "did you mean `[check]`?"),
        ("[check]\nsed = 1\n", "did you mean `seed`?"),
        ("[check\n", "is no TOML"),
        ("[serve]\nprot = 1\n", "did you mean `port`?"),
    ],
)
def test_a_wrong_configuration_file_is_exit_2_with_the_mend(tmp_path, text, told):
    (tmp_path / "contract.toml").write_text(text, encoding="utf-8")
    done = contract("requirements", cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_configuration_file_gives_options(tmp_path):
    (tmp_path / "contract.toml").write_text('[check]\nonly = ["RT-LOCK-03"]\nno-fuzz = true\n', encoding="utf-8")
    done = contract("check", cwd=tmp_path)
    assert done.returncode == 0
    assert "1 rule in" in done.stdout


def test_a_configuration_file_can_be_named_at_the_subcommand(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[check]\nonly = ["RT-LOCK-03"]\n[check.runtime-api]\nbase-url = "http://127.0.0.1:9"\n', "utf-8")
    done = contract("check", "--config", str(path), "--no-fuzz")
    assert (done.returncode, last_line(done)) == (0, "conformant")
    assert "1 rule in" in done.stdout
    assert "127.0.0.1:9 can't be reached" in contract("check", "runtime-api", "--config", str(path)).stdout


def test_what_all_checks_share_is_written_once(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[check]\nonly = ["NOPE"]\n', encoding="utf-8")
    done = contract("check", "runtime-api", "--base-url", "http://127.0.0.1:9", "--config", str(path))
    assert done.returncode == 2
    assert "NOPE matches no rule" in done.stderr


def test_requirements_in_every_format():
    rows = json.loads(contract("requirements", "--format", "json", "--only", "RT-LOCK-*").stdout)
    [row] = [row for row in rows if row["id"] == "RT-LOCK-13"]
    assert "lock.a_locked_job_is_refused_to_a_second_runtime" in row["checks"]
    assert "lock.wrong-code" in row["mutants"]
    assert row["places"][0].startswith("runtime-api.yaml:")
    assert contract("requirements", "--format", "csv", "--only", "RT-LOCK-13").stdout.startswith("id,level,")
    assert "| RT-LOCK-13 |" in contract("requirements", "--only", "RT-LOCK-13").stdout


def test_spec_lint_and_bundle():
    assert contract("spec", "lint").returncode == 0
    assert "x-state-machine:" in contract("spec", "bundle").stdout
    assert "RT-LOCK-13:" in contract("spec", "bundle").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_check_is_inconclusive_and_leaves_no_process(number):
    with FakeBuild(after_one_answer(never)) as build:
        target = ("check", "runtime-api", "--base-url", build.url, "--only", "RT-ERR-06", "--no-fuzz")
        command = python("conformance", *target)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        build.was_asked()
        build.was_asked()
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output.strip().splitlines()[-1]) == (3, "inconclusive")
    assert "interrupted" in output
    assert "Traceback" not in output + errors
    assert build.closed.wait(timeout=10), "the checks' connection is still open"
