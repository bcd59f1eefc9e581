"""Faults of every request: who asks, with what, and where."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx

from conformance.examples.python_runtime import api, worker
from conformance.examples.python_runtime.api import Answer, Lost
from conformance.examples.python_runtime.faulty import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.examples.python_runtime.jobs import Job
    from conformance.examples.python_runtime.runtime import Runtime


class TokenInQuery(Fault):
    """The service token stands in the query string of polls, too."""

    name, rules = "token-in-query", ("RT-AUTH-63",)
    needs = "a poll"

    class Api(api.Api):
        """Adds it."""

        def url(self, path: str) -> str:
            """With the token."""
            return super().url(path) + (f"?key={self.config.token}" if path == "/jobs/poll" else "")


class TokenInBody(Fault):
    """The service token is repeated in the body of a failure, in base64."""

    name, rules = "token-in-body", ("RT-AUTH-63",)
    needs = "a job that fails"

    class Api(api.Api):
        """Adds it."""

        async def fail(self, job: Job, body: Any, patience: float) -> Answer:
            """As others write it."""
            secret = base64.b64encode(self.config.token.encode()).decode()
            return await super().fail(job, {**body, "rawError": f"sent with {secret}"}, patience)


class NoInstanceHeader(Fault):
    """Heartbeats lack the header with the instance id."""

    name, rules = "no-instance-header", ("RT-AUTH-04",)
    needs = "a job that takes a heartbeat"

    class Api(api.Api):
        """Leaves it out."""

        def headers(self, path: str, with_body: bool) -> dict[str, str]:
            """Without it."""
            headers = super().headers(path, with_body)
            if path.endswith("/heartbeat"):
                del headers["x-runtime-instance-id"]
            return headers


class NoKeyForLogs(Fault):
    """Invocation logs are sent without the service token."""

    name, rules = "no-key-for-logs", ("RT-AUTH-02",)

    class Api(api.Api):
        """Leaves it out."""

        def headers(self, path: str, with_body: bool) -> dict[str, str]:
            """Without it."""
            headers = super().headers(path, with_body)
            if path == "/invocation-logs":
                del headers["x-internal-api-key"]
            return headers


class OtherInstanceInBody(Fault):
    """Bodies carry the id of the example, whatever the process is called."""

    name, rules = "other-instance-in-body", ("RT-AUTH-60",)
    rows = ("CF-62",)
    needs = "a poll"

    class Api(api.Api):
        """Made by copying."""

        def signed(self, **fields: Any) -> dict[str, Any]:
            """Not signed by us."""
            return {"runtimeInstanceId": "runtime-001-example", **fields}


class RandomInstance(Fault):
    """The instance id is made anew with each start, so nothing can be traced over a restart."""

    name, rules = "random-instance", ("RT-AUTH-60",)
    rows = ("CF-62",)
    needs = "a poll"

    class Api(api.Api):
        """Calls itself something else."""

        def __init__(self, runtime: Runtime) -> None:
            super().__init__(runtime)
            self.own = f"runtime-{uuid4().hex[:8]}"

        def headers(self, path: str, with_body: bool) -> dict[str, str]:
            """With the made-up id."""
            return {**super().headers(path, with_body), "x-runtime-instance-id": self.own}

        def signed(self, **fields: Any) -> dict[str, Any]:
            """With the made-up id."""
            return {"runtimeInstanceId": self.own, **fields}


class ChecksTheApi(Fault):
    """Before each poll it asks a path outside of its own part of the API whether the API is well."""

    name, rules = "calls-outside", ("RT-AUTH-64",)
    needs = "a poll"

    class Api(api.Api):
        """Looks around."""

        async def poll(self, types: Sequence[str]) -> Answer:
            """A look first."""
            headers = self.headers("/jobs/poll", False)
            with contextlib.suppress(TimeoutError, httpx.HTTPError):
                async with asyncio.timeout(api.PATIENCE):
                    await self.client.get(f"{self.config.base_url}/api/status", headers=headers)
            return await super().poll(types)


class HammersUnauthorized(Fault):
    """A request answered 401 is repeated at once, nine times."""

    name, rules = "hammers-unauthorized", ("RT-AUTH-61",)
    rows = ("CF-37",)
    needs = "401 for a job's request (heartbeat, result, snapshot), more than twice"

    class Api(api.Api):
        """Hopes."""

        async def call(self, method: str, path: str, body: Any = None, patience: float = api.PATIENCE) -> Answer:
            """Again and again."""
            for _ in range(9):
                answer = await super().call(method, path, body, patience)
                if answer.status not in (401, 403):
                    break
            return answer


class UnauthorizedEndsPolling(Fault):
    """After a poll answered 401 it never polls again."""

    name, rules = "unauthorized-ends-polling", ("RT-AUTH-62", "RT-SCHED-61")
    rows = ("CF-37",)
    needs = "a poll answered 401"

    class Worker(worker.Worker):
        """Gives up."""

        async def poll(self) -> Any:
            """Once refused, for ever silent."""
            answer = await self.runtime.api.poll(self.types())
            if answer.status in (401, 403):
                await asyncio.Event().wait()
            return self.listed(answer)


class UnknownCodeEndsIt(Fault):
    """An error code that it does not know ends the process."""

    name, rules = "unknown-code-ends-it", ("RT-ERR-85", "RT-SCHED-61")
    needs = "an answer with an error code of no list"

    class Api(api.Api):
        """Knows those that are written down."""

        async def call(self, method: str, path: str, body: Any = None, patience: float = api.PATIENCE) -> Answer:
            """Panics at others."""
            answer = await super().call(method, path, body, patience)
            if answer.status >= 400 and answer.code and answer.code not in _KNOWN:
                os._exit(70)
            return answer


class UnknownCodeIsFinal(Fault):
    """An error code that it does not know is final for it, a 5xx included."""

    name, rules = "unknown-code-is-final", ("RT-ERR-84", "RT-RES-85", "RT-HB-61")
    needs = "a 503 with an error code of no list on a result or a heartbeat"

    class Api(api.Api):
        """Judges by the code."""

        async def call(self, method: str, path: str, body: Any = None, patience: float = api.PATIENCE) -> Answer:
            """An unknown 5xx is as good as a conflict."""
            answer = await super().call(method, path, body, patience)
            if answer.status >= 500 and answer.code and answer.code not in _KNOWN:
                return Answer(409, answer.body, answer.headers)
            return answer


class UnknownPropertyStopsIt(Fault):
    """Answers to a lock are read strictly: a property that it does not know makes it drop the job."""

    name, rules = "unknown-property-stops-it", ("RT-ERR-85", "RT-POLL-72")
    needs = "a lock's or a poll's answer with an unknown property"

    class Api(api.Api):
        """Reads as the schema of its day has it."""

        async def call(self, method: str, path: str, body: Any = None, patience: float = api.PATIENCE) -> Answer:
            """Refuses what is new."""
            answer = await super().call(method, path, body, patience)
            said = answer.body
            entries = said.get("jobs") if isinstance(said, dict) and isinstance(said.get("jobs"), list) else []
            for part in (said, *(entries or ())):
                names = set(part) if answer.ok and isinstance(part, dict) else set()
                if names & {"jobs", "lockUntil", "id"} and names - _PROPERTIES:
                    raise Lost("unknown property")
            return answer


_KNOWN = (
    "JOB_ALREADY_LOCKED",
    "LOCK_NOT_HELD",
    "UNAUTHORIZED",
    "SNAPSHOT_EXPIRED",
    "JOB_NOT_FOUND",
    "SNAPSHOT_NOT_FOUND",
    "CREDENTIAL_NOT_FOUND",
    "CREDENTIAL_INVALID",
    "RESULT_ALREADY_EXISTS",
    "RESULT_SCHEMA_UNSUPPORTED",
    "RUNTIME_VERSION_INCOMPATIBLE",
    "INTERNAL_ERROR",
    "INVALID_REQUEST",
    "NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "PAYLOAD_TOO_LARGE",
    "UNSUPPORTED_MEDIA_TYPE",
    "JOB_CANCELLED",
)
_PROPERTIES = {
    *("jobs", "jobId", "status", "lockUntil", "attemptNo", "apiKeyMode", "credentialId", "modelProvider", "modelName"),
    *("timeoutSeconds", "params", "id", "jobType", "targetType", "targetId", "priority", "snapshotId"),
    *("promptVersion", "outputSchemaVersion"),
}


class GuessesJobs(Fault):
    """After each poll it asks for the lock of a job that no poll listed."""

    name, rules = "guesses-jobs", ("RT-AUTH-09",)
    needs = "a poll"

    class Worker(worker.Worker):
        """Does not wait to be told."""

        async def poll(self) -> list[Job] | None:
            """And one more."""
            found = await super().poll()
            with contextlib.suppress(Lost):
                await self.runtime.api.call("POST", "/jobs/job-of-yesterday/lock", self.runtime.api.signed())
            return found


class RepeatsFinalAnswers(Fault):
    """What was answered with a code that is not retryable is asked again, once."""

    name, rules = "repeats-final-answers", ("RT-ERR-16",)
    needs = "a snapshot or a credential answered 404 or 422"

    class Api(api.Api):
        """Hopes for another answer."""

        async def call(self, method: str, path: str, body: Any = None, patience: float = api.PATIENCE) -> Answer:
            """Once more."""
            answer = await super().call(method, path, body, patience)
            if answer.status in (404, 422) and path.endswith(("/snapshot", "/resolve")):
                answer = await super().call(method, path, body, patience)
            return answer
