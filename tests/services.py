"""What tests need beside Python, and what README shows them: one place for both."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

README = Path(__file__).parents[1] / "README.md"


def needs(*programs: str) -> pytest.MarkDecorator:
    """A mark: the test runs these programs. Where one is missing the test is skipped by its name, or fails (`lack`)."""
    return pytest.mark.needs(*programs)


def require(*programs: str) -> None:
    """Go on where all the programs are there, otherwise `lack` the missing ones: what `needs` is to a fixture."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        lack(", ".join(missing))


def lack(what: str) -> NoReturn:
    """Skip the test that needs this; with CONTRACT_REQUIRE_ALL=1, as CI sets it, fail it: there nothing goes unrun.

    But for what CI says itself that it can't have: CONTRACT_MAY_LACK, with commas.
    """
    lacked = {name.split()[0] for name in what.partition(" (")[0].split(", ")}
    excused = lacked <= set(os.environ.get("CONTRACT_MAY_LACK", "").split(","))
    if os.environ.get("CONTRACT_REQUIRE_ALL") == "1" and not excused:
        pytest.fail(f"needs {what}, and CONTRACT_REQUIRE_ALL=1 lets nothing be skipped", pytrace=False)
    pytest.skip(f"needs {what}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of `needs`."""
    config.addinivalue_line("markers", "needs(*programs): skipped by name, or failing, where a program is missing")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Judge the marks of `needs` before a fixture starts anything."""
    require(*(program for mark in item.iter_markers("needs") for program in mark.args))


def readme_blocks(*sections: str, language: str, url: str) -> list[str]:
    """The code blocks of README's sections (their titles) in one language, in that order, for the mock at ``url``."""
    texts = dict(
        re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
    blocks = [
        block
        for title in sections
        for block in re.findall(rf"^```{language}\n(.*?)^```", texts[title], re.MULTILINE | re.DOTALL)
    ]
    assert blocks, f"README shows no {language} in {sections}"
    return [re.sub(r"(http://)?localhost:8080", url, block) for block in blocks]
