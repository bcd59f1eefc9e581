"""Builds of the Runtime API that are right in another way than the reference."""

from __future__ import annotations

import asyncio
import random
import secrets
import uuid
from typing import TYPE_CHECKING, Any

import variant_rewrites as rewrites
from variant_rewrites import Spelling
from variant_traits import Trait, Variants
from variant_wire import Style, title

from mock_server.executor import Outcome
from mock_server.faults.edits import machine, put, step
from mock_server.store import Change, Due

if TYPE_CHECKING:
    from collections.abc import Mapping


class LateSweeper:
    """Limits are kept at once, what they do to a job is done by a sweeper: the job shows its old state meanwhile."""

    period = 0.4
    """Seconds of real time by which the sweeper may be late."""
    _task: asyncio.Task[None] | None = None

    async def settle(self: Any, fired: Any = None) -> int:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._sweep())
        return self.clock.now()

    async def _sweep(self: Any) -> None:
        while True:
            await asyncio.sleep(random.uniform(0.2, 1) * self.period)
            await self._swept()

    async def _swept(self: Any) -> None:
        await super().settle()  # type: ignore[misc]

    async def operate(self: Any, operation_id: str, *, caller: str, path: Any, body: Any) -> Outcome:
        key = path.get("jobId") or (body or {}).get("jobId")
        row = await self.store.get("Job", key)
        due = self.executor.due(row, key) if row else None
        if due is not None and due.instant <= self.clock.now():
            return Outcome("late", "JOB_ALREADY_LOCKED" if operation_id == "lockJob" else "LOCK_NOT_HELD", row)
        outcome: Outcome = await super().operate(operation_id, caller=caller, path=path, body=body)  # type: ignore[misc]
        return outcome


class VerySlowSweeper(LateSweeper):
    """The same, up to a second late."""

    period = 1.0


class ShowsExpired(LateSweeper):
    """The job shows `expired` from its limit on, until the sweeper takes it out of there."""

    async def settle(self: Any, fired: Any = None) -> int:
        await super().settle()
        now: int = self.clock.now()
        while (due := await self.store.next_due()) is not None and due.instant <= now:
            row = await self.store.get("Job", due.key)
            lapsed = {"status": "expired", "errorCode": "JOB_TIMEOUT", "errorMessage": None, "updatedAt": now}
            await self.store.commit([Change("Job", row, row | lapsed)])
        return now

    async def _swept(self: Any) -> None:
        for row in await self.store.rows("Job"):
            if row["status"] == "expired":
                inputs = {**self._functions, "job": row, "now": self.clock.now()}
                new = self.executor._move("expired", [], inputs, row)
                await self.store.commit([Change("Job", row, new, self.executor.due(new, new["id"]))])


class AnyInstant:
    """What a limit does is stamped with any instant from the limit to when it is first seen."""

    async def settle(self: Any, fired: Any = None) -> int:
        now: int = self.clock.now()
        while (due := await self.store.next_due()) is not None and due.instant <= now:
            row = await self.store.get("Job", due.key)
            seen = Due(random.randint(due.instant - 1, now), due.order, due.key)
            await self._commit(row, self.executor.fire(seen, row, dict(self._functions)), now)
        return now


class Ids:
    """Ids of another form."""

    @staticmethod
    def make() -> str:
        raise NotImplementedError

    def _row(self: Any, entity: str, values: Mapping[str, Any], now: int) -> Any:
        key = self.rows.keys[entity]
        made = {} if values.get(key) is not None else {key: self.make()}
        return super()._row(entity, {**values, **made}, now)  # type: ignore[misc]


class Uuids(Ids):
    @staticmethod
    def make() -> str:
        return str(uuid.uuid4()).upper()


class LongIds(Ids):
    """128 characters: every one that a path may hold as it is."""

    @staticmethod
    def make() -> str:
        return (secrets.token_hex(8) + "-._~!$&'()*+,;=:@AZaz09" * 6)[:128]


class EncodedIds(Ids):
    """Characters that have to be percent-encoded in a path, and what looks encoded and is not."""

    @staticmethod
    def make() -> str:
        return f'job {secrets.token_hex(6)} %41+"é作业<>#?[]{{}}|^`\N{ROCKET}'


class NoPlatformKey:
    """Runtimes have the platform's key themselves; every job is sent to the same address of the provider."""

    def credential(self: Any, call: Any, job: Any, credential: Any) -> dict[str, Any]:
        values: dict[str, Any] = super().credential(call, job, credential)  # type: ignore[misc]
        if job["apiKeyMode"] == "platform_key":
            del values["apiKey"]
        return values | {"baseUrl": "https://api.deepseek.com/v1"}


class UnknownAtLength:
    """An id over 128 characters is like any other that no job has: JOB_NOT_FOUND, when jobs are looked up."""

    def _judge_path(self: Any, path: Any, exchange: Any) -> None:
        return


def _late_result(document: dict[str, Any]) -> None:
    step(document, "result.too-late")["when"] = "job.errorCode == null || job.errorCode != 'JOB_TIMEOUT'"


def _revoked_while_expired(document: dict[str, Any]) -> None:
    step(document, "revoke.active")["from"].append("expired")


FLOWS = ("--timing", "sweep=0.5")
"""Where time flows, the checks wait for real; these builds sweep at once."""

TRAITS: dict[str, Trait] = {
    "more properties": Trait(rewrite=rewrites.more_properties),
    "other words": Trait(rewrite=rewrites.other_words),
    "no details": Trait(rewrite=rewrites.no_details),
    "keys reversed, escapes, spaces": Trait(rewrite=Spelling(escapes=True, spaces=True)),
    "whole numbers with a fraction": Trait(rewrite=Spelling(fractions=True)),
    "charset": Trait(rewrite=rewrites.charset),
    "cache control": Trait(rewrite=rewrites.cache_control),
    "slow": Trait(delay=0.003),
    "closes at the end": Trait(style=Style(framing="close")),
    "chunks, Title-Case, open": Trait(style=Style(title, "chunked", lingers=2)),
    "UPPER-CASE": Trait(style=Style(str.upper)),
    "ids: UUID": Trait(layers={"engine": Uuids}),
    "ids: 128 characters": Trait(layers={"engine": LongIds}),
    "ids: to be encoded": Trait(layers={"engine": EncodedIds}),
    "instants in ISO 8601": Trait(rewrite=rewrites.iso_instants),
    "sweeper late, shows the old state": Trait(layers={"engine": LateSweeper}),
    "sweeper late, shows expired": Trait(layers={"engine": ShowsExpired}, edits=(_revoked_while_expired,)),
    "sweeper a second late": Trait(layers={"engine": VerySlowSweeper}),
    "a limit's stamp anywhere": Trait(layers={"engine": AnyInstant}),
    "a limit's words": Trait(edits=(machine("effects", "lapse", "errorMessage", value="'the lock lapsed'"),)),
    "raw errors its own way": Trait(
        edits=(
            machine("effects", "lapse", "rawError", value="'lapsed'"),
            machine("effects", "success", "rawError", value="null"),
        )
    ),
    "a late result is LOCK_NOT_HELD": Trait(edits=(_late_result,)),
    "no platform key, one address": Trait(layers={"runtime_api": NoPlatformKey}),
    "long ids are unknown jobs": Trait(layers={"judge": UnknownAtLength}),
    "bodies of 40 MiB": Trait(edits=(put("x-limits", "bodyBytes", value=40 * 2**20),)),
    "pages elsewhere": Trait(rewrite=rewrites.html_elsewhere),
    "no snapshotId is absent": Trait(rewrite=rewrites.absent_snapshot_id),
    "another snapshot": Trait(rewrite=rewrites.other_snapshot),
    "no documents": Trait(rewrite=rewrites.no_document),
    "time flows": Trait(clock="real", arguments=FLOWS),
    "time flies": Trait(clock="x60", arguments=FLOWS),
    "no inspect-job": Trait(without=("inspect-job",)),
    "no reset, no rerun": Trait(without=("reset", "rerun-job")),
    "no cancel, no consent, no credential": Trait(without=("cancel-job", "revoke-ai-consent", "credential")),
}
"""Everything that the contract leaves open and a build of these parts can show."""

BUILDS: dict[str, tuple[str, ...]] = {
    "talkative": (
        "more properties",
        "other words",
        "ids: to be encoded",
        "charset",
        "chunks, Title-Case, open",
        "slow",
        "keys reversed, escapes, spaces",
    ),
    "other numbers": (
        "ids: UUID",
        "instants in ISO 8601",
        "no snapshotId is absent",
        "UPPER-CASE",
        "long ids are unknown jobs",
        "a limit's stamp anywhere",
        "a limit's words",
        "raw errors its own way",
        "another snapshot",
        "whole numbers with a fraction",
    ),
    "expired for a while": (
        "sweeper late, shows expired",
        "no details",
        "cache control",
        "no platform key, one address",
        "closes at the end",
        "a late result is LOCK_NOT_HELD",
        "pages elsewhere",
    ),
    "swept late": ("sweeper late, shows the old state", "ids: 128 characters", "no documents", "bodies of 40 MiB"),
    "in real time": ("time flows", "more properties"),
    "in fast time": ("time flies",),
    "swept late as time flows": ("time flows", "sweeper late, shows expired"),
    "few states": ("no inspect-job", "no reset, no rerun", "no cancel, no consent, no credential"),
}

VARIANTS = Variants(
    TRAITS,
    BUILDS,
    fuzzed=("talkative", "other numbers"),
    fuzzed_slowly=(
        "expired for a while",
        "swept late",
        "in real time",
        "in fast time",
        "swept late as time flows",
        "sweeper a second late",
    ),
    slow=("sweeper a second late",),
)
