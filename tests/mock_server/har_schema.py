"""HAR 1.2 as JSON Schema: the fields that the public specification requires, with their types."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
TIME = {"type": "number", "minimum": -1}


def record(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """An object; names that begin with an underscore are everybody's own."""
    properties = {**required, **optional, "comment": TEXT}
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
        "patternProperties": {"^_": {}},
    }


PAIR = record({"name": TEXT, "value": TEXT})
REQUEST = record(
    {
        "method": TEXT,
        "url": {"type": "string", "format": "uri"},
        "httpVersion": TEXT,
        "cookies": {"type": "array", "items": PAIR},
        "headers": {"type": "array", "items": PAIR},
        "queryString": {"type": "array", "items": PAIR},
        "headersSize": WHOLE,
        "bodySize": WHOLE,
    },
    postData=record({"mimeType": TEXT, "params": {"type": "array", "items": record({"name": TEXT})}, "text": TEXT}),
)
RESPONSE = record(
    {
        "status": WHOLE,
        "statusText": TEXT,
        "httpVersion": TEXT,
        "cookies": {"type": "array", "items": PAIR},
        "headers": {"type": "array", "items": PAIR},
        "content": record({"size": WHOLE, "mimeType": TEXT}, compression=WHOLE, text=TEXT, encoding=TEXT),
        "redirectURL": TEXT,
        "headersSize": WHOLE,
        "bodySize": WHOLE,
    }
)
ENTRY = record(
    {
        "startedDateTime": {"type": "string", "format": "date-time"},
        "time": {"type": "number", "minimum": 0},
        "request": REQUEST,
        "response": RESPONSE,
        "cache": {"type": "object", "maxProperties": 0},
        "timings": record(
            {"send": TIME, "wait": TIME, "receive": TIME}, blocked=TIME, dns=TIME, connect=TIME, ssl=TIME
        ),
    },
    pageref=TEXT,
    serverIPAddress=TEXT,
    connection=TEXT,
)
LOG = record(
    {
        "version": {"const": "1.2"},
        "creator": record({"name": TEXT, "version": TEXT}),
        "entries": {"type": "array", "items": ENTRY},
    }
)
_VALIDATOR = jsonschema_rs.Draft202012Validator(record({"log": LOG}), validate_formats=True)


def check_har(document: Any) -> list[dict[str, Any]]:
    """The entries of an archive that is one by the specification."""
    problems = [
        f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in _VALIDATOR.iter_errors(document)
    ]
    assert problems == []
    entries: list[dict[str, Any]] = document["log"]["entries"]
    return entries
