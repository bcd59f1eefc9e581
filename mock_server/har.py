"""Journal entries as HTTP Archive 1.2, which browsers' developer tools and proxies read."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from importlib.metadata import version
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson

from mock_server.journal import MAX_BODY, Entry, cut_mark, headers

_HTTP = "HTTP/1.1"
_CREATOR = {"name": "contract serve", "version": version("runtime-contract")}
_SAFE = "/:@!$&'()*+,;=~-._%"
_UNKNOWN = -1
"""What HAR has for a size that is not known."""

HEAD = b'{"log":{"version":"1.2","creator":' + orjson.dumps(_CREATOR) + b',"entries":['
"""What stands before the exchanges; a comma stands between two of them."""


def tail(comment: str = "") -> bytes:
    """What stands after the exchanges."""
    return b"]" + (b',"comment":' + orjson.dumps(comment) if comment else b"") + b"}}"


def exchange(world_path: str, entry: Entry) -> dict[str, Any]:
    """One exchange of the world whose paths begin with ``world_path``. Names with an underscore are the journal's."""
    sent, answered = headers(entry.request_headers), headers(entry.response_headers)
    # As any client writes it: what stands in a secret's place has brackets, which no URL has here.
    target = quote(world_path + entry.path, safe=_SAFE)
    target += f"?{quote(entry.query, safe=_SAFE + '?')}" if entry.query else ""
    request = {
        "method": entry.method,
        "url": f"http://{sent.get('host', 'localhost')}{target}",
        "httpVersion": _HTTP,
        "cookies": [],
        "headers": _pairs(sent),
        "queryString": [{"name": k, "value": v} for k, v in parse_qsl(entry.query, keep_blank_values=True)],
        "headersSize": _UNKNOWN,
        "bodySize": entry.request_bytes,
    }
    if entry.request_bytes:
        text, comment = _body(entry.request_body, entry.request_bytes)
        request["postData"] = {"mimeType": sent.get("content-type", ""), "params": [], "text": text, **comment}
    text, comment = _body(entry.response_body, entry.response_bytes)
    mime = answered.get("content-type", "application/octet-stream" if entry.response_bytes else "")
    response = {
        "status": entry.status,
        "statusText": _phrase(entry.status),
        "httpVersion": _HTTP,
        "cookies": [],
        "headers": _pairs(answered),
        "content": {"size": entry.response_bytes, "mimeType": mime, "text": text, **comment},
        "redirectURL": "",
        "headersSize": _UNKNOWN,
        "bodySize": entry.response_bytes,
    }
    return {
        "startedDateTime": datetime.fromtimestamp(entry.real_at / 1000, UTC).isoformat(timespec="microseconds"),
        "time": entry.duration_ms,
        "request": request,
        "response": response,
        "cache": {},
        "timings": {"send": 0, "wait": entry.duration_ms, "receive": 0},
        "_number": entry.number,
        "_world": world_path or "/",
        "_at": entry.at,
        "_operationId": entry.operation_id,
        "_jobId": entry.job_id,
        "_caller": entry.caller,
        "_jobStatus": entry.job_status,
        "_lockedBy": entry.locked_by,
        "_lockUntil": entry.lock_until,
        "_verdict": entry.verdict,
        "_errorCode": entry.error_code,
        "_sightings": None if entry.sightings is None else orjson.loads(entry.sightings),
        "_fault": None if entry.fault is None else orjson.loads(entry.fault),
        "_model": None if entry.model is None else orjson.loads(entry.model),
    }


def _pairs(found: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in found.items()]


def _body(body: str, size: int) -> tuple[str, dict[str, str]]:
    """A body's text, and a comment where it is cut."""
    if size <= MAX_BODY:
        return body, {}
    return body.removesuffix(cut_mark(size)), {"comment": f"cut after {MAX_BODY} characters; it had {size} bytes"}


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
