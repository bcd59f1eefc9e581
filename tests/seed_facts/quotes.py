"""Whether every quotation of the seeds occurs in them: ``python tests/seed_facts/quotes.py FOLDER``.

The seeds are no part of the repository: FOLDER holds them as ``000*.txt``, ``002*.txt``, ``003*.txt``. Looked up are
the words of every fact, every printed request and response (both as they stand), and every piece of a seed rule's
``sentenceZh`` (white space apart).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seed_reading import HERE, example_files, facts
from seed_spec import load

if TYPE_CHECKING:
    from collections.abc import Iterator

REGISTERS = ("runtime-api.requirements.yaml", "agent-hub.requirements.yaml")


def plain(text: str) -> str:
    """The text with one space for each run of white space, as a register writes rows of tables and lines of code."""
    return " ".join(text.split())


def missing(seeds: dict[str, str]) -> Iterator[str]:
    """Each quotation that its seed does not have, with its place."""
    for fact in facts():
        if fact.zh not in seeds[fact.seed]:
            yield f"fact {fact.name}: {fact.zh}"
    for file in example_files():
        if not any((HERE / "examples" / file).read_text(encoding="utf-8").strip() in text for text in seeds.values()):
            yield f"examples/{file}"
    for register in REGISTERS:
        for name, rule in load(register).items():
            texts = [plain(seeds[source.partition(" ")[0]]) for source in rule["source"] if rule["level"] == "seed"]
            for piece in rule["sentenceZh"].split(" / ") if texts else ():
                if not any(piece in text for text in texts):
                    yield f"{register} {name}: {piece}"


if __name__ == "__main__":
    files = Path(sys.argv[1]).glob("0*.txt")
    found = list(missing({path.name[:3]: path.read_text(encoding="utf-8") for path in files}))
    sys.exit("\n".join(found) if found else 0)
