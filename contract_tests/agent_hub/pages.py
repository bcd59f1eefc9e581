"""Pages of the job list: their shape, and walks along their cursors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import ids_of
from contract_tests.agent_hub.shapes import iso
from contract_tests.calls import UNSET
from contract_tests.checks import about, expect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from contract_tests.agent_hub.client import HubAnswer, HubApi


@dataclass(frozen=True)
class Page:
    """One page as decided: entries and the cursor to the next."""

    items: list[dict[str, Any]]
    cursor: str | None

    @property
    def ids(self) -> list[Any]:
        """Its jobs' ids, in order."""
        return ids_of(self.items)


def page_of(answer: HubAnswer) -> Page:
    """A page in its decided shape (HUB-LIST-52)."""
    with about("HUB-LIST-52"):
        data: Any = answer.fields.get("data")
        expect(isinstance(data, dict), "`data`, an object", answer.response.text[:200], "/data")
        items = data.get("items")
        good = isinstance(items, list) and all(isinstance(entry, dict) for entry in items)
        expect(good, "`items`, a list of objects", json.dumps(items)[:200], "/data/items")
        cursor = data.get("nextCursor", UNSET)
        came = "left out" if cursor is UNSET else json.dumps(cursor)[:100]
        expect(cursor is None or isinstance(cursor, str), "`nextCursor`, a string or null", came, "/data/nextCursor")
    return Page(list(items or []), cursor)


async def page(api: HubApi, **query: Any) -> Page:
    """One page of a list that is there by rights."""
    with about("HUB-LIST-01", step="listing jobs"):
        answer = await api.jobs(**query).succeeds(200)
    return page_of(answer)


async def walk(
    api: HubApi,
    limit: int,
    most: int,
    *,
    cursor: Any = UNSET,
    between: Callable[[], Awaitable[Any]] | None = None,
    **filters: Any,
) -> list[Page]:
    """Follow cursors to the end, over at most ``most`` jobs; ``between`` happens between two pages.

    Each page holds at most ``limit`` jobs, all of them strictly older than those of the page before. An empty last
    page is let pass: whether a full one can be the last, a build may know only when it looks.
    """
    pages: list[Page] = []
    while True:
        came = await page(api, limit=limit, cursor=cursor, **filters)
        with about("HUB-LIST-09", step="a page of at most `limit` jobs"):
            expect(len(came.items) <= limit, f"at most {limit} jobs", f"{len(came.items)}", "/data/items")
        if pages and came.items and came.ids == pages[0].ids:
            with about("HUB-LIST-53"):
                expect(False, "the page after `cursor`", "the first page again", "/data/items")
        if cursor is not UNSET and came.items:
            with about("HUB-LIST-57"):
                newest, before = came.items[0].get("queuedAt"), iso(cursor, "/data/nextCursor")
                good = iso(newest, "/data/items/0/queuedAt") < before
                expect(good, f"jobs strictly older than {cursor}", f"{newest}", "/data/items/0/queuedAt")
        pages.append(came)
        if came.cursor is None:
            return pages
        with about("HUB-LIST-54"):
            seen = sum(len(one.items) for one in pages)
            expect(
                seen <= most and bool(came.items), "nextCursor null at the end", f"{came.cursor}", "/data/nextCursor"
            )
        cursor = came.cursor
        if between is not None:
            await between()


def judge_once(pages: Iterable[Page], wanted: Iterable[str]) -> None:
    """The pages show each job exactly once, and no other (HUB-LIST-55)."""
    shown = [id_ for one in pages for id_ in one.ids]
    wanted = list(wanted)
    twice = sorted({id_ for id_ in shown if shown.count(id_) > 1}) if len(set(shown)) < len(shown) else []
    missing = [id_ for id_ in wanted if id_ not in set(shown)]
    others = [id_ for id_ in shown if id_ not in set(wanted)]
    what = f"{len(missing)} missing, {len(twice)} twice, {len(others)} others"
    named = ", ".join(map(str, [*missing, *twice, *others][:3]))
    with about("HUB-LIST-55"):
        expect(not (missing or twice or others), f"each of {len(wanted)} jobs once", f"{what}: {named}", "/data/items")


def queued_at(entry: Mapping[str, Any], at: str = "/data/items") -> int:
    """An entry's ``queuedAt``, epoch milliseconds."""
    return iso(entry.get("queuedAt"), f"{at}/queuedAt")


def judge_order(entries: Sequence[Mapping[str, Any]]) -> None:
    """Newest ``queuedAt`` first (HUB-LIST-58), never two the same (HUB-LIST-56)."""
    for place, (newer, older) in enumerate(pairwise(entries)):
        at = f"/data/items/{place + 1}"
        first, second = queued_at(newer, at), queued_at(older, at)
        with about("HUB-LIST-58"):
            said = f"{newer.get('queuedAt')} before {older.get('queuedAt')}"
            expect(first >= second, "the newest first", said, at)
        with about("HUB-LIST-56"):
            expect(first != second, "two jobs with different queuedAt", f"{newer.get('queuedAt')} twice", at)
