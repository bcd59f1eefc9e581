"""The command in unfriendly surroundings: the caller's folder and environment, Ctrl-C, a polite kill."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from test_command import ONE_RULE, contract, last_line

from conformance.processes import python


def test_the_callers_folder_may_hold_anything_and_gets_nothing(tmp_path):
    broken = "raise RuntimeError('a module of the caller')\n"
    for name in ("json.py", "openapi.py", "conftest.py", "test_lock.py", "types.py", "yaml.py"):
        (tmp_path / name).write_text(broken, encoding="utf-8")
    for name in ("conformance", "contract_tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(broken, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\nbroken = [\n", encoding="utf-8")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    done = contract("check", "--only", "RT-LOCK-13", "--only", "RT-ERR-06", cwd=tmp_path)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_the_self_check_is_not_served_as_the_callers_mock_is(tmp_path, monkeypatch):
    (tmp_path / "contract.toml").write_text('[serve]\nwithout-state = ["job"]\ncontrol-token = "t"\n', "utf-8")
    monkeypatch.setenv("CONTRACT_CONTROL_TOKEN", "another")
    done = contract("check", *ONE_RULE, cwd=tmp_path)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr


def test_no_proxy_of_the_callers_stands_between(tmp_path, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    done = contract("check", *ONE_RULE, cwd=tmp_path)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr


def test_options_for_pytest_in_the_environment_change_nothing(monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    assert contract("check", *ONE_RULE).returncode == 0


def test_a_console_that_knows_no_chinese_gets_question_marks(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = contract("check", "--mutant", "lock.wrong-code", *ONE_RULE)
    assert (done.returncode, last_line(done)) == (1, "non-conformant")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_interrupted_is_inconclusive_and_leaves_no_process(number):
    process = subprocess.Popen(
        python("conformance", "check"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while len(children := _children(process.pid)) < 3:  # the server and two parts of the checks
        assert time.monotonic() < deadline, "the run does not start"
        assert process.poll() is None, "the run ended before it could be interrupted"
        time.sleep(0.02)
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 3, output + errors
    assert "interrupted" in output + errors
    assert (output + errors).splitlines()[-1] == "inconclusive"
    assert not [child for child in children if _runs(child)]


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return [int(child) for child in found]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[check]\nno-fuzz = 3\n", "[check] no-fuzz is a switch; write true or false"),
        ("[check]\nseed = [1]\n", "[check] seed takes one value"),
    ],
)
def test_a_value_of_another_kind_in_the_configuration_is_told(tmp_path, text, told):
    (tmp_path / "contract.toml").write_text(text)
    done = contract("check", cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr


def test_one_text_in_the_configuration_is_a_list_of_one(tmp_path):
    (tmp_path / "contract.toml").write_text('[check]\nno-fuzz = true\nonly = "RT-LOCK-03"\n')
    done = contract("check", cwd=tmp_path)
    assert (done.returncode, "1 rule in" in done.stdout) == (0, True)
