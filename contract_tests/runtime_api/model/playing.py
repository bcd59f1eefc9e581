"""Plays commands on the build and on the model side by side, and compares what comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from contract_tests.checks import about, expect
from contract_tests.client import JobRef, describe, judge_code
from contract_tests.runtime_api.model.believed import Allowed, Believed, Job, differences
from contract_tests.runtime_api.model.commands import KINDS, OPERATIONS, RUNTIMES, request
from contract_tests.runtime_api.model.rules import ANSWERS, of_columns
from contract_tests.transport import StateRefused

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from contract_tests.calls import Answer
    from contract_tests.given import Given
    from contract_tests.model.sequences import Command
    from contract_tests.model.stepper import Row, Stepper

ACTIONS = {"cancel": "cancelJob", "rerun": "rerunJob", "revoke": "revokeConsent"}
"""The trigger of the machine that a provider state reaches."""
SUMMED = "resultCount"
PASSING = "expired"
"""The state of a job that lost an attempt, until it is swept."""


class Play:
    """One sequence at work, on jobs and users of its own."""

    def __init__(self, given: Given, stepper: Stepper) -> None:
        self.given, self.states, self.clock = given, given.states, given.clock
        self.believed = Believed(stepper)
        self.jobs = self.believed.jobs
        self.now = 0
        """The instant that was told last."""
        self.looks = "inspect-job" in self.states.offered

    def caller(self, command: Command) -> str:
        """Who a command's `who` is, as the model has it."""
        job = self.job(command)
        holder: str | None = job.row["lockedBy"]
        formers = [one for one in job.formers if one != holder]
        if command.who == "holder":
            return holder or (formers[-1] if formers else RUNTIMES[0])
        if command.who == "former" and formers:
            return formers[-1]
        strangers = [one for one in RUNTIMES if one != holder and one not in formers]
        return strangers[-1] if strangers else next(one for one in RUNTIMES if one != holder)

    def job(self, command: Command) -> Job:
        """The job that a command is about."""
        return self.jobs[command.job % len(self.jobs)]

    async def do(self, command: Command, *, look: bool = True) -> None:
        """Do one thing and compare the answer, then (with ``look``) every column. Fails the check with what differs."""
        if command.kind == "make":
            await self._make(command, look=look)
        elif not self.jobs:
            return
        elif command.kind == "time":
            await self._time(command, look=look)
        elif command.kind == "revoke":
            await self._revoke(command, look=look)
        elif command.kind in OPERATIONS:
            await self._request(command, look=look)
        else:
            await self._act(command, look=look)

    def changes(self, command: Command) -> bool:
        """Whether the text has something changed by a command, were it given now."""
        job, instants = self.job(command), (self.now,)
        match command.kind:
            case "time":
                return True
            case "again":
                return False
            case "cancel" | "rerun" | "revoke":
                params = {"jobId": job.ref.id, "userId": job.ref.user_id}
                found = self.believed.allowed("actions", ACTIONS[command.kind], job, instants, params=params)
            case _:
                sent = request(self.given.api, command, job, self.caller(command)).request
                found = self._allowed(command, job, sent.content, instants)
        return any(created or _moves(one) for one, created in found)

    def cell(self, command: Command) -> Hashable:
        """What a command comes to now."""
        return command.kind, self.caller(command) if command.kind in OPERATIONS else "", command.what

    async def instant(self) -> int:
        """The build's instant."""
        self.now = await self.clock.now()
        return self.now

    async def _request(self, command: Command, *, look: bool) -> None:
        job, by = self.job(command), self.caller(command)
        call = request(self.given.api, command, job, by)
        was = f"{job.row['status']}, held by {job.row['lockedBy']}"
        began = await self.instant()
        answer = await call.answers()
        ended = await self.instant()
        judge_code(answer)
        allowed = self._allowed(command, job, call.request.content, sorted({began, ended}))
        rule = ANSWERS[command.kind]
        with about(rule):
            fitting = [one for one in allowed if self._fits(command, job, one[0], answer)]
            wanted = sorted({self._told(one) for one, _ in allowed})
            what = f"{command.kind} ({command.what})" if command.what else command.kind
            expect(bool(fitting), [f"{one} to {what} by {by} of a job that is {was}" for one in wanted], came(answer))
        created = fitting[0][1]
        self.believed.tables["Result"] += [created["Result"]] if "Result" in created else []
        holder = job.row["lockedBy"]
        await self.look(job, [one for one, _ in fitting], command, look=look, slack=ended - began)
        if holder and job.row["lockedBy"] != holder:
            job.formers.append(holder)

    def _allowed(
        self, command: Command, job: Job, content: bytes, instants: Iterable[int]
    ) -> list[tuple[Allowed, Mapping[str, Row]]]:
        operation, sent = OPERATIONS[command.kind], json.loads(content or b"{}")
        return self.believed.allowed(
            "operations",
            operation,
            job,
            instants,
            caller=sent.get("runtimeInstanceId", self.caller(command)),
            body=self.believed.body(operation, sent),
            path={"jobId": job.ref.id},
        )

    def _told(self, allowed: Allowed) -> str:
        answer = allowed.taken.answer if allowed.taken else None
        if isinstance(answer, str):
            return f"{self.believed.contract.errors[answer].status} {answer}"
        return str(answer)

    def _fits(self, command: Command, job: Job, allowed: Allowed, answer: Answer) -> bool:
        """Whether an answer is the one that the text has. Which success it is, only a result has to tell."""
        wanted, got = self._told(allowed), came(answer)
        if allowed.taken and allowed.taken.step == "result.too-late":
            lapsed = job.row["errorCode"] == self.believed.steps.constants["timeoutCode"]
            if lapsed and got == "409 LOCK_NOT_HELD":  # which of the two comes of an attempt that lapsed is left open
                return True
        if answer.status >= 300 or wanted[0] != "2":
            return got == wanted
        asked = allowed.taken.headers.get("x-job-cancel-requested") if allowed.taken else None
        if (answer.headers.get("x-job-cancel-requested") == "true") != (asked == "true"):
            return False
        return command.kind != "result" or got == wanted

    async def _make(self, command: Command, *, look: bool) -> None:
        kind = dict(KINDS[command.what])
        user = self.given.unique("user")
        lock = self.given.timing.lock
        params = {
            "userId": user,
            "jobType": kind.get("jobType", "learning_state_analysis"),
            "targetType": "material",
            "targetId": "mat-1",
            "timeoutSeconds": max(round(lock * kind.get("timeoutSeconds", 1.7)), 1),
            "maxRetryCount": kind.get("maxRetryCount", 3),
        }
        if "idempotencyKey" in kind:
            params["idempotencyKey"] = self.given.unique("key")
        if "credential" in kind:
            params |= {
                "apiKeyMode": "user_deepseek_key",
                "credentialId": await self._credential(kind["credential"], user),
            }
        body = dict(params)
        if "snapshot" in kind:
            params["snapshot"] = kind["snapshot"]
        began = await self.instant()
        values = await self.states.set_up("job", params)
        ended = await self.instant()
        ref = JobRef(values["jobId"], values["userId"], values.get("snapshotId"))
        body["snapshotId"] = ref.snapshot_id if kind.get("snapshot") != "none" else None
        if kind.get("snapshot") in (None, "expired"):
            expires = began - 1 if "snapshot" in kind else None
            self.believed.tables["Snapshot"].append({"id": ref.snapshot_id, "expiresAt": expires})
        await self._appears(ref, "createJob", None, command, (began, ended), look, body=body, params=params)

    async def _appears(
        self,
        ref: JobRef,
        action: str,
        of: Job | None,
        command: Command,
        instants: tuple[int, int],
        look: bool,
        **more: Any,
    ) -> None:
        """A new job is there: as the text creates it."""
        columns = self.believed.contract.document["components"]["schemas"]["Job"]["properties"]
        body = dict.fromkeys(columns) | more.get("body", {})
        allowed = self.believed.allowed("actions", action, of, instants[-1:], params={}, body=body)
        created = next((rows["Job"] for _, rows in allowed if "Job" in rows), None)
        with about(ANSWERS[command.kind]):
            expect(created is not None, f"{self._told(allowed[0][0])} to {command.kind}", f"a new job {ref.id}")
            expect(all(job.ref.id != ref.id for job in self.jobs), "a job of its own", f"{ref.id}, which was there")
        row = self.believed.created(created or {}, ref.id, instants[-1])
        job = Job(ref, row, more.get("body"), more.get("params") or {})
        self.jobs.append(job)
        await self.look(job, [Allowed(None, row)], command, look=look, slack=instants[-1] - instants[0], new=True)

    async def _credential(self, kind: str, user: str) -> str:
        owner = self.given.unique("user") if kind == "others" else user
        status = "invalid" if kind == "invalid" else "valid"
        values = await self.states.set_up("credential", {"userId": owner, "status": status})
        id_: str = values["credentialId"]
        self.believed.tables["Credential"].append({"id": id_, "userId": owner, "status": status})
        return id_

    async def _act(self, command: Command, *, look: bool) -> None:
        """Cancel, rerun, or the creation of what is there already."""
        job = self.job(command)
        if command.kind == "again":
            await self._again(command, job, look=look)
            return
        action = ACTIONS[command.kind]
        began = await self.instant()
        try:
            values = await self.states.set_up(f"{command.kind}-job", {"jobId": job.ref.id})
            done = True
        except StateRefused:
            values, done = {}, False
        ended = await self.instant()
        allowed = self.believed.allowed("actions", action, job, sorted({began, ended}), params={"jobId": job.ref.id})
        fitting = [one for one, _ in allowed if one.taken and isinstance(one.taken.answer, int) is done]
        with about(ANSWERS[command.kind]):
            wanted = "done" if isinstance(allowed[0][0].taken and allowed[0][0].taken.answer, int) else "refused"
            told = f"a {command.kind} {wanted} of a job that is {job.row['status']}"
            expect(bool(fitting), told, "done" if done else "refused")
        await self.look(job, fitting, command, look=look, slack=ended - began)
        if done and command.kind == "rerun":
            ref = JobRef(values["jobId"], job.ref.user_id, job.ref.snapshot_id)
            await self._appears(ref, action, job, command, (began, ended), look)

    async def _again(self, command: Command, job: Job, *, look: bool) -> None:
        if job.body is None or "idempotencyKey" not in job.body:
            return
        began = await self.instant()
        values = await self.states.set_up("job", job.params)
        allowed = self.believed.allowed("actions", "createJob", None, [began], body=dict(job.body), params={})
        with about(ANSWERS["again"]):
            wanted = allowed[0][0].row.get("id")
            expect(values["jobId"] == wanted, f"the job that is there, {wanted}", values["jobId"])
        await self.look(job, self.believed.passed(job.row, await self.instant()), command, look=look)

    async def _revoke(self, command: Command, *, look: bool) -> None:
        user = self.job(command).ref.user_id
        began = await self.instant()
        await self.given.revoke_ai_consent(user)
        ended = await self.instant()
        for job in self.jobs:
            given = {"params": {"userId": user}, self.believed.steps.row: job.row}
            if self.believed.steps.concerns("actions", "revokeConsent", given):
                found = self.believed.allowed(
                    "actions", "revokeConsent", job, sorted({began, ended}), params={"userId": user}
                )
                await self.look(job, [one for one, _ in found], command, look=look, slack=ended - began)

    async def _time(self, command: Command, *, look: bool) -> None:
        """Time passes: a third of a lock, or to the next limit of the job."""
        job, now = self.job(command), await self.instant()
        due = self.believed.steps.due(job.row)
        seconds = self.given.timing.lock / 3
        if command.what != "third" and due is not None and due > now:
            if self.clock.stands:
                seconds = (due - now + {"before": -2, "at": -1, "after": 0}[command.what]) / 1000
            elif command.what == "after":
                seconds = (due - now) / 1000 + self.given.early()
        if not self.clock.stands and command.what in ("before", "at"):
            return  # no instant can be met
        await self.clock.advance(max(seconds, 0))
        now = await self.instant()
        for one in self.jobs:
            [after, *before] = self.believed.passed(one.row, now)
            if before:
                await self.given.settles(one.ref, shows=("RT-TIME-04",))
                one.formers += [one.row["lockedBy"]] if one.row["lockedBy"] else []
                await self.look(one, [after], command)
            elif one is job and look:
                await self.look(one, [after], command)

    async def look(
        self,
        job: Job,
        allowed: list[Allowed],
        command: Command,
        *,
        look: bool = True,
        slack: int = 0,
        new: bool = False,
    ) -> None:
        """Compare every column with one of the allowed rows, and believe what is there."""
        if not (look and self.looks):
            job.row = allowed[0].row
            return
        shown = await self.given.inspect(job.ref)
        if shown.get("status") == PASSING:  # its time came between two commands, and the sweeper has not
            await self.given.settles(job.ref, shows=("RT-TIME-04",))
            shown = await self.given.inspect(job.ref)
        seen = {column: whole(value) for column, value in shown.items()}
        now = await self.instant()
        if not self.clock.stands:
            slack += round(self.clock.margin * 1000 * 4)
            allowed = [*allowed, *(after for one in allowed for after in self.believed.passed(one.row, now))]
        found = [(differences(one, seen, now, slack), one) for one in allowed]
        wrong, best = min(found, key=lambda pair: len(pair[0]))
        moved = any(value != job.row.get(column) for column, value in best.row.items() if column != "updatedAt")
        rule = of_columns(command.kind, best.steps, wrong, new=new, moved=moved)
        with about(rule, step=None if rule == ANSWERS[command.kind] else f"the columns after {command.kind}"):
            wanted = {column: pair[0] for column, pair in wrong.items()}
            got = {column: pair[1] for column, pair in wrong.items()}
            expect(not wrong, f"after {command}: {json.dumps(wanted)}", json.dumps(got), f"/{next(iter(wrong), '')}")
            count = self.believed.result_count(job)
            expect(seen.get(SUMMED, count) == count, f"{count} results", str(seen.get(SUMMED)), f"/{SUMMED}")
        job.row = best.row | {column: seen[column] for column in best.row if column in seen}


def whole(value: Any) -> Any:
    """A whole number that a build writes with a fraction is an integer: 3.0 is 3."""
    return int(value) if isinstance(value, float) and value == value // 1 else value


def _moves(allowed: Allowed) -> bool:
    return allowed.taken is not None and allowed.taken.changed


def came(answer: Answer) -> str:
    """An answer in a word: its status, with the code of an error."""
    return str(answer.status) if answer.status < 300 else describe(answer.response)
