"""Which operation a path and a method mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from connexion.middleware.abstract import ROUTING_CONTEXT, SpecMiddleware

from mock_server.calls import Refusal
from openapi.contract import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH_PARAMETERS = "mock_server.path"
"""Key of the decoded path parameters in ``scope["extensions"]``."""


class Routes(SpecMiddleware):  # type: ignore[misc]  # Connexion has no types
    """Finds the operation of a request, in the place of Connexion's own routing middleware.

    That one redirects a path with a slash too many, names the methods of one route only in ``Allow``, serves HEAD
    where GET is, takes an encoded slash for a slash, and searches the routes one after the other. What is found is
    handed on where Connexion's routed middlewares look for it.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self._base_path = ""
        self._literal: dict[str, dict[str, str]] = {}
        self._templates: dict[int, list[tuple[re.Pattern[str], dict[str, str]]]] = {}

    def add_api(self, specification: Any, **_: Any) -> None:
        """Add every operation of a specification."""
        self._base_path = specification.base_path
        self.add_paths(specification["paths"])

    def add_paths(self, paths: Mapping[str, Any]) -> None:
        """Add every operation of these path items."""
        for path, item in paths.items():
            operations = {method.upper(): item[method]["operationId"] for method in METHODS if method in item}
            if "{" in path:
                pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
                self._templates.setdefault(path.count("/"), []).append((re.compile(pattern), operations))
            else:
                self._literal[path] = operations

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Route one request. Raises :class:`Refusal` NOT_FOUND (404) or METHOD_NOT_ALLOWED (405, with ``Allow``)."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        operations, parameters = self.find(scope["raw_path"])
        operation_id = operations.get(scope["method"])
        if operation_id is None:
            allow = ", ".join(operations)
            message = f"{scope['method']} is not known here; use {allow}."
            raise Refusal("METHOD_NOT_ALLOWED", message, headers={"allow": allow})
        extensions = scope["extensions"]
        extensions[ROUTING_CONTEXT] = {"api_base_path": self._base_path, "operation_id": operation_id}
        extensions[PATH_PARAMETERS] = parameters
        await self.app(scope, receive, send)

    def find(self, raw_path: bytes) -> tuple[dict[str, str], dict[str, str]]:
        """The operations of a path (still percent-encoded) by method, and its path parameters, decoded.

        Raises :class:`Refusal` NOT_FOUND, for what is not UTF-8 or has an encoded slash, too (RT-ERR-79).
        """
        path = _decoded(raw_path)
        literal = self._literal.get(path)
        if literal is not None:
            return literal, {}
        for pattern, operations in self._templates.get(path.count("/"), ()):
            match = pattern.fullmatch(path)
            if match is not None:
                return operations, match.groupdict()
        raise Refusal("NOT_FOUND", "No such path.")


def _decoded(raw_path: bytes) -> str:
    text = raw_path.decode("latin-1")
    if text.isascii() and "%" not in text:
        return text
    try:
        segments = [unquote(segment, errors="strict") for segment in text.split("/")] if text.isascii() else ["/"]
    except UnicodeDecodeError:
        segments = ["/"]
    if any("/" in segment for segment in segments):
        raise Refusal("NOT_FOUND", "No such path: a part of it can't be decoded.")
    return "/".join(segments)
