"""Faults of telling how the process is."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime import health, worker
from conformance.examples.python_runtime.faulty import Fault

if TYPE_CHECKING:
    from conformance.examples.python_runtime.jobs import Hold


class _Told(health.Health):
    """Tells something else."""

    def changed(self, body: dict[str, Any]) -> dict[str, Any]:
        """What."""
        raise NotImplementedError

    def body(self) -> dict[str, Any]:
        """As usual, and changed."""
        return self.changed(super().body())


def _iso(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat()


class HealthCountsNothing(Fault):
    """Health tells of no active job, ever."""

    name, rules = "health-counts-nothing", ("RT-HEALTH-53",)
    needs = "health asked while a job runs"

    class Health(_Told):
        """Does not count."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """Zero."""
            return {**body, "activeJobs": 0}


class HealthCountsEnded(Fault):
    """Health tells of jobs as active that have ended long ago."""

    name, rules = "health-counts-ended", ("RT-HEALTH-53",)
    needs = "health asked after a job"

    class Worker(worker.Worker):
        """Keeps them."""

        async def run(self, hold: Hold) -> None:
            """And never lets go."""
            await super().run(hold)
            self.holds[hold.job.id] = hold


class HealthKnowsAJob(Fault):
    """Health tells of a last job before there was one: the start counts."""

    name, rules = "health-knows-a-job", ("RT-HEALTH-51",)
    needs = "health asked before the first job"

    class Health(_Told):
        """Has no null."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """The start."""
            return {**body, "lastJobAt": body["lastJobAt"] or body["startedAt"]}


class HealthForgetsJobs(Fault):
    """Health tells of no last job, ever."""

    name, rules = "health-forgets-jobs", ("RT-HEALTH-52",)
    needs = "health asked after a job"

    class Health(_Told):
        """Has no memory."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """None."""
            return {**body, "lastJobAt": None}


class HealthIsSilent(Fault):
    """Health is not answered while a job runs."""

    name, rules = "health-is-silent", ("RT-HEALTH-54",)
    needs = "health asked while a job runs"

    class Health(health.Health):
        """Is busy."""

        async def answer(self, method: str, path: str, head: bytes) -> tuple[int, dict[str, Any]]:
            """Not now."""
            if self.runtime.worker.holds:
                await asyncio.Event().wait()
            return await super().answer(method, path, head)


class HealthHangs(Fault):
    """Health takes every request, and answers none."""

    name, rules = "health-hangs", ("RT-HEALTH-03", "RT-HEALTH-54")
    needs = "health asked twice"

    class Health(health.Health):
        """Waits for something."""

        async def answer(self, method: str, path: str, head: bytes) -> tuple[int, dict[str, Any]]:
            """Never."""
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


class HealthIsNoHttp(Fault):
    """Health answers with a word, without HTTP."""

    name, rules = "health-is-no-http", ("RT-HEALTH-03",)
    needs = "health asked"

    class Health(health.Health):
        """For a probe of TCP."""

        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Says that it is there."""
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"imok\n")
            writer.close()


class HealthBusyIsIll(Fault):
    """Health answers 503 while a job runs."""

    name, rules = "health-busy-is-ill", ("RT-HEALTH-54", "RT-HEALTH-03")
    needs = "health asked while a job runs"

    class Health(health.Health):
        """Is busy."""

        async def answer(self, method: str, path: str, head: bytes) -> tuple[int, dict[str, Any]]:
            """Ill."""
            status, body = await super().answer(method, path, head)
            return (503 if self.runtime.worker.holds else status), body


class HealthWithoutVersion(Fault):
    """Health does not tell the version."""

    name, rules = "health-without-version", ("RT-HEALTH-06",)
    needs = "health asked"

    class Health(_Told):
        """Is silent."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """Without."""
            return {name: value for name, value in body.items() if name != "version"}


class HealthInSeconds(Fault):
    """Health tells instants in seconds."""

    name, rules = "health-in-seconds", ("RT-TIME-05",)
    rows = ("CF-26",)
    needs = "health asked"

    class Health(_Told):
        """Mixes units."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """By a thousand too little."""
            last = body["lastJobAt"]
            return {**body, "startedAt": body["startedAt"] // 1000, "lastJobAt": last and last // 1000}


class HealthWritesDates(Fault):
    """Health tells the last job by date and time, as a text."""

    name, rules = "health-writes-dates", ("RT-HEALTH-08", "RT-HEALTH-52")
    needs = "health asked after a job"

    class Health(_Told):
        """Writes for people."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """As ISO 8601."""
            last = body["lastJobAt"]
            return {**body, "lastJobAt": last and _iso(last)}


class HealthDatesItsStart(Fault):
    """Health tells by date and time, as a text, when the process started."""

    name, rules = "health-dates-its-start", ("RT-HEALTH-07",)
    needs = "health asked"

    class Health(_Told):
        """Writes for people."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """As ISO 8601."""
            return {**body, "startedAt": _iso(body["startedAt"])}


class HealthOfAnother(Fault):
    """Health tells another instance id than the one it was given."""

    name, rules = "health-of-another", ("RT-HEALTH-04",)
    rows = ("CF-62",)
    needs = "health asked"

    class Health(_Told):
        """Calls itself by its process."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """Its number."""
            return {**body, "runtimeInstanceId": f"runtime-{os.getpid()}"}


class HealthCountsInText(Fault):
    """Health tells the number of active jobs as a text."""

    name, rules = "health-counts-in-text", ("RT-HEALTH-09",)
    needs = "health asked"

    class Health(_Told):
        """Prints."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """As text."""
            return {**body, "activeJobs": str(body["activeJobs"])}


class HealthWantsKey(Fault):
    """Health asks for the service token."""

    name, rules = "health-wants-key", ("RT-HEALTH-10",)
    needs = "health asked without a key"

    class Health(health.Health):
        """Guards itself."""

        async def answer(self, method: str, path: str, head: bytes) -> tuple[int, dict[str, Any]]:
            """401 without it."""
            if self.runtime.config.token.encode() not in head:
                return 401, {"error": "unauthorized"}
            return await super().answer(method, path, head)


class HealthIsUp(Fault):
    """Health has the status `UP`."""

    name, rules = "health-is-up", ("RT-HEALTH-05",)
    needs = "health asked"

    class Health(_Told):
        """Says it otherwise."""

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """Up."""
            return {**body, "status": "UP"}
