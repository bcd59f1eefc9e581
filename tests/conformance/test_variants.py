"""Builds that are right in another way than the reference (``variants.py``, ``hub_variants.py``) are conformant.

No check cries wolf.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from serve_variants import CATALOGUE
from test_command import contract, last_line
from variant_traits import FUZZED

KEY = "key-of-the-variants"
SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdmFyaWFudHM="
SERVE = Path(__file__).with_name("serve_variants.py")
SIDE_BY_SIDE = 3  # some of them wait
KEYS = {"runtime-api": "--api-key", "agent-hub": "--token"}
BUILDS = [f"{system}/{build}" for system, variants in CATALOGUE.items() for build in variants.builds]
TRAITS = [f"{system}/{trait}" for system, variants in CATALOGUE.items() for trait in variants.traits]
SLOW = [f"{system}/{name}{FUZZED}" for system, variants in CATALOGUE.items() for name in variants.fuzzed_slowly]


SEEDS = range(2, 11)
"""Beside the usual one: ten in all."""


def check(name: str, url: str, *more: str) -> subprocess.CompletedProcess[str]:
    system, _, build = name.partition("/")
    variants = CATALOGUE[system]
    states = f"{url}/__control__/provider-states/{system}"
    arguments = ["--base-url", url, "--provider-states", states, KEYS[system], KEY]
    arguments += [*variants.arguments(build), *more]
    if not variants.is_fuzzed(build):
        arguments.append("--no-fuzz")
    secret = variants.secret(build, SECRET)
    if system == "agent-hub" and secret is not None:
        arguments += ["--webhook-secret", secret]
    return contract("check", system, *arguments, timeout=400)


@contextlib.contextmanager
def serving(names: list[str]) -> Iterator[dict[str, str]]:
    """The URL of each build that is named, while the block runs."""
    with tempfile.TemporaryFile("w+") as errors:  # what nobody reads would fill a pipe
        server = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SERVE), KEY, SECRET, *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SERVE.parents[2])},
        )
        line = server.stdout.readline()
        if not line:
            server.wait(10)
            errors.seek(0)
            raise AssertionError(errors.read())
        yield json.loads(line)
        server.communicate(timeout=10)


@pytest.fixture(scope="module")
def checked(request):
    """The check of each variant that is asked for, some at a time."""
    items = (item for item in request.session.items if item.path == Path(__file__) and "checked" in item.fixturenames)
    names = [item.callspec.params["name"] for item in items]
    with serving(names) as urls, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        runs: dict[str, Future[subprocess.CompletedProcess[str]]] = {
            name: pool.submit(check, name, urls[name]) for name in names
        }
        yield runs
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_that_is_right_in_another_way_is_conformant(checked, name):
    done = checked[name].result()
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("name", TRAITS)
def test_each_trait_alone_is_conformant(checked, name):
    done = checked[name].result()
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("name", BUILDS)
def test_a_build_is_conformant_with_every_seed(name):
    with serving([name]) as urls:
        for seed in SEEDS:
            done = check(name, urls[name], "--seed", str(seed))
            assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("name", SLOW)
def test_what_is_late_by_right_is_conformant_to_generated_requests(checked, name):
    done = checked[name].result()
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr


@pytest.mark.parametrize("system", CATALOGUE)
def test_every_trait_is_in_a_build(system):
    variants = CATALOGUE[system]
    shown = {trait for build in variants.builds.values() for trait in build}
    assert shown | set(variants.slow) == set(variants.traits)
