"""Recordings written by hand, call by call; unless told otherwise as a Runtime makes them that keeps every rule."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.monitors import judge, monitors, run
from contract_tests.runtime.recorded import histories

if TYPE_CHECKING:
    from contract_tests.runtime.history import History
    from contract_tests.runtime.monitors import Outcome

BASE = "/internal/runtime"
ME = "runtime-a"
ZERO = 1_700_000_000.0
_MARKED = {"content-type": "application/json"}


class Tape:
    """Builds the ``log`` of a recording. Each call stands ``step`` seconds after the one before, or at ``at``."""

    def __init__(self, *, lock: float = 60, poll: float = 0.2, heartbeat: float | None = None, me: str = ME) -> None:
        self.now, self.step, self.me, self.lock_seconds = 1.0, 0.3, me, lock
        self.entries: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = [{"at": ZERO * 1000, "kind": "started", "env": []}]
        self.runtime: dict[str, Any] = {
            "instanceId": me,
            "pollIntervalMs": poll * 1000,
            "heartbeatIntervalMs": (lock / 4 if heartbeat is None else heartbeat) * 1000,
            "modelTimeoutMs": lock * 2 / 3 * 1000,
            "lockSeconds": lock,
        }
        self.resolved: dict[str, int] = {}

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        status: int = 200,
        answer: Any = None,
        *,
        at: float | None = None,
        took: float = 0.01,
        headers: dict[str, str] | None = None,
        answer_headers: dict[str, str] | None = None,
        lost: bool = False,
        by: str | None = None,
        **more: Any,
    ) -> Tape:
        """Any request; ``lost``: its answer never came; ``headers`` None removes nothing, a value "" removes one."""
        self.now = self.now + self.step if at is None else at
        caller = by or self.me
        sent = {"x-internal-api-key": "[redacted]", "x-runtime-instance-id": caller, **(_MARKED if body else {})}
        sent = {name: value for name, value in {**sent, **(headers or {})}.items() if value}
        text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
        told = "" if answer is None else answer if isinstance(answer, str) else json.dumps(answer)
        request: dict[str, Any] = {
            "method": method,
            "url": f"http://127.0.0.1:1{path}",
            "headers": [{"name": k, "value": v} for k, v in sent.items()],
            "bodySize": len(text),
        }
        if text:
            request["postData"] = {"mimeType": "application/json", "text": text}
        entry = {
            "startedDateTime": datetime.fromtimestamp(ZERO + self.now, UTC).isoformat(),
            "time": took * 1000,
            "request": request,
            "response": {
                "status": status,
                "headers": [{"name": k, "value": v} for k, v in (answer_headers or {}).items()],
                "content": {"text": told},
            },
            "_number": len(self.entries) + 1,
            "_world": "/",
            "_fault": {"plans": [], "handled": True, "got": "nothing"} if lost else None,
            **more,
        }
        self.entries.append(entry)
        return self

    def poll(self, *jobs: str | dict[str, Any], status: int = 200, body: Any = None, **more: Any) -> Tape:
        """A poll that lists these jobs (ids, or entries)."""
        asked = {
            "runtimeInstanceId": self.me,
            "supportedJobTypes": ["learning_state_analysis", "quiz_generation"],
            "limit": 5,
            "capabilities": {
                "supportedSnapshotVersions": ["ai_snapshot_v1"],
                "supportedOutputSchemaVersions": ["analysis_output_v1", "quiz_output_v1"],
            },
            **(body or {}),
        }
        entries = [job if isinstance(job, dict) else self.entry(job) for job in jobs]
        answer = more.pop("answer", {"jobs": entries} if status == 200 else self.error("INTERNAL_ERROR", status))
        return self.call("POST", f"{BASE}/jobs/poll", asked, status, answer, **more)

    @staticmethod
    def entry(job: str, **more: Any) -> dict[str, Any]:
        """A poll's entry."""
        return {"id": job, "jobType": "learning_state_analysis", "outputSchemaVersion": "analysis_output_v1", **more}

    def error(self, code: str, status: int) -> dict[str, Any]:
        """An error body."""
        return {"statusCode": status, "errorCode": code, "message": code}

    def _job(
        self, what: str, job: str, body: Any, status: int, answer: Any, code: str | None, more: dict[str, Any]
    ) -> Tape:
        caller = more.get("by") or self.me
        told = self.error(code or "INTERNAL_ERROR", status) if status >= 400 else answer
        asked = None if body is None else {"runtimeInstanceId": caller, **body, **more.pop("body", {})}
        method = "GET" if what == "snapshot" else "POST"
        return self.call(method, f"{BASE}/jobs/{job}/{what}", asked, status, more.pop("answer", told), **more)

    def lock(self, job: str, status: int = 200, code: str = "JOB_ALREADY_LOCKED", **more: Any) -> Tape:
        """Lock a job. ``grant``: further properties of the answer."""
        grant = {
            "jobId": job,
            "status": "locked",
            "lockUntil": round((ZERO + (more.get("at") or self.now + self.step) + self.lock_seconds) * 1000),
            "attemptNo": 0,
            "apiKeyMode": "platform_key",
            "timeoutSeconds": 120,
            "outputSchemaVersion": "analysis_output_v1",
            "params": None,
            **more.pop("grant", {}),
        }
        return self._job("lock", job, {}, status, grant, code, more)

    def heartbeat(
        self, job: str, status: int = 204, code: str = "LOCK_NOT_HELD", *, cancel: bool = False, **more: Any
    ) -> Tape:
        """A heartbeat; ``cancel``: its answer asks to stop."""
        headers = {"x-job-cancel-requested": "true"} if cancel else {}
        return self._job("heartbeat", job, {}, status, None, code, {"answer_headers": headers, **more})

    def snapshot(self, job: str, status: int = 200, code: str = "SNAPSHOT_NOT_FOUND", **more: Any) -> Tape:
        """Read the snapshot. ``content``: properties that differ."""
        content = {
            "jobId": job,
            "snapshotId": "snap-1",
            "snapshotVersion": "ai_snapshot_v1",
            "privacyScope": {"allowDocumentContent": True},
            "userProfile": {"learningGoal": "exam", "currentLevel": "intermediate"},
            "aiSettings": {"allowAiAnalysis": True},
            "learningBehaviorSummary": {},
            "materialProgressSummary": {},
            "behaviorSignals": {},
            "scoreSignals": {},
            "constraints": {},
            "allowedModelFields": ["learningGoal", "currentLevel"],
            **more.pop("content", {}),
        }
        return self._job("snapshot", job, None, status, content, code, more)

    def resolve(self, job: str, status: int = 200, code: str = "CREDENTIAL_NOT_FOUND", **more: Any) -> Tape:
        """Resolve the credential. ``content``: properties of the answer that differ."""
        self.resolved[job] = self.resolved.get(job, 0) + 1
        content = {
            "provider": "deepseek",
            "model": "deepseek-chat",
            "baseUrl": f"http://127.0.0.1:1{self.base(job)}",
            "apiKey": "[redacted]",
            "apiKeyMode": "platform_key",
            **more.pop("content", {}),
        }
        told = self.error(code, status) if status >= 400 else content
        asked = {"jobId": job, "apiKeyMode": "platform_key", "provider": "deepseek", **more.pop("body", {})}
        asked = {"runtimeInstanceId": self.me, **asked}
        answer = more.pop("answer", told)
        return self.call("POST", f"{BASE}/model-credentials/resolve", asked, status, answer, **more)

    def base(self, job: str) -> str:
        """The path of the ``baseUrl`` that the job's last resolve answered."""
        return f"/__model__/{job}-{self.resolved.get(job, 1)}/v1"

    def model(
        self, job: str, status: int = 200, *, text: str = '{"riskLevel": "low"}', outcome: str = "good", **more: Any
    ) -> Tape:
        """Call the model; ``text``: what it answers; ``key``: ``right``, ``wrong``, ``none``."""
        asked = {"model": "deepseek-chat", "messages": [{"role": "user", "content": more.pop("prompt", "exam")}]}
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
        told = answer if status < 400 else {"error": {"message": "no"}}
        facts = {"jobId": job, "key": more.pop("key", "right"), "outcome": outcome}
        headers = {"authorization": "[redacted]", "x-internal-api-key": "", "x-runtime-instance-id": ""}
        more = {"headers": headers, "answer": told, "_model": facts, **more}
        base = more.pop("base", self.base(job))
        return self.call("POST", f"{base}/chat/completions", asked, status, **more)

    def result(self, job: str, status: int = 201, code: str = "RESULT_ALREADY_EXISTS", **more: Any) -> Tape:
        """Submit the result."""
        body = {
            "schemaVersion": "analysis_output_v1",
            "status": "succeeded",
            "rawOutput": {"text": "{}"},
            "validatedOutput": {"riskLevel": "low"},
            "validationErrors": [],
            "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "latencyMs": 9, "costEstimate": 0.1},
            "attemptNo": 0,
            "outputHash": "sha256-1",
        }
        answer = {"jobId": job, "status": "succeeded", "resultIdempotencyKey": f"{job}:0:sha256-1"}
        return self._job("result", job, body, status, answer, code, more)

    def fail(
        self, job: str, error: str, *, retryable: bool, status: int = 200, code: str = "LOCK_NOT_HELD", **more: Any
    ) -> Tape:
        """Report a failure."""
        body = {"errorCode": error, "errorMessage": error, "retryable": retryable, "rawError": "raw"}
        answer = {"jobId": job, "status": "pending" if retryable else "failed", "retryCount": 1}
        return self._job("fail", job, body, status, answer, code, more)

    def log(self, *jobs: str, status: int = 201, success: bool = True, **more: Any) -> Tape:
        """Submit a log for a model call of each of these jobs. ``entry``: properties that differ."""
        entries = [
            {
                "jobId": job,
                "runtimeInstanceId": self.me,
                "traceId": f"trace-{len(self.entries)}-{i}",
                "correlationId": "c",
                "provider": "deepseek",
                "model": "deepseek-chat",
                "apiKeyMode": "platform_key",
                "credentialId": None,
                "promptName": "p",
                "promptVersion": "v1",
                "outputSchemaVersion": "analysis_output_v1",
                "inputTokens": 10,
                "outputTokens": 5,
                "totalTokens": 15,
                "latencyMs": 9,
                "costEstimate": 0.1,
                "success": success,
                "retryCount": 0,
                **more.get("entry", {}),
            }
            for i, job in enumerate(jobs)
        ]
        more.pop("entry", None)
        answer = {"accepted": len(entries)} if status == 201 else self.error("INTERNAL_ERROR", status)
        return self.call("POST", f"{BASE}/invocation-logs", {"logs": entries}, status, answer, **more)

    def whole(self, job: str, **more: Any) -> Tape:
        """The life of a job in which everything goes well."""
        return self.lock(job, **more).heartbeat(job).snapshot(job).resolve(job).model(job).result(job).log(job)

    def event(self, kind: str, at: float | None = None, **data: Any) -> Tape:
        """Something beside requests: ``signal``, ``exited``, ``output``, ``health``, ``note``, ``started``."""
        self.now = self.now + self.step if at is None else at
        self.events.append({"at": (ZERO + self.now) * 1000, "kind": kind, **data})
        return self

    def health(self, active: int = 0, at: float | None = None, **more: Any) -> Tape:
        """A probe of the Runtime's health."""
        body = {
            "runtimeInstanceId": self.me,
            "status": "ok",
            "version": "0.1.0",
            "startedAt": round(ZERO * 1000),
            "lastJobAt": None,
            "activeJobs": active,
            **more.pop("body", {}),
        }
        return self.event("health", at, **{"status": 200, "body": body, "seconds": 0.01, **more})

    @property
    def log_document(self) -> dict[str, Any]:
        """The archive's ``log``."""
        told = {"scenario": "by-hand", "runtime": self.runtime, "events": self.events}
        return {"version": "1.2", "entries": self.entries, "_scenarios": {"/": told}}

    @property
    def history(self) -> History:
        """What monitors judge."""
        return histories(self.log_document)[0]

    def said(self, rule: str) -> Outcome:
        """What the rule's monitor says."""
        return run(monitors()[rule], self.history)

    def status(self, rule: str) -> str:
        """``passed``, ``failed``, ``untested`` or ``unknown``."""
        return self.said(rule).status

    def failing(self, *areas: str) -> set[str]:
        """All rules (``areas``: of these modules of monitors) that are broken; raises where a monitor broke."""
        outcomes = judge(self.history)
        assert [outcome.problem for outcome in outcomes if outcome.status == "unknown"] == []
        failed = (outcome.monitor for outcome in outcomes if outcome.status == "failed")
        return {monitor.rule for monitor in failed if not areas or monitor.name.partition(".")[0] in areas}
