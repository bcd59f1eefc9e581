"""Faults of invocation logs."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime import api, logs, model, run
from conformance.examples.python_runtime.failures import Failure
from conformance.examples.python_runtime.faulty import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.examples.python_runtime.api import Answer
    from conformance.examples.python_runtime.logs import Entry
    from conformance.examples.python_runtime.run import Result


_LATE = 12.2


class NoLogForFailures(Fault):
    """Model calls that failed have no log."""

    name, rules = "no-log-for-failures", ("RT-LOG-09", "RT-LOG-71")
    rows = ("CF-52",)
    needs = "a model call that fails"

    class Logs(logs.Logs):
        """Forgets them."""

        def add(self, entry: Entry) -> None:
            """The good ones."""
            if entry["success"] or entry["errorCode"] == "ABORTED":
                super().add(entry)


class FailuresLoggedAsSuccess(Fault):
    """Model calls that failed are logged as successes, broken streams too."""

    name, rules = "failures-logged-as-success", ("RT-LOG-09",)
    rows = ("CF-52",)
    needs = "a model call that fails"

    class Logs(logs.Logs):
        """Is content."""

        def add(self, entry: Entry) -> None:
            """All good."""
            super().add({**entry, "success": True})


class NoLogForAborted(Fault):
    """Model calls that were aborted have no log."""

    name, rules = "no-log-for-aborted", ("RT-LOG-70", "RT-LOG-71")
    rows = ("CF-52",)
    needs = "a cancel, a lost lock or a shutdown while the model is called"

    class Logs(logs.Logs):
        """Forgets them."""

        def add(self, entry: Entry) -> None:
            """Those that ended."""
            if entry["errorCode"] != "ABORTED":
                super().add(entry)


class AbortedLoggedAsSuccess(Fault):
    """Model calls that were aborted are logged as successes."""

    name, rules = "aborted-logged-as-success", ("RT-LOG-70",)
    rows = ("CF-52",)
    needs = "a cancel, a lost lock or a shutdown while the model is called"

    class Logs(logs.Logs):
        """Is content."""

        def add(self, entry: Entry) -> None:
            """Not a failure."""
            super().add({**entry, "success": entry["success"] or entry["errorCode"] == "ABORTED"})


class OneTrace(Fault):
    """Every log of the process has the same trace."""

    name, rules = "one-trace", ("RT-LOG-71",)
    rows = ("CF-52",)
    needs = "two model calls"

    class Model(model.Model):
        """Traces itself."""

        def trace_id(self) -> str:
            """Of the process."""
            return f"trace-{self.config.instance_id}"


class LogsHeldBack(Fault):
    """Logs are collected until there are a hundred."""

    name, rules = "logs-held-back", ("RT-LOG-71", "RT-LOG-09")
    rows = ("CF-52",)
    needs = "a model call, and ten seconds"

    class Logs(logs.Logs):
        """Saves requests."""

        held: list[Entry]

        def add(self, entry: Entry) -> None:
            """Not yet."""
            self.held = [*getattr(self, "held", []), entry]
            if len(self.held) == 100:
                self.send(self.held)
                self.held = []


class LogsLate(Fault):
    """Logs are sent twelve seconds after their calls."""

    name, rules = "logs-late", ("RT-LOG-72",)
    rows = ("CF-52",)
    needs = "a model call, and twelve seconds"

    class Logs(logs.Logs):
        """Takes its time."""

        async def deliver(self, entries: list[Entry]) -> None:
            """Later."""
            await asyncio.sleep(_LATE)
            await super().deliver(entries)


class LogFailureFailsJob(Fault):
    """Where the log of its call is not taken, a job fails."""

    name, rules = "log-failure-fails-job", ("RT-LOG-10",)
    rows = ("CF-53",)
    needs = "invocation logs answered 500, 401 or 413"

    class Logs(logs.Logs):
        """Tells how it went."""

        taken = True

        async def deliver(self, entries: list[Entry]) -> None:
            """Once."""
            try:
                self.taken = (await self.runtime.api.logs(entries)).ok
            except api.Lost:
                self.taken = False

    class Run(run.Run):
        """Minds."""

        async def report(self, outcome: Result | Failure) -> None:
            """Of the log."""
            await self.runtime.logs.flush(10)
            if not getattr(self.runtime.logs, "taken", True):
                outcome = Failure("INTERNAL_ERROR", "The log could not be submitted")
            await super().report(outcome)


class WaitsForLogs(Fault):
    """A report waits until the log of the call is taken, however long."""

    name, rules = "waits-for-logs", ("RT-LOG-10",)
    rows = ("CF-53",)
    needs = "invocation logs answered 500, or not at all, for ever"

    class Logs(logs.Logs):
        """Does not give up."""

        async def deliver(self, entries: list[Entry]) -> None:
            """Until taken."""
            while True:
                try:
                    if (await self.runtime.api.logs(entries)).ok:
                        return
                except api.Lost:
                    pass
                await asyncio.sleep(0.5)

    class Run(run.Run):
        """Waits."""

        async def report(self, outcome: Result | Failure) -> None:
            """First the log."""
            while self.runtime.logs.sending:
                await self.runtime.logs.flush(1)
            await super().report(outcome)


class LogFailureEndsIt(Fault):
    """A log that is refused ends the process."""

    name, rules = "log-failure-ends-it", ("RT-LOG-10",)
    rows = ("CF-53",)
    needs = "invocation logs answered 4xx or 5xx"

    class Api(api.Api):
        """Panics."""

        async def logs(self, entries: Sequence[Mapping[str, Any]]) -> Answer:
            """Or dies."""
            answer = await super().logs(entries)
            if not answer.ok:
                os._exit(70)
            return answer


class GuessedTokens(Fault):
    """Where the model does not tell its usage, logs have a guess."""

    name, rules = "guessed-tokens", ("RT-LOG-73",)
    needs = "a completion without usage, or a call that fails"

    class Logs(logs.Logs):
        """Guesses."""

        def add(self, entry: Entry) -> None:
            """A thousand."""
            guess = {} if entry["totalTokens"] else {"inputTokens": 800, "outputTokens": 200, "totalTokens": 1000}
            super().add({**entry, **guess})


class LogNotInBatch(Fault):
    """A log is sent by itself, not in a list."""

    name, rules = "log-not-in-batch", ("RT-LOG-02",)
    needs = "a model call"

    class Api(api.Api):
        """One at a time."""

        async def logs(self, entries: Sequence[Mapping[str, Any]]) -> Answer:
            """Each alone."""
            answer = None
            for entry in entries:
                answer = await self.call("POST", "/invocation-logs", entry)
            return answer or await super().logs(entries)
