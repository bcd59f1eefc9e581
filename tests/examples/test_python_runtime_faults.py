"""The Python example's faults: what they name is there."""

import json
import subprocess
import sys

import pytest
from runtime_world import MAIN

import openapi
from conformance.examples.python_runtime.faults import FAULTS, NOT_FAULTS, listed
from conformance.examples.python_runtime.runtime import Runtime
from conformance.examples.python_runtime.variants import VARIANTS

CLIENT_ROWS = {
    f"CF-{number:02}"
    for numbers in (
        (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35),
        (37, 38, 40, 41, 43, 44, 46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62),
    )
    for number in numbers
}
PARTS = {name: part for name, part in vars(Runtime).items() if isinstance(part, type)}


def test_faults_and_variants_can_be_listed():
    for option, made in (("--list-faults", FAULTS), ("--list-variants", VARIANTS)):
        command = [sys.executable, str(MAIN), option]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
        assert [entry["name"] for entry in json.loads(answer.stdout)] == list(made)


@pytest.mark.parametrize(
    "option", [["--fault", "none"], ["--variant", "none"], ["--fault", "hot-polling", "--variant", "x"]]
)
def test_what_there_is_not_is_refused(option):
    answer = subprocess.run([sys.executable, str(MAIN), *option], capture_output=True, text=True, cwd="/")
    assert answer.returncode == 2
    assert len(answer.stderr.splitlines()) == 1


def test_faults_name_rules_that_are_kept_by_clients():
    register = openapi.load("runtime-api").register
    for fault in listed():
        assert fault["doc"], fault
        assert fault["needs"], fault
        assert 1 <= len(fault["rules"]) <= 3, fault
        for rule in fault["rules"]:
            assert register[rule].bound in ("client", "both"), fault


def test_every_row_of_a_client_is_a_fault_or_says_why_not():
    played = {row for fault in FAULTS.values() for row in fault.rows}
    assert played | set(NOT_FAULTS) == CLIENT_ROWS
    assert played & set(NOT_FAULTS) == set()
    assert len(FAULTS) >= 60


@pytest.mark.parametrize("made", [*FAULTS.values(), *VARIANTS.values()], ids=lambda made: made.name)
def test_what_is_changed_is_there_to_be_changed(made):
    changed = {name: getattr(made, name) for name in PARTS if getattr(made, name) is not PARTS[name]}
    own = [name for name in ("configured", "signalled", "listen_to_signals", "main", "stop") if name in vars(made)]
    assert changed or own or getattr(made, "changes", None)
    for name, part in changed.items():
        layers = part.__mro__[: part.__mro__.index(PARTS[name])]
        assert any(
            attribute in dir(PARTS[name]) for layer in layers for attribute in vars(layer) if attribute[0] != "_"
        )
