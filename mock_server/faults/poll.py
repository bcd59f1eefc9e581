"""Seeded faults of polling."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import drop_property, part, poll_list, schema_property
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


class PollOwnLocks(RuntimeApi):
    """Lists what its caller has locked."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        return [row for row in await super().listed(call, query) if row["lockedBy"] in (None, call.caller)]


class PollNamesLearning(RuntimeApi):
    """Shows one job type by another name."""

    def entry(self, row: Row) -> dict[str, Any]:
        shown = {**super().entry(row)}
        if row["jobType"] == "learning_state_analysis":
            shown["jobType"] = "learning_analysis"
        return shown


class PollCreates(RuntimeApi):
    """Answers a POST with 201, as frameworks do by themselves."""

    async def poll(self, call: Call) -> Answer:
        answer = await super().poll(call)
        answer.status = 201
        return answer


class PollBareList(RuntimeApi):
    """Answers the list itself."""

    async def poll(self, call: Call) -> Answer:
        answer = await super().poll(call)
        answer.body = answer.body["jobs"]
        return answer


class PollPriorityText(RuntimeApi):
    """Answers a 64-bit column as text."""

    def entry(self, row: Row) -> dict[str, Any]:
        return {**super().entry(row), "priority": str(row["priority"])}


class PollWithoutNulls(RuntimeApi):
    """Leaves out what is null."""

    def entry(self, row: Row) -> dict[str, Any]:
        return {name: value for name, value in super().entry(row).items() if value is not None}


class PollUpperTarget(RuntimeApi):
    """Shows a target type by the name of the database's enumeration."""

    def entry(self, row: Row) -> dict[str, Any]:
        return {**super().entry(row), "targetType": row["targetType"].upper()}


class PollApiKey(RuntimeApi):
    """Shows the job with its credential's columns."""

    def entry(self, row: Row) -> dict[str, Any]:
        return {**super().entry(row), "apiKey": None}


class PollOwnSnapshots(RuntimeApi):
    """Without a list of snapshot versions it lists those that the API knows."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        if query.snapshot_versions is None:
            query = replace(query, snapshot_versions=self.snapshot_versions)
        return await super().listed(call, query)


class PollOwnSchemas(RuntimeApi):
    """With capabilities that name no output schema it lists those that the API knows."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        if query.output_schema_versions is None and query.snapshot_versions is not None:
            query = replace(query, output_schema_versions=self.schema_versions)
        return await super().listed(call, query)


class PollEmptyMeansAll(RuntimeApi):
    """Takes an empty list of versions for one that was left out."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        snapshots, schemas = query.snapshot_versions or None, query.output_schema_versions or None
        return await super().listed(call, replace(query, snapshot_versions=snapshots, output_schema_versions=schemas))


class PollInnerJoin(RuntimeApi):
    """Joins jobs with their snapshots, so that one without is lost."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        rows = await super().listed(call, query)
        if query.snapshot_versions is None:
            return rows
        store = call.world.engine.store
        return [row for row in rows if row["snapshotId"] and await store.get("Snapshot", row["snapshotId"])]


class PollAnyVersions(RuntimeApi):
    """Judges no list of versions."""

    def readable(self, capabilities: dict[str, Any], name: str, supported: frozenset[str]) -> frozenset[str] | None:
        return frozenset(capabilities[name]) if name in capabilities else None


class PollTies(RuntimeApi):
    """Lists jobs of one priority and one millisecond in no particular order."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        rows = await super().listed(call, query)
        return sorted(rows, key=lambda row: (row["priority"], row["createdAt"], row["id"][::-1]))


def forgets(type_: str) -> type[RuntimeApi]:
    """A build that knows one job type less."""

    class PollForgets(RuntimeApi):
        async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
            return await super().listed(call, replace(query, groups=query.groups - {type_}))

    return PollForgets


FAULTS = (
    Mutant(
        "poll.all-types",
        "a poll lists jobs of types that were not asked for",
        ("RT-POLL-12", "RT-POLL-53"),
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
        ("RT-POLL-13", "RT-POLL-14", "RT-POLL-56"),
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
        "poll.lists-locked-to-their-holder",
        "a poll lists the jobs that its caller has locked, as if they waited still",
        ("RT-SM-04", "RT-SCHED-01"),
        edit=poll_list(**{"from": ["pending", "locked"]}),
        parts=part(runtime_api=PollOwnLocks),
    ),
    Mutant(
        "poll.lists-cancelled",
        "a poll lists cancelled jobs, too",
        ("RT-SCHED-08", "RT-CANCEL-02", "RT-SCHED-01"),
        edit=poll_list(**{"from": ["pending", "cancelled"]}),
    ),
    Mutant(
        "poll.tells-user",
        "a poll entry holds the userId",
        ("RT-POLL-63",),
        parts=part(runtime_api=PollTellsUser),
    ),
    Mutant("poll.locks", "a poll locks what it lists", ("RT-POLL-02", "RT-SM-05"), parts=part(runtime_api=PollLocks)),
    Mutant(
        "poll.empty-is-null",
        "no job available is null, not an empty list",
        ("RT-SCHED-06", "RT-POLL-09"),
        parts=part(runtime_api=PollEmptyIsNull),
    ),
    Mutant(
        "poll.limit-51",
        "a limit of 51 is accepted",
        ("RT-POLL-51", "RT-SCHED-04", "RT-ERR-60"),
        edit=schema_property("PollRequest", "limit", maximum=51),
    ),
    Mutant(
        "poll.default-11",
        "limit defaults to 11",
        ("RT-POLL-50",),
        edit=schema_property("PollRequest", "limit", default=11),
    ),
    Mutant("poll.201", "a poll is answered 201", ("RT-POLL-08",), parts=part(runtime_api=PollCreates)),
    Mutant("poll.bare-list", "a poll answers the list itself", ("RT-POLL-09",), parts=part(runtime_api=PollBareList)),
    Mutant(
        "poll.no-snapshot-id",
        "an entry lacks snapshotId",
        ("RT-POLL-10", "RT-DB-11"),
        edit=drop_property("PollEntry", "snapshotId"),
    ),
    Mutant(
        "poll.priority-text",
        "an entry's priority is a text",
        ("RT-POLL-11", "RT-DB-13"),
        parts=part(runtime_api=PollPriorityText),
    ),
    Mutant(
        "poll.without-nulls",
        "an entry leaves out what is null",
        ("RT-DB-11", "RT-DB-19", "RT-POLL-62"),
        parts=part(runtime_api=PollWithoutNulls),
    ),
    Mutant(
        "poll.target-upper-case",
        "an entry's targetType is in upper case",
        ("RT-DB-09",),
        parts=part(runtime_api=PollUpperTarget),
    ),
    Mutant(
        "poll.no-attempt", "an entry lacks attemptNo", ("RT-POLL-60",), edit=drop_property("PollEntry", "attemptNo")
    ),
    Mutant("poll.no-model", "an entry lacks modelName", ("RT-POLL-61",), edit=drop_property("PollEntry", "modelName")),
    Mutant("poll.no-params", "an entry lacks params", ("RT-POLL-62",), edit=drop_property("PollEntry", "params")),
    Mutant("poll.api-key", "an entry has an apiKey", ("RT-POLL-64",), parts=part(runtime_api=PollApiKey)),
    Mutant(
        "poll.no-types",
        "an empty list of types is accepted",
        ("RT-POLL-52", "RT-ERR-60"),
        edit=schema_property("PollRequest", "supportedJobTypes", minItems=0),
    ),
    Mutant(
        "poll.known-types-only",
        "an unknown job type is refused",
        ("RT-POLL-53",),
        edit=schema_property("PollRequest", "supportedJobTypes", items={"$ref": "#/components/schemas/JobType"}),
    ),
    Mutant(
        "poll.own-snapshots",
        "what is left out filters by the API's own snapshot versions",
        ("RT-POLL-54", "RT-POLL-55"),
        parts=part(runtime_api=PollOwnSnapshots),
    ),
    Mutant(
        "poll.own-schemas",
        "a list of output schemas that is left out filters by the API's own",
        ("RT-POLL-55",),
        parts=part(runtime_api=PollOwnSchemas),
    ),
    Mutant(
        "poll.empty-means-all",
        "an empty list of versions filters nothing",
        ("RT-POLL-56",),
        parts=part(runtime_api=PollEmptyMeansAll),
    ),
    Mutant(
        "poll.inner-join",
        "a job without a snapshot does not pass the snapshot filter",
        ("RT-POLL-57", "RT-POLL-58"),
        parts=part(runtime_api=PollInnerJoin),
    ),
    Mutant(
        "poll.any-versions",
        "a Runtime that knows no version of the API's is not refused",
        ("RT-POLL-59", "RT-ERR-14"),
        parts=part(runtime_api=PollAnyVersions),
    ),
    Mutant(
        "poll.ties",
        "jobs of one millisecond and priority come in no order",
        ("RT-SCHED-50",),
        parts=part(runtime_api=PollTies),
    ),
    Mutant(
        "poll.names-learning",
        "jobs of type learning_state_analysis are listed as learning_analysis",
        ("RT-DB-01", "RT-DB-06", "RT-POLL-10"),
        parts=part(runtime_api=PollNamesLearning),
    ),
    Mutant(
        "poll.forgets-a-type",
        "flashcard jobs are never listed",
        ("RT-DB-05", "RT-DB-06"),
        parts=part(runtime_api=forgets("flashcard_generation")),
    ),
    *(
        Mutant(
            f"poll.forgets-{type_.split('_')[0]}",
            f"jobs of type {type_} are never listed",
            (rule,),
            parts=part(runtime_api=forgets(type_)),
        )
        for type_, rule in (
            ("weak_point_analysis", "RT-DB-02"),
            ("next_action_planning", "RT-DB-03"),
            ("quiz_generation", "RT-DB-04"),
        )
    ),
)
