"""Seeded faults of the hub's list of jobs."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from mock_server.app import iso
from mock_server.calls import Refusal
from mock_server.faults.edits import effect, part, several
from mock_server.hub.api import HubApi
from mock_server.hub.entities import JOB
from mock_server.hub.shapes import Shapes
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mock_server.calls import Answer, Call
    from mock_server.faults.edits import Document
    from mock_server.hub.hub import Hub
    from mock_server.store import Row

KNOWN = frozenset({"status", "nodeId", "projectId", "batchId", "externalId", "limit", "cursor"})


class NoLimit(HubApi):
    """Lists a thousand jobs."""

    async def list_jobs(self, call: Call) -> Answer:
        call.query = {**call.query, "limit": 1000}
        return await super().list_jobs(call)


class LimitCapped(HubApi):
    """Makes any limit above 200 one of 200."""

    async def list_jobs(self, call: Call) -> Answer:
        call.query = {**call.query, "limit": min(call.query["limit"], 200)}
        return await super().list_jobs(call)


class OldestFirst(HubApi):
    """Lists the oldest job first."""

    @staticmethod
    async def candidates(hub: Hub, account: str, wanted: dict[str, Any], before: int | None) -> Iterator[Row]:
        rows = await hub.store.listed(JOB, "account", (account,))
        return (row for row in rows if before is None or row["queuedAt"] > before)


class PagesById(HubApi):
    """Fetches the right jobs, and tells each page in the order of their ids."""

    async def list_jobs(self, call: Call) -> Answer:
        answer = await super().list_jobs(call)
        answer.body["data"]["items"].sort(key=lambda item: item["id"])
        return answer


class OneInstant(Shapes):
    """Tells apart instants of a tenth of a second at most: the jobs of a request have one."""

    def field(self, name: str, row: Row, node: Row | None) -> Any:
        coarse = {**row, "queuedAt": row["queuedAt"] // 100 * 100}
        return super().field(name, coarse if name in ("queuedAt", "waitMs") else row, node)


class OneInstantPages(HubApi):
    """Begins a page below that instant, so that jobs are lost."""

    @staticmethod
    def next_cursor(page: list[Row]) -> str:
        return iso(page[-1]["queuedAt"] // 100 * 100)


class EachOwnClock(HubApi):
    """Gives jobs of submissions that arrive together places that overlap."""

    @staticmethod
    async def next_place(hub: Hub, account: str, now: int) -> int:
        return now


class CursorInclusive(HubApi):
    """Begins a page with the job of the cursor."""

    @staticmethod
    async def candidates(hub: Hub, account: str, wanted: dict[str, Any], before: int | None) -> Iterator[Row]:
        return await HubApi.candidates(hub, account, wanted, None if before is None else before + 1)


class CursorOfSeconds(HubApi):
    """Tells the cursor without milliseconds, so that jobs of that second are lost."""

    @staticmethod
    def next_cursor(page: list[Row]) -> str:
        return iso(page[-1]["queuedAt"] // 1000 * 1000)


class CursorIgnored(HubApi):
    """Answers the first page, whatever the cursor."""

    @staticmethod
    def cursor(text: str | None) -> int | None:
        HubApi.cursor(text)
        return None


class CursorBefore(HubApi):
    """Takes the cursor by another name."""

    async def list_jobs(self, call: Call) -> Answer:
        call.query = {**call.query, "cursor": call.query["before"]}
        return await super().list_jobs(call)


class CursorOfFirst(HubApi):
    """Tells the time of the page's first job."""

    @staticmethod
    def next_cursor(page: list[Row]) -> str:
        return iso(page[0]["queuedAt"])


class CursorOfNext(HubApi):
    """Tells the time of the first job that is not on the page any more: that job is on no page."""

    async def list_jobs(self, call: Call) -> Answer:
        call.query = {**call.query, "limit": call.query["limit"] + 1}
        answer = await super().list_jobs(call)
        items = answer.body["data"]["items"]
        if len(items) == call.query["limit"]:
            answer.body["data"]["nextCursor"] = items.pop()["queuedAt"]
        return answer


class CursorForgetsFilters(HubApi):
    """Filters the first page alone."""

    async def list_jobs(self, call: Call) -> Answer:
        if call.query["cursor"] is not None:
            call.query = {**call.query, "externalId": None}
        return await super().list_jobs(call)


class CursorWithoutEnd(HubApi):
    """Tells a cursor with the last page, too."""

    async def list_jobs(self, call: Call) -> Answer:
        answer = await super().list_jobs(call)
        data = answer.body["data"]
        if data["items"]:
            data["nextCursor"] = data["items"][-1]["queuedAt"]
        return answer


class PagesByPlace(HubApi):
    """Counts how many jobs are newer than the cursor once, and skips so many: with new ones a page repeats jobs."""

    _skip: dict[str, int]

    async def list_jobs(self, call: Call) -> Answer:
        self._skip = getattr(self, "_skip", {})
        cursor, limit = call.query["cursor"], call.query["limit"]
        skip = self._skip.get(str(cursor), 0)
        call.query = {**call.query, "cursor": None, "limit": skip + limit}
        answer = await super().list_jobs(call)
        data = answer.body["data"]
        data["items"] = data["items"][skip:]
        if data["nextCursor"] is not None:
            self._skip[data["nextCursor"]] = skip + limit
        return answer


class CursorLenient(HubApi):
    """Takes a cursor that it can't read for none."""

    @staticmethod
    def cursor(text: str | None) -> int | None:
        try:
            return HubApi.cursor(text)
        except Refusal:
            return None


class Either(HubApi):
    """Lists jobs that any of the filters lets through, beside the batch."""

    @staticmethod
    def matching(rows: Iterable[Row], wanted: dict[str, Any]) -> Iterator[Row]:
        return (row for row in rows if not wanted or any(row[name] == value for name, value in wanted.items()))

    @staticmethod
    async def candidates(hub: Hub, account: str, wanted: dict[str, Any], before: int | None) -> Iterator[Row]:
        return await HubApi.candidates(hub, account, {}, before)


class ExternalPrefix(HubApi):
    """Lists jobs whose externalId begins like the one that was asked for."""

    @staticmethod
    def matching(rows: Iterable[Row], wanted: dict[str, Any]) -> Iterator[Row]:
        others = {name: value for name, value in wanted.items() if name != "externalId"}
        prefix = wanted.get("externalId", "")
        return (row for row in HubApi.matching(rows, others) if (row["externalId"] or "").startswith(prefix))

    @staticmethod
    async def candidates(hub: Hub, account: str, wanted: dict[str, Any], before: int | None) -> Iterator[Row]:
        return await HubApi.candidates(hub, account, {}, before)


class SeenLate(HubApi):
    """Lists from a copy that is one look behind: a job that is new is not there yet."""

    _seen: set[str]

    def matching(self, rows: Iterable[Row], wanted: dict[str, Any]) -> Iterator[Row]:  # type: ignore[override]
        self._seen = getattr(self, "_seen", set())
        found = list(islice(HubApi.matching(rows, wanted), 300))
        old = [row for row in found if row["id"] in self._seen]
        self._seen |= {row["id"] for row in found}
        return iter(old)


class ShortEntries(HubApi):
    """Leaves progress, result and metadata to the detail."""

    async def list_jobs(self, call: Call) -> Answer:
        answer = await super().list_jobs(call)
        for entry in answer.body["data"]["items"]:
            for name in ("progress", "result", "metadata"):
                del entry[name]
        return answer


class NoFailure(HubApi):
    """Shows failures in the list without their reason."""

    async def list_jobs(self, call: Call) -> Answer:
        answer = await super().list_jobs(call)
        for entry in answer.body["data"]["items"]:
            entry["failure"] = None
        return answer


class BareList(HubApi):
    """Answers the entries as `data` itself, the cursor beside it."""

    async def list_jobs(self, call: Call) -> Answer:
        answer = await super().list_jobs(call)
        data = answer.body["data"]
        answer.body = {**answer.body, "data": data["items"], "nextCursor": data["nextCursor"]}
        return answer


class UnknownIs404(HubApi):
    """Answers 404 where nothing is found."""

    async def list_jobs(self, call: Call) -> Answer:
        answer = await super().list_jobs(call)
        if not answer.body["data"]["items"]:
            raise self.refusal("not_found")
        return answer


class StrictParameters(HubApi):
    """Refuses parameters that it does not know."""

    async def list_jobs(self, call: Call) -> Answer:
        query = parse_qs(call.exchange.query.decode())
        if query.keys() - KNOWN:
            raise self.refusal("invalid_request")
        return await super().list_jobs(call)


def forgets(*names: str) -> type[HubApi]:
    """A list that does not know some filters."""

    class Forgets(HubApi):
        async def list_jobs(self, call: Call) -> Answer:
            call.query = {**call.query, **dict.fromkeys(names)}
            return await super().list_jobs(call)

    return Forgets


def query(name: str, **values: Any) -> Callable[[Document], None]:
    """Replace the schema of a parameter of the list."""

    def edit(document: Document) -> None:
        parameters = document["paths"]["/v1/jobs"]["get"]["parameters"]
        next(item for item in parameters if item["name"] == name)["schema"] = values

    return edit


def rename(old: str, new: str) -> Callable[[Document], None]:
    """Rename a parameter of the list."""

    def edit(document: Document) -> None:
        parameters = document["paths"]["/v1/jobs"]["get"]["parameters"]
        next(item for item in parameters if item["name"] == old)["name"] = new

    return edit


def limit(**values: Any) -> Callable[[Document], None]:
    """Change what `limit` can be."""
    return query("limit", **{"type": "integer", "minimum": 1, "maximum": 200, "default": 50, **values})


def listing(id_: str, title: str, rules: Sequence[str], api: type[HubApi], *edits: Any) -> Mutant:
    """A fault of the handler of the list."""
    return Mutant(f"hub-list.{id_}", title, tuple(rules), edit=several(*edits) if edits else None, parts=part(api=api))


FAULTS = (
    listing("no-limit", "a page holds more than its limit", ["HUB-LIST-08", "HUB-LIST-09"], NoLimit),
    Mutant("hub-list.default-20", "limit defaults to 20", ("HUB-LIST-08",), edit=limit(default=20)),
    Mutant(
        "hub-list.at-most-100", "a limit above 100 is refused", ("HUB-LIST-09", "HUB-LIST-50"), edit=limit(maximum=100)
    ),
    Mutant("hub-list.limit-201", "a limit of 201 is accepted", ("HUB-LIST-50", "HUB-LIST-09"), edit=limit(maximum=201)),
    listing("limit-capped", "a larger limit is made 200", ["HUB-LIST-50"], LimitCapped, limit(maximum=10**12)),
    Mutant("hub-list.limit-0", "a limit of 0 is accepted", ("HUB-LIST-51",), edit=limit(minimum=0)),
    listing("oldest-first", "the oldest job comes first", ["HUB-LIST-10", "HUB-LIST-58", "HUB-LIST-57"], OldestFirst),
    listing("by-id", "the jobs of a page come by their ids", ["HUB-LIST-58", "HUB-LIST-10"], PagesById),
    Mutant(
        "hub-list.one-instant",
        "all jobs of a request have the same queuedAt, and pages lose some",
        ("HUB-LIST-56", "HUB-LIST-55", "HUB-GET-53"),
        parts=part(shapes=OneInstant, api=OneInstantPages),
    ),
    listing("overlapping", "submissions that arrive together share instants", ["HUB-LIST-56"], EachOwnClock),
    listing("cursor-inclusive", "a page begins with the cursor's job", ["HUB-LIST-57", "HUB-LIST-55"], CursorInclusive),
    listing("cursor-seconds", "the cursor has no milliseconds", ["HUB-LIST-11", "HUB-LIST-55"], CursorOfSeconds),
    listing(
        "cursor-ignored", "the cursor is not looked at", ["HUB-LIST-53", "HUB-LIST-57", "HUB-LIST-55"], CursorIgnored
    ),
    listing(
        "cursor-before",
        "the cursor is taken as `before`",
        ["HUB-LIST-53", "HUB-LIST-57", "HUB-LIST-55"],
        CursorBefore,
        rename("cursor", "before"),
    ),
    listing("cursor-first", "the cursor is the first job's queuedAt", ["HUB-LIST-11", "HUB-LIST-55"], CursorOfFirst),
    listing(
        "cursor-next",
        "the cursor is the next page's first job, which is lost",
        ["HUB-LIST-11", "HUB-LIST-55"],
        CursorOfNext,
    ),
    listing(
        "cursor-forgets-filters",
        "pages after the first are not filtered",
        ["HUB-LIST-53", "HUB-LIST-57", "HUB-LIST-06"],
        CursorForgetsFilters,
    ),
    listing("cursor-without-end", "the last page has a cursor", ["HUB-LIST-54"], CursorWithoutEnd),
    listing("pages-by-place", "new jobs push others onto the next page", ["HUB-LIST-57", "HUB-LIST-55"], PagesByPlace),
    listing(
        "cursor-lenient",
        "an ill-formed cursor is ignored",
        ["HUB-LIST-62"],
        CursorLenient,
        query("cursor", type="string"),
    ),
    listing("filters-or", "filters combine with or", ["HUB-LIST-07"], Either),
    listing("external-prefix", "externalId is matched by its start", ["HUB-LIST-06", "HUB-LIST-64"], ExternalPrefix),
    *(
        listing(f"no-{name}", f"the filter {name} is not looked at", [rule], forgets(name))
        for name, rule in (
            ("status", "HUB-LIST-02"),
            ("nodeId", "HUB-LIST-03"),
            ("projectId", "HUB-LIST-04"),
            ("batchId", "HUB-LIST-05"),
            ("externalId", "HUB-LIST-06"),
        )
    ),
    listing("seen-late", "a job is listed one look late", ["HUB-LIST-01", "HUB-LIST-55"], SeenLate),
    listing("short-entries", "entries lack what the detail has", ["HUB-LIST-59"], ShortEntries),
    listing("no-failure", "entries have no failure", ["HUB-LIST-59"], NoFailure),
    listing("bare", "data is the list itself", ["HUB-LIST-52"], BareList),
    listing("unknown-404", "an unknown id is 404", ["HUB-LIST-64"], UnknownIs404),
    listing("strict-parameters", "unknown parameters are refused", ["HUB-LIST-65"], StrictParameters),
    Mutant(
        "hub-list.any-status",
        "an unknown status is an empty page",
        ("HUB-LIST-63", "HUB-LIST-02"),
        edit=query("status", type="string"),
    ),
    Mutant(
        "hub-list.retry-stays",
        "a job retried by hand keeps its place",
        ("HUB-LIST-60", "HUB-RETRY-58"),
        edit=effect("anew", "queuedAt"),
    ),
    Mutant(
        "hub-list.retry-moves",
        "a job retried by itself moves to the front",
        ("HUB-LIST-61", "HUB-GET-54"),
        edit=effect("again", queuedAt="now"),
    ),
)
