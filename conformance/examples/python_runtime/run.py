"""One job, from its lock to its report."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime.failures import Failure, JobFailed
from conformance.examples.python_runtime.jobs import Hold, LockLost, Reason, now
from conformance.examples.python_runtime.reports import Verdict
from conformance.examples.python_runtime.say import say

if TYPE_CHECKING:
    from conformance.examples.python_runtime.inputs import Credential
    from conformance.examples.python_runtime.model import Completion, Messages
    from conformance.examples.python_runtime.outputs import Output
    from conformance.examples.python_runtime.runtime import Runtime

Result = dict[str, Any]
_AGAIN = ("MODEL_RATE_LIMIT", "MODEL_TIMEOUT", "TEMPORARY_PROVIDER_ERROR", "NETWORK_ERROR")


class Run:
    """Does the job that is held, while its heart beats."""

    def __init__(self, runtime: Runtime, hold: Hold) -> None:
        self.runtime, self.config, self.hold = runtime, runtime.config, hold
        self.heart = runtime.Heart(runtime, hold)
        self.inputs = runtime.Inputs(runtime, hold)
        self.reports = runtime.Reports(runtime, hold)
        self.outputs = runtime.Outputs()
        self.prompt = runtime.Prompt()

    async def run(self) -> None:
        """Work, then report; the lock is kept until the report is answered."""
        beating = asyncio.create_task(self.heart.live())
        try:
            outcome = await self.outcome()
            if outcome is not None:
                await self.report(outcome)
        except LockLost:
            say(f"{self.hold.job.id}: {Reason.LOST.value}")
        finally:
            beating.cancel()
            self.runtime.logs.job_ended()

    async def outcome(self) -> Result | Failure | None:
        """The work's end, or what ended it; None where the lock is lost, so that nothing is to be said."""
        work = asyncio.create_task(self.safely())
        stop = asyncio.create_task(self.hold.stopped.wait())
        try:
            await asyncio.wait({work, stop}, timeout=self.time_left(), return_when=asyncio.FIRST_COMPLETED)
            if self.hold.stopped.is_set():
                return await self.stopped(work)
            return work.result() if work.done() else self.out_of_time()
        finally:  # whatever it was, the model call ends at once
            for task in (work, stop):
                task.cancel()
            await asyncio.wait({work, stop})

    async def stopped(self, work: asyncio.Task[Result | Failure | None]) -> Failure | None:
        """The end of work that was told to stop."""
        del work
        return self.failure_of(self.hold.reason)

    def failure_of(self, reason: Reason | None) -> Failure | None:
        """What is reported of work that was stopped."""
        if reason is Reason.CANCELLED:
            return Failure("JOB_CANCELLED", "The job was cancelled")
        if reason is Reason.SHUTDOWN:
            return Failure("RUNTIME_SHUTDOWN", "The Runtime shuts down")
        return Failure("INTERNAL_ERROR", "The API refuses heartbeats") if reason is Reason.REFUSED else None

    def time_left(self) -> float:
        """Seconds until the work has to end, so that its report still comes in time (RT-RETRY-67)."""
        return max(0.0, self.hold.deadline - min(1.0, self.hold.job.timeout_seconds / 10) - now())

    def out_of_time(self) -> Failure | None:
        """The job took too long."""
        return Failure("JOB_TIMEOUT", f"The job was not done within {self.hold.job.timeout_seconds:g} s")

    async def safely(self) -> Result | Failure | None:
        """The work, whatever happens in it."""
        try:
            return await self.work()
        except JobFailed as failed:
            return failed.failure
        except LockLost:
            return None
        except Exception as error:  # a fault of ours is a failure of this job alone
            return Failure("INTERNAL_ERROR", "The Runtime has a fault", type(error).__name__)

    async def work(self) -> Result:
        """Snapshot, credential, model, output. Raises :class:`JobFailed`, :class:`LockLost`."""
        snapshot = await self.inputs.snapshot()
        credential = await self.inputs.credential()
        completion = await self.complete(credential, self.prompt.messages(self.hold.job, snapshot))
        return self.result(self.outputs.read(completion.text, self.hold.job.output_version), completion)

    async def complete(self, credential: Credential, messages: Messages) -> Completion:
        """The model's completion. Where we repeat calls ourselves, what we report is the last one's end."""
        number = 0
        while True:
            try:
                return await self.runtime.model.call(self.hold, credential, messages, number)
            except JobFailed as failed:
                pause = self.repeat_pause(number)
                number += 1
                if not self.again(failed.failure.code, number, pause):
                    raise
                await asyncio.sleep(pause)

    def repeat_pause(self, number: int) -> float:
        """Time before the call that follows the ``number``-th."""
        return 0.2 * 2.0**number

    def again(self, code: str, number: int, pause: float) -> bool:
        """Whether a model call is repeated: where that can help, and time is left for it."""
        return code in _AGAIN and number < self.config.model_tries and pause < self.time_left() / 2

    def result(self, output: Output, completion: Completion) -> Result:
        """The body of a result."""
        job = self.hold.job
        return self.runtime.api.signed(
            schemaVersion=job.output_version,
            status="succeeded",
            rawOutput=output,
            validatedOutput=output,
            validationErrors=[],
            usage=completion.usage(),
            attemptNo=job.attempt_no,
            outputHash=self.outputs.digest(output, job.attempt_no),
        )

    async def report(self, outcome: Result | Failure) -> None:
        """Tell the API. Raises :class:`LockLost`."""
        if isinstance(outcome, Failure):
            say(f"{self.hold.job.id}: {outcome.code}")
            await self.reports.failure(outcome)
            return
        verdict = await self.reports.result(outcome)
        if verdict is Verdict.REFUSED:
            await self.reports.failure(self.refused())
        elif verdict is Verdict.CANCELLED:
            await self.reports.failure(Failure("JOB_CANCELLED", "The job was cancelled"))

    def refused(self) -> Failure:
        """The API does not take the result (RT-RES-87)."""
        return Failure("INVALID_SCHEMA", "The API refuses the result")


async def give_back(runtime: Runtime, hold: Hold) -> None:
    """Return a lock that came after the signal to stop (RT-HEALTH-61)."""
    with contextlib.suppress(LockLost):
        await runtime.Reports(runtime, hold).failure(Failure("RUNTIME_SHUTDOWN", "The Runtime shuts down"))
