"""Sends generated requests for subjects in known situations; repeats what it finds, as small as it gets."""

from __future__ import annotations

import itertools
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import quote

from contract_tests.checks import CheckFailed, NoAnswer, Silent
from contract_tests.fuzz.shrinking import smaller

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contract_tests.fuzz.judging import Finding, Judge
    from contract_tests.reach import Reach
    from contract_tests.transport import Request, Response, Transport

TOGETHER = 10
"""After so many refused requests a subject is looked at."""
MOST_REPEATS, MOST_SECONDS = 60, 5.0
"""How long a failure is made smaller."""


class Named(Protocol):
    """A situation."""

    @property
    def name(self) -> str:
        """What it is called; no two have the same."""


class Subject(Protocol):
    """What requests are about: a job in a situation, say, and what is known of it."""

    state: str
    row: dict[str, Any] | None
    """What was last seen of it; None where nothing is to be seen."""
    refused: list[Any]
    """The steps that were refused since ``row`` was seen."""
    made: float
    """When, monotonic seconds."""

    @property
    def situation(self) -> Named:
        """Where it waits, as long as no request changes that."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def names(self) -> list[str]:
        """What another one in its place has other values of: its ids, always as many in the same situation."""


S = TypeVar("S", bound=Subject)


@dataclass(frozen=True)
class Step(Generic[S]):
    """A request; ``subject`` is whom it is about. ``tolerant``: a build may be unable to keep what it sends."""

    operation_id: str
    request: Request
    subject: S | None
    tolerant: bool = False


@dataclass
class Trial(Generic[S]):
    """What repeats a finding: subjects in their situations, then requests, the last of which shows it."""

    subjects: list[S]
    steps: list[Step[S]]
    params: dict[str, dict[str, Any]] = field(default_factory=dict)
    """How a subject was made beyond its situation, by its id."""


class Trials(ABC, Generic[S]):
    """The exchanges of one check."""

    def __init__(self, transport: Transport, judge: Judge[S], reach: Reach, *, together: int = 1) -> None:
        """``together``: after so many refusals a subject is looked at; the one at fault is found by repeating each."""
        self.transport, self.judge, self.reach, self.together = transport, judge, reach, together

    @abstractmethod
    async def follow(self, step: Step[S], response: Response) -> Finding | None:
        """What the exchange did, for the account of reach; a refusal or a read must have done nothing."""

    @abstractmethod
    async def unchanged(self, subject: S) -> Finding | None:
        """Whether the subject is as it was; where it is not, the request that changed it is in ``subject.refused``."""

    @abstractmethod
    async def another(self, subject: S, params: Mapping[str, Any]) -> S:
        """A new subject in the same situation."""

    @abstractmethod
    def once(self) -> Trials[S]:
        """The same for one repetition: it looks at once, and its reach does not count."""

    async def send(self, step: Step[S]) -> Response:
        """The answer to a request."""
        return await self.transport.send(step.request)

    async def exchange(self, step: Step[S]) -> tuple[Response | None, Finding | None]:
        """Send one request and judge its answer; the subject is brought up to date with what was seen of it."""
        try:
            response = await self.send(step)
        except Silent:
            raise  # repeating it would wait as long again
        except NoAnswer as failure:
            return None, self.judge.unanswered(step, failure)
        finding = self.judge.finding(step, response)
        if finding is not None:
            return response, finding
        return response, await self.follow(step, response)

    async def explained(self, trial: Trial[S], finding: Finding) -> CheckFailed:
        """The failure, repeated by as few and as small requests as a moment's trying finds.

        Its commands are those of the repetition alone; where it can't be repeated, those of all that was sent.
        """
        if finding.kind.endswith(" changed") and len(trial.steps) > 1:
            trial = await self._culprit(trial, finding)
        deadline = time.monotonic() + MOST_SECONDS
        best = trial
        for candidate in itertools.islice(smaller(best), MOST_REPEATS):
            if time.monotonic() > deadline:
                break
            found = await self.repeat(candidate.trial)
            same = found is not None and found.kind == finding.kind
            candidate.keep(same)
            if same:
                best = candidate.trial
        self.transport.mark(True)
        found = await self.repeat(best)
        if found is not None and found.kind == finding.kind:
            return found.failure
        self.transport.mark(False)
        return finding.failure

    async def _culprit(self, trial: Trial[S], finding: Finding) -> Trial[S]:
        """The one request of many that were sent before the subject was looked at."""
        for step in trial.steps:
            alone = Trial(trial.subjects, [step], trial.params)
            found = await self.repeat(alone)
            if found is not None and found.kind == finding.kind:
                return alone
        return trial

    async def repeat(self, trial: Trial[S]) -> Finding | None:
        """Send the trial's requests again, for new subjects in the same situations; what the last of them shows."""
        names: dict[str, str] = {}
        subjects: dict[str, S] = {}
        for old in trial.subjects:
            new = await self.another(old, trial.params.get(old.id, {}))
            names |= dict(zip(old.names, new.names, strict=False))
            subjects[old.id] = new
        once = self.once()
        finding = None
        for step in trial.steps:
            subject = subjects.get(step.subject.id) if step.subject else None
            _, finding = await once.exchange(replace(step, request=renamed(step.request, names), subject=subject))
        return finding


class Stock(ABC, Generic[S]):
    """Subjects that wait in situations; one that a request has changed is taken out, and the next is made anew."""

    def __init__(self, situations: Iterable[Named]) -> None:
        self.situations: Sequence[Any] = list(situations)
        self.kept: dict[str, S] = {}

    @abstractmethod
    async def make(self, situation: Any) -> S | None:
        """A new subject in the situation, None where no more can be had. Skips the check where none can at all."""

    @abstractmethod
    def stale(self, subject: S) -> bool:
        """Whether the subject may leave its situation by itself before long."""

    async def subject(self, situation: Named) -> S | None:
        """A subject in the situation, as of :meth:`make`."""
        kept = self.kept.get(situation.name)
        if kept is not None and not self.stale(kept):
            return kept
        made = await self.make(situation)
        if made is not None:
            self.kept[situation.name] = made
        return made

    def used(self, subject: S) -> None:
        """The subject is where it was no more."""
        if self.kept.get(subject.situation.name) is subject:
            del self.kept[subject.situation.name]

    def waiting(self) -> list[S]:
        """The subjects that wait now."""
        return [subject for subject in self.kept.values() if not self.stale(subject)]


class Run(Generic[S]):
    """Sends cases, each for a subject in the next situation; fails the check with a finding, repeated."""

    def __init__(self, trials: Trials[S], stock: Stock[S], turn: int) -> None:
        self.trials, self.stock, self.turn = trials, stock, turn

    async def subject(self) -> S:
        """A subject in the next situation."""
        while True:
            situation = self.stock.situations[self.turn % len(self.stock.situations)]
            self.turn += 1
            subject = await self.stock.subject(situation)
            if subject is not None:
                return subject

    async def send(self, step: Step[S]) -> int:
        """Send a request and judge its answer; its status, 0 where none came."""
        subject = step.subject
        before = (subject.state, subject.row) if subject else None
        response, finding = await self.trials.exchange(step)
        if finding is not None:
            changed = subject is not None and finding.kind.endswith(" changed")
            steps = [*subject.refused] if subject and changed else self.needed(step)
            raise await self.trials.explained(Trial([subject] if subject else [], steps), finding)
        if subject is not None and before != (subject.state, subject.row):
            self.stock.used(subject)
        return response.status if response else 0

    def needed(self, step: Step[S]) -> list[Step[S]]:
        """What has to be sent again to repeat a request."""
        return [step]

    async def close(self) -> None:
        """Look once more at the subjects whose requests were refused."""
        for subject in self.stock.waiting():
            finding = await self.trials.unchanged(subject)
            if finding is not None:
                raise await self.trials.explained(Trial([subject], [*subject.refused]), finding)


def renamed(request: Request, names: Mapping[str, str]) -> Request:
    """The request for other subjects: their ids in the places of the old ones."""
    path, content, headers = request.path, request.content, dict(request.headers)
    for old, new in names.items():
        path = path.replace(quote(old, safe=""), quote(new, safe=""))
        content = content.replace(json.dumps(old)[1:-1].encode(), json.dumps(new)[1:-1].encode())
        headers = {name: value.replace(old, new) for name, value in headers.items()}
    return replace(request, path=path, content=content, headers=headers)
