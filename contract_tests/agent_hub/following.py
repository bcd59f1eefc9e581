"""Following a job: the events of a stream as they come, every wait with a limit in real seconds."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from contract_tests.agent_hub.sse import Comment, Event, Parser
from contract_tests.checks import CheckFailed, Silent, about, expect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from contract_tests.transport import Stream

WITHIN = 5.0
"""Real seconds in which something that is due has to come."""
QUIET = 0.3
"""Real seconds after which nothing is taken to come any more of what was due before."""
STEP = 30.0

FINAL = ("job.completed", "job.failed", "job.cancelled", "job.deleted")
"""The events after which a stream ends."""


class EventStream:
    """What a stream tells, in order. It is read all the time: ``at`` is when something came, not when one looked.

    A stream that breaks, or is no stream of events, fails the check at the next wait. :attr:`said` has all that came,
    :attr:`events` and :attr:`comments` a kind each, taken or not.
    """

    def __init__(self, stream: Stream, patience: float = 1.0) -> None:
        """``stream`` is an answer whose head was judged; every wait lasts ``patience`` times as long as it says."""
        self.patience = patience
        self.headers: Mapping[str, str] = stream.headers
        self.said: list[Event | Comment] = []
        self.opened = time.monotonic()
        self.ended: float | None = None
        """When the stream ended, monotonic seconds."""
        self._stream, self._parser = stream, Parser()
        self._taken = 0
        self._failure: CheckFailed | None = None
        self._news = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop listening. What came stays."""
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader
        await self._stream.close()

    @property
    def events(self) -> list[Event]:
        """All events so far."""
        return [one for one in self.said if isinstance(one, Event)]

    @property
    def comments(self) -> list[Comment]:
        """All comments so far."""
        return [one for one in self.said if isinstance(one, Comment)]

    async def next(self, kind: str | Sequence[str] | None = None, within: float = WITHIN) -> Event:
        """The next event that was not taken yet; fails the check where it is not of ``kind`` or does not come."""
        kinds = _kinds(kind)
        wanted = _wanted(kinds)
        event = await self._event(wanted, within)
        expect(not kinds or event.event in kinds, wanted, self._instead(event), "event")
        return event

    async def until(self, kind: str | Sequence[str], within: float = WITHIN) -> Event:
        """The next event of ``kind``; those before it are passed over. Fails the check where it does not come."""
        kinds, deadline = _kinds(kind), time.monotonic() + within * self.patience
        while True:
            event = await self._event(_wanted(kinds), max(deadline - time.monotonic(), 0))
            if event.event in kinds:
                return event

    async def ends(self, within: float = WITHIN) -> None:
        """Fail the check unless the stream ends, and with no further event."""
        deadline = time.monotonic() + within * self.patience
        while self.ended is None:
            untaken = self.events[self._taken :]
            expect(not untaken, "the end of the stream", f"{self._instead(*untaken[:1])}")
            if not await self._more(deadline):
                raise CheckFailed("the end of the stream", f"it is open after {within:g} s; {self._so_far()}")
        untaken = self.events[self._taken :]
        expect(not untaken, "the end of the stream", f"{self._instead(*untaken[:1])}")

    async def rest(self, within: float = WITHIN) -> list[Event]:
        """All further events, up to the end of the stream. Fails the check where it does not end."""
        deadline, first = time.monotonic() + within * self.patience, self._taken
        while self.ended is None:
            if not await self._more(deadline):
                raise CheckFailed("the end of the stream", f"it is open after {within:g} s; {self._so_far()}")
        events = self.events
        self._taken = len(events)
        return events[first:]

    async def quiet(self, seconds: float = QUIET) -> None:
        """Fail the check where an event comes within so many real seconds, or the stream ends. Comments may come."""
        deadline = time.monotonic() + seconds
        while True:
            untaken = self.events[self._taken :]
            expect(not untaken, "no event", self._instead(*untaken[:1]))
            expect(self.ended is None, "a stream that stays open", f"its end; {self._so_far()}")
            if not await self._more(deadline):
                return

    async def comment(self, number: int, within: float = WITHIN) -> Comment:
        """The comment of that number, from 1; waits for it. Fails the check where it does not come."""
        deadline = time.monotonic() + within * self.patience
        while len(self.comments) < number:
            if self.ended is not None or not await self._more(deadline):
                raise CheckFailed(f"comment number {number} within {within:g} s", self._so_far())
        return self.comments[number - 1]

    async def _event(self, wanted: str, within: float) -> Event:
        deadline = time.monotonic() + within * self.patience
        while True:
            events = self.events
            if self._taken < len(events):
                self._taken += 1
                return events[self._taken - 1]
            if self.ended is not None:
                raise CheckFailed(wanted, f"the end of the stream; {self._so_far()}")
            if not await self._more(deadline):
                raise CheckFailed(f"{wanted} within {within:g} s", f"nothing; {self._so_far()}")

    async def _more(self, deadline: float) -> bool:
        """Wait for something new; False where nothing came in time. Raises what broke the stream."""
        if self._failure is not None:
            raise self._failure
        self._news.clear()
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def _read(self) -> None:
        """Read until the end; what breaks is kept for who waits."""
        try:
            while True:
                try:
                    chunk = await self._stream.read(STEP)
                except Silent:
                    continue
                if not chunk:
                    break
                with about("HUB-SSE-03", step="reading an event stream"):
                    self.said.extend(self._parser.feed(chunk, time.monotonic()))
                self._news.set()
            with about("HUB-SSE-03", step="reading an event stream"):
                self._parser.finish()
            self.ended = time.monotonic()
        except CheckFailed as failure:
            self._failure = failure
        finally:
            self._news.set()

    def _instead(self, event: Event | None = None) -> str:
        what = f"`{event.event}` with {event.text[:200]}" if event else "nothing"
        return f"{what}; {self._so_far()}"

    def _so_far(self) -> str:
        names = ", ".join(one.event if isinstance(one, Event) else f":{one.text}" for one in self.said[-12:])
        return f"so far came: {names or 'nothing'}"


def _kinds(kind: str | Sequence[str] | None) -> tuple[str, ...]:
    if kind is None:
        return ()
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _wanted(kinds: Sequence[str]) -> str:
    return "an event " + " or ".join(f"`{kind}`" for kind in kinds) if kinds else "an event"
