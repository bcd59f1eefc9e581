"""What a run showed: figures, the verdict of each invariant, and the evidence; as a page and as data."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.load.recorder import Recorder
    from contract_tests.histories.operations import JobHistory, Operation
    from contract_tests.histories.verdicts import Invariant, Verdict

Word = Literal["conformant", "non-conformant", "inconclusive"]
SHOWN = 3
"""Of so many jobs the page shows the evidence, for each invariant."""


def verdict(invariants: Sequence[Invariant], problem: str | None) -> tuple[Word, int]:
    """The word and the exit status: what contradicts the contract does so, however the run ended."""
    words = {invariant.word for invariant in invariants}
    if "invalid" in words:
        return "non-conformant", 1
    return ("inconclusive", 3) if problem or "unknown" in words or not invariants else ("conformant", 0)


def quantile(values: Sequence[float], share: float) -> float:
    """The value that so large a share of sorted values does not exceed."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def figures(recorder: Recorder) -> list[dict[str, Any]]:
    """For each kind of request: how many, how they were answered, how long it took (milliseconds)."""
    found = []
    for name, answers in sorted(recorder.answers.items(), key=lambda item: -item[1].total()):
        seconds = sorted(recorder.seconds[name])
        found.append(
            {
                "operation": name,
                "requests": answers.total(),
                "p50Ms": round(quantile(seconds, 0.5) * 1000, 2),
                "p99Ms": round(quantile(seconds, 0.99) * 1000, 2),
                "answers": dict(answers.most_common()),
            }
        )
    return found


def remarks(recorder: Recorder) -> list[str]:
    """What a reader should know of answers that tell nothing."""
    told = [(answer, count) for answers in recorder.answers.values() for answer, count in answers.items()]
    broken = sum(count for answer, count in told if answer.startswith("5"))
    silent = sum(count for answer, count in told if answer == "no answer")
    found = [f"{broken} answers were 5xx: taken for lost, whatever they say"] if broken else []
    return [*found, f"{silent} requests got no answer"] if silent else found


def as_data(head: Mapping[str, Any], recorder: Recorder, invariants: Sequence[Invariant]) -> dict[str, Any]:
    """The run as plain data; ``head`` stands first."""
    requests = sum(answers.total() for answers in recorder.answers.values())
    seconds = sorted(value for values in recorder.seconds.values() for value in values)
    return {
        "schemaVersion": 1,
        "tool": {"name": "contract", "version": version("runtime-contract")},
        **head,
        "requests": requests,
        "requestsPerSecond": round(requests / head["durationSeconds"], 1) if head["durationSeconds"] else 0.0,
        "p50Ms": round(quantile(seconds, 0.5) * 1000, 2),
        "p99Ms": round(quantile(seconds, 0.99) * 1000, 2),
        "operations": figures(recorder),
        "remarks": remarks(recorder),
        "invariants": [_invariant(invariant) for invariant in invariants],
    }


def _invariant(invariant: Invariant) -> dict[str, Any]:
    return {
        "id": invariant.checker.name,
        "title": invariant.checker.title,
        "requirements": list(invariant.checker.rules),
        "verdict": invariant.word,
        "jobs": dict(invariant.counts),
        "evidence": [_evidence(*item) for item in (*invariant.invalid, *invariant.broken_down)],
    }


def _evidence(history: JobHistory, found: Verdict) -> dict[str, Any]:
    return {
        "job": history.job,
        "verdict": found.word,
        "text": found.text,
        "operations": [_operation(item) for item in found.evidence],
    }


def _operation(item: Operation) -> dict[str, Any]:
    return {
        "number": item.number,
        "process": item.process or None,
        "operation": item.kind,
        "invoked": round(item.invoked, 6),
        "completed": None if item.completed is None else round(item.completed, 6),
        "status": item.status,
        "errorCode": item.code,
        "sent": dict(item.sent),
        "told": dict(item.told),
    }


def page(data: Mapping[str, Any], invariants: Sequence[Invariant]) -> str:
    """What is printed, with the verdict's word in the last line."""
    lines = [
        f"{data['jobs']} jobs, {data['clients']} Runtimes, {data['durationSeconds']:.1f} s, seed {data['seed']}",
        f"{data['requests']} requests, {data['requestsPerSecond']:.0f} a second; "
        f"p50 {data['p50Ms']:.1f} ms, p99 {data['p99Ms']:.1f} ms",
        "",
        f"{'':<10} {'requests':>8} {'p50 ms':>8} {'p99 ms':>8}  answers",
    ]
    for row in data["operations"]:
        answers = ", ".join(f"{answer}: {count}" for answer, count in row["answers"].items())
        row_ = f"{row['operation']:<10} {row['requests']:>8} {row['p50Ms']:>8.1f} {row['p99Ms']:>8.1f}"
        lines.append(f"{row_}  {answers}")
    lines += ["", *data["remarks"]] if data["remarks"] else []
    lines += ["", f"{'':<30} {'verdict':<8} {'valid':>7} {'unknown':>8} {'invalid':>8}  jobs"]
    for invariant in invariants:
        counts = invariant.counts
        lines.append(
            f"{invariant.checker.title:<30} {invariant.word:<8} {counts['valid']:>7} {counts['unknown']:>8} "
            f"{counts['invalid']:>8}"
        )
    for invariant in invariants:
        for history, found in [*invariant.invalid, *invariant.broken_down][:SHOWN]:
            lines += ["", f"{invariant.checker.title} ({', '.join(invariant.checker.rules)}): {found.text}"]
            lines += [f"  job {history.job}; seconds since its first operation, sent and answered:"]
            lines += [f"  {item.shown(history.operations[0].invoked)}" for item in found.evidence]
    lines += ["", *data["problems"], data["verdict"]]
    return "\n".join(lines) + "\n"
