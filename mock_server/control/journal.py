"""The journal over the control plane: read, clear, export."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

import openapi
from mock_server import har
from mock_server.builds import build_hub
from mock_server.calls import Answer, Refusal, Violation
from openapi.problems import nearest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from mock_server.calls import Call, Handler
    from mock_server.journal import Entry
    from mock_server.worlds import World
    from openapi import Contract

_FIELDS = ("operationId", "jobId", "caller", "status", "errorCode", "verdict")
_AT_ONCE = 100
"""Entries that are exported before others get their turn."""


class JournalHandlers:
    """Handlers of the journal."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers by operationId."""
        return {"readJournal": self.read, "clearJournal": self.clear, "exportHar": self.export}

    async def read(self, call: Call) -> Answer:
        """What the world saw."""
        journal = call.world.journal
        entries = _found(call, limit=call.query["limit"], newest=call.query["order"] == "desc")
        page = [entry.document() for entry in entries]
        return Answer(200, {"entries": page, "evicted": journal.evicted, "last": journal.last})

    async def clear(self, call: Call) -> Answer:
        """Forget everything."""
        call.world.journal.clear()
        return Answer(204)

    async def export(self, call: Call) -> Answer:
        """The journal as HAR: in parts, since ten thousand entries at once would hold up everybody else."""
        return Answer(200, _archive(call.world, _found(call)), {"content-type": "application/json"})


async def _archive(world: World, entries: Iterable[Entry]) -> AsyncIterator[bytes]:
    yield har.HEAD
    comma = b""
    for i, entry in enumerate(entries, 1):
        yield comma + orjson.dumps(har.exchange(world.path, entry))
        comma = b","
        if i % _AT_ONCE == 0:
            await asyncio.sleep(0)
    lost = world.journal.evicted
    yield har.tail(f"the journal was full and dropped {lost} exchanges" if lost else "")


def _found(call: Call, **options: Any) -> list[Entry]:
    """The entries that a call's filters select. Raises :class:`Refusal` for names that there are not."""
    query = call.query
    known_operation(call.world, query["operationId"], "operationId")
    known_code(call.world, query["errorCode"], "errorCode")
    wanted = {name: query[name] for name in _FIELDS}
    return call.world.journal.query(
        since=query["since"], begin=query["from"], end=query["to"], match=query["match"], **options, **wanted
    )


def known_operation(world: World, name: str | None, location: str) -> None:
    """Raises :class:`Refusal` for a name that no operation of the world has, with the nearest one."""
    contracts = (*_contracts(world), openapi.load("model-provider"))
    names = [name for contract in contracts for name in contract.operations]
    _known(world, name, location, "operation", names, ())


def known_code(world: World, code: str | None, location: str) -> None:
    """Raises :class:`Refusal` for what is no error code, with the nearest one. Plans answer those of HTTP, too."""
    names = [name for contract in _contracts(world) for name in contract.errors]
    _known(world, code, location, "error code", names, HTTPStatus.__members__)


def known_status(world: World, status: str | None, location: str) -> None:
    """Raises :class:`Refusal` for a word that is no status of a job, with the nearest one."""
    schemas = [contract.document["components"]["schemas"] for contract in _contracts(world)]
    known = dict.fromkeys(status for schema in schemas for status in schema["JobStatus"]["enum"])
    _known(world, status, location, "job status", known, ())


def _contracts(world: World) -> tuple[Contract, Contract]:
    """Those of the APIs that the world serves."""
    return world.build.contract, build_hub(world.options.mutant).contract


def _known(
    world: World, name: str | None, location: str, kind: str, known: Iterable[str], others: Iterable[str]
) -> None:
    names = list(known)
    if name is None or name in names or name in others:
        return
    message = f"{location}: no {kind} is named `{name}`; {nearest(name, names)}"
    violation = Violation(location, "enum", names, world.redactor.text(name), message)
    raise Refusal("INVALID_REQUEST", message, [violation])
