"""Verification over the control plane: expectations held against the journal, at once or as soon as they hold."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from mock_server.calls import Answer, Refusal
from mock_server.control.journal import known_code, known_operation, known_status
from mock_server.journal import SECRET_HEADERS
from mock_server.verification import Expectation, Outcome, in_order, report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mock_server.calls import Call, Handler
    from mock_server.journal import Journal
    from mock_server.worlds import World

_PATTERNS = ("calls", "after", "before", "every", "first", "last", "order")
_MOST_WAITING = 200
_SHARE = 5
"""A waiting verification rests for as many times as long as it took to look: it never takes more than a sixth."""


class VerificationHandlers:
    """Handlers of verification."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers by operationId."""
        return {"verifyCalls": self.verify}

    async def verify(self, call: Call) -> Answer:
        """Hold expectations against the journal, for as long as it takes and ``waitSeconds`` allow."""
        body, journal = call.body, call.world.journal
        _check(call.world, body["expectations"])
        if journal.watchers >= _MOST_WAITING:
            raise Refusal("CONFLICT", f"{_MOST_WAITING} verifications of this world wait already; let one end first")
        begun = time.monotonic()
        waiting = Waiting(journal, body)
        outcomes = await waiting.outcomes(begun + body["waitSeconds"])
        answer = report(outcomes)
        waited = round(time.monotonic() - begun, 3) if body["waitSeconds"] else 0
        return Answer(200, call.world.redactor.data({**answer, "last": waiting.seen, "waitedSeconds": waited}))


class Waiting:
    """One verification at work."""

    def __init__(self, journal: Journal, body: Mapping[str, Any]) -> None:
        self.journal = journal
        self.expectations = [Expectation(document) for document in body["expectations"]]
        self._range = (body["since"], body.get("from"), body.get("to"))
        self.seen = 0
        """The number of the latest entry that was looked at."""

    async def outcomes(self, deadline: float) -> Sequence[Outcome]:
        """What comes of the expectations by the deadline (monotonic seconds), or as soon as nothing can change it."""
        with self.journal.watch() as news:
            while True:
                begun = time.monotonic()
                outcomes = await self._look()
                verdicts = [outcome.verdict for outcome in outcomes]
                hopeless = any(outcome.problem is not None and outcome.problem.final for outcome in outcomes)
                left = deadline - time.monotonic()
                if hopeless or left <= 0 or "failed" not in verdicts:
                    return outcomes
                await asyncio.sleep(min(left, _SHARE * (time.monotonic() - begun)))
                await self._change(news, deadline)

    async def _look(self) -> list[Outcome]:
        entries = in_order(self.journal.entries(*self._range))
        self.seen = self.journal.last
        lost = self.journal.lost(*self._range[:2])
        outcomes = []
        for expectation in self.expectations:
            outcomes.append(expectation.judge(entries, lost))
            await asyncio.sleep(0)  # others get their turn
        return outcomes

    async def _change(self, news: asyncio.Event, deadline: float) -> None:
        """Wait until an entry comes that an expectation is about, the journal is cleared, or the deadline is there."""
        cleared, seen = self.journal.cleared, self.seen
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - time.monotonic()):
                while cleared == self.journal.cleared:
                    new = list(self.journal.entries(seen, *self._range[1:]))
                    seen = self.journal.last
                    if any(expectation.concerns(entry) for entry in new for expectation in self.expectations):
                        return
                    news.clear()
                    await news.wait()
        except TimeoutError:
            return


def _check_names(world: World, pattern: Mapping[str, Any], location: str) -> None:
    checks = {
        "operationId": known_operation,
        "errorCode": known_code,
        "jobStatus": known_status,
        "method": known_method,
        "path": known_path,
    }
    for field, check in checks.items():
        names = pattern.get(field, [])
        for name in names if isinstance(names, list) else [names]:
            check(world, name, f"{location}/{field}")
    for name, wanted in pattern.get("requestHeaders", {}).items():
        if name.lower().encode() in SECRET_HEADERS and isinstance(wanted, str):
            what = f"{location}/requestHeaders/{name}: its value is a secret, which the journal does not keep"
            raise Refusal("INVALID_REQUEST", f"{what}; write true for any value, false for none")


def known_method(world: World, name: str, location: str) -> None:
    """Raises :class:`Refusal` for a method in lower case, as no request has it."""
    if name != name.upper():
        raise Refusal("INVALID_REQUEST", f"{location}: methods are in upper case; write `{name.upper()}`")


def known_path(world: World, name: str, location: str) -> None:
    """Raises :class:`Refusal` for a path with parameters in braces, as no request has it."""
    if "{" in name:
        raise Refusal("INVALID_REQUEST", f"{location}: a path as it was sent is meant; or name the operationId")


def _check(world: World, expectations: Sequence[Mapping[str, Any]]) -> None:
    """Raises :class:`Refusal` for what no schema can tell: names that there are not, counts that can't be."""
    for i, expectation in enumerate(expectations):
        place = f"/expectations/{i}"
        for name, item in expectation.items():
            patterns = [(f"{place}/{name}", item)]
            if name == "order":
                patterns = [(f"{place}/{name}/{j}", step) for j, step in enumerate(item)]
            for location, pattern in patterns:
                if name in _PATTERNS:
                    _check_names(world, pattern, location)
        count = expectation.get("count", {})
        if "exactly" in count and len(count) > 1:
            raise Refusal("INVALID_REQUEST", f"{place}/count: `exactly` says all; leave out `atLeast` and `atMost`")
        if count.get("atLeast", 0) > count.get("atMost", count.get("atLeast", 0)):
            raise Refusal("INVALID_REQUEST", f"{place}/count: `atLeast` is more than `atMost`")
