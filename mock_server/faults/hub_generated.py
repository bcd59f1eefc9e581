"""Seeded faults of the hub that no scenario meets: it takes generated requests to say what brings them about."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from mock_server.calls import Refusal
from mock_server.faults.edits import part
from mock_server.hub.api import HubApi
from mock_server.hub.entities import JOB
from mock_server.hub.submission import Submissions
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mock_server.calls import Answer, Call
    from mock_server.hub.hub import Hub
    from mock_server.store import Row


class NoNul(Submissions):
    """Stores texts in PostgreSQL, which refuses U+0000."""

    async def create(self, hub: Hub, rows: list[Row]) -> list[Row]:
        if any("\0" in row["title"] for row in rows):
            raise RuntimeError("invalid byte sequence for encoding UTF8: 0x00")
        return await super().create(hub, rows)


class Quoted(HubApi):
    """Puts filters into its query as they come."""

    async def list_jobs(self, call: Call) -> Answer:
        if any("'" in str(value) for value in call.query.values()):
            raise RuntimeError("unterminated quoted string")
        return await super().list_jobs(call)


class Formatted(HubApi):
    """Formats the name of a batch."""

    async def batch(self, call: Call) -> list[Row]:
        call.path["batchId"] % ()
        return await super().batch(call)


class Like(HubApi):
    """Looks externalIds up with LIKE."""

    @staticmethod
    async def candidates(hub: Hub, account: str, _: dict[str, Any], before: int | None) -> Iterator[Row]:
        return await hub.store.newest(JOB, "account", (account,), before)

    @staticmethod
    def matching(rows: Iterable[Row], wanted: dict[str, Any]) -> Iterator[Row]:
        exact = {name: value for name, value in wanted.items() if name != "externalId"}
        pattern = wanted.get("externalId", "%").replace("%", "*").replace("_", "?")
        return (row for row in HubApi.matching(rows, exact) if fnmatchcase(row["externalId"] or "", pattern))


class QueuedAllTheSame(HubApi):
    """Looks at the number of attempts after it has queued the jobs."""

    async def submit(self, call: Call) -> Answer:
        try:
            return await super().submit(call)
        except Refusal as refusal:
            if refusal.details and all(violation.location.endswith("/maxAttempts") for violation in refusal.details):
                items = [{**item, "maxAttempts": 4} for item in call.body["items"]]
                call.body = {**call.body, "items": items}
                await super().submit(call)
            raise


class TouchedByStream(HubApi):
    """Marks the job that is followed."""

    async def stream_job(self, call: Call) -> Answer:
        answer = await super().stream_job(call)
        row = await self.job(call)
        if row["status"] == "failed":
            row["finishedAt"] += 1
        return answer


FAULTS = (
    Mutant(
        "hub-generated.nul-500",
        "a submission with U+0000 in its prompt is 500",
        ("HUB-SUB-05",),
        parts=part(submissions=NoNul),
        generated=True,
    ),
    Mutant(
        "hub-generated.quote-500",
        "a list with a quote in a filter is 500",
        ("HUB-LIST-01", "HUB-LIST-64"),
        parts=part(api=Quoted),
        generated=True,
    ),
    Mutant(
        "hub-generated.percent-500",
        "a batch's id with a percent sign in it is 500",
        ("HUB-ERR-54",),
        parts=part(api=Formatted),
        generated=True,
    ),
    Mutant(
        "hub-generated.like",
        "the filter externalId takes wildcards",
        ("HUB-LIST-06", "HUB-LIST-64"),
        parts=part(api=Like),
        generated=True,
    ),
    Mutant(
        "hub-generated.refused-and-queued",
        "a submission that is refused for maxAttempts is queued all the same",
        ("HUB-SUB-15",),
        parts=part(api=QueuedAllTheSame),
        generated=True,
    ),
    Mutant(
        "hub-generated.stream-touches",
        "following a failed job moves its finishedAt",
        ("HUB-SSE-01", "HUB-GET-55"),
        parts=part(api=TouchedByStream),
        generated=True,
    ),
)
