"""Smaller trials: fewer requests, then less in the last one's body. Each is kept where it still shows the finding."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.fuzz.trials import Step, Trial

LONG_BODY = 20_000


class Candidate:
    """A smaller trial; :meth:`keep` says whether it still shows the finding."""

    def __init__(self, trial: Trial[Any]) -> None:
        self.trial, self.kept = trial, False

    def keep(self, kept: bool) -> None:
        """Go on from here, or from where it was before."""
        self.kept = kept


def smaller(trial: Trial[Any]) -> Iterator[Candidate]:
    """Ever smaller trials; which come depends on which were kept."""
    steps = list(trial.steps)
    for step in list(steps[:-1]):
        less = [item for item in steps if item is not step]
        candidate = Candidate(_with(trial, less))
        yield candidate
        if candidate.kept:
            steps = less
    needed = {step.subject.id for step in steps if step.subject}
    subjects = [subject for subject in trial.subjects if subject.id in needed]
    if len(subjects) < len(trial.subjects):
        candidate = Candidate(replace(_with(trial, steps), subjects=subjects))
        yield candidate
        if candidate.kept:
            trial = candidate.trial
    yield from _smaller_queries(trial, steps)
    yield from _smaller_bodies(trial, steps)


def _smaller_queries(trial: Trial[Any], steps: list[Step[Any]]) -> Iterator[Candidate]:
    """Without each parameter of the last one's query that does not matter; ``steps`` goes on with what was kept."""
    path, mark, query = steps[-1].request.path.partition("?")
    parameters = query.split("&") if mark else []
    for parameter in parameters[:]:
        less = [item for item in parameters if item is not parameter]
        shorter = f"{path}?{'&'.join(less)}" if less else path
        step = replace(steps[-1], request=replace(steps[-1].request, path=shorter))
        candidate = Candidate(_with(trial, [*steps[:-1], step]))
        yield candidate
        if candidate.kept:
            parameters, steps[-1] = less, step


def _smaller_bodies(trial: Trial[Any], steps: list[Step[Any]]) -> Iterator[Candidate]:
    last = steps[-1]
    if len(last.request.content) > LONG_BODY:
        return
    try:
        body = json.loads(last.request.content, parse_float=_NUMBER.__add__, parse_int=_NUMBER.__add__)
    except (ValueError, RecursionError):
        return
    progress = True
    while progress:
        progress = False
        for less in _less(body):
            content = _text(less)
            if len(content) >= len(last.request.content):
                continue
            step = replace(last, request=replace(last.request, content=content))
            candidate = Candidate(_with(trial, [*steps[:-1], step]))
            yield candidate
            if candidate.kept:
                body, last, progress = less, step, True
                break


_NUMBER = "number-as-it-was-written:"


def _text(body: Any) -> bytes:
    """JSON, numbers as they were written: Python would write ``1e400`` as something that is no JSON."""
    text = json.dumps(body, ensure_ascii=False)
    return re.sub(f'"{_NUMBER}([^"]*)"', r"\1", text).encode("utf-8", "backslashreplace")


def _with(trial: Trial[Any], steps: list[Step[Any]]) -> Trial[Any]:
    return replace(trial, steps=steps)


def _less(value: Any) -> Iterator[Any]:
    """The value with one thing less in it, big things first."""
    if isinstance(value, dict):
        for name in value:
            yield {key: item for key, item in value.items() if key != name}
        for name, item in value.items():
            yield from ({**value, name: less} for less in _less(item))
    elif isinstance(value, list):
        if len(value) > 1:
            yield value[: len(value) // 2]
            yield value[len(value) // 2 :]
        for i, item in enumerate(value):
            yield from ([*value[:i], less, *value[i + 1 :]] for less in _less(item))
    elif isinstance(value, str) and value.startswith(_NUMBER):
        if len(value) > len(_NUMBER) + 1:
            yield f"{_NUMBER}0"
    elif isinstance(value, str) and len(value) > 1:
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
