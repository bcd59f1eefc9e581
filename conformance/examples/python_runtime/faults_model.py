"""Faults of judging what the model answers, and of the time that it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from conformance.examples.python_runtime import model, outputs, reports, run
from conformance.examples.python_runtime.failures import JobFailed
from conformance.examples.python_runtime.faulty import Fault

if TYPE_CHECKING:
    from conformance.examples.python_runtime.config import Config
    from conformance.examples.python_runtime.failures import Failure
    from conformance.examples.python_runtime.inputs import Credential
    from conformance.examples.python_runtime.jobs import Hold
    from conformance.examples.python_runtime.model import Completion, Messages
    from conformance.examples.python_runtime.outputs import Output

_PATIENT = 1e6


class _OtherFlag(reports.Reports):
    """Sends the wrong flag with one code."""

    code: ClassVar[str]

    def retryable(self, failure: Failure) -> bool:
        """Turned round."""
        return super().retryable(failure) != (failure.code == self.code)


class _OtherCode(model.Model):
    """Takes some statuses for others."""

    codes: ClassVar[dict[int, str]]

    def code(self, status: int) -> str:
        """From the table, or as usual."""
        return self.codes.get(status) or super().code(status)


class RateLimitFinal(Fault):
    """A rate limit of the model is reported as not retryable."""

    name, rules = "rate-limit-final", ("RT-RETRY-09", "RT-FAIL-70")
    rows = ("CF-37",)
    needs = "the model answers 429"

    class Reports(_OtherFlag):
        """Gives up."""

        code = "MODEL_RATE_LIMIT"


class RateLimitAsError(Fault):
    """A rate limit of the model is reported as an error of the provider."""

    name, rules = "rate-limit-as-error", ("RT-RETRY-09",)
    rows = ("CF-37",)
    needs = "the model answers 429"

    class Model(_OtherCode):
        """Knows one class."""

        codes: ClassVar = {429: "TEMPORARY_PROVIDER_ERROR"}


class UnauthorizedRetryable(Fault):
    """A key that the model refuses is reported as retryable."""

    name, rules = "unauthorized-retryable", ("RT-RETRY-14", "RT-FAIL-70")
    rows = ("CF-37",)
    needs = "the model answers 401"

    class Reports(_OtherFlag):
        """Hopes."""

        code = "INVALID_CREDENTIAL"


class ForbiddenAsError(Fault):
    """402 and 403 of the model are reported as errors of the provider."""

    name, rules = "forbidden-as-error", ("RT-RETRY-60",)
    rows = ("CF-37",)
    needs = "the model answers 402 or 403"

    class Model(_OtherCode):
        """Knows 401 alone."""

        codes: ClassVar = {402: "TEMPORARY_PROVIDER_ERROR", 403: "TEMPORARY_PROVIDER_ERROR"}


class RequestTimeoutAsRefusal(Fault):
    """408 of the model is taken for a refusal like other 4xx."""

    name, rules = "request-timeout-as-refusal", ("RT-RETRY-61",)
    rows = ("CF-37",)
    needs = "the model answers 408"

    class Model(_OtherCode):
        """Sees the first digit."""

        codes: ClassVar = {408: "MODEL_REQUEST_REFUSED"}


class RefusalRetryable(Fault):
    """Every 4xx of the model is reported as an error that may pass."""

    name, rules = "refusal-retryable", ("RT-RETRY-62",)
    rows = ("CF-37",)
    needs = "the model answers 400, 404 or 422"

    class Model(_OtherCode):
        """Hopes."""

        codes: ClassVar = dict.fromkeys((400, 404, 405, 409, 410, 413, 415, 418, 422), "TEMPORARY_PROVIDER_ERROR")


class ProviderErrorFinal(Fault):
    """5xx of the model is reported as a refusal."""

    name, rules = "provider-error-final", ("RT-RETRY-11",)
    rows = ("CF-37",)
    needs = "the model answers 500, 502, 503 or 504"

    class Model(_OtherCode):
        """Gives up."""

        codes: ClassVar = dict.fromkeys(range(500, 600), "MODEL_REQUEST_REFUSED")


class BrokenAsTimeout(Fault):
    """A connection to the model that broke is reported as a timeout."""

    name, rules = "broken-as-timeout", ("RT-RETRY-10",)
    rows = ("CF-37",)
    needs = "the model's connection breaks"

    class Model(model.Model):
        """Knows one class."""

        def broken(self, error: Exception) -> JobFailed:
            """The other one."""
            del error
            return self.timed_out()


class TimeoutAsSchema(Fault):
    """A model that does not answer is reported as output of a wrong schema."""

    name, rules = "timeout-as-schema", ("RT-RETRY-64", "RT-RETRY-08")
    rows = ("CF-37",)
    needs = "the model never answers"

    class Model(model.Model):
        """Takes silence for nonsense."""

        def timed_out(self) -> JobFailed:
            """No text is no schema."""
            return JobFailed("INVALID_SCHEMA", "The model wrote nothing")


class SchemaRetryable(Fault):
    """Output that is not of its schema is reported as retryable."""

    name, rules = "schema-retryable", ("RT-RETRY-13", "RT-FAIL-70")
    rows = ("CF-37",)
    needs = "the model writes prose"

    class Reports(_OtherFlag):
        """Hopes for better."""

        code = "INVALID_SCHEMA"


class SnapshotRetryable(Fault):
    """A snapshot that can't be used is reported as retryable."""

    name, rules = "snapshot-retryable", ("RT-RETRY-12", "RT-FAIL-70", "RT-SNAP-62")
    rows = ("CF-37",)
    needs = "a snapshot that is missing, malformed or of an unknown version"

    class Reports(_OtherFlag):
        """Hopes for better."""

        code = "INVALID_SNAPSHOT"


class ProseAsResult(Fault):
    """Whatever the model writes is a result; what is no object is put into one."""

    name, rules = "prose-as-result", ("RT-RETRY-65",)
    needs = "the model writes prose, cut-off JSON, nothing, or a list"

    class Outputs(outputs.Outputs):
        """Takes all."""

        def read(self, text: str, version: str) -> Output:
            """As good as it gets."""
            try:
                return super().read(text, version)
            except JobFailed:
                return {"text": text}


class NoCompletionAsResult(Fault):
    """A success of the model that is no completion is taken for an empty output."""

    name, rules = "no-completion-as-result", ("RT-RETRY-63",)
    needs = "the model answers 200 with something else"

    class Model(model.Model):
        """Takes all."""

        def completion(self, content: bytes) -> Completion:
            """Empty."""
            try:
                return super().completion(content)
            except JobFailed:
                return model.Completion("{}")


class NoModelNoMatter(Fault):
    """Where the model refuses or can't be reached an empty output is the job's result."""

    name, rules = "no-model-no-matter", ("RT-RES-02", "RT-RETRY-60")
    needs = "the model refuses"

    class Model(model.Model):
        """Makes up for the model."""

        async def call(self, hold: Hold, credential: Credential, messages: Messages, number: int) -> Completion:
            """Empty."""
            try:
                return await super().call(hold, credential, messages, number)
            except JobFailed:
                return model.Completion("{}")


class WaitsForEver(Fault):
    """A model that never answers is waited for, without any limit."""

    name, rules = "waits-for-ever", ("RT-RETRY-67", "RT-RETRY-64")
    rows = ("CF-40",)
    needs = "the model never answers, a job with a short time limit"

    def configured(self, config: Config) -> Config:
        """No limit for a call."""
        return replace(config, model_timeout=_PATIENT)

    class Run(run.Run):
        """None for a job."""

        def time_left(self) -> float:
            """For ever."""
            return _PATIENT


class TimeoutUnreported(Fault):
    """A job that takes too long is killed without a report."""

    name, rules = "timeout-unreported", ("RT-RETRY-67", "RT-RETRY-64")
    rows = ("CF-40",)
    needs = "the model never answers, a job with a short time limit"

    def configured(self, config: Config) -> Config:
        """The job's limit alone."""
        return replace(config, model_timeout=_PATIENT)

    class Run(run.Run):
        """Tells nobody."""

        def out_of_time(self) -> Failure | None:
            """Nothing to say."""
            return None


class TimeoutFinal(Fault):
    """A job that took too long is reported as not retryable."""

    name, rules = "timeout-final", ("RT-RETRY-15", "RT-FAIL-70")
    rows = ("CF-37", "CF-40")
    needs = "the model never answers, a job with a short time limit"

    def configured(self, config: Config) -> Config:
        """The job's limit alone."""
        return replace(config, model_timeout=_PATIENT)

    class Reports(_OtherFlag):
        """Gives up."""

        code = "JOB_TIMEOUT"


class ModelTimeoutFinal(Fault):
    """A model call that took too long is reported as not retryable."""

    name, rules = "model-timeout-final", ("RT-RETRY-08", "RT-FAIL-70")
    rows = ("CF-37",)
    needs = "the model never answers"

    class Reports(_OtherFlag):
        """Gives up."""

        code = "MODEL_TIMEOUT"


class RepeatsBeyondTime(Fault):
    """Model calls that fail for a while are repeated for ever, the job's time limit or not."""

    name, rules = "repeats-beyond-time", ("RT-RETRY-67",)
    rows = ("CF-40",)
    needs = "the model answers 429 for ever, a job with a short time limit"

    class Run(run.Run):
        """Does not give up."""

        def again(self, code: str, number: int, pause: float) -> bool:
            """Always, where it can help."""
            del number, pause
            return code in ("MODEL_RATE_LIMIT", "TEMPORARY_PROVIDER_ERROR", "NETWORK_ERROR")

        def repeat_pause(self, number: int) -> float:
            """Never long."""
            del number
            return 0.3

        def time_left(self) -> float:
            """For ever."""
            return _PATIENT


class ReportsFirstFailure(Fault):
    """It repeats a model call that failed, and when all fail reports how the first one did."""

    name, rules = "reports-first-failure", ("RT-RETRY-66",)
    needs = "a model that fails a job's calls in different ways"

    def configured(self, config: Config) -> Config:
        """Two calls."""
        return replace(config, model_tries=2)

    class Run(run.Run):
        """Remembers what it should not."""

        async def complete(self, credential: Credential, messages: Messages) -> Completion:
            """Twice, and then as it was at first."""
            first: JobFailed | None = None
            for number in range(self.config.model_tries):
                try:
                    return await self.runtime.model.call(self.hold, credential, messages, number)
                except JobFailed as failed:
                    first = first or failed
            raise first or AssertionError
