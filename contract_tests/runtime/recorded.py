"""From a recording (HTTP Archive 1.2) to histories: one for each Runtime in each world.

Recordings of ours tell more than the standard: fields that begin with an underscore, and ``log._scenarios``. One
without them is read as far as it goes: operations are found by their paths, secrets by what the recording itself shows.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import openapi
from contract_tests.runtime.calls import MODEL, Call, Sighting
from contract_tests.runtime.history import LOCK_SECONDS, Event, Facts, History, Probe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INSTANCE_HEADER = "x-runtime-instance-id"
KEY_HEADER = "x-internal-api-key"


class RecordingError(ValueError):
    """A recording that can't be read; the text names the place and the mend."""


def parse(text: str) -> dict[str, Any]:
    """The document of a recording. Raises :class:`RecordingError`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"it is no JSON ({error}); name an HTTP Archive (.har)") from None
    log = document.get("log") if isinstance(document, dict) else None
    if not isinstance(log, dict) or not isinstance(log.get("entries"), list):
        raise RecordingError("/log/entries is missing; name an HTTP Archive 1.2 (.har)")
    return log


Known = dict[tuple[str, int, float], Call]
"""Calls that were read before, by world, number and the instant that counts as zero."""


def histories(log: Mapping[str, Any], known: Known | None = None) -> list[History]:
    """A history for each Runtime in each world of a recording, in the order in which worlds appear.

    ``log`` is the archive's ``log``. ``known``: an empty dictionary that is kept from one reading of a recording that
    grows to the next, so that no exchange is read twice. Raises :class:`RecordingError` naming the entry that can't be
    read.
    """
    scenarios = log.get("_scenarios", {})
    if not isinstance(scenarios, dict):
        raise RecordingError("/log/_scenarios is no object; leave it out, or take the archive as it was written")
    worlds: dict[str, list[Mapping[str, Any]]] = {world: [] for world in scenarios}
    for i, entry in enumerate(log["entries"]):
        if not isinstance(entry, dict):
            raise RecordingError(f"/log/entries/{i} is no object")
        worlds.setdefault(entry.get("_world", "/"), []).append(entry | {"_place": f"/log/entries/{i}"})
    found: list[History] = []
    for world, entries in worlds.items():
        found += _of_world(world, entries, scenarios.get(world, {}), known)
    return found


def _of_world(
    world: str, entries: list[Mapping[str, Any]], told: Mapping[str, Any], known: Known | None = None
) -> list[History]:
    if not told:  # what we recorded ourselves came to the mock, all of it; and it is read again and again as it grows
        entries = _of_the_api(entries)
    starts = [_instant(entry) for entry in entries] + [event["at"] / 1000 for event in told.get("events", ())]
    zero = min(starts, default=0.0)
    calls = sorted((_call(entry, world, zero, known) for entry in entries), key=lambda call: (call.sent, call.number))
    calls = _linked(calls, world)
    runtime = told.get("runtime", {})
    events, probes = _events(told.get("events", ()), zero)
    others = set(runtime.get("others", ()))
    searched = any(entry.get("_sightings") is not None for entry in entries)
    facts = replace(_facts(told.get("scenario", "recording"), runtime), searched=searched)
    if runtime.get("instanceId"):
        own = [call for call in calls if _caller(call) not in others]
        return [History(facts, own, [call for call in calls if _caller(call) in others], probes, events, zero)]
    ids = dict.fromkeys(caller for call in calls if call.operation != MODEL and (caller := _caller(call)) is not None)
    if len(ids) <= 1:
        return [History(replace(facts, instance_id=next(iter(ids), None)), calls, [], probes, events, zero)]
    return [
        History(
            replace(facts, instance_id=id_),
            [call for call in calls if _caller(call) == id_],
            [call for call in calls if _caller(call) != id_],
            probes,
            events,
            zero,
        )
        for id_ in ids
    ]


def _of_the_api(entries: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The exchanges with the hosts of the API, and model calls: what else a proxy recorded is of no interest here."""
    asked = [(_place(entry), entry) for entry in entries]
    hosts = {host for (host, operation), _ in asked if operation not in (None, MODEL)}
    return [entry for (host, operation), entry in asked if host in hosts or operation is not None or not hosts]


def _place(entry: Mapping[str, Any]) -> tuple[str, str | None]:
    """The host and the operation of a request; an unreadable one is left to be told later."""
    request = entry.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        return "", MODEL
    parts = urlsplit(request["url"])
    world = entry.get("_world", "/")
    raw = parts.path.removeprefix(world.rstrip("/")) if world != "/" else parts.path
    return parts.netloc, _operation(str(request.get("method")), raw)[0]


def _facts(scenario: str, runtime: Mapping[str, Any]) -> Facts:
    def seconds(name: str) -> float | None:
        value = runtime.get(name)
        return None if value is None else value / 1000

    return Facts(
        scenario,
        runtime.get("instanceId"),
        runtime.get("lockSeconds", LOCK_SECONDS),
        seconds("heartbeatIntervalMs"),
        seconds("pollIntervalMs"),
        seconds("modelTimeoutMs"),
        runtime.get("ownKey"),
    )


def _events(told: Iterable[Mapping[str, Any]], zero: float) -> tuple[list[Event], list[Probe]]:
    events, probes = [], []
    for event in sorted(told, key=lambda event: event["at"]):
        at = event["at"] / 1000 - zero
        if event["kind"] == "health":
            came = (event["seconds"], event["status"], event["body"], event.get("headers", {}), event.get("instead"))
            probes.append(Probe(at, *came))
        else:
            events.append(Event(at, event["kind"], event))
    return events, probes


def _instant(entry: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(entry["startedDateTime"]).timestamp()
    except (KeyError, TypeError, ValueError):
        raise RecordingError(f"{entry['_place']}/startedDateTime is no ISO 8601 date and time") from None


def _call(entry: Mapping[str, Any], world: str, zero: float, known: Known | None) -> Call:
    at = (world, entry.get("_number", 0), zero)
    if known is not None and at in known:
        return known[at]
    try:
        call = _read(entry, world, zero)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"{entry['_place']} is no exchange of HTTP Archive 1.2 ({error})") from None
    if known is not None:
        known[at] = call
    return call


def _read(entry: Mapping[str, Any], world: str, zero: float) -> Call:
    request, response, sent = entry["request"], entry["response"], _instant(entry) - zero
    parts = urlsplit(request["url"])
    raw = parts.path.removeprefix(world.rstrip("/")) if world != "/" else parts.path
    operation, job = _operation(request["method"], raw)
    headers = _headers(request["headers"])
    body_text, cut = _text(request.get("postData"), request.get("bodySize", -1))
    cut = cut or _broken_off(headers, request.get("bodySize", -1))
    body = None if cut else _json(body_text)
    if operation is not None and job is None and isinstance(body, dict) and isinstance(body.get("jobId"), str):
        job = body["jobId"]
    fault: Mapping[str, Any] = entry.get("_fault") or {}
    model: Mapping[str, Any] = entry.get("_model") or {}
    got = fault.get("got", "all")
    content = response.get("content") or {}
    answer_text, answer_cut = _text(content, content.get("size", -1))
    if got == "altered" and "body" in fault:
        answer_text = fault["body"]
    elif fault.get("bytes") is not None:
        answer_text = answer_text.encode()[: fault["bytes"]].decode(errors="ignore")
    return Call(
        number=entry.get("_number", 0),
        sent=sent,
        ended=sent + max(entry["time"], 0) / 1000,
        operation=operation,
        method=request["method"],
        path=unquote(raw),
        query=parts.query,
        headers=headers,
        text=body_text,
        body=body,
        cut=cut,
        job=model.get("jobId") if operation == MODEL else job,
        status=response["status"],
        answer_headers=_headers(response["headers"]),
        answer_text=answer_text,
        answer=_json(answer_text) if got != "nothing" else None,
        heard=response["status"] > 0 and got not in ("nothing", "part"),
        fault=fault or None,
        sightings=tuple(
            Sighting(item["secret"], item["place"], item["form"]) for item in entry.get("_sightings") or ()
        ),
        key=model.get("key"),
        outcome=model.get("outcome"),
        answer_cut=answer_cut,
    )


def _linked(calls: list[Call], world: str) -> list[Call]:
    """Model calls with the resolve whose ``baseUrl`` they go to."""
    bases: dict[str, Call] = {}
    linked = []
    for call in calls:
        if call.operation == "resolveCredential" and call.status == 200:
            base = call.told("baseUrl")
            if isinstance(base, str):
                bases[unquote(urlsplit(base).path).removeprefix(world.rstrip("/")).rstrip("/")] = call
        if call.operation == MODEL:
            found = bases.get(call.path.removesuffix("/chat/completions"))
            call = replace(call, resolve=found, job=call.job or (found.job if found else None))
        linked.append(call)
    return linked


@cache
def _templates() -> list[tuple[str, re.Pattern[str], str]]:
    found = []
    for operation in openapi.load("runtime-api").operations.values():
        pattern = re.escape(operation.path).replace(r"\{jobId\}", "(?P<job>[^/]+)")
        found.append((operation.method, re.compile(pattern), operation.id))
    return found


def _operation(method: str, raw: str) -> tuple[str | None, str | None]:
    """The operation of a request and the job in its path."""
    for asked, pattern, id_ in _templates():
        found = pattern.fullmatch(raw)
        if found and asked == method:
            return id_, unquote(found["job"]) if "job" in found.groupdict() else None
    if method == "POST" and raw.endswith("/chat/completions"):
        return MODEL, None
    return None, None


def _caller(call: Call) -> str | None:
    """Who made a call: as the header has it, else the body; of a model call, whoever made the resolve."""
    if call.operation == MODEL:
        return _caller(call.resolve) if call.resolve else None
    header = call.headers.get(INSTANCE_HEADER)
    return header if header is not None else call.get("runtimeInstanceId")


def _headers(pairs: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {pair["name"].lower(): pair["value"] for pair in pairs}


def _text(content: Mapping[str, Any] | None, size: int) -> tuple[str, bool]:
    """The text of a body, and whether it is less than the whole."""
    if not content:
        return "", False
    text: str = content.get("text", "")
    if content.get("encoding") == "base64":
        text = base64.b64decode(text).decode("utf-8", "replace")
    return text, "comment" in content and size > len(text)


def _broken_off(headers: Mapping[str, str], size: int) -> bool:
    """Whether a request ended before its body was all there: the client went away, as one does that drops its work."""
    length = headers.get("content-length", "")
    return length.isdecimal() and 0 <= size < int(length)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
