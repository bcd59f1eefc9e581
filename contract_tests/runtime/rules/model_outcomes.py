"""What came of a model call, as the Runtime could know it, and what it may report then (RT-RETRY-*)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.rules.reporting import WIRE, code_of, first, time_is_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

GOOD, TEXT, NO_COMPLETION, UNCLEAR = "good", "unfit text", "no completion", "unclear"
TIMEOUT, BROKEN, CUT_STREAM = "timeout", "broken connection", "cut stream"
KEY, UNPAID, SLOW, LIMITED, REFUSED, DOWN = "401", "402 or 403", "408", "429", "another 4xx", "5xx"

CODES: dict[str, frozenset[str]] = {
    TEXT: frozenset({"INVALID_SCHEMA"}),
    NO_COMPLETION: frozenset({"INVALID_SCHEMA", "TEMPORARY_PROVIDER_ERROR"}),
    TIMEOUT: frozenset({"MODEL_TIMEOUT", "JOB_TIMEOUT"}),
    BROKEN: frozenset({"NETWORK_ERROR"}),
    CUT_STREAM: frozenset({"NETWORK_ERROR", "TEMPORARY_PROVIDER_ERROR", "INVALID_SCHEMA"}),
    KEY: frozenset({"INVALID_CREDENTIAL"}),
    UNPAID: frozenset({"INVALID_CREDENTIAL"}),
    SLOW: frozenset({"MODEL_TIMEOUT"}),
    LIMITED: frozenset({"MODEL_RATE_LIMIT"}),
    DOWN: frozenset({"TEMPORARY_PROVIDER_ERROR"}),
}
"""The codes that fit an outcome. Of what is not here any fits."""
NOTHING_TO_USE = frozenset({TIMEOUT, BROKEN, CUT_STREAM, KEY, UNPAID, SLOW, LIMITED, REFUSED, DOWN})
"""Outcomes that give no output."""
_CUTS = {"close", "reset", "empty"}


def outcome(call: Call, by: float | None = None) -> str:
    """What the Runtime could know of a model call at an instant (None: when it ended)."""
    if call.lost or (by is not None and call.ended > by + WIRE):
        return _unanswered(call)
    if call.status >= 400:
        return _REFUSALS.get(call.status, DOWN if call.status >= 500 else REFUSED)
    if call.status >= 300 or call.answer_cut:
        return UNCLEAR
    return _of_text(completion(call))


_REFUSALS = {401: KEY, 402: UNPAID, 403: UNPAID, 408: SLOW, 429: LIMITED}


def _unanswered(call: Call) -> str:
    part = (call.fault or {}).get("got") == "part"
    kinds = causes(call)
    if kinds & _CUTS:
        return CUT_STREAM if part and call.get("stream") is True else BROKEN
    return UNCLEAR if part or not kinds else TIMEOUT


def causes(call: Call) -> set[str]:
    """The kinds of what was done to a model call: of its script's outcome, and of fault plans."""
    plans = [plan.get("kind") for plan in (call.fault or {}).get("plans", ()) if isinstance(plan, dict)]
    return {kind for kind in (call.outcome, *plans) if isinstance(kind, str)}


def completion(call: Call) -> str | None:
    """The text of a completion, plain or streamed; None where the answer is no completion."""
    if isinstance(call.answer, dict):
        return _text_of(call.answer, "message")
    parts = []
    for line in call.answer_text.splitlines():
        if line.startswith("data:") and line[5:].strip() != "[DONE]":
            chunk = _json(line[5:])
            if not isinstance(chunk, dict) or not isinstance(chunk.get("choices"), list):
                return None
            parts.append(_text_of(chunk, "delta") or "")
    return "".join(parts) if parts else None


def _text_of(answer: dict[str, Any], name: str) -> str | None:
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get(name) if isinstance(choice, dict) else None
    text = message.get("content") if isinstance(message, dict) else None
    return text if isinstance(text, str) else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_text(text: str | None) -> str:
    """Only what nobody could take for an output is unfit: an object with something around it may be taken."""
    if text is None:
        return NO_COMPLETION
    try:
        return GOOD if isinstance(json.loads(text), dict) else TEXT
    except (ValueError, RecursionError):
        pass
    start = text.lstrip().removeprefix("```json").removeprefix("```").lstrip()
    if start.startswith("{"):
        return UNCLEAR if _object_at(start, 0) else TEXT
    inside = any(_object_at(text, i) for i, letter in enumerate(text) if letter == "{")
    return UNCLEAR if inside else TEXT


def _object_at(text: str, at: int) -> bool:
    try:
        return isinstance(json.JSONDecoder().raw_decode(text, at)[0], dict)
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True, slots=True)
class Told:
    """A hold's first report beside the last model call before it."""

    hold: Hold
    report: Call
    last: Call
    kind: str
    """The outcome of ``last``."""
    earlier: tuple[str, ...]
    """Outcomes of the calls before."""

    @property
    def result(self) -> bool:
        """Whether a success was reported."""
        return self.report.operation == "submitResult"

    @property
    def after(self) -> str:
        """For a sentence."""
        return _WORDS.get(self.kind, f"{self.last.status} of the model")

    def fits(self, kind: str) -> bool:
        """Whether the report's code (not its flag) fits an outcome, or that the job's time had run out."""
        if self.result:
            return kind not in NOTHING_TO_USE and kind not in (TEXT, NO_COMPLETION)
        code = code_of(self.report)
        if code == "JOB_TIMEOUT" and time_is_up(self.hold, self.report.sent):
            return True
        return kind not in CODES or code in CODES[kind]


_WORDS = {
    TIMEOUT: "a model call that got no answer in time",
    BROKEN: "a model call whose connection broke",
    CUT_STREAM: "a model call whose connection broke",
    TEXT: "an answer of the model whose text is no JSON object",
    NO_COMPLETION: "a 2xx of the model that is no completion",
    GOOD: "a good completion",
}


def _decides(call: Call) -> bool:
    """Whether what became of a call beside the model's may have decided what is reported: its inputs, or a refusal."""
    if call.operation in ("getSnapshot", "resolveCredential"):
        return not call.ok
    return call.operation == "heartbeatJob" and call.heard and 400 <= call.status < 500


def told(history: History) -> Iterator[Told]:
    """Each hold whose first report tells what came of its model calls."""
    for hold in history.holds:
        report = first(history, hold)
        calls = [call for call in hold.model_calls if report is not None and call.sent < report.sent]
        calls = [call for call in calls if call.resolve is not None or call.key is not None]
        if report is None or not calls:
            continue
        if any(_decides(call) for call in hold.calls if calls[-1].sent < call.ended < report.sent):
            continue
        kinds = [outcome(call, report.sent) for call in calls]
        yield Told(hold, report, calls[-1], kinds[-1], tuple(kinds[:-1]))
