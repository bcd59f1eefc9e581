"""Seeded faults of the ``Idempotency-Key``: what is remembered, how long, for whom, and what counts as the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mock_server.calls import Refusal
from mock_server.faults.edits import part, update
from mock_server.hub.api import HubApi
from mock_server.hub.entities import JOB, SUBMISSION
from mock_server.hub.errors import HubErrors
from mock_server.hub.submission import Submissions
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.calls import Answer, Call, Exchange
    from mock_server.hub.hub import Hub

HOUR = 3_600_000
KEY = b"idempotency-key"


def held(call: Call) -> str | None:
    """The key of a submission."""
    raw = call.headers.get(KEY)
    return None if raw is None else raw.decode("latin-1")


class Always202(HubApi):
    """Answers a repetition like the first submission."""

    async def submit(self, call: Call) -> Answer:
        answer = await super().submit(call)
        answer.status = 202
        return answer


class Forgets(Submissions):
    """Remembers nothing."""

    async def remember(self, *args: Any) -> None:
        return


class AnswersAndCreates(HubApi):
    """Answers a repetition with the first answer, and queues its jobs once more."""

    async def submit(self, call: Call) -> Answer:
        answer = await super().submit(call)
        if answer.status == 200 and isinstance(call.body, dict):
            hub = call.world.hub
            _, items = self.submissions.judge(hub, call.body, call.world.redactor)
            batch, nodes = answer.body["data"]["batchId"], [item["nodeId"] for item in answer.body["data"]["items"]]
            first = await self.next_place(hub, call.caller, await hub.settle())
            await self.submissions.create(
                hub, self.submissions.rows(hub, call.caller, batch, items[: len(nodes)], nodes[: len(items)], first)
            )
        return answer


class ClosesAt24(Submissions):
    """Takes the key for new at the very end of the window."""

    async def earlier(self, hub: Hub, account: str, key: str, body: Any, now: int) -> dict[str, Any] | None:
        return await super().earlier(hub, account, key, body, now + 1)


class Extends(Submissions):
    """Lets the window begin anew with each repetition."""

    async def earlier(self, hub: Hub, account: str, key: str, body: Any, now: int) -> dict[str, Any] | None:
        data = await super().earlier(hub, account, key, body, now)
        if data is not None:
            row = await hub.store.get(SUBMISSION, self.key(account, key))
            await hub.engine.replace(SUBMISSION, {**(row or {}), "at": now})
        return data


class FromFirstSight(Submissions):
    """Lets the window begin when a key is first seen, with a submission that is refused, too."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._seen: dict[str, int] = {}

    async def earlier(self, hub: Hub, account: str, key: str, body: Any, now: int) -> dict[str, Any] | None:
        seen = self._seen.setdefault(self.key(account, key), now)
        if now - seen > 24 * HOUR:
            self._seen[self.key(account, key)] = now
            return None
        return await super().earlier(hub, account, key, body, now)


class TellsThePresent(HubApi):
    """Answers a repetition with what has become of the jobs."""

    async def submit(self, call: Call) -> Answer:
        answer = await super().submit(call)
        if answer.status == 200:
            for item in answer.body["data"]["items"]:
                row = await call.world.hub.store.get(JOB, item["id"])
                item["status"] = row["status"] if row else "queued"
        return answer


class JudgesAnew(HubApi):
    """Asks of a repetition, too, whether its projects are there."""

    async def submit(self, call: Call) -> Answer:
        answer = await super().submit(call)
        if answer.status == 200 and isinstance(call.body, dict):
            await self.submissions.place(call.world.hub, call.body["items"])
        return answer


class SameRequestId(HubApi):
    """Keeps the whole answer, its request's id too."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._ids: dict[tuple[str, str], str] = {}

    async def submit(self, call: Call) -> Answer:
        key = held(call)
        if key is not None and (call.caller, key) in self._ids:
            call.exchange.request_id = self._ids[call.caller, key]
        answer = await super().submit(call)
        if key is not None:
            self._ids[call.caller, key] = answer.body["requestId"]
        return answer


class RemembersRefusals(HubApi):
    """Remembers the body of a refused submission: another one under its key is 422 (SF-69)."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._refused: dict[tuple[str, str], str] = {}

    async def submit(self, call: Call) -> Answer:
        key, digest = held(call), self.submissions.digest(call.body)
        if key is None:
            return await super().submit(call)
        if self._refused.get((call.caller, key), digest) != digest:
            raise Refusal("idempotency_key_reused", "The key was used with another body.")
        try:
            return await super().submit(call)
        except Refusal as refusal:
            if refusal.code != "idempotency_key_reused":
                self._refused[call.caller, key] = digest
            raise


class RepeatsRefusals(HubApi):
    """Repeats a refusal to the same body under its key, whatever has changed since."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._refused: dict[tuple[str, str, str], Refusal] = {}

    async def submit(self, call: Call) -> Answer:
        key = held(call)
        place = (call.caller, key or "", self.submissions.digest(call.body))
        if key is not None and place in self._refused:
            raise self._refused[place]
        try:
            return await super().submit(call)
        except Refusal as refusal:
            self._refused[place] = refusal
            raise


class OneForAll(Submissions):
    """Shares keys between API keys (SF-67)."""

    @staticmethod
    def key(account: str, key: str) -> str:
        return key


class Shortened(Submissions):
    """Keeps the first 64 signs of a key."""

    @staticmethod
    def key(account: str, key: str) -> str:
        return f"{account}:{key[:64]}"


class LowerCase(Submissions):
    """Keeps keys in lower case."""

    @staticmethod
    def key(account: str, key: str) -> str:
        return f"{account}:{key.lower()}"


class LooksThenActs(Submissions):
    """Waits for its database between the look-up and the jobs (SF-64)."""

    async def earlier(self, hub: Hub, account: str, key: str, body: Any, now: int) -> dict[str, Any] | None:
        found = await super().earlier(hub, account, key, body, now)
        await asyncio.sleep(0.002)
        return found


def in_progress(code: str, *, for_ever: bool = False) -> Callable[[Any], None]:
    """Who comes while another is at work is refused with a code; ``for_ever``: and whoever comes later."""

    class Marks(HubApi):
        """Marks keys that are being worked on."""

        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self._marked: set[tuple[str, str]] = set()
            self._stuck: set[tuple[str, str]] = set()

        async def submit(self, call: Call) -> Answer:
            key = held(call)
            if key is None:
                return await super().submit(call)
            mark = (call.caller, key)
            if mark in self._marked or mark in self._stuck:
                if for_ever:
                    self._stuck.add(mark)
                raise Refusal(code, "The same submission is being worked on.")
            self._marked.add(mark)
            try:
                await asyncio.sleep(0.002)
                return await super().submit(call)
            finally:
                self._marked.discard(mark)

    return part(api=Marks)


class LoserFails(HubErrors):
    """Lets the one that comes second run into the database's unique index."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        code = "internal_error" if refusal.code == "idempotency_in_progress" else refusal.code
        return super().answer(Refusal(code, refusal.message, refusal.details, refusal.headers), exchange)


def loser_fails(build: Any) -> None:
    """Who comes while another is at work runs into the database's unique index (SF-65)."""
    in_progress("idempotency_in_progress")(build)
    build.errors = LoserFails


def header(**values: Any) -> Callable[[dict[str, Any]], None]:
    """Change what is asked of a key's form."""

    def edit(document: dict[str, Any]) -> None:
        schema = document["components"]["parameters"]["IdempotencyKey"]["schema"]
        for name, value in values.items():
            schema[name] = value
            if value is None:
                del schema[name]

    return edit


def window(hours: int) -> Callable[[dict[str, Any]], None]:
    """Change how long a key is remembered."""
    return update("x-state-machine", "constants", "idempotencyWindow", values={"hours": hours})


def _fault(id_: str, title: str, *rules: str, **how: Any) -> Mutant:
    return Mutant(f"hub-idempotency.{id_}", title, rules, **how)


FAULTS = (
    _fault("always-202", "a repetition is 202", "HUB-IDEM-03", parts=part(api=Always202)),
    _fault(
        "forgets", "a key means nothing", "HUB-IDEM-02", "HUB-IDEM-04", "HUB-IDEM-03", parts=part(submissions=Forgets)
    ),
    _fault(
        "answers-and-creates",
        "a repetition gets the first answer and queues its jobs again",
        "HUB-IDEM-04",
        parts=part(api=AnswersAndCreates),
    ),
    _fault(
        "23-hours", "a key is remembered for 23 hours", "HUB-IDEM-05", "HUB-IDEM-02", "HUB-IDEM-04", edit=window(23)
    ),
    _fault("25-hours", "a key is remembered for 25 hours", "HUB-IDEM-05", "HUB-IDEM-54", edit=window(25)),
    _fault(
        "closes-at-24",
        "a key is new at 24 hours to the millisecond",
        "HUB-IDEM-54",
        "HUB-IDEM-52",
        "HUB-IDEM-02",
        parts=part(submissions=ClosesAt24),
    ),
    _fault(
        "extends",
        "a repetition extends the 24 hours",
        "HUB-IDEM-53",
        "HUB-IDEM-52",
        "HUB-IDEM-54",
        parts=part(submissions=Extends),
    ),
    _fault(
        "from-first-sight",
        "the 24 hours run from the first submission, be it refused",
        "HUB-IDEM-52",
        "HUB-IDEM-02",
        parts=part(submissions=FromFirstSight),
    ),
    _fault(
        "the-present",
        "a repetition tells what has become of the jobs",
        "HUB-IDEM-50",
        "HUB-IDEM-02",
        edit=update(
            "components",
            "schemas",
            "SubmittedJob",
            "properties",
            "status",
            values={"enum": ["queued", "running", "done", "failed", "cancelled"]},
        ),
        parts=part(api=TellsThePresent),
    ),
    _fault(
        "judges-anew",
        "a repetition is judged by today's nodes",
        "HUB-IDEM-50",
        "HUB-IDEM-02",
        "HUB-IDEM-03",
        parts=part(api=JudgesAnew),
    ),
    _fault("same-request-id", "a repetition has the first requestId", "HUB-IDEM-51", parts=part(api=SameRequestId)),
    _fault(
        "remembers-refusals",
        "a refused submission uses its key up",
        "HUB-IDEM-60",
        parts=part(api=RemembersRefusals),
    ),
    _fault("repeats-refusals", "a refusal is repeated under its key", "HUB-IDEM-60", parts=part(api=RepeatsRefusals)),
    _fault(
        "one-for-all",
        "keys are shared between API keys",
        "HUB-IDEM-61",
        "HUB-SUB-05",
        parts=part(submissions=OneForAll),
    ),
    _fault("shortened", "a key's first 64 signs count", "HUB-IDEM-59", "HUB-SUB-05", parts=part(submissions=Shortened)),
    _fault("lower-case", "keys that differ by case are the same", "HUB-SUB-05", parts=part(submissions=LowerCase)),
    _fault(
        "looks-then-acts",
        "submissions at the same time are all done",
        "HUB-IDEM-62",
        "HUB-IDEM-63",
        "HUB-IDEM-04",
        parts=part(submissions=LooksThenActs),
    ),
    _fault(
        "loser-500",
        "of submissions at the same time all but one are 500",
        "HUB-IDEM-63",
        parts=loser_fails,
    ),
    _fault(
        "loser-422",
        "of submissions at the same time all but one are told that the key was used otherwise",
        "HUB-IDEM-63",
        parts=in_progress("idempotency_key_reused"),
    ),
    _fault(
        "in-progress-for-ever",
        "a key that two wanted at the same time is in progress for ever",
        "HUB-IDEM-63",
        "HUB-IDEM-02",
        "HUB-IDEM-03",
        parts=in_progress("idempotency_in_progress", for_ever=True),
    ),
    _fault("any-key", "any key will do", "HUB-IDEM-59", edit=header(pattern=None, maxLength=None, minLength=None)),
    _fault("key-of-100", "a key has 100 signs at most", "HUB-IDEM-59", "HUB-SUB-05", edit=header(maxLength=100)),
    _fault("words", "a key is a word", "HUB-IDEM-59", "HUB-SUB-05", edit=header(pattern="^[A-Za-z0-9_-]+$")),
)
