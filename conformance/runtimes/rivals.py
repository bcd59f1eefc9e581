"""Requests of another Runtime, which competes for the same jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import httpx

from contract_tests.client import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Callable

    from contract_tests.transport import Request, Transport

_SECONDS = 10.0


class Rival:
    """Another Runtime by its requests alone. Operations go by their ids, or by the words of :class:`RuntimeApi`."""

    def __init__(self, client: httpx.AsyncClient, base_url: str, token: str, instance_id: str) -> None:
        self._client, self._base_url, self.instance_id = client, base_url, instance_id
        api = RuntimeApi(cast("Transport", None), token)  # its requests are sent by us
        of_job: dict[str, Callable[..., Any]] = {
            "lockJob": api.lock,
            "heartbeatJob": api.heartbeat,
            "getSnapshot": api.snapshot,
            "resolveCredential": api.resolve,
            "submitResult": api.result,
            "failJob": api.fail,
        }
        self._operations = of_job | {call.__name__: call for call in of_job.values()}
        self._others: dict[str, Callable[..., Any]] = {"pollJobs": api.poll, "poll": api.poll}
        self._others |= {"submitInvocationLogs": api.logs, "logs": api.logs}

    async def request(self, operation: str, job: str | None, body: dict[str, Any]) -> int:
        """Send one; ``body``: properties in place of the usual ones. The status, 0 where no answer came.

        Raises ``ValueError`` for an operation that there is not, or one of a job without a job.
        """
        if operation in self._others:
            call = self._others[operation](by=self.instance_id, **body)
        elif operation not in self._operations:
            known = ", ".join(sorted({*self._operations, *self._others}))
            raise ValueError(f"there is no operation {operation}; there are {known}")
        elif job is None:
            raise ValueError(f"{operation} is about a job; name one")
        else:
            call = self._operations[operation](job, by=self.instance_id, **body)
        request: Request = call.request
        try:
            answer = await self._client.request(
                request.method,
                self._base_url + request.path,
                headers=request.headers,
                content=request.content,
                timeout=_SECONDS,
            )
        except httpx.HTTPError:
            return 0
        return answer.status_code
