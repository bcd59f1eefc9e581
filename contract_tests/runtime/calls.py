"""One request of a Runtime and what came of it, as a recording tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL = "chatCompletions"
"""The operation of a model call."""
LOST_HOLD = {(409, "LOCK_NOT_HELD"), (404, "JOB_NOT_FOUND")}
"""Answers after which a Runtime drops the work (RT-HB-62)."""
REPORTS = ("submitResult", "failJob")
WORK = ("getSnapshot", "resolveCredential", MODEL, "submitResult")
"""What only the holder of a job's lock does."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A secret where it does not belong. ``form`` is ``plain`` or ``encoded``."""

    secret: str
    """``service token``, ``model key`` or ``canary``."""
    place: str
    """``path``, ``query``, ``header <name>`` or ``body``; ``output`` for the process's own."""
    form: str


@dataclass(frozen=True, eq=False)
class Call:
    """One request. Instants are seconds since the recording's first; names of headers are in lower case."""

    number: int
    sent: float
    """When it reached the mock."""
    ended: float
    """When it was answered, or its connection ended."""
    operation: str | None
    """An operation of the Runtime API, :data:`MODEL`, or None: a path or method that the API does not know."""
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    text: str
    body: Any
    """The request's body as JSON; None where it is none, or too long to be kept."""
    cut: bool
    """Whether the body was too long to be kept whole, or broke off: it can't be told what is missing."""
    job: str | None
    """The job that it is about: of the path, the body, or the resolve that a model call goes back to."""
    status: int
    """Of the answer that was sent; 0 where none was."""
    answer_headers: Mapping[str, str]
    answer_text: str
    """As far as the client got it."""
    answer: Any
    """The answer's body as JSON as the client got it; None where it is none."""
    heard: bool
    """Whether a whole answer reached the client, spoilt or not."""
    fault: Mapping[str, Any] | None
    """What a fault plan or a model script did to it."""
    sightings: tuple[Sighting, ...] = ()
    key: str | None = None
    """Of a model call: ``right``, ``wrong`` or ``none``; None where it can't be told."""
    outcome: str | None = None
    """Of a model call: the kind of outcome that its script has."""
    answer_cut: bool = False
    """Whether the answer's body was too long to be kept whole: its ``answer`` tells nothing then."""
    resolve: Call | None = field(default=None, repr=False)
    """Of a model call: the resolve whose ``baseUrl`` it goes to; None where there is none."""

    @property
    def code(self) -> str | None:
        """The error code of the answer."""
        code = self.answer.get("errorCode") if isinstance(self.answer, dict) else None
        return code if isinstance(code, str) else None

    @property
    def ok(self) -> bool:
        """Whether a success reached the client."""
        return self.heard and 200 <= self.status < 300

    @property
    def lost(self) -> bool:
        """Whether no whole answer reached the client."""
        return not self.heard

    @property
    def failed(self) -> bool:
        """Whether it came to nothing that could be relied on: lost, or 5xx."""
        return not self.heard or self.status >= 500

    @property
    def garbled(self) -> bool:
        """Whether a success came whose body a fault spoilt, so that a client may not be able to read it."""
        return self.ok and self.fault is not None and self.fault.get("got") == "altered"

    @property
    def drops_work(self) -> bool:
        """Whether the answer says that the lock is not held or the job is not there (RT-HB-62)."""
        return self.heard and (self.status, self.code) in LOST_HOLD

    @property
    def asks_to_stop(self) -> bool:
        """Whether the answer carries the cancel signal (RT-CANCEL-70)."""
        return self.ok and "x-job-cancel-requested" in self.answer_headers

    @property
    def name(self) -> str:
        """For a sentence: ``lockJob of job-1``."""
        what = self.operation or f"{self.method} {self.path[:80]}"
        return f"{what} of {self.job}" if self.job else what

    def get(self, name: str) -> Any:
        """A property of the request's body; None where it has none."""
        return self.body.get(name) if isinstance(self.body, dict) else None

    def told(self, name: str) -> Any:
        """A property of the answer's body; None where it has none."""
        return self.answer.get(name) if isinstance(self.answer, dict) else None
