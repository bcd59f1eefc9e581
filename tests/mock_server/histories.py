"""Hand-made histories: journal entries as a world would have noted them."""

from __future__ import annotations

import json
from typing import Any

from mock_server.journal import Entry

START = 1_700_000_000_000
JOB = "job-1"


class History:
    """A history in the making; every call begins where the clock stands, and takes no time unless it is said."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.now = 0.0

    def wait(self, seconds: float) -> History:
        """Let world time pass."""
        self.now += seconds
        return self

    def call(self, operation: str | None, status: int = 200, **fields: Any) -> History:
        """One more call, about ``JOB`` and by ``runtime-1`` unless ``fields`` say otherwise."""
        begun = START + round(self.now * 1000)
        number = len(self.entries) + 1
        verdict = "aborted" if not status else "ok" if status < 400 else "refused" if status < 500 else "failed"
        headers = fields.pop("headers", {"x-runtime-instance-id": "runtime-1"})
        given = {
            "number": number,
            "at": begun,
            "answered_at": begun,
            # Real time goes on where a manual clock stands.
            "real_at": float(begun + number),
            "duration_ms": 0.5,
            "operation_id": operation,
            "caller": "runtime-1",
            "job_id": JOB,
            "status": status,
            "verdict": verdict,
            "fault": None,
            "model": None,
            "error_code": None,
            "job_status": None,
            "locked_by": None,
            "lock_until": None,
            "method": "POST",
            "path": f"/internal/runtime/jobs/{JOB}",
            "query": "",
            "request_headers": "\n".join(f"{name}: {value}" for name, value in headers.items()),
            "request_body": json.dumps(fields.pop("sent")) if "sent" in fields else "",
            "response_headers": "",
            "response_body": json.dumps(fields.pop("got")) if "got" in fields else "",
            "sightings": b"[]",
            "violations": b"[]",
            **fields,
        }
        for name in ("request", "response"):
            given.setdefault(f"{name}_bytes", len(given[f"{name}_body"]))
        self.entries.append(Entry(**given))
        return self

    def lock(self, status: int = 200, **fields: Any) -> History:
        """A lock."""
        return self.call("lockJob", status, **fields)

    def heartbeat(self, status: int = 204, **fields: Any) -> History:
        """A heartbeat."""
        return self.call("heartbeatJob", status, **fields)

    def snapshot(self, status: int = 200, **fields: Any) -> History:
        """The job's snapshot."""
        return self.call("getSnapshot", status, **fields)

    def resolve(self, status: int = 200, **fields: Any) -> History:
        """The credential."""
        return self.call("resolveCredential", status, **fields)

    def result(self, status: int = 200, **fields: Any) -> History:
        """The result."""
        return self.call("submitResult", status, **fields)
