"""The control plane, served from ``control.yaml`` with the same judgement as the APIs; an area of it a module."""

from __future__ import annotations

from hmac import compare_digest
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import openapi
from mock_server.app import Api, Errors
from mock_server.calls import Answer, Exchange, Refusal
from mock_server.control.clock import ClockHandlers
from mock_server.control.faults import FaultHandlers
from mock_server.control.journal import JournalHandlers
from mock_server.control.judgement import ControlJudge
from mock_server.control.model import ModelHandlers
from mock_server.control.snapshots import SnapshotHandlers
from mock_server.control.verification import VerificationHandlers
from mock_server.control.worlds import WorldHandlers
from mock_server.hub.states import HubStates
from mock_server.ports import host_name
from mock_server.provider_states import ProviderStates
from openapi.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Call, Handler
    from mock_server.worlds import Worlds
    from openapi import Contract

BASE_PATH = "/__control__"


class ControlErrors(Errors):
    """The control plane's error body: ``{"error": "..."}``."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self.paths = list(contract.document["paths"])

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        """The refusal's answer, without secrets."""
        code = self.codes[refusal.code]
        message = refusal.message
        if code.code == "NOT_FOUND" and exchange.operation_id is None:
            mend = nearest(exchange.path, self.paths, "")
            message = f"{message} {mend[:1].upper()}{mend[1:]}".strip()
        body: dict[str, Any] = {"error": exchange.world.redactor.text(message)}
        if refusal.details:
            body["details"] = [violation.entry() for violation in refusal.details]
        exchange.error_code, exchange.details = code.code, refusal.details
        return Answer(code.status, body, refusal.headers)


class Guard:
    """Keeps strangers out of the control plane: other sites' pages, rebound host names, callers without the token."""

    def __init__(self, hosts: frozenset[str] | None, token: str | None) -> None:
        """``hosts`` are the names under which the mock may be called, without port (None: any, where the token protects
        it); ``token`` None asks for none.
        """
        self.hosts, self.token = hosts, token

    def judge(self, path: str, headers: Mapping[bytes, bytes], _exchange: Exchange) -> None:
        """Raises :class:`Refusal` FORBIDDEN or UNAUTHORIZED. Health needs no token: container platforms have none."""
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if self.hosts is not None and host_name(host) not in self.hosts:
            raise Refusal("FORBIDDEN", "the Host of the request is not this mock's; call it by its own address")
        if origin and origin.partition("://")[2] != host:
            raise Refusal(
                "FORBIDDEN", "the Origin of the request is a stranger's; the control plane serves no other site"
            )
        if self.token is None or path == f"{BASE_PATH}/health":
            return
        if not compare_digest(headers.get(b"authorization", b""), b"Bearer " + self.token.encode()):
            raise Refusal("UNAUTHORIZED", "send `Authorization: Bearer <control token>`")


class Control:
    """The handlers of all areas, over all worlds of one server."""

    def __init__(self, worlds: Worlds, guard: Guard) -> None:
        contract = openapi.load("control")
        self.worlds = worlds
        self.version = version("runtime-contract")
        self.states, self.hub_states = ProviderStates(contract), HubStates(contract)
        handlers: dict[str, Handler] = {
            "readHealth": self.health,
            "listStates": self.list_states,
            "setUpState": self.set_up_state,
            "listHubStates": self.list_hub_states,
            "setUpHubState": self.set_up_hub_state,
            **WorldHandlers(worlds, self.states, self.hub_states).handlers(),
            **SnapshotHandlers(worlds).handlers(),
            **ClockHandlers().handlers(),
            **JournalHandlers().handlers(),
            **VerificationHandlers().handlers(),
            **FaultHandlers().handlers(),
            **ModelHandlers().handlers(),
        }
        self.api = Api(contract, handlers, ControlErrors(contract), key=guard, judge=ControlJudge)

    async def health(self, _: Call) -> Answer:
        """Whether the mock answers."""
        return Answer(200, {"status": "ok", "version": self.version})

    async def list_states(self, call: Call) -> Answer:
        """The states that this build offers."""
        return Answer(200, {"system": "runtime-api", "states": self.states.names(call.world)})

    async def set_up_state(self, call: Call) -> Answer:
        """Put the build into a state."""
        values = await self.states.set_up(call.world, call.body["state"], call.body.get("params", {}))
        return Answer(200, values)

    async def list_hub_states(self, call: Call) -> Answer:
        """The states of the Agent Hub that this build offers."""
        return Answer(200, {"system": "agent-hub", "states": self.hub_states.names(call.world)})

    async def set_up_hub_state(self, call: Call) -> Answer:
        """Put the Agent Hub into a state."""
        values = await self.hub_states.set_up(call.world, call.body["state"], call.body.get("params", {}))
        return Answer(200, values)
