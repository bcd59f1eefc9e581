"""The recording of a run as HTTP Archive 1.2, which browsers read, and which ``--recording`` judges again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.results import Run
    from openapi.redaction import Redactor


def to_har(run: Run, redactor: Redactor) -> str:
    """All that was recorded, without secrets. Raises ``ValueError`` for a run that recorded nothing."""
    if run.log is None:
        raise ValueError("this run has no recording")
    return json.dumps({"log": redactor.data(run.log)}, ensure_ascii=False) + "\n"
