"""From a generated case to a request for one job: what the case leaves open is filled in so that it gets somewhere."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from contract_tests.client import BASE, JOB_TYPES, KEY_HEADER
from contract_tests.fuzz.awkward import (
    HARD_TEXTS,
    HARD_VALUES,
    MEDIA,
    PLAIN_TEXTS,
    PLAIN_VALUES,
    RAW,
    spoilt,
    spoilt_somewhere,
    written,
)
from contract_tests.fuzz.generation import NOTHING
from contract_tests.fuzz.trials import Step
from contract_tests.runtime_api.fuzz.generation import INSTANCE
from contract_tests.runtime_api.fuzz.situations import HOLDER, OTHER, STORED_HASH
from contract_tests.transport import Request

if TYPE_CHECKING:
    from random import Random

    from contract_tests.fuzz.generation import Case
    from contract_tests.runtime_api.fuzz.situations import Job

VERSIONS = ("analysis_output_v1", "quiz_output_v1", "flashcard_output_v1")
_ENDS = {
    "lockJob": "lock",
    "heartbeatJob": "heartbeat",
    "getSnapshot": "snapshot",
    "submitResult": "result",
    "failJob": "fail",
}
_PATHS = {
    "pollJobs": f"{BASE}/jobs/poll",
    "resolveCredential": f"{BASE}/model-credentials/resolve",
    "submitInvocationLogs": f"{BASE}/invocation-logs",
}
LARGE = 1_200_000
JSON = "application/json"
_TEXTS = {
    "failJob": ("errorMessage", "rawError"),
    "submitInvocationLogs": ("traceId", "errorMessage", "model", "promptName"),
    "pollJobs": ("more",),
}
"""Fields that take any text."""


def awkward_values(operation_id: str) -> list[Any]:
    """What is tried with an operation: all where a field takes any JSON, else texts and the worst of the rest."""
    if operation_id == "submitResult":
        return [*PLAIN_TEXTS, *HARD_TEXTS, *PLAIN_VALUES, *HARD_VALUES]
    return [*PLAIN_TEXTS, *HARD_TEXTS, *HARD_VALUES[2:]]


def encoded(id_: str) -> str:
    """An id as it stands in a path."""
    return quote(id_, safe="")


def path_of(operation_id: str, id_: str) -> str:
    """The operation's path for a job's id, URL-encoded."""
    return _PATHS.get(operation_id) or f"{BASE}/jobs/{id_}/{_ENDS[operation_id]}"


class Composer:
    """Makes requests; ``random`` decides what a case leaves open."""

    def __init__(self, key: str, random: Random) -> None:
        self.key, self.random = key, random

    def valid(self, case: Case, job: Job, often: float = 0.75, **fixed: Any) -> Step[Job]:
        """A valid case for the job: ``often`` its own Runtime, versions, credential and hash, now and then others.

        ``fixed``: properties of the body that are to be so.
        """
        other_id = case.path.get("jobId") or None
        other_id = other_id if other_id and self.random.random() < (1 - often) / 3 else None
        body = copy.deepcopy(case.body)
        if isinstance(body, dict):
            self.steer(case.operation_id, body, job, often=often)
            body |= fixed
        header = case.headers.get(INSTANCE) or HOLDER
        if self.random.random() < (1 + often) / 2 or not case.headers.get(INSTANCE):
            header = self._owner(job, often)
        return self.step(case.operation_id, job, header, body, id_=other_id)

    def unknown(self, case: Case, job: Job) -> Step[Job]:
        """A valid case for a job that does not exist."""
        if case.operation_id == "resolveCredential":
            return self.valid(case, job, 1, jobId=f"no-{job.ref.id}"[:128])
        return replace_path(self.valid(case, job, 1), case.operation_id, encoded(f"no-{job.ref.id}"[:128]))

    def invalid(self, case: Case, job: Job, plain: Any) -> Step[Job]:
        """An invalid case for the job, all else being right; ``plain`` is a valid body of the operation."""
        holder = job.holder or HOLDER
        body = copy.deepcopy(case.body if case.part == "body" else plain)
        if isinstance(body, dict):
            self.steer(case.operation_id, body, job, often=1)
        header = case.headers.get(INSTANCE) if case.part == "header" else holder
        id_ = case.path.get("jobId") if case.part == "path" else None
        return self.step(case.operation_id, job, header, body, id_=id_, media=case.content_type or JSON)

    def broken(self, operation_id: str, job: Job, plain: Any, count: int) -> list[Step[Job]]:
        """Requests that are broken below the schema: no JSON, no UTF-8, another media type, no key, no instance id."""
        holder, random = job.holder or HOLDER, self.random
        steps = [
            self.step(operation_id, job, holder, plain, key=None),
            self.step(operation_id, job, holder, plain, key=f"{self.key}x"),
            self.step(operation_id, job, None, plain),
            self.step(operation_id, job, "i" * random.randint(129, 400), plain),
        ]
        if operation_id in _ENDS:
            steps += [self.step(operation_id, job, holder, plain, id_=id_) for id_ in ("j" * 129, "%FF", "%00" * 129)]
        if plain is NOTHING:
            return steps
        body = copy.deepcopy(plain)
        self.steer(operation_id, body, job, often=1)
        text = json.dumps(body, ensure_ascii=False).encode()
        steps += [self.step(operation_id, job, holder, body, media=media) for media in (*MEDIA, None)]
        steps += [self.step(operation_id, job, holder, less) for less in spoilt(text)]
        steps += [self.step(operation_id, job, holder, spoilt_somewhere(text, random)) for _ in range(count)]
        return steps

    def awkward(self, case: Case, job: Job, value: Any) -> Step[Job]:
        """A valid case with a value that is hard to take, wherever that may stand."""
        body = copy.deepcopy(case.body)
        self.steer(case.operation_id, body, job, often=1)
        logs = case.operation_id == "submitInvocationLogs"
        where: dict[str, Any] = body["logs"][0] if logs else body
        text = isinstance(value, str) and not value.startswith(RAW)
        for name in _TEXTS.get(case.operation_id, ()) if text else ():
            where[name] = value
        if text and case.operation_id in ("lockJob", "pollJobs"):
            where["runtimeInstanceId"] = value[:100]
        if case.operation_id == "submitResult":
            body |= {"rawOutput": value, "validatedOutput": {"more": [value]}}
            body |= {"outputHash": value[:200]} if text else {}
        if not logs:
            body["more"] = value
        tolerant = value in HARD_TEXTS if text else value in HARD_VALUES
        content = written(body, escaped=not tolerant)
        return self.step(case.operation_id, job, job.holder or HOLDER, content, tolerant=tolerant)

    def large(self, case: Case, job: Job) -> Step[Job]:
        """A valid case with more than a mebibyte of blanks: kept, or refused as too large."""
        body = copy.deepcopy(case.body)
        self.steer(case.operation_id, body, job, often=1)
        text = json.dumps(body).encode()
        return self.step(case.operation_id, job, job.holder or HOLDER, text + b" " * LARGE, tolerant=True)

    def steer(self, operation_id: str, body: dict[str, Any], job: Job, *, often: float) -> None:
        """Put the job's own values in the place of valid ones, ``often``; wrong ones stay: they are what is tried."""

        def own(name: str, value: Any) -> None:
            if isinstance(body.get(name), str) and body[name] and self.random.random() < often:
                body[name] = value

        if operation_id in ("lockJob", "pollJobs"):
            often = min(often, 0.5) if often < 1 else 1
        if 0 < len(str(body.get("runtimeInstanceId", ""))) <= 128:
            own("runtimeInstanceId", self._owner(job, 0.85 if often < 1 else 1))
        match operation_id:
            case "pollJobs":
                self._steer_poll(body, often)
            case "resolveCredential":
                self._steer_resolve(body, job, often)
            case "submitResult":
                if isinstance(body.get("schemaVersion"), str) and self.random.random() < max(often, 0.8):
                    body["schemaVersion"] = VERSIONS[0] if often == 1 or self.random.random() < 0.9 else VERSIONS[1]
                if job.state == "succeeded":
                    own("outputHash", STORED_HASH)
            case "submitInvocationLogs":
                logs = body.get("logs")
                for log in logs if isinstance(logs, list) else ():
                    if isinstance(log, dict) and isinstance(log.get("jobId"), str) and self.random.random() < often:
                        log["jobId"] = job.ref.id

    def _owner(self, job: Job, often: float) -> str:
        own = job.holder or HOLDER
        return own if self.random.random() < often else OTHER if own == HOLDER else HOLDER

    def _steer_poll(self, body: dict[str, Any], often: float) -> None:
        random = self.random
        types = body.get("supportedJobTypes")
        if (
            isinstance(types, list)
            and types
            and all(isinstance(item, str) for item in types)
            and random.random() < often
        ):
            body["supportedJobTypes"] = [*random.sample(JOB_TYPES, random.randint(1, 5)), *types[:2]]
        capabilities = body.get("capabilities")
        if isinstance(capabilities, dict):
            for name, known in (
                ("supportedSnapshotVersions", "ai_snapshot_v1"),
                ("supportedOutputSchemaVersions", VERSIONS[0]),
            ):
                listed = capabilities.get(name)
                if isinstance(listed, list) and all(isinstance(item, str) for item in listed) and random.random() < 0.5:
                    capabilities[name] = [*listed, known]

    def _steer_resolve(self, body: dict[str, Any], job: Job, often: float) -> None:
        random, user = self.random, job.credential is not None
        if isinstance(body.get("jobId"), str) and 0 < len(body["jobId"]) <= 128 and random.random() < max(often, 0.93):
            body["jobId"] = job.ref.id
        own = {"apiKeyMode": "user_deepseek_key" if user else "platform_key", "provider": "deepseek"}
        for name, value in own.items():
            if (
                isinstance(body.get(name), str)
                and (name == "provider" or body[name] in _MODES)
                and random.random() < often
            ):
                body[name] = value
        credential = body.get("credentialId")
        if (credential is None or isinstance(credential, str)) and random.random() < often:
            if user:
                body["credentialId"] = job.credential
            else:
                body.pop("credentialId", None)

    def step(
        self,
        operation_id: str,
        job: Job,
        instance: str | None,
        body: Any,
        *,
        id_: str | None = None,
        media: str | None = JSON,
        key: str | None = "",
        tolerant: bool = False,
    ) -> Step[Job]:
        """A request as it is sent. ``key``: None sends none, "" the right one; ``media``: None sends none."""
        headers: dict[str, str] = {}
        if key is not None:
            headers[KEY_HEADER] = key or self.key
        if instance is not None:
            headers[INSTANCE] = instance
        content = b""
        if body is not NOTHING:
            content = (
                body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            )
            if media is not None:
                headers["content-type"] = media
        method = "GET" if operation_id == "getSnapshot" else "POST"
        return Step(
            operation_id,
            Request(method, path_of(operation_id, id_ or encoded(job.ref.id)), headers, content),
            job,
            tolerant,
        )


def replace_path(step: Step[Job], operation_id: str, id_: str) -> Step[Job]:
    """The step for another id in the path."""
    return replace(step, request=replace(step.request, path=path_of(operation_id, id_)))


_MODES = ("platform_key", "user_deepseek_key")
