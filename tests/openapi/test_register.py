"""The register: which rules there are, where the specification states them, and how they are selected."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest

import openapi
from openapi.register import LEVELS

if TYPE_CHECKING:
    from pathlib import Path

CONTRACT = openapi.load("runtime-api")
REGISTER = CONTRACT.register
LINES = CONTRACT.path.read_text(encoding="utf-8").splitlines()

SPEC = """\
openapi: 3.0.3
paths:
  /a:
    get:
      x-rules: [XY-A-01,
                XY-B-01]
      parameters:
        - name: q
          x-rules: [XY-A-02]
components:
  schemas:
    A: {type: string, x-rules: [XY-A-01]}
x-errors:
  GONE: {x-rules: [XY-A-01, XY-A-02]}
x-requirements:
  XY-B-01: &rule
    {level: seed, bound: server, verify: [http, time], source: [s], sentence: One., sentenceZh: 一。}
  XY-A-01: *rule
  XY-A-02:
    <<: *rule
    level: decision
    superseded: by a later page
    notObservableInPart: half of it
  XY-A-10: *rule
"""


@pytest.fixture
def contract(tmp_path: Path) -> openapi.Contract:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return openapi.load("spec", path)


def test_rules_stand_in_the_registers_order(contract: openapi.Contract) -> None:
    assert list(contract.register) == ["XY-B-01", "XY-A-01", "XY-A-02", "XY-A-10"]
    assert len(contract.register) == 4


def test_a_rule_has_all_that_the_register_says(contract: openapi.Contract) -> None:
    rule = contract.register["XY-A-02"]
    assert (rule.id, rule.area, rule.level, rule.bound) == ("XY-A-02", "XY-A", "decision", "server")
    assert (rule.verify, rule.source, rule.sentence, rule.sentence_zh) == (("http", "time"), ("s",), "One.", "一。")
    assert (rule.superseded, rule.superseded_in_part) == ("by a later page", None)
    assert (rule.not_observable, rule.not_observable_in_part, rule.reason) == (None, "half of it", None)


def test_places_bear_file_line_and_pointer_in_the_order_of_the_file(contract: openapi.Contract) -> None:
    places = {id_: [(place.line, place.pointer) for place in rule.places] for id_, rule in contract.register.items()}
    assert places == {
        "XY-A-01": [(4, "/paths/~1a/get"), (12, "/components/schemas/A"), (14, "/x-errors/GONE")],
        "XY-A-02": [(8, "/paths/~1a/get/parameters/0"), (14, "/x-errors/GONE")],
        "XY-A-10": [],
        "XY-B-01": [(4, "/paths/~1a/get")],
    }
    assert {place.file for rule in contract.register.values() for place in rule.places} == {contract.path}


@pytest.mark.parametrize(
    ("only", "skip", "selected"),
    [
        ([], [], ["XY-B-01", "XY-A-01", "XY-A-02", "XY-A-10"]),
        (["XY-A-*"], [], ["XY-A-01", "XY-A-02", "XY-A-10"]),
        (["XY-A-0?"], [], ["XY-A-01", "XY-A-02"]),
        (["XY-A-0[12]"], ["*-02"], ["XY-A-01"]),
        (["XY-A-10", "XY-B-01"], [], ["XY-B-01", "XY-A-10"]),
        ([], ["XY-A-*"], ["XY-B-01"]),
        (["XY-A"], [], []),
        (["xy-a-01"], [], []),
        (["*"], ["*"], []),
    ],
)
def test_select_by_globs(contract: openapi.Contract, only: list[str], skip: list[str], selected: list[str]) -> None:
    assert [rule.id for rule in contract.register.select(only, skip)] == selected


def test_a_rule_that_is_stated_and_not_registered(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("x-rules: [XY-A-02]", "x-rules: [XY-A-03]"), encoding="utf-8")
    contract = openapi.load("spec", path)
    with pytest.raises(openapi.SpecError) as raised:
        contract.register  # noqa: B018
    assert str(raised.value) == (
        f"{path}:9: `XY-A-03` is not in the register at /paths/~1a/get/parameters/0/x-rules "
        "(add it to spec.yaml or correct the id)"
    )


def test_a_rule_stated_in_a_file_that_is_referred_to_is_placed_at_the_reference(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(
        SPEC.replace("    A: {type: string, x-rules: [XY-A-01]}", "    A: {$ref: 'more.yaml#/B/A'}"), encoding="utf-8"
    )
    (tmp_path / "more.yaml").write_text("B:\n  A: {type: string, x-rules: [XY-A-01]}\n", encoding="utf-8")
    places = openapi.load("spec", path).register["XY-A-01"].places
    assert [(place.file.name, place.line) for place in places] == [
        ("spec.yaml", 4),
        ("spec.yaml", 12),
        ("spec.yaml", 14),
    ]


class TestRuntimeApi:
    def test_every_place_shows_the_rule(self) -> None:
        """The rule's id stands in the value that begins in the place's line."""
        for rule in REGISTER.values():
            for place in rule.places:
                assert place.file == CONTRACT.path
                assert rule.id in within(place.line), f"{rule.id} is not at {place.file}:{place.line}"

    def test_every_rule_named_in_a_list_is_placed(self) -> None:
        text = "\n".join(line.partition(" #")[0] for line in LINES)
        lists = re.findall(r"(?:x-rules|requirements): \[([^\]]*)\]", text)
        named = {id_.strip() for ids in lists for id_ in ids.split(",")}
        assert {id_ for id_, rule in REGISTER.items() if rule.places} == named

    def test_levels_and_parties_are_the_known_ones(self) -> None:
        assert {rule.level for rule in REGISTER.values()} == set(LEVELS)
        assert {rule.bound for rule in REGISTER.values()} <= {"server", "client", "both", "data"}
        assert {word for rule in REGISTER.values() for word in rule.verify} <= {
            "http",
            "traffic",
            "time",
            "admin",
            "none",
        }

    def test_ids_from_50_up_are_decisions(self) -> None:
        for rule in REGISTER.values():
            assert (rule.level == "decision") == (int(rule.id.rpartition("-")[2]) >= 50), rule.id

    def test_every_rule_has_both_sentences_and_a_source(self) -> None:
        assert [rule.id for rule in REGISTER.values() if not (rule.sentence and rule.sentence_zh and rule.source)] == []

    @pytest.mark.parametrize(
        ("id_", "pointer"),
        [
            ("RT-LOCK-13", "/x-state-machine/operations/lockJob/steps/1"),
            ("RT-TIME-01", "/x-state-machine/constants/lockTime"),
            ("RT-SM-13", "/x-state-machine/states/succeeded"),
            ("RT-POLL-05", "/components/schemas/PollRequest/properties/limit"),
            ("RT-ERR-06", "/x-errors/JOB_NOT_FOUND"),
        ],
    )
    def test_known_places(self, id_: str, pointer: str) -> None:
        assert pointer in [place.pointer for place in REGISTER[id_].places]


def within(line: int) -> str:
    """The text of the value that begins in a line: the line and all that is indented deeper than its dash or key."""
    depth = len(LINES[line - 1]) - len(LINES[line - 1].lstrip(" "))
    deeper = itertools.takewhile(
        lambda text: len(text) - len(text.lstrip(" ")) > depth or not text.strip(), LINES[line:]
    )
    return "\n".join([LINES[line - 1], *deeper])
