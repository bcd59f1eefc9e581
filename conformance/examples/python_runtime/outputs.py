"""Reading what the model wrote; the hash of an output."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from conformance.examples.python_runtime.failures import JobFailed

Output = dict[str, Any]
_LISTS = {  # by version: a list, the texts that each of its items needs, and whether it has to be there
    "analysis_output_v1": (("weakPoints", ("name",), False), ("recommendations", ("action",), False)),
    "quiz_output_v1": (("questions", ("question", "answer"), True),),
    "flashcard_output_v1": (("cards", ("front", "back"), True),),
}


class Outputs:
    """Judges outputs by the schema of their version."""

    def read(self, text: str, version: str) -> Output:
        """The output in a text. Raises :class:`JobFailed` with `INVALID_SCHEMA`."""
        try:
            output = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            raise JobFailed("INVALID_SCHEMA", "The model's answer is no JSON") from None
        if not isinstance(output, dict):
            raise JobFailed("INVALID_SCHEMA", "The model's answer is no JSON object")
        for name, texts, needed in _LISTS[version]:
            if (name in output or needed) and not _good_list(output.get(name), texts, needed):
                raise JobFailed("INVALID_SCHEMA", f"The model's answer is not of {version}: {name}")
        return output

    def digest(self, output: Output, attempt_no: int) -> str:
        """The hash of an output, and of nothing else: the attempt plays no part (RT-RES-81)."""
        del attempt_no
        text = json.dumps(output, sort_keys=True, separators=(",", ":"))
        return f"sha256-{hashlib.sha256(text.encode()).hexdigest()}"


def _good_list(value: Any, texts: tuple[str, ...], needed: bool) -> bool:
    if not isinstance(value, list) or (needed and not value):
        return False
    return all(
        isinstance(item, dict) and all(isinstance(item.get(t), str) and item[t] for t in texts) for item in value
    )


def _refuse(constant: str) -> None:
    raise ValueError(constant)
