"""Generated mutants: each changes one place of a contract's text, and enough of them come out of it."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path

import pytest
import yaml

import openapi
from openapi.documents import at_pointer
from openapi.mutation import APIS, KINDS, edits, generated
from openapi.mutation import standing as standings
from openapi.mutation.standing import api_of, declared, mutated, standing, unborn

COUNTS = Path(standings.__file__).with_name("counts.yaml")
MOST_EQUIVALENT = 0.15


def without_rules(api):
    return {key: value for key, value in openapi.load(api).document.items() if key != "x-requirements"}


def test_there_are_as_many_of_each_kind_as_the_table_says():
    table = yaml.safe_load(COUNTS.read_text("utf-8"))
    found = Counter((edit.kind, api_of(edit.id)) for edit in generated().values())
    now = {kind: {api: found[kind, api] for api in APIS} for kind in KINDS}
    fewer = {kind: counts for kind, counts in table.items() if any(now[kind][api] < counts[api] for api in APIS)}
    assert not fewer, "the counts of counts.yaml may only grow"
    assert now == table, "more mutants than before: write the new counts down in counts.yaml"


def test_each_knows_its_place_and_the_rules_stated_there():
    for edit in generated().values():
        contract = openapi.load(api_of(edit.id))
        assert edit.line > 1, edit.id
        assert edit.rules, edit.id
        assert all(rule in contract.register for rule in edit.rules), edit.id
        holder = edit.pointer.rpartition("/")[0]
        assert at_pointer(contract.document, holder) is not None, edit.id


@pytest.mark.parametrize("api", APIS)
def test_each_changes_the_document_and_nothing_but_its_own(api):
    document = without_rules(api)
    before = copy.deepcopy(document)
    for edit in edits(openapi.load(api)):
        changed = copy.deepcopy(before)
        edit.change(changed)
        assert changed != before or edit.told is not None, edit.id  # codes that no operation documents
    assert document == before


def test_ids_are_the_same_each_time():
    for api in APIS:
        assert [edit.id for edit in edits(openapi.load(api))] == [id_ for id_ in generated() if api_of(id_) == api]


@pytest.mark.parametrize(
    ("id_", "pointer", "was", "becomes"),
    [
        ("gen.rt.number.lockTime.more", "/x-state-machine/constants/lockTime/seconds", 60, 61),
        ("gen.rt.number.lockTime.less", "/x-state-machine/constants/lockTime/seconds", 60, 59),
        ("gen.hub.number.backoff.1.less", "/x-state-machine/constants/backoff/seconds/1", 120, 119),
        (
            "gen.rt.limit.PollRequest.limit.maximum.more",
            "/components/schemas/PollRequest/properties/limit/maximum",
            50,
            51,
        ),
        ("gen.rt.status.LOCK_NOT_HELD.410", "/x-errors/LOCK_NOT_HELD/status", 409, 410),
        ("gen.rt.target.fail.final.cancelled", "/x-state-machine/operations/failJob/steps/3/to", "failed", "cancelled"),
    ],
)
def test_what_some_of_them_change(id_, pointer, was, becomes):
    contract = openapi.load(api_of(id_))
    assert at_pointer(contract.document, pointer) == was
    assert at_pointer(mutated(generated()[id_], contract).document, pointer) == becomes
    assert at_pointer(contract.document, pointer) == was


@pytest.mark.parametrize(
    "id_",
    [
        "gen.rt.condition.held.2",  # no lock is judged after it lapsed: its timer fires first
        "gen.rt.guard.lock",  # a pending job has no lock
        "gen.rt.source-added.heartbeat.pending",  # who holds no lock was refused before
        "gen.rt.steps-swapped.result.other.result.too-late",  # of different states
        "gen.hub.effect-dropped.anew.result",  # a failed job has none
    ],
)
def test_a_truth_table_tells_that_nothing_changes(id_):
    assert standing(id_).by == "table"
    assert "truth table" in standing(id_).equivalent


@pytest.mark.parametrize(
    ("id_", "told"),
    [
        ("gen.hub.branch.node-lost.1", "node-lost has the same instant"),  # what is counted from null is null
        ("gen.hub.condition.round-limit.1", "round-limit has the same instant"),
        ("gen.hub.limit.IdempotencyKey.minLength.less", "the pattern"),  # which asks for a sign
    ],
)
def test_a_table_of_instants_or_lengths_tells_that_nothing_changes(id_, told):
    assert standing(id_).by == "table"
    assert told in standing(id_).equivalent


@pytest.mark.parametrize(
    "id_",
    [
        "gen.rt.condition.held.1",
        "gen.rt.condition.held.4",
        "gen.rt.guard.fail.cancelled",
        "gen.rt.refusal.heartbeat.held",
        "gen.rt.boundary.held.1",
        "gen.rt.steps-swapped.result.held.result.unwanted",
        "gen.hub.guard.cancel.waiting",
        "gen.rt.number.lockTime.more",
        "gen.hub.branch.node-lost.2",
        "gen.hub.condition.round-limit.2",
        "gen.hub.branch.roundLimit.1",
        "gen.hub.boundary.round-limit.at",
        "gen.hub.limit.JobItem.externalId.minLength.less",
        "gen.hub.limit.IdempotencyKey.minLength.more",
    ],
)
def test_a_truth_table_tells_no_lies(id_):
    assert standing(id_).counts


def test_some_can_not_be_built():
    assert standing("gen.rt.copy.rerun.userId").counts
    stillborn = [id_ for id_ in generated() if standing(id_).stillborn is not None]
    assert 0 < len(stillborn) < 60


def test_what_is_declared_equivalent_is_there_has_an_argument_and_is_no_other_way_known_to_be():
    for id_, text in declared().items():
        assert id_ in generated(), f"{id_}: no such mutant any more; take it out of equivalents.yaml"
        assert len(text) > 20, f"{id_}: say why it can't be told from the original"
        assert standing(id_).by == "declared", f"{id_}: {standing(id_)} says so already"


def test_what_is_declared_stillborn_is_there_and_says_why():
    for id_, text in unborn().items():
        assert id_ in generated(), f"{id_}: no such mutant any more; take it out of stillborn.yaml"
        assert len(text) > 20, f"{id_}: say why nothing can be asked of it"
        assert standing(id_).stillborn == text


def test_few_are_equivalent():
    alive = [id_ for id_ in generated() if standing(id_).stillborn is None]
    equivalent = [id_ for id_ in alive if standing(id_).equivalent is not None]
    assert len(equivalent) <= MOST_EQUIVALENT * len(alive)
