"""Seeded faults of an item's fields: limits, defaults, how much they measure, and what comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import orjson

from mock_server.calls import Refusal, Violation
from mock_server.faults.edits import part, put, schema, schema_property, several, update
from mock_server.hub.submission import Submissions
from mock_server.hub.webhooks import Webhooks
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mock_server.hub.hub import Hub
    from mock_server.store import Row
    from openapi.redaction import Redactor

Item = dict[str, Any]
UNKNOWN = ("promt", "Prompt", "time_out", "callback_url", "callbackURL", "maxattempts", "")
"""Properties that no column has."""
AI_BY_DEFAULT = {"enum": ["ai", "script"], "default": "ai"}
REVERSED = ["priority", "queuedAt", "id"]


def refuses(finds: Callable[[Mapping[str, Any]], str | None]) -> Callable[[Any], None]:
    """An item is refused for the field that ``finds`` names, too."""

    class Refuses(Submissions):
        """Finds a fault where there is none."""

        def item_violations(self, hub: Hub, place: str, item: Mapping[str, Any]) -> Iterator[Violation]:
            yield from super().item_violations(hub, place, item)
            if (name := finds(item)) is not None:
                yield Violation(f"{place}/{name}", "seeded", None, None, f"{place}/{name} is wrong")

    return part(submissions=Refuses)


def measured(size: Callable[[Any], int]) -> Callable[[Any], None]:
    """Metadata is measured otherwise."""

    class Measures(Submissions):
        """Measures metadata otherwise; nothing else does."""

        def item_violations(self, hub: Hub, place: str, item: Mapping[str, Any]) -> Iterator[Violation]:
            yield from super().item_violations(hub, place, {**item, "metadata": None})
            if "metadata" in item and size(item["metadata"]) > self.most_bytes:
                yield Violation(f"{place}/metadata", "x-maxBytes", self.most_bytes, None, f"{place}/metadata is long")

    return part(submissions=Measures)


def stored(change: Callable[[Row], Any]) -> Callable[[Any], None]:
    """Jobs are stored otherwise than they were submitted; the answer tells what was stored."""

    class Stores(Submissions):
        """Stores something else."""

        def rows(self, *args: Any) -> list[Row]:
            rows = super().rows(*args)
            for row in rows:
                change(row)
            return rows

    return part(submissions=Stores)


def read(change: Callable[[Item], Any]) -> Callable[[Any], None]:
    """Items are changed before they are judged."""

    class Reads(Submissions):
        """Reads something else."""

        def judge(self, hub: Hub, body: Any, redactor: Redactor) -> tuple[str | None, list[Item]]:
            items = body.get("items") if isinstance(body, dict) else None
            for item in items if isinstance(items, list) else ():
                if isinstance(item, dict):
                    change(item)
            return super().judge(hub, body, redactor)

    return part(submissions=Reads)


class Nul500(Submissions):
    """Hands texts to a database that stores no NUL (SF-56)."""

    def rows(self, *args: Any) -> list[Row]:
        rows = super().rows(*args)
        if any("\0" in (row.get("externalId") or "") for row in rows):
            raise Refusal("internal_error", "The database refused.")
        return rows


class TimesAgents(Submissions):
    """Takes a timeout with kind ai, where it cuts rounds short."""

    def filled(self, item: Item) -> Item:
        filled = super().filled(item)
        if item["kind"] == "ai" and "timeoutSeconds" not in item:
            del filled["timeoutSeconds"]
        return filled


class DefaultAlways(Webhooks):
    """Sends everything to the key's default, where there is one."""

    async def url(self, row: Row) -> str | None:
        return await super().url({**row, "callbackUrl": None}) or await super().url(row)


class AnyScheme(Webhooks):
    """Takes any URL."""

    def allowed(self, url: str) -> bool:
        return bool(url)


def without_nulls(value: Any) -> Any:
    """A JSON value without properties that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def as_dates(value: Any) -> Any:
    """A JSON value whose texts that look like numbers became numbers."""
    if isinstance(value, dict):
        return {key: as_dates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_dates(item) for item in value]
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def change_metadata(change: Callable[[Any], Any]) -> Callable[[Row], Any]:
    """A change of a row's metadata."""
    return lambda row: row.update(metadata=change(row.get("metadata")))


def too_long(size: Callable[[str], int]) -> Callable[[Mapping[str, Any]], str | None]:
    """The text that is too long by another count."""

    def finds(item: Mapping[str, Any]) -> str | None:
        limits = {"prompt": 8000, "command": 8000, "externalId": 128}
        texts = {name: item.get(name) for name in limits}
        return next((name for name, text in texts.items() if isinstance(text, str) and size(text) > limits[name]), None)

    return finds


def numbers(value: Any) -> Iterator[float]:
    """Every number in a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int | float):
        yield value


def kinds(kind: str, *names: str) -> Callable[[dict[str, Any]], None]:
    """What an item of a kind must not have."""
    return update("components", "schemas", "JobItem", "x-kinds", kind, values={"refused": list(names)})


def field(name: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    """Change the schema of a field of an item."""
    return schema_property("JobItem", name, **values)


def unbounded(name: str, *bounds: str) -> Callable[[dict[str, Any]], None]:
    """Take bounds of a field of an item away."""

    def edit(document: dict[str, Any]) -> None:
        for bound in bounds:
            del document["components"]["schemas"]["JobItem"]["properties"][name][bound]

    return edit


def bytes_of_metadata(number: int) -> Callable[[dict[str, Any]], None]:
    """Change how much metadata may be there."""
    return field("metadata", **{"x-maxBytes": number})


def _fault(id_: str, title: str, *rules: str, **how: Any) -> Mutant:
    return Mutant(f"hub-field.{id_}", title, rules, **how)


FAULTS = (
    _fault(
        "kind-by-default",
        "an item without kind is of kind ai",
        "HUB-FIELD-01",
        "HUB-SUB-53",
        edit=several(
            schema("JobItem", required=["projectId"]),
            put(
                "components",
                "schemas",
                "JobItem",
                "properties",
                "kind",
                value=AI_BY_DEFAULT,
            ),
        ),
    ),
    _fault(
        "prompt-8001",
        "a prompt may have 8001 characters",
        "HUB-FIELD-07",
        "HUB-SUB-53",
        edit=field("prompt", maxLength=8001),
    ),
    _fault(
        "prompt-7999",
        "a prompt may have 7999 characters",
        "HUB-FIELD-07",
        "HUB-SUB-05",
        edit=field("prompt", maxLength=7999),
    ),
    _fault(
        "command-unbounded",
        "a command has any length",
        "HUB-FIELD-09",
        "HUB-SUB-53",
        edit=unbounded("command", "maxLength"),
    ),
    _fault(
        "external-id-255",
        "an externalId may be 255 long",
        "HUB-FIELD-21",
        "HUB-SUB-53",
        edit=field("externalId", maxLength=255),
    ),
    _fault(
        "utf-16",
        "characters are counted as UTF-16 units",
        "HUB-FIELD-55",
        "HUB-SUB-05",
        parts=refuses(too_long(lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2)),
    ),
    _fault(
        "utf-8",
        "characters are counted as bytes of UTF-8",
        "HUB-FIELD-55",
        "HUB-SUB-05",
        parts=refuses(too_long(lambda text: len(text.encode()))),
    ),
    _fault(
        "timeout-300-only",
        "a timeout of 300 s is refused",
        "HUB-FIELD-11",
        "HUB-SUB-05",
        edit=field("timeoutSeconds", maximum=299),
    ),
    _fault(
        "timeout-0", "a timeout of 0 is accepted", "HUB-FIELD-11", "HUB-SUB-53", edit=field("timeoutSeconds", minimum=0)
    ),
    _fault("timeout-30", "a timeout is 30 s by default", "HUB-FIELD-12", edit=field("timeoutSeconds", default=30)),
    _fault(
        "timeout-of-agents",
        "kind ai may have a timeout, which counts",
        "HUB-FIELD-10",
        "HUB-FIELD-58",
        "HUB-SUB-53",
        edit=kinds("ai", "command"),
        parts=part(submissions=TimesAgents),
    ),
    _fault(
        "mode-by-default",
        "the mode is interactive by default",
        "HUB-FIELD-14",
        edit=several(
            schema("JobMode", default="interactive"),
            put("components", "schemas", "JobDetail", "properties", "mode", value={"type": "string", "nullable": True}),
        ),
    ),
    _fault(
        "any-mode",
        "any word is a mode",
        "HUB-FIELD-13",
        "HUB-SUB-53",
        edit=put("components", "schemas", "JobItem", "properties", "mode", value={"type": "string", "default": "auto"}),
    ),
    _fault(
        "priority-unbounded",
        "a priority may be of any size",
        "HUB-FIELD-16",
        "HUB-SUB-53",
        edit=several(
            unbounded("priority", "minimum", "maximum"),
            schema_property("JobDetail", "priority", minimum=-(2**60), maximum=2**60),
        ),
    ),
    _fault(
        "priority-99", "a priority of 100 is refused", "HUB-FIELD-16", "HUB-SUB-05", edit=field("priority", maximum=99)
    ),
    _fault("priority-50", "the priority is 50 by default", "HUB-FIELD-50", edit=field("priority", default=50)),
    _fault(
        "priority-reversed",
        "the smaller priority runs first",
        "HUB-FIELD-17",
        edit=put(
            "components",
            "schemas",
            "HubJob",
            "x-row",
            "lists",
            "project",
            "order",
            value=REVERSED,
        ),
    ),
    _fault(
        "attempts-0", "maxAttempts 0 is accepted", "HUB-FIELD-18", "HUB-SUB-53", edit=field("maxAttempts", minimum=0)
    ),
    _fault(
        "attempts-3",
        "maxAttempts is 3 by default",
        "HUB-FIELD-19",
        "HUB-RETRY-01",
        edit=field("maxAttempts", default=3),
    ),
    _fault(
        "external-id-trimmed",
        "spaces around an externalId are lost",
        "HUB-FIELD-20",
        parts=stored(lambda row: row.update(externalId=row.get("externalId") and row["externalId"].strip())),
    ),
    _fault("nul-500", "a NUL in an externalId is 500", "HUB-FIELD-20", "HUB-SUB-05", parts=part(submissions=Nul500)),
    _fault(
        "metadata-objects", "metadata is an object", "HUB-FIELD-22", "HUB-SUB-05", edit=field("metadata", type="object")
    ),
    _fault(
        "metadata-nulls",
        "properties of metadata that are null are lost",
        "HUB-FIELD-52",
        "HUB-FIELD-22",
        "HUB-GET-25",
        parts=stored(change_metadata(without_nulls)),
    ),
    _fault(
        "metadata-numbers",
        "texts of digits in metadata become numbers",
        "HUB-FIELD-52",
        "HUB-FIELD-22",
        "HUB-GET-25",
        parts=stored(change_metadata(as_dates)),
    ),
    _fault(
        "metadata-large-numbers",
        "numbers beyond 2^53 in metadata are refused",
        "HUB-FIELD-53",
        "HUB-FIELD-22",
        "HUB-SUB-05",
        parts=refuses(
            lambda item: "metadata" if any(abs(number) > 2**53 for number in numbers(item.get("metadata"))) else None
        ),
    ),
    _fault(
        "metadata-null",
        "metadata null is refused",
        "HUB-FIELD-54",
        "HUB-FIELD-22",
        "HUB-SUB-05",
        parts=refuses(lambda item: "metadata" if item.get("metadata", 0) is None else None),
    ),
    _fault(
        "metadata-unbounded",
        "metadata may be of any size",
        "HUB-FIELD-23",
        "HUB-FIELD-51",
        "HUB-SUB-53",
        edit=bytes_of_metadata(2**20),
    ),
    _fault("metadata-2000", "metadata may have 2000 bytes", "HUB-FIELD-51", "HUB-SUB-05", edit=bytes_of_metadata(2000)),
    _fault(
        "metadata-2049",
        "metadata may have 2049 bytes",
        "HUB-FIELD-51",
        "HUB-FIELD-23",
        "HUB-SUB-53",
        edit=bytes_of_metadata(2049),
    ),
    _fault(
        "metadata-characters",
        "metadata is measured in characters",
        "HUB-FIELD-51",
        "HUB-FIELD-23",
        "HUB-SUB-53",
        parts=measured(lambda value: len(orjson.dumps(value).decode())),
    ),
    _fault(
        "metadata-escapes",
        "metadata is measured with escapes for all that is not ASCII",
        "HUB-FIELD-51",
        "HUB-SUB-05",
        parts=measured(lambda value: len(json.dumps(value, separators=(",", ":")))),
    ),
    _fault(
        "metadata-spaces",
        "metadata is measured with a space after each comma and colon",
        "HUB-FIELD-51",
        "HUB-SUB-05",
        parts=measured(lambda value: len(json.dumps(value, ensure_ascii=False).encode())),
    ),
    _fault(
        "default-callback",
        "everything is told to the key's default",
        "HUB-FIELD-24",
        parts=part(webhooks=DefaultAlways),
    ),
    _fault(
        "any-scheme",
        "a callbackUrl may have any scheme",
        "HUB-FIELD-63",
        "HUB-SUB-53",
        edit=field("callbackUrl", pattern="^[a-z]+:"),
        parts=part(webhooks=AnyScheme),
    ),
    _fault(
        "prompt-of-scripts", "a script may have a prompt", "HUB-FIELD-56", "HUB-SUB-53", edit=kinds("script", "mode")
    ),
    _fault(
        "command-of-agents",
        "kind ai may have a command",
        "HUB-FIELD-57",
        "HUB-SUB-53",
        edit=kinds("ai", "timeoutSeconds"),
    ),
    _fault("mode-of-scripts", "a script may have a mode", "HUB-FIELD-59", "HUB-SUB-53", edit=kinds("script", "prompt")),
    _fault(
        "unknown-of-items",
        "unknown properties of an item are ignored",
        "HUB-FIELD-60",
        "HUB-SUB-53",
        edit=schema("JobItem", additionalProperties=True),
        parts=stored(lambda row: [row.pop(name) for name in UNKNOWN if name in row]),
    ),
    _fault(
        "unknown-of-bodies",
        "unknown properties beside the items are ignored",
        "HUB-FIELD-60",
        "HUB-SUB-53",
        edit=schema("Submission", additionalProperties=True),
    ),
    _fault(
        "blank",
        "a prompt or command of white space is accepted",
        "HUB-FIELD-61",
        "HUB-SUB-53",
        edit=several(field("prompt", pattern="."), field("command", pattern=r"[\s\S]")),
    ),
    _fault(
        "ascii-blank",
        "a prompt of ideographic spaces is accepted",
        "HUB-FIELD-61",
        "HUB-SUB-53",
        edit=field("prompt", pattern=r"[^ \t\r\n]"),
    ),
    _fault(
        "empty-ids",
        "an empty id counts as left out",
        "HUB-FIELD-62",
        "HUB-SUB-53",
        parts=read(lambda item: [item.pop(name) for name in ("externalId", "nodeId") if item.get(name) == ""]),
    ),
)
