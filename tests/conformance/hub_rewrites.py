"""What answers, events and webhooks of the hub may be otherwise, as functions that rewrite one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variant_rewrites import Reply

_MORE: dict[str, Any] = {"x-next": {"a": [1, None, {"b": True}]}, "links": [], "note": "sk is no key", "revision": 7}
_LISTS = ("details", "nodes", "projects", "byProject")
"""Lists whose order nobody promises; `items` are one where they are projects."""


def more_properties(reply: Reply) -> None:
    """Properties that this version of the contract does not know, in every object; `metadata` is the client's own."""
    if reply.data is not None:
        reply.data = _with_more(reply.data)
        if isinstance(reply.data.get("states"), list):
            reply.data["states"] += ["teleport", "job-of-tomorrow"]


def _with_more(value: Any) -> Any:
    if isinstance(value, dict):
        known = {name: item if name == "metadata" else _with_more(item) for name, item in value.items()}
        return {**_MORE, **known}
    return [_with_more(item) for item in value] if isinstance(value, list) else value


def other_words(reply: Reply) -> None:
    """Messages in another language; each fault at its place, told in words of the build's own."""
    error = _error(reply)
    if error is not None:
        named = error["message"] if error["code"] == "ambiguous_project" else ""  # project and nodes have to be there
        error["message"] = '请求"被拒绝"\n\t\\ \N{ROCKET} ' + "…" * 40 + named
        for entry in error.get("details", ()):
            entry |= {"message": "不对"}
            entry.pop("rule", None)


def no_details(reply: Reply) -> None:
    """`details` are there where they have to be alone: of a submission that breaks rules."""
    error = _error(reply)
    if error is not None and not (error["code"] == "invalid_request" and reply.path == "/v1/jobs"):
        error.pop("details", None)


def _error(reply: Reply) -> dict[str, Any] | None:
    known = reply.kind == "answer" and reply.of_api and reply.status >= 400 and isinstance(reply.data, dict)
    return reply.data["error"] if known and isinstance(reply.data.get("error"), dict) else None


def reversed_lists(reply: Reply) -> None:
    """Lists in another order, where the contract names none."""
    if reply.data is not None and reply.of_api:
        _reverse(reply.data, (*_LISTS, "items") if reply.path == "/v1/projects" else _LISTS)


def _reverse(value: Any, names: tuple[str, ...]) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in names and isinstance(item, list):
                item.reverse()
            _reverse(item, names)
    elif isinstance(value, list):
        for item in value:
            _reverse(item, names)


def charset(reply: Reply) -> None:
    """The media type with its parameter, in another case."""
    media = reply.headers.get(b"content-type")
    if media is not None:
        kind = b"Text/Event-Stream" if reply.kind == "stream" else b"Application/JSON"
        reply.headers[b"content-type"] = kind + b"; charset=UTF-8"


def more_headers(reply: Reply) -> None:
    """Headers that proxies and frameworks add, `Allow` in another order, `no-cache` among other directives."""
    reply.headers |= {b"vary": b"Origin, Accept-Encoding", b"server": b"hub/7", b"set-cookie": b"sid=1; Path=/"}
    if reply.status == 401:
        reply.headers[b"www-authenticate"] = b'Bearer realm="hub", error="invalid_token"'
    if b"allow" in reply.headers:
        reply.headers[b"allow"] = b",".join(reversed(reply.headers[b"allow"].replace(b" ", b"").split(b",")))
    if b"cache-control" in reply.headers:
        reply.headers[b"cache-control"] = b"private, No-Cache, no-transform"


def html_elsewhere(reply: Reply) -> None:
    """What lies outside `/v1` is not this API: another site's pages."""
    inside = reply.path.startswith("/v1") and reply.path[3:4] in ("", "/")
    if reply.kind == "answer" and reply.of_api and not inside:
        reply.headers[b"content-type"] = b"text/html"
        reply.body = b"<html><body>Not here</body></html>"
