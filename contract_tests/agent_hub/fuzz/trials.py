"""Generated requests to the hub: what an exchange did, that a refusal did nothing, and that jobs are as submitted."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import HubDialect, is_stream
from contract_tests.agent_hub.fuzz.answers import judge_kept
from contract_tests.agent_hub.fuzz.judging import Judge
from contract_tests.agent_hub.fuzz.outcomes import named_in
from contract_tests.agent_hub.fuzz.situations import BATCH, JOB, PLACE, Subject, look, make, queued
from contract_tests.checks import CheckFailed, about, expect
from contract_tests.fuzz import trials
from contract_tests.fuzz.judging import Finding
from contract_tests.reach import Reach
from contract_tests.transport import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.fuzz.trials import Step

CHANGES = ("cancelHubJob", "retryHubJob")
"""Operations that move a job."""
UNCHANGED = {
    "submitJobs": "HUB-SUB-15",
    "cancelHubJob": "HUB-CANCEL-05",
    "retryHubJob": "HUB-RETRY-08",
    "getJob": "HUB-GET-01",
    "streamJob": "HUB-SSE-01",
}
"""The rule under which it is told that a refusal, or a read, changed something."""
MOVING = ("progress", "blocked")
"""Fields of a job that change by themselves."""
HEAD_SECONDS = 15.0
_code_of = HubDialect("HUB-GET-02").code_of


class Trials(trials.Trials[Subject]):
    """The exchanges of one check."""

    judge: Judge

    def __init__(self, given: HubGiven, reach: Reach, *, exact: bool, together: int = 1) -> None:
        super().__init__(given.api.transport, Judge(given.api.token, exact=exact), reach, together=together)
        self.given = given

    async def another(self, subject: Subject, params: Mapping[str, Any]) -> Subject:
        """A new subject in the same situation."""
        return await make(self.given, subject.situation, **params)

    def once(self) -> Trials:
        """The same for one repetition."""
        return Trials(self.given, Reach(self.reach.contract), exact=self.judge.exact)

    async def send(self, step: Step[Subject]) -> Response:
        """The answer; of a stream its head alone, and it is closed at once."""
        if step.operation_id != "streamJob":
            return await super().send(step)
        began, body = time.monotonic(), b""
        async with await self.transport.open(step.request) as stream:
            while not is_stream(stream) and (chunk := await stream.read(HEAD_SECONDS)):
                body += chunk
            return Response(stream.status, stream.headers, body, began, time.monotonic())

    async def follow(self, step: Step[Subject], response: Response) -> Finding | None:
        """What the exchange did, for the account of reach; a refusal or a read must have done nothing."""
        subject, code = step.subject, _code_of(response) if response.status >= 400 else None
        move, finding = None, None
        if subject is None:
            pass
        elif step.operation_id == "submitJobs" and response.status < 400:
            finding = await self._submitted(step, subject, response)
        elif step.operation_id == "cancelBatch" and response.status < 400 and subject.situation.kind == BATCH:
            subject.left, subject.state = 0, "finished"
        elif subject.situation.kind == JOB and response.status < 400 and step.operation_id in CHANGES:
            before = subject.state
            move = f"{before} -> {response.json['data'].get('status')}"
            await look(self.given, subject)
        elif subject.situation.kind in (JOB, PLACE):
            if step.operation_id in CHANGES and named_in(step) == subject.job:
                move = f"{subject.state} -> {subject.state}"
            subject.refused.append(step)
            if len(subject.refused) >= self.together:
                finding = await self.unchanged(subject)
        self.reach.saw(step.operation_id, response.status, code, move)
        return finding

    async def _submitted(self, step: Step[Subject], subject: Subject, response: Response) -> Finding | None:
        """A submission was accepted: its key is remembered, and one of its jobs is as it was submitted."""
        key = step.request.headers.get("idempotency-key")
        data = response.json["data"]
        if response.status == 202 and key is not None:
            subject.sent[key], subject.first[key] = step, data
        items = json.loads(step.request.content)["items"]
        if response.status != 202 or (len(items) > 1 and not self.judge.exact) or not _can_be_kept(items):
            return None
        middle = len(items) // 2  # in the order sent, which was judged
        try:
            detail = await self.given.detail(str(data["items"][middle]["id"]))
            judge_kept(items[middle], detail, exact=self.judge.exact)
        except CheckFailed as failure:
            return Finding(f"submitJobs kept {failure.pointer}", failure)
        return None

    async def unchanged(self, subject: Subject) -> Finding | None:
        """Look whether the subject is as it was; where it is not, what changed it is in ``subject.refused``."""
        steps, before = list(subject.refused), subject.row
        subject.refused.clear()
        if before is None or not steps:
            return None
        operation_id = steps[-1].operation_id
        try:
            with about(UNCHANGED[operation_id]):
                await self._as_before(subject, before)
        except CheckFailed as failure:
            await look(self.given, subject)
            subject.refused.extend(steps)
            return Finding(f"{operation_id} changed", failure)
        return None

    async def _as_before(self, subject: Subject, before: Mapping[str, Any]) -> None:
        if subject.situation.kind == PLACE:
            jobs = await queued(self.given, subject)
            expect(jobs == before["jobs"], "no job of a refused submission", f"jobs: {', '.join(map(str, jobs))}")
        elif subject.job is not None:
            now = await self.given.detail(subject.job)
            for name, value in before.items():
                same = name in MOVING or now.get(name) == value
                expect(same, f"`{name}` as before: {json.dumps(value)}", json.dumps(now.get(name)), f"/data/{name}")


def _can_be_kept(items: Any) -> bool:
    """Whether every build that takes the jobs can tell them again: no number beyond doubles, no half of a character."""
    try:
        return bool(json.dumps(items, allow_nan=False, ensure_ascii=False).encode())
    except ValueError:
        return False
