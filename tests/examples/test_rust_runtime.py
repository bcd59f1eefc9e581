"""The example Runtime in Rust: its own tests pass against our mock, and it is conformant."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import conformance
from conformance.processes import python
from tests.services import lack, require

CRATE = Path(conformance.__file__).parent / "examples" / "rust-runtime"


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A folder for what cargo builds, with all crates at hand."""
    require("cargo")
    folder = tmp_path_factory.mktemp("rust")
    fetched = cargo(folder, "fetch")
    if fetched.returncode:
        lack(f"crates of the example ({fetched.stderr.strip().splitlines()[-1]})")
    return folder


def cargo(target: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run cargo on the example; its lock file stays out of the repository, and so out of the source."""
    ours = {"CARGO_TARGET_DIR": str(target), "CONTRACT_COMMAND": shlex.join([sys.executable, "-m", "conformance"])}
    return subprocess.run(
        ["cargo", *arguments],
        cwd=CRATE,
        env={**os.environ, **ours},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture(scope="module")
def built(target):
    """The tests of the example, run: with them its program is built."""
    return cargo(target, "test", "--no-default-features")


def test_its_own_tests_pass_against_the_mock(built):
    assert built.returncode == 0, built.stdout + built.stderr
    assert "test result: ok" in built.stdout


def test_it_is_conformant(built, target, tmp_path):
    assert built.returncode == 0, built.stderr
    report = tmp_path / "report.json"
    program = target / "debug" / "example-runtime"
    command = python("conformance", "check", "runtime", "--timing", "lock=3", "--report", f"json={report}")
    done = subprocess.run([*command, "--", str(program)], capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "conformant"), done.stdout
    summary = json.loads(report.read_text("utf-8"))["summary"]
    assert summary["passed"] >= 140
