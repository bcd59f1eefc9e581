"""Stock Connexion on the same specification and handlers: the oracle of our judgement, and the measure of its speed."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

with warnings.catch_warnings():
    # Connexion imports Starlette's test client, which warns of the HTTP client that it would use.
    warnings.simplefilter("ignore")
    import connexion
    from connexion import AsyncApp, NoContent
    from connexion.resolver import Resolver
    from connexion.security import ApiKeySecurityHandler

from mock_server.calls import Call, Exchange, Refusal
from mock_server.judgement import JSON, compile_normaliser
from mock_server.runtime_api import RuntimeApi
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.worlds import World


def stock_app(world: World) -> Any:
    """An ASGI app with Connexion's own validation, routing and security; it serves one world, without a journal.

    A refusal of a handler is answered with its status and code alone; what Connexion refuses has its own error body.
    """
    contract = world.build.contract
    handlers = RuntimeApi(contract).handlers()
    errors = contract.errors

    class KnownKey(ApiKeySecurityHandler):  # type: ignore[misc]  # Connexion has no types
        def _resolve_func(self, _: Any) -> Callable[..., Any]:
            return lambda apikey, **_: {"sub": "runtime"} if apikey == world.options.api_key else None

    def adapted(operation_id: str) -> Callable[..., Any]:
        handler = handlers[operation_id]
        request = contract.operations[operation_id].document.get("requestBody")
        schema = to_json_schema(request["content"][JSON]["schema"], contract.document) if request else {}
        normalise = compile_normaliser(schema)  # Connexion leaves out defaults

        async def handle(body: Any = None, **path: str) -> Any:
            headers = {
                name.encode("latin-1"): value.encode("latin-1") for name, value in connexion.request.headers.items()
            }
            caller = headers.get(b"x-runtime-instance-id", b"").decode("latin-1")
            if isinstance(body, dict):
                caller = body.get("runtimeInstanceId", caller)
            exchange = Exchange(world, "POST", "", headers, 0)
            call = Call(world, operation_id, caller, path, {}, headers, normalise(body), exchange)
            try:
                answer = await handler(call)
            except Refusal as refusal:
                return {"errorCode": refusal.code}, errors[refusal.code].status
            return NoContent if answer.body is None else answer.body, answer.status, dict(answer.headers)

        return handle

    app = AsyncApp(__name__, security_map={"apiKey": KnownKey}, validate_responses=False)
    document = {name: value for name, value in contract.document.items() if not name.startswith("x-")}
    app.add_api(document, resolver=Resolver(adapted))
    return app
