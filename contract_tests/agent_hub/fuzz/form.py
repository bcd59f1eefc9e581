"""What a request is to be answered by its form alone, in the order in which it is judged (HUB-ERR-65)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from contract_tests.fuzz import judging as shared
from contract_tests.fuzz.judging import JSON_MEDIA, Expected, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contract_tests.transport import Request

METADATA_BYTES = 2048
LARGEST_BODY = 20 * 2**20
"""Larger bodies than this may be refused for their size."""
_KEY = re.compile(r"[\x21-\x7e]{1,255}")

_BY_FIELD = {
    ("kind", "required"): "HUB-FIELD-01",
    ("kind", "enum"): "HUB-FIELD-01",
    ("projectId", "required"): "HUB-FIELD-02",
    ("prompt", "required"): "HUB-FIELD-06",
    ("prompt", "maxLength"): "HUB-FIELD-07",
    ("command", "required"): "HUB-FIELD-08",
    ("command", "maxLength"): "HUB-FIELD-09",
    ("timeoutSeconds", "minimum"): "HUB-FIELD-11",
    ("timeoutSeconds", "maximum"): "HUB-FIELD-11",
    ("mode", "enum"): "HUB-FIELD-13",
    ("priority", "minimum"): "HUB-FIELD-16",
    ("priority", "maximum"): "HUB-FIELD-16",
    ("maxAttempts", "minimum"): "HUB-FIELD-18",
    ("maxAttempts", "maximum"): "HUB-FIELD-18",
    ("externalId", "maxLength"): "HUB-FIELD-21",
    ("prompt", "kinds"): "HUB-FIELD-56",
    ("command", "kinds"): "HUB-FIELD-57",
    ("timeoutSeconds", "kinds"): "HUB-FIELD-58",
    ("mode", "kinds"): "HUB-FIELD-59",
    ("prompt", "pattern"): "HUB-FIELD-61",
    ("command", "pattern"): "HUB-FIELD-61",
    ("externalId", "minLength"): "HUB-FIELD-62",
    ("projectId", "minLength"): "HUB-FIELD-62",
    ("nodeId", "minLength"): "HUB-FIELD-62",
    ("callbackUrl", "pattern"): "HUB-FIELD-63",
    ("batchId", "pattern"): "HUB-BATCH-50",
    ("items", "minItems"): "HUB-SUB-51",
    ("items", "maxItems"): "HUB-SUB-51",
    ("metadata", "bytes"): "HUB-FIELD-51",
}
FORM = "HUB-SUB-53"
"""The rule of what no rule of its own forbids."""
_PARAMETERS = {"status": "HUB-LIST-63", "limit": "HUB-LIST-51", "cursor": "HUB-LIST-62"}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a submission's body."""

    index: int | None
    """The item; None where it is the body itself."""
    field: str | None
    """The property; None where it is the item or the body as a whole."""
    keyword: str
    rule: str

    @property
    def place(self) -> str:
        """A JSON Pointer."""
        return ("" if self.index is None else f"/items/{self.index}") + (
            "" if self.field is None else f"/{shared.escaped(self.field)}"
        )


class Described(shared.Described):
    """An operation of the hub as the specification describes it."""

    def __init__(self, operation_id: str) -> None:
        super().__init__("agent-hub", operation_id)

    @cached_property
    def kinds(self) -> Mapping[str, Mapping[str, list[str]]]:
        """Fields that jobs of each kind need, and that they can't have."""
        kinds: Mapping[str, Mapping[str, list[str]]] = self.contract.document["components"]["schemas"]["JobItem"][
            "x-kinds"
        ]
        return kinds

    @cached_property
    def query(self) -> Mapping[str, Any]:
        """The validators of query parameters whose form is judged, with whether they are integers."""
        found = {}
        for given in self.operation.document.get("parameters", ()):
            parameter = self.contract.resolve(given)
            if parameter["in"] == "query" and parameter["name"] in _PARAMETERS:
                found[parameter["name"]] = self.validator(parameter["schema"])
        return found

    def expects(self, request: Request, key: str) -> Expected:
        """What the request is to be answered by its form."""
        if request.headers.get("authorization") != f"Bearer {key}":
            return refused(401, "unauthorized", rules=["HUB-AUTH-01", "HUB-AUTH-50"])
        if self.body is None:
            return self._expects_of_query(request.path.partition("?")[2])
        given = request.headers.get("idempotency-key")
        if given is not None and not _KEY.fullmatch(given):
            return refused(400, "invalid_request", rules=["HUB-IDEM-59"])
        if not JSON_MEDIA.fullmatch(request.headers.get("content-type", "").strip()):
            return refused(415, "unsupported_media_type", rules=["HUB-ERR-59"])
        try:
            body = shared.parsed(request.content)
        except (ValueError, RecursionError):
            return refused(400, "invalid_request", rules=["HUB-ERR-64"])
        faults = self.faults(body)
        if faults:
            places, rules = [fault.place for fault in faults], dict.fromkeys(fault.rule for fault in faults)
            return refused(400, "invalid_request", places=places, rules=rules)
        return Expected()

    def _expects_of_query(self, query: str) -> Expected:
        given = parse_qs(query, keep_blank_values=True)
        for name, validator in self.query.items():
            for text in given.get(name, ()):
                value: Any = int(text) if name == "limit" and re.fullmatch(r"-?[0-9]{1,300}", text) else text
                if not validator.is_valid(value):
                    rule = "HUB-LIST-50" if isinstance(value, int) and value > 1 else _PARAMETERS[name]
                    return refused(400, "invalid_request", places=[name], rules=[rule])
        return Expected()

    def faults(self, body: Any) -> list[Fault]:
        """Everything that is wrong with a submission's body."""
        try:
            found = [fault for error in self.body.iter_errors(body) for fault in _faults(error)]
        except UnicodeEncodeError:  # half a surrogate pair: what takes it at all takes it for a character
            return []
        except ValueError:  # nested too deeply to be shown what is wrong with it
            return [] if self.body.is_valid(body) else [Fault(None, None, "depth", FORM)]
        if isinstance(body, dict) and isinstance(body.get("items"), list):
            for index, item in enumerate(body["items"]):
                if isinstance(item, dict):
                    found += self._beyond_schema(index, item)
        return list(dict.fromkeys(found))

    def _beyond_schema(self, index: int, item: Mapping[str, Any]) -> Iterator[Fault]:
        kind = item.get("kind")
        rule = self.kinds.get(kind, {}) if isinstance(kind, str) else {}
        for keyword, names in (("required", rule.get("required", ())), ("kinds", rule.get("refused", ()))):
            for name in names:
                if (name in item) is (keyword == "kinds"):
                    yield Fault(index, name, keyword, _BY_FIELD[name, keyword])
        if "metadata" in item and compact_bytes(item["metadata"]) > METADATA_BYTES:
            yield Fault(index, "metadata", "bytes", _BY_FIELD["metadata", "bytes"])


def compact_bytes(value: Any) -> int:
    """The bytes of a value as compact JSON in UTF-8 with no unneeded escapes."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def _faults(error: Any) -> Iterator[Fault]:
    tokens = list(error.instance_path)
    index = None
    if len(tokens) > 1 and tokens[0] == "items":
        index, tokens = int(tokens[1]), tokens[2:]
    field = str(tokens[0]) if tokens else None
    keyword = error.kind.name
    if keyword == "required":
        name = str(error.kind.property)
        yield Fault(index, name, keyword, _BY_FIELD.get((name, keyword), FORM))
    elif keyword == "additionalProperties" and field is None:
        for name in error.kind.unexpected:
            yield Fault(index, str(name), keyword, "HUB-FIELD-60")
    elif error.instance is None:
        yield Fault(index, field, "null", "HUB-ERR-66")
    else:
        yield Fault(index, field, keyword, _BY_FIELD.get((field or "", keyword), FORM))
