"""Faults of keeping a lock, and of stopping."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from conformance.examples.python_runtime import reports, run
from conformance.examples.python_runtime.failures import JobFailed
from conformance.examples.python_runtime.faulty import CarelessHeart, CarelessHold, Fault
from conformance.examples.python_runtime.heartbeats import Heart as _Heart
from conformance.examples.python_runtime.jobs import LockLost, Reason, now
from conformance.examples.python_runtime.reports import Verdict

if TYPE_CHECKING:
    from conformance.examples.python_runtime.api import Answer
    from conformance.examples.python_runtime.failures import Failure
    from conformance.examples.python_runtime.inputs import Credential
    from conformance.examples.python_runtime.model import Completion, Messages

_LONG = "a model call that takes longer than a lock lasts"


class NoHeartbeats(Fault):
    """Sends no heartbeat, however long the work takes."""

    name, rules = "no-heartbeats", ("RT-HB-10", "RT-HB-64")
    rows = ("CF-14",)
    needs = _LONG
    Hold = CarelessHold

    class Heart(CarelessHeart):
        """Has none."""

        async def beat_on(self) -> None:
            """Silence."""


class HeartbeatAtTheEnd(Fault):
    """The time between heartbeats is that which a lock lasts."""

    name, rules = "heartbeat-at-the-end", ("RT-HB-64", "RT-HB-10")
    rows = ("CF-16",)
    needs = _LONG
    Hold = CarelessHold

    class Heart(CarelessHeart):
        """Is slow."""

        def pause(self) -> float:
            """A lock's length."""
            return self.config.lock_seconds

        async def beat_on(self) -> None:
            """The first one, too, when the lock ends."""
            await asyncio.sleep(self.pause())
            await super().beat_on()


class ErrorEndsHeartbeats(Fault):
    """A heartbeat answered 5xx or not at all ends the heartbeats; the work goes on."""

    name, rules = "error-ends-heartbeats", ("RT-HB-61", "RT-HB-64", "RT-HB-10")
    rows = ("CF-17",)
    needs = "a heartbeat answered 5xx or not at all, and " + _LONG
    Hold = CarelessHold

    class Heart(CarelessHeart):
        """Dies of one error."""

        def failed(self) -> None:
            """The end."""
            self.over = True


class ReplaysHeartbeats(Fault):
    """After a stall every heartbeat that was missed is sent at once, without a look whether the lock still holds."""

    name, rules = "replays-heartbeats", ("RT-HB-63",)
    rows = ("CF-19",)
    needs = "SIGSTOP for longer than a lock lasts, SIGCONT"
    Hold = CarelessHold

    class Heart(CarelessHeart):
        """Keeps a calendar."""

        async def beat_on(self) -> None:
            """Every tick has its heartbeat."""
            tick = now()
            while not self.over:
                self.hold.check()
                await self.beat()
                tick += self.pause()
                await asyncio.sleep(tick - now())


class HammersRefusedHeartbeat(Fault):
    """A heartbeat refused by 404 or 409 is repeated ten times before it is believed."""

    name, rules = "hammers-refused-heartbeat", ("RT-HB-62",)
    rows = ("CF-22",)
    needs = "a heartbeat answered 404 or 409"

    class Heart(_Heart):
        """Insists."""

        refusals = 0

        def lose(self) -> None:
            """Not yet."""
            self.refusals += 1
            if self.refusals > 10:
                super().lose()
            else:
                self.beats.add(asyncio.create_task(self.insist()))

        async def insist(self) -> None:
            """Once more."""
            await asyncio.sleep(0.1)
            await self.beat()


class WorksOnAfterRefusal(Fault):
    """A refused heartbeat ends the heartbeats, not the work: its result is submitted."""

    name, rules = "works-on-after-refusal", ("RT-HB-62",)
    rows = ("CF-23",)
    needs = "a heartbeat answered 409 while the model is called"
    Hold = CarelessHold

    class Heart(CarelessHeart):
        """Tells nobody."""

        def lose(self) -> None:
            """Beats no more."""
            self.over = True


class WorksOnUnanswered(Fault):
    """Works on, and beats on, although no heartbeat was answered for longer than a lock lasts."""

    name, rules = "works-on-unanswered", ("RT-HB-63",)
    rows = ("CF-23",)
    needs = "heartbeats that hang for longer than a lock lasts, the model too"
    Hold = CarelessHold
    Heart = CarelessHeart


class _ByLockUntil(CarelessHeart):
    """Beats by `lockUntil`, of which it takes the first for true and counts on from there."""

    def seconds_left(self) -> float:
        """Until the lock lapses, as it reckons."""
        raise NotImplementedError

    def pause(self) -> float:
        """A heartbeat when three quarters of the lock are left."""
        return max(0.02, self.seconds_left() - 3 * self.config.heartbeat_interval)

    async def beat_on(self) -> None:
        """The first heartbeat is due, too, before it is sent."""
        while not self.over:
            self.hold.check()
            await asyncio.sleep(self.pause())
            await self.beat()


class BeatsByLocalClock(Fault):
    """The next heartbeat is reckoned from `lockUntil` and its own clock, so a clock that differs loses the lock."""

    name, rules = "beats-by-local-clock", ("RT-HB-60", "RT-HB-64", "RT-HB-10")
    rows = ("CF-25",)
    needs = "a `lockUntil` shifted by 30 s, and " + _LONG
    Hold = CarelessHold

    class Heart(_ByLockUntil):
        """Compares clocks."""

        extended = 0.0

        def seconds_left(self) -> float:
            """By two clocks."""
            until = self.hold.lock_until
            said = until / 1000 if isinstance(until, int | float) else time.time() + self.config.lock_seconds
            return said + self.extended - time.time()

        async def beat(self) -> None:
            """What is answered extends by what has passed."""
            before = self.hold.until
            await super().beat()
            self.extended += self.hold.until - before


class MillisecondsForSeconds(Fault):
    """`lockUntil` is taken for seconds, so that the first heartbeat is due in fifty thousand years."""

    name, rules = "milliseconds-for-seconds", ("RT-HB-10", "RT-HB-64", "RT-HB-60")
    rows = ("CF-26",)
    needs = _LONG
    Hold = CarelessHold

    class Heart(_ByLockUntil):
        """Mixes units."""

        def seconds_left(self) -> float:
            """By a thousand too much."""
            until = self.hold.lock_until
            return (float(until) if isinstance(until, int | float) else time.time() * 1000) - time.time()


class WaitsForHeartbeat(Fault):
    """A heartbeat's answer is waited for longer than a lock lasts, before the next is sent."""

    name, rules = "waits-for-heartbeat", ("RT-HB-61", "RT-HB-64", "RT-HB-10")
    rows = ("CF-28",)
    needs = "one heartbeat that hangs, and " + _LONG
    Hold = CarelessHold

    class Heart(CarelessHeart):
        """Has all the time."""

        def patience(self) -> float:
            """Far too long."""
            return 3 * self.config.lock_seconds

        async def beat_on(self) -> None:
            """One after the other."""
            while not self.over:
                self.hold.check()
                await self.beat()
                await asyncio.sleep(self.pause())


class IgnoresCancel(Fault):
    """The wish to cancel is not read; the job is done to its end."""

    name, rules = "ignores-cancel", ("RT-CANCEL-71", "RT-CANCEL-05", "RT-HB-09")
    rows = ("CF-29",)
    needs = "consent revoked while the model is called"

    class Heart(_Heart):
        """Reads the status alone."""

        def cancel(self) -> None:
            """Nothing."""


class CancelRetryable(Fault):
    """A cancelled job is reported as a failure that may be retried."""

    name, rules = "cancel-retryable", ("RT-CANCEL-71",)
    rows = ("CF-31",)
    needs = "consent revoked while the model is called"

    class Reports(reports.Reports):
        """Hopes."""

        def retryable(self, failure: Failure) -> bool:
            """All of them."""
            return failure.code == "JOB_CANCELLED" or super().retryable(failure)


class CancelUnreported(Fault):
    """A cancelled job is dropped without a word."""

    name, rules = "cancel-unreported", ("RT-CANCEL-71",)
    rows = ("CF-29",)
    needs = "consent revoked while the model is called"

    class Run(run.Run):
        """Lets go."""

        def failure_of(self, reason: Reason | None) -> Failure | None:
            """None to tell."""
            return None if reason is Reason.CANCELLED else super().failure_of(reason)


class CancelLate(Fault):
    """A cancelled job is reported two heartbeats later."""

    name, rules = "cancel-late", ("RT-CANCEL-71",)
    rows = ("CF-29",)
    needs = "consent revoked while the model is called"

    class Run(run.Run):
        """Takes its time."""

        async def stopped(self, work: asyncio.Task[run.Result | Failure | None]) -> Failure | None:
            """After a rest."""
            if self.hold.reason is Reason.CANCELLED:
                work.cancel()
                await asyncio.sleep(2 * self.config.heartbeat_interval)
            return await super().stopped(work)


class CancelCallsAgain(Fault):
    """A cancelled job calls the model once more, for a last word."""

    name, rules = "cancel-calls-again", ("RT-CANCEL-70",)
    rows = ("CF-29",)
    needs = "consent revoked while the model is called"

    class Run(run.Run):
        """Wants to know."""

        asked: tuple[Credential, Messages] | None = None

        async def complete(self, credential: Credential, messages: Messages) -> Completion:
            """As usual."""
            self.asked = credential, messages
            return await super().complete(credential, messages)

        async def stopped(self, work: asyncio.Task[run.Result | Failure | None]) -> Failure | None:
            """A call first."""
            if self.hold.reason is Reason.CANCELLED and self.asked is not None:
                work.cancel()
                await asyncio.sleep(self.config.heartbeat_interval / 2)
                with contextlib.suppress(TimeoutError, JobFailed, LockLost):
                    async with asyncio.timeout(self.config.heartbeat_interval / 4):
                        await self.runtime.model.call(self.hold, *self.asked, 1)
            return await super().stopped(work)


class FailsAfterCancelledResult(Fault):
    """A result answered 409 `JOB_CANCELLED` is followed by a failure."""

    name, rules = "fails-after-cancelled-result", ("RT-CANCEL-72",)
    rows = ("CF-31",)
    needs = "consent revoked after the last heartbeat before the result"

    class Reports(reports.Reports):
        """Is thorough."""

        def verdict(self, answer: Answer) -> Verdict:
            """Not settled by that."""
            return Verdict.REFUSED if answer.code == "JOB_CANCELLED" else super().verdict(answer)
