"""RT-FAIL: the form of a failure, its flag, and that it is sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.runtime.monitors import Finding, monitor
from contract_tests.runtime.rules.repeats import again
from contract_tests.runtime.rules.retrying import flags
from contract_tests.runtime.rules.wire_shapes import carries, endpoint, is_string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.history import History


@monitor("RT-FAIL-01")
def fail_endpoint(history: History) -> Iterator[Finding]:
    """Failures go to POST /internal/runtime/jobs/{jobId}/fail."""
    yield from endpoint(history, "failJob", "fail", "POST /internal/runtime/jobs/{jobId}/fail")


@monitor("RT-FAIL-02")
def fail_instance(history: History) -> Iterator[Finding]:
    """A failure carries ``runtimeInstanceId``, a string."""
    yield from carries(history.of("failJob"), "runtimeInstanceId", is_string, "a string")


@monitor("RT-FAIL-03")
def fail_code(history: History) -> Iterator[Finding]:
    """A failure carries ``errorCode``, a string."""
    yield from carries(history.of("failJob"), "errorCode", is_string, "a string")


@monitor("RT-FAIL-04")
def fail_message(history: History) -> Iterator[Finding]:
    """A failure carries ``errorMessage``, a string."""
    yield from carries(history.of("failJob"), "errorMessage", is_string, "a string")


@monitor("RT-FAIL-05")
def fail_retryable(history: History) -> Iterator[Finding]:
    """A failure carries ``retryable``, a boolean."""
    yield from carries(history.of("failJob"), "retryable", lambda value: isinstance(value, bool), "true or false")


@monitor("RT-FAIL-06")
def fail_raw(history: History) -> Iterator[Finding]:
    """Where a failure has ``rawError`` it is a string, or null."""
    yield from carries(
        history.of("failJob"),
        "rawError",
        lambda value: value is None or is_string(value),
        "a string or null",
        required=False,
    )


@monitor("RT-FAIL-70")
def fail_flag(history: History) -> Iterator[Finding]:
    """The flag of a failure fits the table for its code."""
    yield from flags(history)


@monitor("RT-FAIL-71")
def fail_again(history: History) -> Iterator[Finding]:
    """After a lost or 5xx answer the same failure is sent again."""
    yield from again(history, "failJob", ("errorCode", "retryable"))
