"""A small hub in this process, on a clock that stands: as much of one as the suite's own tests need."""

import itertools
import json
from datetime import UTC, datetime

from streams import PlayedStream

from contract_tests.checks import CheckSkipped, SetUpFailed
from contract_tests.transport import Response

START = 1_900_000_000_000


def instant(ms):
    return (
        None
        if ms is None
        else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"
    )


class FakeHub:
    """Transport and provider states in one. ``spoil`` changes answers: it gets method, path, status, body."""

    def __init__(self, *, token="t", second="t_b", without=(), spoil=None):
        self.tokens = {token: "a", second: "b"}
        self.offered = frozenset(
            {"reset", "node", "node-online", "default-callback", "outcome", "advance-time"} - {*without}
        )
        self.now = START
        self.nodes, self.scripts, self.jobs, self.callbacks = {}, [], {}, {}
        self.requests, self.streams = [], []
        self.spoil = spoil or (lambda method, path, status, body: (status, body))
        self._ids = itertools.count(1)

    # provider states

    def listen(self, heard):
        """Nobody is told anything: this hub is never reset."""

    async def set_up(self, state, params):
        if state not in self.offered:
            raise CheckSkipped(f"needs the provider state {state}")
        match state:
            case "node":
                self.nodes[params["nodeId"]] = {"label": params["nodeId"], "online": True, "projects": [], **params}
                return {"nodeId": params["nodeId"]}
            case "node-online":
                self.nodes[params["nodeId"]]["online"] = params["online"]
            case "outcome":
                if not params["attempts"]:
                    raise SetUpFailed("provider state outcome: 400")
                self.scripts.append(params)
            case "default-callback":
                self.callbacks[params["account"]] = params["url"]
            case "advance-time":
                self._run(self.now + round(params["seconds"] * 1000))
                return {"now": self.now}
        self._run(self.now)
        return {}

    # HTTP

    async def send(self, request):
        self.requests.append(request)
        path, _, query = request.path.partition("?")
        status, body = self._answer(request, path, dict(pair.split("=") for pair in query.split("&") if pair))
        status, body = self.spoil(request.method, path, status, body)
        return Response(status, {"content-type": "application/json"}, json.dumps(body).encode(), 0.0, 0.0)

    async def send_together(self, requests):
        return [await self.send(request) for request in requests]

    async def open(self, request):
        answer = await self.send(request)
        if answer.status != 200:
            return PlayedStream(answer.content, status=answer.status, ends=True, **answer.headers)
        stream = PlayedStream(b": ping\n\n")
        stream.tell("job.state", 1, json.dumps(answer.json["data"]))
        self.streams.append(stream)
        return stream

    def mark(self, begins):
        pass

    def _answer(self, request, path, query):
        account = self.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if account is None:
            return _error(401, "unauthorized")
        match request.method, path.strip("/").split("/"):
            case "POST", ["v1", "jobs"]:
                return self._submit(account, json.loads(request.content))
            case "GET", ["v1", "jobs"]:
                found = [self._detail(job) for job in self.jobs.values() if job["account"] == account]
                return _good({"items": [job for job in found if all(job.get(k) == v for k, v in query.items())]})
            case method, ["v1", "jobs", id_, *what]:
                job = self.jobs.get(id_)
                if job is None or job["account"] != account:
                    return _error(404, "job_not_found")
                if method == "POST" and what == ["cancel"]:
                    if job["status"] not in ("queued", "running"):
                        return _error(409, "job_finished")
                    job |= {"status": "cancelled", "finishedAt": self.now}
                    job["failure"] = {"type": "cancelled", "message": "cancelled", "lastError": None}
                return _good(self._detail(job))
        return _error(404, "not_found")

    def _submit(self, account, body):
        made = []
        for one in body["items"]:
            node = next((id_ for id_, node in self.nodes.items() if one["projectId"] in node["projects"]), None)
            if node is None:
                return _error(400, "project_not_found")
            job = {
                "id": f"job_{next(self._ids)}", "account": account, "status": "queued", "nodeId": node, "attempt": 0,
                "queuedAt": self._next_place(), "batchId": body.get("batchId", "batch_1"), "item": one, "failure": None,
            }  # fmt: skip
            made.append(job)
            self.jobs[job["id"]] = job
        self._run(self.now)
        items = [
            {"id": job["id"], "externalId": job["item"].get("externalId"), "status": "queued", "nodeId": job["nodeId"],
             "projectId": job["item"]["projectId"]} for job in made
        ]  # fmt: skip
        return 202, _good({"batchId": made[0]["batchId"], "accepted": len(made), "items": items})[1]

    def _next_place(self):
        """No two jobs have the same ``queuedAt``."""
        return max([self.now, *(job["queuedAt"] + 1 for job in self.jobs.values())])

    # what nodes do

    def _script(self, job):
        fits = [
            script for script in self.scripts
            if script["projectId"] == job["item"]["projectId"]
            and script.get("externalId") in (None, job["item"].get("externalId"))
        ]  # fmt: skip
        best = sorted(fits, key=lambda script: script.get("externalId") is not None)[-1:]
        attempts = best[0]["attempts"] if best else [{"afterSeconds": 1, "result": "done"}]
        return {"afterSeconds": 1, "result": "done", **attempts[min(job["attempt"], len(attempts)) - 1]}

    def _run(self, until):
        while True:
            self._start()
            ahead = [job["queuedAt"] for job in self.jobs.values() if self.now < job["queuedAt"] <= until]
            due = [job for job in self.jobs.values() if job["status"] == "running" and job["ends"] <= until]
            if ahead and min(ahead) <= min((job["ends"] for job in due), default=until):
                self.now = min(ahead)
                continue
            if not due:
                break
            job = min(due, key=lambda job: job["ends"])
            self.now = job["ends"]
            job["finishedAt"] = self.now
            script = self._script(job)
            job["status"] = script["result"]
            if script["result"] == "failed":
                job["failure"] = {"type": script["failureType"], "message": script["message"], "lastError": None}
                if script.get("retriable"):
                    job["nextRetryAt"] = self.now + 30_000
        self.now = until

    def _start(self):
        for job in self.jobs.values():
            busy = any(
                other["status"] == "running" and other["item"]["projectId"] == job["item"]["projectId"]
                for other in self.jobs.values()
            )
            if (
                job["status"] == "queued"
                and job["queuedAt"] <= self.now
                and not busy
                and self.nodes[job["nodeId"]]["online"]
            ):
                job |= {
                    "status": "running",
                    "attempt": job["attempt"] + 1,
                    "startedAt": self.now,
                    "sessionId": "sess_1",
                }
                job["ends"] = self.now + round(self._script(job)["afterSeconds"] * 1000)

    def _detail(self, job):
        one = job["item"]
        started, finished, queued = job.get("startedAt"), job.get("finishedAt"), job["queuedAt"]
        result = {"summary": "", "producedFiles": [], "usage": {"inputTokens": 0, "outputTokens": 0}, "iterations": 0,
                  "toolCalls": 0}  # fmt: skip
        return {
            "id": job["id"], "externalId": one.get("externalId"), "kind": one["kind"], "status": job["status"],
            "nodeId": job["nodeId"], "nodeLabel": self.nodes[job["nodeId"]]["label"], "projectId": one["projectId"],
            "batchId": job["batchId"], "title": (one.get("prompt") or one.get("command"))[:80],
            "attempt": job["attempt"],
            "maxAttempts": one.get("maxAttempts", 4), "priority": one.get("priority", 0), "queuedAt": instant(queued),
            "startedAt": instant(started), "finishedAt": instant(finished),
            "nextRetryAt": instant(job.get("nextRetryAt")),
            "durationMs": finished - started if started and finished else None,
            "waitMs": started - queued if started else None, "sessionId": job.get("sessionId"),
            "result": result if job["status"] == "done" else None, "failure": job["failure"], "blocked": None,
            "progress": None, "metadata": one.get("metadata"),
        }  # fmt: skip


def _good(data):
    return 200, {"data": data, "requestId": "req_1"}


def _error(status, code):
    return status, {"error": {"code": code, "message": f"{code} it is"}, "requestId": "req_1"}
