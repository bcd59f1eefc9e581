"""Faults of form: a field that is missing, of another type, or called something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from conformance.examples.python_runtime import api, logs
from conformance.examples.python_runtime.faulty import Fault

if TYPE_CHECKING:
    from conformance.examples.python_runtime.api import Answer
    from conformance.examples.python_runtime.logs import Entry


class _Form(api.Api):
    """Sends other bodies to the operation whose path ends so."""

    end: ClassVar[str]
    without: ClassVar[str] = ""
    instead: ClassVar[dict[str, Any]] = {}

    def changed(self, body: dict[str, Any]) -> dict[str, Any]:
        """The other body."""
        return {name: value for name, value in {**body, **self.instead}.items() if name != self.without}

    async def call(self, method: str, path: str, body: Any = None, patience: float = api.PATIENCE) -> Answer:
        """As usual, with the other body."""
        return await super().call(method, path, self.changed(body) if path.endswith(self.end) else body, patience)


class _LogForm(logs.Logs):
    """Sends logs with other values, or (None) without some fields."""

    instead: ClassVar[dict[str, Any]]

    def add(self, entry: Entry) -> None:
        """With those."""
        super().add({name: value for name, value in {**entry, **self.instead}.items() if name not in self.left_out()})

    def left_out(self) -> set[str]:
        """Names of what is missing."""
        return {name for name, value in self.instead.items() if value is None}


class PollWithoutInstance(Fault):
    """Polls do not say whose they are."""

    name, rules = "poll-without-instance", ("RT-POLL-03",)
    needs = "a poll"

    class Api(_Form):
        """Another form."""

        end = "/jobs/poll"
        without = "runtimeInstanceId"


class PollWithTypeText(Fault):
    """Polls name the types in one text."""

    name, rules = "poll-with-type-text", ("RT-POLL-04",)
    needs = "a poll"

    class Api(_Form):
        """Another form."""

        end = "/jobs/poll"
        instead: ClassVar = {"supportedJobTypes": "learning_state_analysis,quiz_generation"}


class LimitAsText(Fault):
    """Polls tell as a text how many jobs they want."""

    name, rules = "limit-as-text", ("RT-POLL-05",)
    needs = "a poll"

    class Api(_Form):
        """Another form."""

        end = "/jobs/poll"
        instead: ClassVar = {"limit": "10"}


class LockWithoutInstance(Fault):
    """Locks do not say whose they are."""

    name, rules = "lock-without-instance", ("RT-LOCK-02",)
    needs = "a job"

    class Api(_Form):
        """Another form."""

        end = "/lock"
        without = "runtimeInstanceId"


class HeartbeatWithoutInstance(Fault):
    """Heartbeats do not say whose they are."""

    name, rules = "heartbeat-without-instance", ("RT-HB-02",)
    needs = "a job"

    class Api(_Form):
        """Another form."""

        end = "/heartbeat"
        without = "runtimeInstanceId"


class ResultWithoutInstance(Fault):
    """Results do not say whose they are."""

    name, rules = "result-without-instance", ("RT-RES-03",)

    class Api(_Form):
        """Another form."""

        end = "/result"
        without = "runtimeInstanceId"


class ResultWithoutVersion(Fault):
    """Results do not name their schema."""

    name, rules = "result-without-version", ("RT-RES-04",)

    class Api(_Form):
        """Another form."""

        end = "/result"
        without = "schemaVersion"


class ResultIsOk(Fault):
    """Results have the status `ok`."""

    name, rules = "result-is-ok", ("RT-RES-05",)

    class Api(_Form):
        """Another form."""

        end = "/result"
        instead: ClassVar = {"status": "ok"}


class ResultAsText(Fault):
    """Results hold the output as text."""

    name, rules = "result-as-text", ("RT-RES-07",)

    class Api(_Form):
        """Another form."""

        end = "/result"
        instead: ClassVar = {"validatedOutput": "{}"}


class ResultWithoutAttempt(Fault):
    """Results do not say of which attempt they are."""

    name, rules = "result-without-attempt", ("RT-RES-11",)

    class Api(_Form):
        """Another form."""

        end = "/result"
        without = "attemptNo"


class ResultWithoutHash(Fault):
    """Results have no hash."""

    name, rules = "result-without-hash", ("RT-RES-12",)

    class Api(_Form):
        """Another form."""

        end = "/result"
        without = "outputHash"


class NoUsage(Fault):
    """Results do not tell what they used."""

    name, rules = "no-usage", ("RT-RES-09",)

    class Api(_Form):
        """Another form."""

        end = "/result"
        without = "usage"


class UsageAsText(Fault):
    """Results count tokens in texts."""

    name, rules = "usage-as-text", ("RT-RES-09",)

    class Api(_Form):
        """Another form."""

        end = "/result"
        instead: ClassVar = {"usage": {"inputTokens": "12", "outputTokens": "5", "totalTokens": "17"}}


class ValidationErrorsAsObject(Fault):
    """Results have an object where the list of errors belongs."""

    name, rules = "validation-errors-as-object", ("RT-RES-08",)

    class Api(_Form):
        """Another form."""

        end = "/result"
        instead: ClassVar = {"validationErrors": {}}


class FailureWithoutInstance(Fault):
    """Failures do not say whose they are."""

    name, rules = "failure-without-instance", ("RT-FAIL-02",)
    needs = "a job that fails"

    class Api(_Form):
        """Another form."""

        end = "/fail"
        without = "runtimeInstanceId"


class FailureWithoutCode(Fault):
    """Failures have a number for a code."""

    name, rules = "failure-without-code", ("RT-FAIL-03",)
    needs = "a job that fails"

    class Api(_Form):
        """Another form."""

        end = "/fail"
        instead: ClassVar = {"errorCode": 17}


class FailureWithoutMessage(Fault):
    """Failures have no text."""

    name, rules = "failure-without-message", ("RT-FAIL-04",)
    needs = "a job that fails"

    class Api(_Form):
        """Another form."""

        end = "/fail"
        without = "errorMessage"


class FlagAsText(Fault):
    """The flag of a failure is a text."""

    name, rules = "flag-as-text", ("RT-FAIL-05",)
    needs = "a job that fails"

    class Api(_Form):
        """Another form."""

        end = "/fail"
        instead: ClassVar = {"retryable": "false"}


class RawErrorAsObject(Fault):
    """Failures have an object for `rawError`."""

    name, rules = "raw-error-as-object", ("RT-FAIL-06",)
    needs = "a job that fails"

    class Api(_Form):
        """Another form."""

        end = "/fail"
        instead: ClassVar = {"rawError": {"status": 500}}


class NamesInSnakeCase(Fault):
    """Resolves name their fields as Rust does."""

    name, rules = "names-in-snake-case", ("RT-CRED-02", "RT-DB-38")
    needs = "a job"

    class Api(_Form):
        """Another form."""

        end = "/resolve"

        def changed(self, body: dict[str, Any]) -> dict[str, Any]:
            """With underscores."""
            return {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): body[name] for name in body}


class LogWithoutInstance(Fault):
    """Logs do not say whose they are, nor name their trace."""

    name, rules = "log-without-instance", ("RT-LOG-03", "RT-LOG-71")
    needs = "a model call"

    class Logs(_LogForm):
        """Another form."""

        instead: ClassVar = {"runtimeInstanceId": None, "traceId": None}


class LogWithoutModel(Fault):
    """Logs do not say which model was called."""

    name, rules = "log-without-model", ("RT-LOG-04",)
    needs = "a model call"

    class Logs(_LogForm):
        """Another form."""

        instead: ClassVar = {"model": None}


class LogWithPromptNumber(Fault):
    """Logs number their prompts."""

    name, rules = "log-with-prompt-number", ("RT-LOG-05",)
    needs = "a model call"

    class Logs(_LogForm):
        """Another form."""

        instead: ClassVar = {"promptName": 17}


class LogWithLatencyText(Fault):
    """Logs tell times in texts."""

    name, rules = "log-with-latency-text", ("RT-LOG-06",)
    needs = "a model call"

    class Logs(_LogForm):
        """Another form."""

        instead: ClassVar = {"latencyMs": "12 ms"}


class LogWithSuccessNumber(Fault):
    """Logs tell success by 1."""

    name, rules = "log-with-success-number", ("RT-LOG-07",)
    needs = "a model call"

    class Logs(_LogForm):
        """Another form."""

        instead: ClassVar = {"success": 1}
