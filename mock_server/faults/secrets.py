"""Seeded faults that leak keys: into answers that have none, into errors, and in other writing."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mock_server.app import Errors
from mock_server.calls import Answer, Refusal
from mock_server.engine import Engine, Rows
from mock_server.faults.edits import part
from mock_server.judgement import OperationJudge
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mock_server.calls import Call, Exchange
    from mock_server.clock import Clock
    from mock_server.executor import Executor
    from mock_server.mutants import Parts
    from mock_server.store import Store


async def key_of_job(call: Call, id_: str | None) -> str | None:
    """The key that a job is to use: its user's, or the platform's."""
    row = await call.world.engine.job(id_ or "")
    if row is None:
        return None
    if row["apiKeyMode"] == "platform_key":
        return call.world.platform_key
    credential = await call.world.engine.store.get("Credential", row["credentialId"] or "")
    return credential["apiKey"] if credential else None


class InPoll(RuntimeApi):
    """Saves Runtimes a call: a poll entry has the key."""

    async def poll(self, call: Call) -> Answer:
        answer = await super().poll(call)
        for entry in answer.body["jobs"]:
            entry["apiKey"] = await key_of_job(call, entry["id"])
        return answer


class InLock(RuntimeApi):
    """Saves Runtimes a call: the lock's answer has the key."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        if call.operation_id == "lockJob":
            answer.body["credential"] = {"apiKey": await key_of_job(call, call.path["jobId"])}
        return answer


class InSnapshot(RuntimeApi):
    """Shows all AI settings, the stored key in base64 among them."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        key = await key_of_job(call, call.path.get("jobId"))
        if call.operation_id == "getSnapshot" and key:
            answer.body["aiSettings"] = {
                **answer.body["aiSettings"],
                "authorization": base64.b64encode(f"Bearer {key}".encode()).decode(),
            }
        return answer


class InModelUrl(RuntimeApi):
    """Puts the key into the URL of the model, in hex."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        if call.operation_id == "resolveCredential":
            answer.body["baseUrl"] += "?token=" + answer.body["apiKey"].encode().hex()
        return answer


class InHeader(RuntimeApi):
    """Tells in a debugging header of a heartbeat which key is in use."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        key = await key_of_job(call, call.path.get("jobId"))
        if call.operation_id == "heartbeatJob" and key:
            answer.headers = {**answer.headers, "x-debug-credential": quote(key)}
        return answer


class InvalidShown(RuntimeApi):
    """Says which key is invalid."""

    async def operate(self, call: Call) -> Answer:
        try:
            return await super().operate(call)
        except Refusal as refusal:
            if refusal.code == "CREDENTIAL_INVALID":
                refusal.message = f"The key {await key_of_job(call, call.body['jobId'])} was refused."
                raise Shown(refusal.code, refusal.message) from None
            raise


class Shown(Refusal):
    """A refusal whose message is not redacted."""


class Unredacted(Errors):
    """Says what a :class:`Shown` refusal says."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        if isinstance(refusal, Shown):
            answer.body["message"] = refusal.message
        return answer


class FailEchoes(RuntimeApi):
    """Answers a failure with what was sent."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        if call.operation_id == "failJob":
            answer.body |= {"errorMessage": call.body["errorMessage"], "rawError": call.body.get("rawError")}
        return answer


class ResultEchoes(RuntimeApi):
    """Answers a result with what was sent."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        if call.operation_id == "submitResult":
            answer.body["rawOutput"] = call.body.get("rawOutput")
        return answer


class LogsEcho(RuntimeApi):
    """Answers a batch of logs with the batch."""

    async def logs(self, call: Call) -> Answer:
        answer = await super().logs(call)
        answer.body["logs"] = call.body["logs"]
        return answer


class QuotesValues(OperationJudge):
    """Quotes the whole body in each violation of a 400."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        try:
            return await super().judge(scope, receive, exchange, path)
        except Refusal as refusal:
            for violation in refusal.details:
                violation.actual = exchange.request_body.decode("utf-8", "replace")[:2000]
            raise


class QuotesSyntax(OperationJudge):
    """Quotes a body that is no JSON around the place where it ends to be JSON."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        try:
            return await super().judge(scope, receive, exchange, path)
        except Refusal as refusal:
            try:
                json.loads(exchange.request_body.decode("utf-8", "replace"))
            except json.JSONDecodeError as error:
                quoted = error.doc[max(error.pos - 60, 0) : error.pos + 60]
                raise Shown(refusal.code, f"Unexpected token in {quoted!r} at position {error.pos}.") from None
            raise


class QuotesMode(OperationJudge):
    """Says which mode it does not know."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        try:
            return await super().judge(scope, receive, exchange, path)
        except Refusal as refusal:
            if any(violation.location == "/apiKeyMode" for violation in refusal.details):
                mode = json.loads(exchange.request_body)["apiKeyMode"]
                raise Shown(refusal.code, f"The mode {mode} is not known.") from None
            raise


class SettingsInErrors(Errors):
    """Shows the settings of the process with an error."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        if refusal.code in ("LOCK_NOT_HELD", "JOB_ALREADY_LOCKED"):
            answer.body["context"] = {"platform": {"key": exchange.world.platform_key}}
        return answer


def invalid_shown(build: Parts) -> None:
    """Replace handlers and errors."""
    part(runtime_api=InvalidShown, errors=Unredacted)(build)


class LooksOnly(Engine):
    """Replaces what looks like a key, and knows none."""

    def __init__(self, executor: Executor, rows: Rows, store: Store, clock: Clock, _: Callable[[str], str]) -> None:
        super().__init__(executor, rows, store, clock, lambda text: re.sub(r"sk-[A-Za-z0-9_-]+", "[redacted]", text))


FAULTS = (
    Mutant(
        "secrets.look-alikes-only",
        "in a stored failure only what looks like a key is replaced, not every key that was handed out",
        ("RT-FAIL-52", "RT-CANCEL-57"),
        parts=part(engine=LooksOnly),
    ),
    Mutant(
        "secrets.in-poll",
        "a poll entry has the job's key",
        ("RT-CRED-09", "RT-POLL-64", "RT-CRED-08"),
        parts=part(runtime_api=InPoll),
    ),
    Mutant(
        "secrets.in-lock",
        "the lock's answer has the job's key",
        ("RT-CRED-09", "RT-CRED-08"),
        parts=part(runtime_api=InLock),
    ),
    Mutant(
        "secrets.in-snapshot",
        "the snapshot's AI settings have the key, in base64",
        ("RT-CRED-09",),
        parts=part(runtime_api=InSnapshot),
    ),
    Mutant(
        "secrets.in-model-url",
        "the base URL of the model has the key, in hex",
        ("RT-CRED-08",),
        parts=part(runtime_api=InModelUrl),
    ),
    Mutant(
        "secrets.in-header",
        "a heartbeat is answered with the key in a header",
        ("RT-CRED-08", "RT-CRED-09"),
        parts=part(runtime_api=InHeader),
    ),
    Mutant(
        "secrets.invalid-shown",
        "an error names the key that is invalid",
        ("RT-CRED-08", "RT-CRED-09"),
        parts=invalid_shown,
    ),
    Mutant(
        "secrets.platform-in-errors",
        "a refusal for want of the lock shows the platform's key",
        ("RT-CRED-08", "RT-CRED-09", "RT-AUTH-08"),
        parts=part(errors=SettingsInErrors),
    ),
    Mutant(
        "secrets.fail-echoes",
        "a failure is answered with what was sent",
        ("RT-CRED-09", "RT-FAIL-61", "RT-CRED-08"),
        parts=part(runtime_api=FailEchoes),
    ),
    Mutant(
        "secrets.result-echoes",
        "a result is answered with what was sent",
        ("RT-CRED-09", "RT-RES-50", "RT-CRED-08"),
        parts=part(runtime_api=ResultEchoes),
    ),
    Mutant(
        "secrets.logs-echo",
        "logs are answered with what was sent",
        ("RT-CRED-09", "RT-LOG-54", "RT-CRED-08"),
        parts=part(runtime_api=LogsEcho),
    ),
    Mutant(
        "secrets.details-quote",
        "details of a 400 quote the values that came",
        ("RT-ERR-67", "RT-CRED-08", "RT-CRED-09"),
        parts=part(judge=QuotesValues),
    ),
    Mutant(
        "secrets.syntax-quotes",
        "a body that is no JSON is quoted",
        ("RT-CRED-08", "RT-CRED-09"),
        parts=part(judge=QuotesSyntax, errors=Unredacted),
    ),
    Mutant(
        "secrets.mode-quoted",
        "a mode that is not known is quoted, a key in its place, too",
        ("RT-CRED-08", "RT-CRED-09"),
        parts=part(judge=QuotesMode, errors=Unredacted),
    ),
)
