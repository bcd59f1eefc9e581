"""Builds that are right in another way than the reference (``variants.py``) are conformant: no check cries wolf."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from test_command import contract, last_line
from variants import BUILDS, FUZZED, SLOW, TRAITS

KEY = "key-of-the-variants"
SERVE = Path(__file__).with_name("serve_variants.py")
SIDE_BY_SIDE = 3  # some of them wait
ARGUMENTS = dict.fromkeys(("in real time", "in fast time", "time flows", "time flies"), ("--timing", "sweep=0.5"))
"""Where time flows, the checks wait for real; these builds sweep at once."""


def check(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    states = f"{url}/__control__/provider-states/runtime-api"
    target = ("--base-url", url, "--provider-states", states, "--api-key", KEY)
    return contract("check", "runtime-api", *target, *arguments, timeout=300)


@pytest.fixture(scope="module")
def checked(request):
    """The check of each variant that is asked for, two at a time."""
    items = (item for item in request.session.items if item.path == Path(__file__) and "checked" in item.fixturenames)
    names = [item.callspec.params["name"] for item in items]
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SERVE), KEY, *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SERVE.parents[2])},
    )
    line = server.stdout.readline()
    if not line:
        raise AssertionError(server.communicate(timeout=10)[1])
    urls = json.loads(line)
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        runs: dict[str, Future[subprocess.CompletedProcess[str]]] = {
            name: pool.submit(check, urls[name], *ARGUMENTS.get(name, ()), *(() if name in FUZZED else ("--no-fuzz",)))
            for name in names
        }
        yield runs
        pool.shutdown(cancel_futures=True)
    server.communicate(timeout=10)


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_that_is_right_in_another_way_is_conformant(checked, name):
    done = checked[name].result()
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("name", TRAITS)
def test_each_trait_alone_is_conformant(checked, name):
    done = checked[name].result()
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr


def test_every_trait_is_in_a_build():
    shown = {trait for build in BUILDS.values() for trait in build}
    assert shown | set(SLOW) == set(TRAITS)
