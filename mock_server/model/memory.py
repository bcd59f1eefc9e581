"""What a world knows of its model: the resolves that lead to it, its scripts, and how often each job called."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, replace
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from mock_server.model.scripts import GOOD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mock_server.model.scripts import Outcome, Script
    from mock_server.wire import Wire

MOST = 10_000
"""Resolves, and jobs with their counts, that a world remembers; the oldest is forgotten first."""

PLATFORM = "platform_key"


@dataclass(frozen=True, slots=True)
class Resolve:
    """One answer to ``resolveCredential``: whose it is, and what it handed out."""

    token: str
    job_id: str
    job_type: str
    attempt_no: int
    output_version: str | None
    caller: str
    mode: str
    """The job's ``apiKeyMode``."""
    key: str | None
    """None where the answer had no key."""


@dataclass(slots=True)
class ModelCall:
    """One model call on its way; the journal keeps it. Of an unknown token there is no resolve."""

    token: str
    resolve: Resolve | None
    key: str
    """``right``, ``wrong`` or ``none``."""
    outcome: Outcome | None = None
    """None until a script decided."""
    number: int | None = None
    """Which call of the job it is, from 1."""
    wire: Wire | None = None
    """Its connection; None where the app is called in its own process."""

    def document(self) -> dict[str, Any]:
        """As the journal shows it."""
        resolve = self.resolve
        return {
            "jobId": resolve and resolve.job_id,
            "caller": resolve and resolve.caller,
            "attemptNo": resolve and resolve.attempt_no,
            "resolve": self.token,
            "key": self.key,
            "outcome": self.outcome and self.outcome["kind"],
            "call": self.number,
        }


@dataclass(slots=True)
class Counted:
    """A script at work in a world."""

    script: Script
    answered: int = 0

    def document(self) -> dict[str, Any]:
        """As the control plane shows it."""
        return {**self.script.document(), "answered": self.answered}


class ModelMemory:
    """The model of one world. It costs nothing until somebody resolves."""

    def __init__(self, scripts: Sequence[Script] = ()) -> None:
        self._resolves: OrderedDict[str, Resolve] = OrderedDict()
        self._calls: OrderedDict[str, int] = OrderedDict()
        self.scripts: tuple[Counted, ...] = ()
        self.replace(scripts)

    def replace(self, scripts: Sequence[Script]) -> None:
        """Have these scripts instead of those that are there; jobs' calls are counted on."""
        self.scripts = tuple(map(Counted, scripts))

    def resolved(self, job: Mapping[str, Any], caller: str, key: str | None) -> str:
        """Remember a resolve. Returns its token."""
        token = secrets.token_hex(8)
        version, mode = job.get("outputSchemaVersion"), job["apiKeyMode"]
        self._resolves[token] = Resolve(token, job["id"], job["jobType"], job["attemptNo"], version, caller, mode, key)
        if len(self._resolves) > MOST:
            self._resolves.popitem(last=False)
        return token

    def called(self, token: str, given: bytes, platform_key: str | None) -> ModelCall:
        """A call that comes with a token and, unless it is empty, a key."""
        resolve = self._resolves.get(token)
        if not given:
            return ModelCall(token, resolve, "none")
        right = self._stray(given, platform_key) if resolve is None else self._right(given, resolve, platform_key)
        return ModelCall(token, resolve, "right" if right else "wrong")

    def _right(self, given: bytes, resolve: Resolve, platform_key: str | None) -> bool:
        if resolve.key is not None and _same(given, resolve.key):
            return True
        if resolve.mode != PLATFORM:
            return False
        if platform_key is not None:
            return _same(given, platform_key)
        # Nothing was handed out and we know no platform key: the Runtime's own is taken, none of another resolve is.
        return resolve.key is None and not self._stray(given, None)

    def _stray(self, given: bytes, platform_key: str | None) -> bool:
        """Whether a key is one that this world handed out to anybody."""
        known = {platform_key, *(resolve.key for resolve in self._resolves.values())}
        return any(key is not None and _same(given, key) for key in known)

    def decide(self, call: ModelCall) -> Outcome:
        """Count a call of a known resolve, and have a script say what it is answered. Nothing is awaited meanwhile."""
        resolve = call.resolve
        if resolve is None:
            raise ValueError("a call without a resolve is refused, not decided")
        number = self._calls[resolve.job_id] = self._calls.pop(resolve.job_id, 0) + 1
        if len(self._calls) > MOST:
            self._calls.popitem(last=False)
        fitting = [item for item in self.scripts if item.script.fits(resolve.job_id, resolve.job_type)]
        call.number, call.outcome = number, GOOD
        if fitting:
            chosen = max(reversed(fitting), key=lambda item: item.script.weight)  # of equals the last of the list
            chosen.answered += 1
            call.outcome = chosen.script.outcome(number)
        return call.outcome

    def restart(self) -> None:
        """The world is as it was made: scripts stay, every count is zero, every ``baseUrl`` is forgotten."""
        self.scripts = tuple(Counted(item.script) for item in self.scripts)
        self._resolves.clear()
        self._calls.clear()

    def save(self) -> Any:
        """What a snapshot of the world holds: resolves, scripts and counts."""
        return self._resolves.copy(), self._calls.copy(), tuple(map(replace, self.scripts))

    def restore(self, saved: Any) -> None:
        """Be as it was saved; it can be restored again."""
        resolves, calls, scripts = saved
        self._resolves, self._calls = resolves.copy(), calls.copy()
        self.scripts = tuple(map(replace, scripts))


def _same(given: bytes, key: str) -> bool:
    return compare_digest(given, key.encode())
