"""Seeded faults of polling."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import part, poll_list, schema_property
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from mock_server.calls import Answer, Call
    from mock_server.store import QueueQuery, Row


class PollAll(RuntimeApi):
    """Lists jobs of every type."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        every = frozenset(self.contract.document["components"]["schemas"]["JobType"]["enum"])
        return await super().listed(call, replace(query, groups=every))


class PollNoLimit(RuntimeApi):
    """Lists a thousand jobs."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        return await super().listed(call, replace(query, limit=1000))


class PollNoVersions(RuntimeApi):
    """Filters by no version."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        return await super().listed(call, replace(query, output_schema_versions=None, snapshot_versions=None))


class PollTellsUser(RuntimeApi):
    """Shows whose job it is."""

    def entry(self, row: Row) -> dict[str, Any]:
        return {**super().entry(row), "userId": row["userId"]}


class PollLocks(RuntimeApi):
    """Locks what it lists."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        rows = await super().listed(call, query)
        for row in rows:
            await call.world.engine.operate("lockJob", caller=call.caller, path={"jobId": row["id"]}, body={})
        return rows


class PollEmptyIsNull(RuntimeApi):
    """Answers null for an empty list."""

    async def poll(self, call: Call) -> Answer:
        answer = await super().poll(call)
        if not answer.body["jobs"]:
            answer.body = {"jobs": None}
        return answer


FAULTS = (
    Mutant(
        "poll.all-types",
        "a poll lists jobs of types that were not asked for",
        ("RT-POLL-12",),
        parts=part(runtime_api=PollAll),
    ),
    Mutant(
        "poll.no-limit",
        "a poll lists more than its limit",
        ("RT-SCHED-05", "RT-SCHED-04", "RT-POLL-50"),
        parts=part(runtime_api=PollNoLimit),
    ),
    Mutant(
        "poll.no-versions",
        "capabilities filter nothing",
        ("RT-POLL-13", "RT-POLL-14"),
        parts=part(runtime_api=PollNoVersions),
    ),
    Mutant(
        "poll.newest-first",
        "within one priority the newest comes first",
        ("RT-SCHED-03",),
        edit=poll_list(order=["priority", "id"]),
    ),
    Mutant(
        "poll.by-age-alone",
        "the priority is ignored",
        ("RT-SCHED-02",),
        edit=poll_list(order=["createdAt", "id"]),
    ),
    Mutant(
        "poll.lists-locked",
        "a poll lists locked jobs, too",
        ("RT-SCHED-01",),
        edit=poll_list(**{"from": ["pending", "locked"]}),
    ),
    Mutant(
        "poll.lists-cancelled",
        "a poll lists cancelled jobs, too",
        ("RT-SCHED-08", "RT-CANCEL-02"),
        edit=poll_list(**{"from": ["pending", "cancelled"]}),
    ),
    Mutant(
        "poll.tells-user",
        "a poll entry holds the userId",
        ("RT-POLL-63",),
        parts=part(runtime_api=PollTellsUser),
    ),
    Mutant("poll.locks", "a poll locks what it lists", ("RT-POLL-02",), parts=part(runtime_api=PollLocks)),
    Mutant(
        "poll.empty-is-null",
        "no job available is null, not an empty list",
        ("RT-SCHED-06",),
        parts=part(runtime_api=PollEmptyIsNull),
    ),
    Mutant(
        "poll.limit-51",
        "a limit of 51 is accepted",
        ("RT-POLL-51",),
        edit=schema_property("PollRequest", "limit", maximum=51),
    ),
    Mutant(
        "poll.default-11",
        "limit defaults to 11",
        ("RT-POLL-50",),
        edit=schema_property("PollRequest", "limit", default=11),
    ),
)
