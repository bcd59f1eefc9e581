"""Secrets where they do not belong, by the kind of place: requests, and the process's own output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.calls import MODEL, Sighting
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules.logs import LOGS, has_key_field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History

MARK = "[redacted]"
"""What stands in a recording in the place of a secret."""
TOKEN, KEY = "service token", "model key"


def _keyed(history: History) -> bool:
    """Whether the Runtime had a model key in its hands, and its requests were searched for it."""
    resolved = any(call.ok and call.told("apiKey") for call in history.of("resolveCredential"))
    return history.facts.searched and (resolved or any(call.key in ("right", "wrong") for call in history.of(MODEL)))


def _watched(history: History) -> bool:
    """Whether the process's own output was seen."""
    return any(True for _ in history.happened("started"))


def _sighted(history: History, wanted: Callable[[Call, Sighting], bool], expected: str) -> Iterator[Finding]:
    for call in history.calls:
        for sighting in call.sightings:
            if wanted(call, sighting):
                yield broken(call, expected, f"{_what(sighting)} in the {sighting.place} of {call.name}")


def _printed(history: History, wanted: Callable[[Sighting], bool], expected: str) -> Iterator[Finding]:
    for at, sighting, around in history.output:
        if wanted(sighting):
            yield broken(at, expected, f"{_what(sighting)} on the process's output: {around[:120]}")


def _what(sighting: Sighting) -> str:
    return f"the {sighting.secret}{', encoded,' if sighting.form == 'encoded' else ''}"


def _judged(found: Iterator[Finding], history: History, *, arose: bool) -> Iterator[Finding]:
    """What was found; where nothing was, that the rule was kept, if its situation arose."""
    faults = list(found)
    yield from faults
    if arose and not faults:
        yield kept(history.end)


@monitor("RT-AUTH-63")
def service_token(history: History) -> Iterator[Finding]:
    """The service token appears nowhere but in its header, in no form."""

    def found() -> Iterator[Finding]:
        expected = "RUNTIME_SERVICE_TOKEN only in the header x-internal-api-key"
        yield from _sighted(history, lambda _, sighting: sighting.secret == TOKEN, expected)
        yield from _printed(history, lambda sighting: sighting.secret == TOKEN, expected)

    used = any("x-internal-api-key" in call.headers for call in history.calls)
    yield from _judged(found(), history, arose=history.facts.searched and used)


def _plain(call: Call, sighting: Sighting) -> bool:
    return sighting.secret == KEY and sighting.form == "plain"


def _marked(value: Any) -> bool:
    """Whether a secret stood somewhere in some JSON."""
    if isinstance(value, dict):
        return any(MARK in name or _marked(item) for name, item in value.items())
    if isinstance(value, list):
        return any(_marked(item) for item in value)
    return isinstance(value, str) and MARK in value


def _in_raw_error(call: Call, sighting: Sighting) -> bool:
    """Whether a key stood in a failure's ``rawError``."""
    return (
        _plain(call, sighting)
        and sighting.place == "body"
        and call.operation == "failJob"
        and _marked(call.get("rawError"))
    )


def _elsewhere(call: Call, sighting: Sighting) -> bool:
    """Whether a key stood, plain, in a place that no narrower rule has."""
    if not _plain(call, sighting) or sighting.place == "query":
        return False
    if sighting.place == "body" and call.operation == LOGS:
        return not has_key_field(call.body)  # RT-LOG-08
    if _in_raw_error(call, sighting):
        return _marked({name: value for name, value in call.body.items() if name != "rawError"})
    return True


@monitor("RT-FAIL-09")
def key_in_raw_error(history: History) -> Iterator[Finding]:
    """The model key is not in a failure's ``rawError``."""
    raw = any(call.get("rawError") for call in history.of("failJob"))
    yield from _judged(
        _sighted(history, _in_raw_error, "no model key in rawError"), history, arose=raw and _keyed(history)
    )


@monitor("RT-CRED-08")
def key_in_request(history: History) -> Iterator[Finding]:
    """The model key is in no body, path or header but the model's ``authorization``."""
    expected = "the model key only in the header authorization of model calls"
    yield from _judged(_sighted(history, _elsewhere, expected), history, arose=_keyed(history))


@monitor("RT-CRED-77")
def key_in_query(history: History) -> Iterator[Finding]:
    """The model key is in no query string."""

    def wanted(call: Call, sighting: Sighting) -> bool:
        return _plain(call, sighting) and sighting.place == "query"

    yield from _judged(_sighted(history, wanted, "no model key in a query string"), history, arose=_keyed(history))


@monitor("RT-CRED-78")
def key_in_output(history: History) -> Iterator[Finding]:
    """The model key is not on the process's own output."""

    def wanted(sighting: Sighting) -> bool:
        return sighting.secret == KEY and sighting.form == "plain"

    arose = _keyed(history) and _watched(history)
    yield from _judged(_printed(history, wanted, "no model key on the process's output"), history, arose=arose)


@monitor("RT-CRED-79")
def key_encoded(history: History) -> Iterator[Finding]:
    """The model key is nowhere in URL-encoded, base64 or hex form: not in a request, not on the process's output."""

    def found() -> Iterator[Finding]:
        expected = "the model key in no encoded form"
        yield from _sighted(
            history, lambda _, sighting: sighting.secret == KEY and sighting.form == "encoded", expected
        )
        yield from _printed(history, lambda sighting: sighting.secret == KEY and sighting.form == "encoded", expected)

    yield from _judged(found(), history, arose=_keyed(history))
