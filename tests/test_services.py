"""A test whose program is missing is told by name, and in CI it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from services import readme_blocks

TESTS = """
import sys
import pytest
from services import needs, require


@pytest.fixture(autouse=True)
def started():
    print("a fixture ran")


@needs("no-such-program", "another-one")
def test_marked(): ...


def test_in_itself():
    require("no-such-program")


@pytest.mark.parametrize("n", [pytest.param(1, marks=needs("no-such-program"))])
def test_of_a_parameter(n): ...


@needs("ls")
def test_there(): ...
"""

PYTEST = (sys.executable, "-m", "pytest", "-q", "-s", "-rsfE", "--strict-markers", "-p", "services")


def run(tmp_path, **environment):
    (tmp_path / "test_needs.py").write_text(TESTS)
    given = {
        name: value for name, value in os.environ.items() if name not in ("CONTRACT_REQUIRE_ALL", "CONTRACT_MAY_LACK")
    }
    done = subprocess.run(
        [*PYTEST, str(tmp_path)],
        env={**given, "PYTHONPATH": str(Path(__file__).parent), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_missing_program_is_told_by_its_name(tmp_path):
    status, out = run(tmp_path)
    assert status == 0
    assert "1 passed, 3 skipped" in out
    assert "needs no-such-program, another-one" in out
    assert out.count("a fixture ran") == 2  # what a mark asks for is asked before any fixture


def test_where_all_must_run_a_missing_program_fails(tmp_path):
    status, out = run(tmp_path, CONTRACT_REQUIRE_ALL="1")
    assert status == 1
    assert "1 failed, 1 passed, 2 errors" in out
    assert "SKIPPED" not in out
    assert "needs no-such-program, another-one, and CONTRACT_REQUIRE_ALL=1" in out


def test_blocks_are_those_of_the_sections_in_their_order():
    url = "http://127.0.0.1:1"
    for title in ("Moving time", "Isolated worlds"):
        assert readme_blocks(title, language="sh", url=url)
    both = readme_blocks("Moving time", "Isolated worlds", language="sh", url=url)
    assert both == [
        *readme_blocks("Moving time", language="sh", url=url),
        *readme_blocks("Isolated worlds", language="sh", url=url),
    ]
    assert not any("localhost" in block for block in both)


def test_a_section_that_is_not_there_fails():
    with pytest.raises(KeyError):
        readme_blocks("No such title", language="sh", url="")
    with pytest.raises(AssertionError, match="shows no cobol"):
        readme_blocks("Moving time", language="cobol", url="")


def test_what_ci_can_not_have_is_skipped_there_too_and_nothing_else(tmp_path):
    status, out = run(tmp_path, CONTRACT_REQUIRE_ALL="1", CONTRACT_MAY_LACK="no-such-program,another-one")
    assert status == 0
    assert "3 skipped" in out
    status, _ = run(tmp_path, CONTRACT_REQUIRE_ALL="1", CONTRACT_MAY_LACK="another-one")
    assert status == 1
