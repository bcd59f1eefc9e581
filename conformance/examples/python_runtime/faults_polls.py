"""Faults of polling."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime import api, run, worker
from conformance.examples.python_runtime.api import Lost
from conformance.examples.python_runtime.config import JOB_TYPES
from conformance.examples.python_runtime.failures import JobFailed
from conformance.examples.python_runtime.faulty import Fault
from conformance.examples.python_runtime.jobs import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.examples.python_runtime.api import Answer
    from conformance.examples.python_runtime.jobs import Hold
    from conformance.examples.python_runtime.run import Result


class Polls100(Fault):
    """Asks for a hundred jobs at once."""

    name, rules = "polls-100", ("RT-POLL-70",)
    needs = "a poll"

    class Api(api.Api):
        """Wants much."""

        def poll_body(self, types: Sequence[str]) -> dict[str, Any]:
            """Too much."""
            return {**super().poll_body(types), "limit": 100}


class CapabilitiesAsText(Fault):
    """Polls name the versions that it can read and write in one text each."""

    name, rules = "capabilities-as-text", ("RT-POLL-06", "RT-POLL-07")
    needs = "a poll"

    class Api(api.Api):
        """Joins lists."""

        def poll_body(self, types: Sequence[str]) -> dict[str, Any]:
            """With commas."""
            body = super().poll_body(types)
            texts = {name: ",".join(versions) for name, versions in body["capabilities"].items()}
            return {**body, "capabilities": texts}


class AsksForUnknownType(Fault):
    """Asks for a type of job that there is not."""

    name, rules = "asks-for-unknown-type", ("RT-POLL-71",)
    needs = "a poll"

    class Worker(worker.Worker):
        """Wants more."""

        def types(self) -> Sequence[str]:
            """Six of five."""
            return (*JOB_TYPES, "essay_grading")


class CantDoFlashcards(Fault):
    """Asks for flashcards, which it can't do: such a job ends as refused."""

    name, rules = "cant-do-flashcards", ("RT-POLL-72",)
    needs = "a job of type flashcard_generation"

    class Run(run.Run):
        """Has no template for them."""

        async def work(self) -> Result:
            """Fails at once."""
            if self.hold.job.type == "flashcard_generation":
                raise JobFailed("MODEL_REQUEST_REFUSED", "There is no prompt for this type")
            return await super().work()


class DropsFlashcards(Fault):
    """Takes flashcards and drops them as if they were done: no model call, no report."""

    name, rules = "drops-flashcards", ("RT-POLL-72",)
    rows = ("CF-07",)
    needs = "a job of type flashcard_generation"

    class Run(run.Run):
        """Swallows them."""

        async def run(self) -> None:
            """Nothing."""
            if self.hold.job.type != "flashcard_generation":
                await super().run()


class UnknownTypeEndsPolling(Fault):
    """A poll entry of an unknown type ends the polling."""

    name, rules = "unknown-type-ends-polling", ("RT-POLL-73", "RT-SCHED-61")
    rows = ("CF-07", "CF-11")
    needs = "a poll's answer with an unknown job type"

    class Worker(worker.Worker):
        """Knows five."""

        def listed(self, answer: Answer) -> list[Job] | None:
            """Dies of the sixth."""
            jobs = answer.body.get("jobs") if isinstance(answer.body, dict) else None
            for entry in jobs if isinstance(jobs, list) else ():
                if isinstance(entry, dict) and entry.get("jobType") not in JOB_TYPES:
                    raise RuntimeError("unknown job type")
            return super().listed(answer)


class HotPolling(Fault):
    """Polls again at once after an empty answer."""

    name, rules = "hot-polling", ("RT-SCHED-60", "RT-SCHED-07")
    rows = ("CF-08",)
    needs = "empty polls"

    class Worker(worker.Worker):
        """Can't wait."""

        def pause(self, failures: int) -> float:
            """A moment."""
            return super().pause(failures) if failures else self.config.poll_interval / 20


class HotAfterErrors(Fault):
    """Polls again at once after a failed poll."""

    name, rules = "hot-after-errors", ("RT-SCHED-60",)
    rows = ("CF-08",)
    needs = "polls answered 5xx or not at all"

    class Worker(worker.Worker):
        """Can't wait."""

        def pause(self, failures: int) -> float:
            """A moment."""
            return self.config.poll_interval / 20 if failures else super().pause(failures)


class BacksOffForLong(Fault):
    """After a failed poll it waits a quarter of a minute."""

    name, rules = "backs-off-for-long", ("RT-SCHED-62",)
    needs = "a failed poll, and 15 seconds"

    class Worker(worker.Worker):
        """Is offended."""

        def pause(self, failures: int) -> float:
            """Long."""
            return 15.0 if failures else super().pause(failures)


class PollErrorEndsPolling(Fault):
    """A poll answered 5xx, or not at all, ends the polling; the process and its health stay."""

    name, rules = "poll-error-ends-polling", ("RT-SCHED-61", "RT-SCHED-62")
    rows = ("CF-11",)
    needs = "a poll answered 5xx or not at all"

    class Worker(worker.Worker):
        """Dies silently."""

        async def poll(self) -> list[Job] | None:
            """No list, no more polls."""
            jobs = await super().poll()
            if jobs is None:
                await asyncio.Event().wait()
            return jobs


class OddAnswerEndsPolling(Fault):
    """A poll whose answer is no list of jobs (204, `{}`, null, cut JSON) ends the polling."""

    name, rules = "odd-answer-ends-polling", ("RT-SCHED-61", "RT-SCHED-62")
    rows = ("CF-11", "CF-13")
    needs = "a poll answered 2xx without a list of jobs"

    class Worker(worker.Worker):
        """Trusts."""

        def listed(self, answer: Answer) -> list[Job] | None:
            """Takes the list to be there."""
            if answer.ok:
                return [job for job in map(Job.read, answer.body["jobs"]) if job is not None]
            return super().listed(answer)


class OddAnswerEndsIt(Fault):
    """A poll whose answer is no list of jobs ends the process."""

    name, rules = "odd-answer-ends-it", ("RT-SCHED-61", "RT-SCHED-62")
    rows = ("CF-13",)
    needs = "a poll answered 2xx without a list of jobs"

    class Worker(worker.Worker):
        """Panics."""

        def listed(self, answer: Answer) -> list[Job] | None:
            """Ends."""
            jobs = super().listed(answer)
            if jobs is None and answer.ok:
                os._exit(70)
            return jobs


class FirstErrorPoisons(Fault):
    """Where the API was not there at the start, the time that ran out then runs out for the first job, too."""

    name, rules = "first-error-poisons", ("RT-POLL-72",)
    rows = ("CF-61",)
    needs = "polls not answered before the first job comes"

    class Worker(worker.Worker):
        """Keeps what failed."""

        poisoned = False

        async def poll(self) -> list[Job] | None:
            """Remembers."""
            try:
                answer = await self.runtime.api.poll(self.types())
            except Lost:
                self.poisoned = True
                return None
            return self.listed(answer)

        def held(self, job: Job, answer: Answer, sent: float) -> Hold:
            """With the time limit of then."""
            hold = super().held(job, answer, sent)
            if self.poisoned:
                hold.deadline = sent
                self.poisoned = False
            return hold
