"""Faults of results and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from conformance.examples.python_runtime import api, outputs, reports, run
from conformance.examples.python_runtime.api import Answer
from conformance.examples.python_runtime.failures import Failure
from conformance.examples.python_runtime.faulty import Fault
from conformance.examples.python_runtime.jobs import now
from conformance.examples.python_runtime.reports import Verdict

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping

    from conformance.examples.python_runtime.jobs import Job
    from conformance.examples.python_runtime.model import Completion
    from conformance.examples.python_runtime.outputs import Output
    from conformance.examples.python_runtime.runtime import Runtime

_LOST = "a result answered 5xx or not at all"


class _Once(reports.Reports):
    """Sends reports once."""

    async def deliver(self, send: Callable[[], Awaitable[Answer]], unless: asyncio.Event | None) -> Answer | None:
        """One try."""
        self.hold.check()
        return await self.attempt(send, unless)


class ResultOnce(Fault):
    """A result is sent once; where no answer comes, the finished job is lost."""

    name, rules = "result-once", ("RT-RES-85", "RT-RES-86")
    rows = ("CF-32", "CF-47")
    needs = _LOST

    class Reports(_Once):
        """Tells once."""


class LostResultAsFailure(Fault):
    """A result that is not answered is followed by a failure."""

    name, rules = "lost-result-as-failure", ("RT-RES-85", "RT-RES-86")
    rows = ("CF-32",)
    needs = _LOST

    class Reports(_Once):
        """Gives up."""

        async def result(self, body: dict[str, Any]) -> Verdict:
            """Or fails."""
            answer = await self.deliver(lambda: self.runtime.api.result(self.hold.job, body, 2.5), None)
            if answer is None or answer.transient:
                await self.failure(Failure("NETWORK_ERROR", "The result could not be submitted"))
                return Verdict.SETTLED
            return self.verdict(answer)


class SlowResend(Fault):
    """Six seconds pass before a report that was not answered is sent again."""

    name, rules = "slow-resend", ("RT-RES-86",)
    rows = ("CF-32",)
    needs = _LOST + ", twice"

    class Reports(reports.Reports):
        """Has time."""

        def pause(self, number: int) -> float:
            """Long."""
            del number
            return 6.0


class _Counting(api.Api):
    """Counts the tries of reports."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.tries: dict[tuple[str, Any], int] = {}

    def tried(self, job: Job) -> int:
        """How often this run's report was sent before."""
        key = (job.id, job.attempt_no)
        self.tries[key] = self.tries.get(key, -1) + 1
        return self.tries[key]


class ResentWithOtherHash(Fault):
    """A result that is sent again has another hash."""

    name, rules = "resent-with-other-hash", ("RT-RES-85", "RT-RES-81")
    rows = ("CF-34",)
    needs = _LOST

    class Api(_Counting):
        """Salts."""

        async def result(self, job: Job, body: Mapping[str, Any], patience: float) -> Answer:
            """With the number of the try."""
            tried = self.tried(job)
            hashed = f"{body['outputHash']}-{tried}" if tried else body["outputHash"]
            return await super().result(job, {**body, "outputHash": hashed}, patience)


class ResentWithNextAttempt(Fault):
    """A result that is sent again counts as another attempt."""

    name, rules = "resent-with-next-attempt", ("RT-RES-85", "RT-RES-80")
    rows = ("CF-34",)
    needs = _LOST

    class Api(_Counting):
        """Counts what it sends."""

        async def result(self, job: Job, body: Mapping[str, Any], patience: float) -> Answer:
            """One more."""
            return await super().result(job, {**body, "attemptNo": body["attemptNo"] + self.tried(job)}, patience)


class FailureOnce(Fault):
    """A failure is sent once, answered or not."""

    name, rules = "failure-once", ("RT-FAIL-71", "RT-RES-86")
    rows = ("CF-32",)
    needs = "a failure answered 5xx or not at all"

    class Reports(_Once):
        """Fails once."""

        async def result(self, body: dict[str, Any]) -> Verdict:
            """Results are sent as they should be."""
            return await reports.Reports(self.runtime, self.hold).result(body)


class ResentAsOtherFailure(Fault):
    """A failure that is sent again is another one."""

    name, rules = "resent-as-other-failure", ("RT-FAIL-71",)
    needs = "a failure answered 5xx or not at all"

    class Api(_Counting):
        """Tells what happened last."""

        async def fail(self, job: Job, body: Mapping[str, Any], patience: float) -> Answer:
            """That it could not be told."""
            if self.tried(job):
                body = {**body, "errorCode": "NETWORK_ERROR", "retryable": True}
            return await super().fail(job, body, patience)


class _TakesFor503(api.Api):
    """Takes an answer to a result for an error that may pass."""

    def wrong(self, answer: Answer) -> bool:
        """Which one."""
        raise NotImplementedError

    async def result(self, job: Job, body: Mapping[str, Any], patience: float) -> Answer:
        """Another status."""
        answer = await super().result(job, body, patience)
        return Answer(503, answer.body, answer.headers) if self.wrong(answer) else answer


class OnlyCreatedIsDone(Fault):
    """A result answered 200 is not done for it, and sent again."""

    name, rules = "only-created-is-done", ("RT-RES-83",)
    needs = "a result that was stored and whose answer was lost"

    class Api(_TakesFor503):
        """Waits for 201."""

        def wrong(self, answer: Answer) -> bool:
            """Not created."""
            return answer.status == 200


class ConflictRepeated(Fault):
    """A result answered 409 `RESULT_ALREADY_EXISTS` is sent again, and again."""

    name, rules = "conflict-repeated", ("RT-RES-84",)
    rows = ("CF-35",)
    needs = "a result answered 409 RESULT_ALREADY_EXISTS"

    class Api(_TakesFor503):
        """Insists."""

        def wrong(self, answer: Answer) -> bool:
            """Ours is better."""
            return answer.code == "RESULT_ALREADY_EXISTS"


class FailsAfterConflict(Fault):
    """A result answered 409 `RESULT_ALREADY_EXISTS` is followed by a failure."""

    name, rules = "fails-after-conflict", ("RT-RES-84",)
    rows = ("CF-35",)
    needs = "a result answered 409 RESULT_ALREADY_EXISTS"

    class Reports(reports.Reports):
        """Is thorough."""

        def verdict(self, answer: Answer) -> Verdict:
            """Refused."""
            return Verdict.REFUSED if answer.code == "RESULT_ALREADY_EXISTS" else super().verdict(answer)


class RefusedResultRepeated(Fault):
    """A result refused with 400, 413 or 422 is sent again, and again."""

    name, rules = "refused-result-repeated", ("RT-RES-87",)
    rows = ("CF-35", "CF-43")
    needs = "a result answered 422"

    class Api(_TakesFor503):
        """Insists."""

        def wrong(self, answer: Answer) -> bool:
            """It will be taken yet."""
            return answer.status in (400, 413, 422)


class RefusedResultDropped(Fault):
    """A result refused with 400, 413 or 422 is dropped, nothing reported."""

    name, rules = "refused-result-dropped", ("RT-RES-87",)
    rows = ("CF-35",)
    needs = "a result answered 422"

    class Reports(reports.Reports):
        """Lets go."""

        def verdict(self, answer: Answer) -> Verdict:
            """Whatever it was."""
            del answer
            return Verdict.SETTLED


class RefusedResultRetryable(Fault):
    """A result refused with 400, 413 or 422 is reported as an error that may pass."""

    name, rules = "refused-result-retryable", ("RT-RES-87",)
    rows = ("CF-35", "CF-37")
    needs = "a result answered 422"

    class Run(run.Run):
        """Hopes."""

        def refused(self) -> Failure:
            """Another class."""
            return Failure("INTERNAL_ERROR", "The API refuses the result")


class _OtherBody(run.Run):
    """Changes a result."""

    def changed(self, body: run.Result) -> run.Result:
        """How."""
        raise NotImplementedError

    def result(self, output: Output, completion: Completion) -> run.Result:
        """As usual, and changed."""
        return self.changed(super().result(output, completion))


class AttemptAlways0(Fault):
    """Every result is of attempt 0."""

    name, rules = "attempt-always-0", ("RT-RES-80",)
    rows = ("CF-34",)
    needs = "a job that failed retryably and then succeeds"

    class Run(_OtherBody):
        """Does not count."""

        def changed(self, body: run.Result) -> run.Result:
            """Zero."""
            return {**body, "attemptNo": 0}


class AttemptFrom1(Fault):
    """Attempts are counted from 1."""

    name, rules = "attempt-from-1", ("RT-RES-80",)
    rows = ("CF-34",)

    class Run(_OtherBody):
        """Counts as people do."""

        def changed(self, body: run.Result) -> run.Result:
            """One more."""
            return {**body, "attemptNo": body["attemptNo"] + 1}


class ConstantSchemaVersion(Fault):
    """Every result is of `analysis_output_v1`."""

    name, rules = "constant-schema-version", ("RT-RES-88",)
    rows = ("CF-43",)
    needs = "a quiz or flashcards"

    class Run(_OtherBody):
        """Knows one."""

        def changed(self, body: run.Result) -> run.Result:
            """That one."""
            return {**body, "schemaVersion": "analysis_output_v1"}


class WrongTotal(Fault):
    """The total of tokens leaves out those of the answer."""

    name, rules = "wrong-total", ("RT-RES-10",)
    needs = "a completion that tells its usage"

    class Run(_OtherBody):
        """Miscounts."""

        def changed(self, body: run.Result) -> run.Result:
            """Half."""
            return {**body, "usage": {**body["usage"], "totalTokens": body["usage"]["inputTokens"]}}


class RandomHash(Fault):
    """The hash of an output is made up anew each time."""

    name, rules = "random-hash", ("RT-RES-81",)
    needs = "two jobs, or two attempts, with the same output"

    class Outputs(outputs.Outputs):
        """Makes it up."""

        def digest(self, output: Output, attempt_no: int) -> str:
            """Anything."""
            return f"sha256-{uuid4().hex}{uuid4().hex}"


class ConstantHash(Fault):
    """Every output has the same hash."""

    name, rules = "constant-hash", ("RT-RES-82",)
    needs = "two jobs with different outputs"

    class Outputs(outputs.Outputs):
        """Copies the example."""

        def digest(self, output: Output, attempt_no: int) -> str:
            """Always this."""
            return "sha256-abc123"


class HashOfAttempt(Fault):
    """The attempt's number goes into the hash."""

    name, rules = "hash-of-attempt", ("RT-RES-81",)
    rows = ("CF-34",)
    needs = "two attempts with the same output"

    class Outputs(outputs.Outputs):
        """Mixes in."""

        def digest(self, output: Output, attempt_no: int) -> str:
            """The number."""
            return super().digest({"output": output, "attempt": attempt_no}, attempt_no)


class HashOfTime(Fault):
    """The time that the model took goes into the hash, as it hashes the whole result."""

    name, rules = "hash-of-usage", ("RT-RES-81",)
    needs = "two jobs with the same output"

    class Run(_OtherBody):
        """Mixes in."""

        def changed(self, body: run.Result) -> run.Result:
            """The whole usage, to the millisecond."""
            exact = {**body["usage"], "exact": now()}
            return {**body, "outputHash": self.outputs.digest({"output": body["validatedOutput"], **exact}, 0)}
