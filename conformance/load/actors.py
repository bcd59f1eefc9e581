"""A simulated Runtime: its requests, and now and then an answer that it does not wait for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.load.line import Line
from contract_tests.client import BASE, INSTANCE_HEADER, JOB_TYPES, KEY_HEADER

if TYPE_CHECKING:
    from random import Random

    from conformance.load.line import Place
    from conformance.load.recorder import Recorder
    from contract_tests.histories.operations import Kind, Operation

LOST_WITHIN = 0.004
"""Seconds within which we hang up: some of these requests were handled before, some after, some never."""


@dataclass(frozen=True, slots=True)
class Work:
    """A job as a Runtime knows it."""

    id: str
    schema: str = "analysis_output_v1"
    user: str | None = None
    """Its user, where we made the job."""

    def path(self, what: str) -> str:
        """Where an operation about it is asked for."""
        return f"{BASE}/jobs/{quote(self.id, safe='')}/{what}"


class Actor:
    """One Runtime with a connection of its own, and a second one for what it sends twice at once."""

    def __init__(self, name: str, place: Place, key: str, recorder: Recorder, lose: float) -> None:
        """``lose``: the share of operations whose answers it does not wait for."""
        self.name, self._place, self._recorder, self._lose = name, place, recorder, lose
        self._headers = {KEY_HEADER: key, INSTANCE_HEADER: name}
        self._line, self._second = Line(place), Line(place)

    async def ready(self) -> None:
        """Open both connections: what is to race does not wait for one."""
        await self._line.ready()
        await self._second.ready()

    async def poll(self) -> list[dict[str, Any]]:
        """The jobs that it is told."""
        body = {"runtimeInstanceId": self.name, "supportedJobTypes": JOB_TYPES, "limit": 50}
        request = self._place.request("POST", f"{BASE}/jobs/poll", self._headers, body)
        _, _, reply = await self._recorder.ask(self._line, "poll", request)
        jobs = reply.json.get("jobs") if reply is not None and reply.status == 200 else None
        return [job for job in jobs if isinstance(job, dict)] if isinstance(jobs, list) else []

    async def snapshot(self, work: Work) -> None:
        """Read the snapshot."""
        request = self._place.request("GET", work.path("snapshot"), self._headers)
        await self._recorder.ask(self._line, "snapshot", request)

    async def lock(self, work: Work, random: Random) -> Operation:
        """Ask for the lock."""
        return await self._operate("lock", work, random, {})

    async def heartbeat(self, work: Work, random: Random) -> Operation:
        """Extend the lock."""
        return await self._operate("heartbeat", work, random, {})

    async def result(self, work: Work, random: Random, hash_: str, attempt: int, *, second: bool = False) -> Operation:
        """Submit a result; ``second``: over the other connection."""
        body = {
            "schemaVersion": work.schema,
            "status": "succeeded",
            "validatedOutput": {"learningState": "in_progress", "riskLevel": "low"},
            "attemptNo": attempt,
            "outputHash": hash_,
        }
        return await self._operate("result", work, random, body, ("outputHash",), second=second)

    async def fail(self, work: Work, random: Random, *, retryable: bool, second: bool = False) -> Operation:
        """Submit a failure; ``second``: over the other connection."""
        body = {"errorCode": "MODEL_TIMEOUT", "errorMessage": "no answer of the model", "retryable": retryable}
        return await self._operate("fail", work, random, body, ("retryable",), second=second)

    async def _operate(
        self,
        kind: Kind,
        work: Work,
        random: Random,
        body: dict[str, Any],
        shown: tuple[str, ...] = (),
        *,
        second: bool = False,
    ) -> Operation:
        sent = {"runtimeInstanceId": self.name, **body}
        request = self._place.request("POST", work.path(kind), self._headers, sent)
        lose_after = random.uniform(0, LOST_WITHIN) if random.random() < self._lose else None
        return await self._recorder.operate(
            self._second if second else self._line,
            kind,
            work.id,
            self.name,
            request,
            sent={name: body[name] for name in shown},
            lose_after=lose_after,
        )

    def close(self) -> None:
        """Hang up."""
        self._line.close()
        self._second.close()


class Application:
    """What the application does to jobs, by provider states; on a connection of its own."""

    def __init__(self, place: Place, offered: frozenset[str], recorder: Recorder, token: str | None = None) -> None:
        """``token``: what the endpoint asks for, sent as a bearer token."""
        self.offered = offered
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._place, self._recorder, self._line = place, recorder, Line(place)
        self._turn = asyncio.Lock()

    async def create(self, **params: Any) -> Work | None:
        """A new job; None where it could not be made."""
        invoked, completed, reply = await self._recorder.ask(self._line, "create", self._request("job", params))
        told = reply.json if reply is not None and reply.status == 200 else {}
        if not isinstance(told.get("jobId"), str):
            return None
        self._recorder.created(told["jobId"], invoked, completed)
        return Work(told["jobId"], user=told.get("userId"))

    async def inspect(self, work: Work) -> Operation | None:
        """The job's columns."""
        return await self._act("inspect", work, "inspect-job", {"jobId": work.id})

    async def revoke(self, work: Work) -> Operation | None:
        """Its user does not want it any more."""
        return await self._act("revoke", work, "revoke-ai-consent", {"userId": work.user})

    async def cancel(self, work: Work) -> Operation | None:
        """Cancelled while it waits, which is refused otherwise."""
        return await self._act("cancel", work, "cancel-job", {"jobId": work.id})

    async def _act(self, kind: Kind, work: Work, state: str, params: dict[str, Any]) -> Operation | None:
        if state not in self.offered:
            return None
        async with self._turn:
            return await self._recorder.operate(self._line, kind, work.id, "", self._request(state, params))

    def _request(self, state: str, params: dict[str, Any]) -> bytes:
        return self._place.request("POST", "", self._headers, {"action": "setup", "state": state, "params": params})

    def close(self) -> None:
        """Hang up."""
        self._line.close()
