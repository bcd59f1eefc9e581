"""Broken specifications: one textual replacement of the packaged one each, and what lint has to say of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openapi.contract import SPECS
from openapi.lint import lint

if TYPE_CHECKING:
    from pathlib import Path

    from openapi import Problem

NAMES = ("runtime-api", "agent-hub")
TEXTS = {name: (SPECS / f"{name}.yaml").read_text(encoding="utf-8") for name in NAMES}
REGISTERS = {name: (SPECS / f"{name}.requirements.yaml").read_text(encoding="utf-8") for name in NAMES}
RULE = "&rule {level: seed, bound: both, verify: [http], source: [A1], sentence: It MUST., sentenceZh: 必须。}"
#: The same ids with one text for all: faults of the specification do not depend on it, and it is read in no time.
SHORT_REGISTERS = {
    name: f"EXAMPLE: {RULE}\n"
    + "".join(f"{id_}: *rule\n" for id_ in re.findall(r"^([A-Z]+-[A-Z]+-\d+):", text, re.MULTILINE))
    for name, text in REGISTERS.items()
}
SPEC, REGISTER = TEXTS["runtime-api"], REGISTERS["runtime-api"]


@dataclass(frozen=True)
class Fault:
    """One textual replacement in the packaged specification, and what lint has to say of it."""

    old: str
    new: str
    message: str
    mend: str
    at: str = ""
    """Text in the line that the problem names; by default it is the first line that changed."""
    beside: tuple[str, ...] = ()
    """Messages of further problems that the same change causes."""
    spec: str = "runtime-api"


def write(folder: Path, text: str, register: str | None = None, spec: str = "runtime-api") -> Path:
    path = folder / f"{spec}.yaml"
    path.write_text(text, encoding="utf-8")
    register = SHORT_REGISTERS[spec] if register is None else register
    (folder / f"{spec}.requirements.yaml").write_text(register, encoding="utf-8")
    return path


def line_of(fault: Fault, text: str) -> int:
    if fault.at:
        assert text.count(fault.at) == 1, f"`{fault.at}` is to stand once in the broken specification"
        return text[: text.index(fault.at)].count("\n") + 1
    pairs = zip(TEXTS[fault.spec].splitlines(), text.splitlines(), strict=False)
    return next(number for number, (before, after) in enumerate(pairs, 1) if before != after)


def check(problems: list[Problem], path: Path, line: int, fault: Fault) -> None:
    shown = "\n".join(map(str, problems))
    found = [problem for problem in problems if fault.message in problem.message]
    assert found, f"expected `{fault.message}`, got:\n{shown}"
    assert {(problem.file, problem.line) for problem in found} == {(path, line)}, shown
    assert all(fault.mend in problem.mend for problem in found), shown
    assert f"{path}:{line}: {found[0].message}" in shown
    assert f"({found[0].mend})" in shown
    others = [
        problem for problem in problems if not any(text in problem.message for text in (fault.message, *fault.beside))
    ]
    assert not others, "\n".join(map(str, others))


def verify(fault: Fault, folder: Path) -> None:
    """Break the specification so and compare what lint says: place, message, mend, and nothing else."""
    assert fault.old in TEXTS[fault.spec], "the replacement no longer fits the packaged specification"
    text = TEXTS[fault.spec].replace(fault.old, fault.new, 1)
    path = write(folder, text, REGISTERS[fault.spec] if "stated nowhere" in fault.message else None, fault.spec)
    check(lint(path), path, line_of(fault, text), fault)
