"""The Agent Hub in the protocol's words: ``await api.submit(item("proj-1")).succeeds(202)``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from contract_tests.agent_hub.following import EventStream
from contract_tests.calls import UNSET as UNSET
from contract_tests.calls import Answer, Dialect, without_unset
from contract_tests.calls import Call as CallOf
from contract_tests.checks import CheckFailed, Silent, about, expect, is_integer
from contract_tests.transport import Request, Response, Stream, Transport

BASE = "/v1"
REFUSAL_SECONDS = 15.0
"""Real seconds in which an answer that is no stream has to be whole."""
WRONGLY_OPEN = 0.2
"""Real seconds of a stream that are shown where there should be none."""
STREAM_TYPE = "text/event-stream"

CODES = {
    "invalid_request": ("HUB-SUB-53", 400),
    "project_not_found": ("HUB-SUB-59", 400),
    "ambiguous_project": ("HUB-SUB-60", 400),
    "unauthorized": ("HUB-AUTH-50", 401),
    "not_found": ("HUB-ERR-55", 404),
    "job_not_found": ("HUB-ERR-53", 404),
    "batch_not_found": ("HUB-ERR-54", 404),
    "method_not_allowed": ("HUB-ERR-56", 405),
    "node_offline": ("HUB-NODE-05", 409),
    "job_finished": ("HUB-CANCEL-05", 409),
    "job_not_retryable": ("HUB-RETRY-08", 409),
    "idempotency_in_progress": ("HUB-IDEM-63", 409),
    "payload_too_large": ("HUB-ERR-62", 413),
    "unsupported_media_type": ("HUB-ERR-59", 415),
    "idempotency_key_reused": ("HUB-IDEM-55", 422),
}
"""The rule that gives a code its status."""


class Identified(Protocol):
    """What has an ``id``."""

    @property
    def id(self) -> str:
        """Its id."""


class HubAnswer(Answer):
    """An answer of the hub."""

    def __init__(self, response: Response, envelope: str) -> None:
        """``envelope`` is the rule that wraps this success in ``data``: of level seed where the seed shows it."""
        super().__init__(response)
        self._envelope = envelope

    @property
    def data(self) -> dict[str, Any]:
        """``data`` of a success, an object. Fails the check where it is none."""
        with about(self._envelope, step="the envelope of a success"):
            body = self.json
            good = isinstance(body, dict) and isinstance(body.get("data"), dict)
            expect(good, '`{"data": {...}, "requestId": "req_..."}`', self.response.text[:300], "/data")
        return dict(body["data"])

    @property
    def inner(self) -> dict[str, Any]:
        """``data``, or the body itself where it has none: of answers whose envelope the seed does not show."""
        body = self.fields
        return dict(body["data"]) if isinstance(body.get("data"), dict) else body

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The objects of a list, wherever a build has them: the seed shows no list's shape."""
        body = self.json
        held = body.get("data", body) if isinstance(body, dict) else body
        lists = [held.get(name) for name in ("items", "jobs", "projects")] if isinstance(held, dict) else [held]
        for found in lists:
            if isinstance(found, list) and all(isinstance(entry, dict) for entry in found):
                return list(found)
        raise CheckFailed("a list of objects", self.response.text[:300], "/data/items")

    @property
    def details(self) -> list[dict[str, Any]]:
        """``error.details``. Fails the check where they are no list of objects."""
        error = self.fields.get("error")
        details = error.get("details") if isinstance(error, dict) else None
        good = isinstance(details, list) and all(isinstance(entry, dict) for entry in details)
        expect(good, "`error.details`, a list of objects", self.response.text[:300], "/error/details")
        return list(details or [])


class HubDialect(Dialect[HubAnswer]):
    """How the hub answers (seed 002 section 6.1)."""

    code_at = ("error", "code")
    codes = CODES

    def __init__(self, envelope: str) -> None:
        self.envelope = envelope

    def answer(self, response: Response) -> HubAnswer:
        """What came."""
        return HubAnswer(response, self.envelope)

    def judge_error_shape(self, answer: Answer) -> None:
        """``{"error": {"code", "message"}}``; what stands beside it, and which code, other rules say."""
        with about("HUB-ERR-01", step="the body of an error"):
            body = answer.json
            good = isinstance(body, dict) and isinstance(body.get("error"), dict)
            expect(good, '`{"error": {"code": ..., "message": ...}}`', answer.response.text[:200], "/error")
            for name in ("code", "message"):
                value = body["error"].get(name)
                good = isinstance(value, str) and bool(value.strip())
                expect(good, f"`{name}`, a string that is not empty", json.dumps(value), f"/error/{name}")


Call = CallOf[HubAnswer]
describe = HubDialect("HUB-GET-02").describe


def judge_error_shape(answer: Answer) -> None:
    """The error body that every failure has."""
    HubDialect("HUB-GET-02").judge_error_shape(answer)


class EventsCall(Call):
    """Following a job: ``async with api.events(job) as stream``. What it is refused with is asked as of other calls."""

    patience: float = 1.0
    """See :class:`HubApi`."""

    async def answers(self) -> HubAnswer:
        """Whatever comes; of a stream its first moments alone."""
        began = time.monotonic()
        async with await self.transport.open(self.request) as stream:
            body, ends = b"", began + (WRONGLY_OPEN if is_stream(stream) else REFUSAL_SECONDS)
            while (left := ends - time.monotonic()) > 0:
                try:
                    chunk = await stream.read(left)
                except Silent:
                    if not is_stream(stream):
                        raise
                    break
                if not chunk:
                    break
                body += chunk
            return self.dialect.answer(Response(stream.status, stream.headers, body, began, time.monotonic()))

    async def opens(self) -> EventStream:
        """The stream, its head judged: 200 and ``text/event-stream``. It is the caller's to close."""
        stream = await self.transport.open(self.request)
        if stream.status != 200 or not is_stream(stream):
            await stream.close()
            came = f"{stream.status} with content-type {stream.headers.get('content-type', 'left out')}"
            with about("HUB-SSE-01", step="opening an event stream"):
                raise CheckFailed(f"200 with content-type {STREAM_TYPE}", came)
        return EventStream(stream, self.patience)

    async def __aenter__(self) -> EventStream:
        self._opened = await self.opens()
        return self._opened

    async def __aexit__(self, *error: object) -> None:
        await self._opened.close()


def is_stream(stream: Stream | Response) -> bool:
    """Whether the answer is a stream of events by its content type."""
    return stream.headers.get("content-type", "").partition(";")[0].strip().lower() == STREAM_TYPE


class HubApi:
    """The operations under one API key; a part given as ``UNSET`` is left out."""

    def __init__(self, transport: Transport, token: str, patience: float = 1.0) -> None:
        """``patience``: how much of what they say waits for events last."""
        self.transport, self.token, self.patience = transport, token, patience

    def raw(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        body: Any = UNSET,
        token: Any = None,
        headers: Mapping[str, Any] | None = None,
        envelope: str = "HUB-GET-02",
    ) -> Call:
        """Any request below the target's base URL; ``headers`` replace the usual ones, ``UNSET`` takes one away."""
        return CallOf(self.transport, self._request(method, path, content, body, token, headers), HubDialect(envelope))

    def submit(
        self,
        *items: Any,
        batch: Any = UNSET,
        key: Any = UNSET,
        headers: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Call:
        """Submit items, given one by one or as one list; ``fields`` are further properties beside ``items``."""
        listed = items[0] if len(items) == 1 and isinstance(items[0], list) else list(items)
        body = without_unset({"batchId": batch, "items": listed, **fields})
        sent = {"idempotency-key": key, **(headers or {})}
        return self.raw("POST", f"{BASE}/jobs", body=body, headers=sent, envelope="HUB-SUB-06")

    def jobs(self, **query: Any) -> Call:
        """List jobs; ``query`` are filters, ``limit`` and ``cursor``."""
        return self.raw("GET", _with_query(f"{BASE}/jobs", query))

    def job(self, job: Identified | str) -> Call:
        """A job's detail."""
        return self.raw("GET", job_path(job))

    def events(
        self,
        job: Identified | str,
        *,
        last_event_id: Any = UNSET,
        since: Any = UNSET,
        headers: Mapping[str, Any] | None = None,
        token: Any = None,
    ) -> EventsCall:
        """Follow a job; nothing is sent before it is opened."""
        after = last_event_id if last_event_id is UNSET else str(last_event_id)
        sent = {"accept": STREAM_TYPE, "last-event-id": after, **(headers or {})}
        path = _with_query(f"{job_path(job)}/events", {"since": since})
        request = self._request("GET", path, None, UNSET, token, sent)
        call = EventsCall(self.transport, request, HubDialect("HUB-GET-02"))
        call.patience = self.patience
        return call

    def cancel(self, job: Identified | str, **parts: Any) -> Call:
        """Cancel a job; ``parts`` as of :meth:`raw`."""
        return self.raw("POST", f"{job_path(job)}/cancel", **parts)

    def retry(self, job: Identified | str, **parts: Any) -> Call:
        """Run a failed or cancelled job again; ``parts`` as of :meth:`raw`."""
        return self.raw("POST", f"{job_path(job)}/retry", **parts)

    def batch(self, batch: str) -> Call:
        """A batch's summary."""
        return self.raw("GET", batch_path(batch), envelope="HUB-BATCH-04")

    def cancel_batch(self, batch: str, **parts: Any) -> Call:
        """Cancel what is left of a batch; ``parts`` as of :meth:`raw`."""
        return self.raw("POST", f"{batch_path(batch)}/cancel", **parts)

    def projects(self) -> Call:
        """The projects that a job can name."""
        return self.raw("GET", f"{BASE}/projects", envelope="HUB-PROJ-50")

    def overview(self) -> Call:
        """Nodes and load."""
        return self.raw("GET", f"{BASE}/overview", envelope="HUB-OVW-50")

    async def together(self, calls: Sequence[Call]) -> list[HubAnswer]:
        """Send calls at the same moment, on connections that are open before."""
        responses = await self.transport.send_together([call.request for call in calls])
        return [call.dialect.answer(response) for call, response in zip(calls, responses, strict=True)]

    async def abandoned(self, call: Call, *, unsent: int = 0) -> None:
        """Send a call, less so many of its last bytes, and close its connection without reading an answer."""
        await self.transport.abandon(call.request, unsent=unsent)

    def _request(
        self, method: str, path: str, content: bytes | None, body: Any, token: Any, headers: Mapping[str, Any] | None
    ) -> Request:
        used = self.token if token is None else token
        sent: dict[str, Any] = {"authorization": UNSET if used is UNSET else f"Bearer {used}"}
        if body is not UNSET:
            content = json.dumps(body, ensure_ascii=False).encode()
        if content is not None:
            sent["content-type"] = "application/json"
        return Request(method, path, without_unset({**sent, **(headers or {})}), content or b"")


def item(project: Identified | str = UNSET, **fields: Any) -> dict[str, Any]:
    """A valid item, of kind ai unless ``fields`` say otherwise; ``UNSET`` takes one away."""
    project_id = project.id if hasattr(project, "id") else project
    text = "command" if fields.get("kind") == "script" else "prompt"
    return without_unset({"kind": "ai", "projectId": project_id, text: "look for TODO in src", **fields})


def job_path(job: Identified | str) -> str:
    """A job's path, whatever characters its id has."""
    return f"{BASE}/jobs/{quote(job if isinstance(job, str) else job.id, safe='')}"


def batch_path(batch: str) -> str:
    """A batch's path."""
    return f"{BASE}/batches/{quote(batch, safe='')}"


def ids_of(entries: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The ids of a list's entries, in order."""
    return [entry.get("id") for entry in entries]


def whole(value: Any) -> bool:
    """Whether a JSON value is an integer that is not negative."""
    return is_integer(value) and value >= 0


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value is not UNSET}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
