"""Seeded faults of access: the key, and who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.app import KeyJudge
from mock_server.faults.edits import error, part, put, schema
from mock_server.judgement import OperationJudge
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Call, Exchange


class AnyKey(KeyJudge):
    """Lets any key in."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if not headers.get(self.header):
            super().judge(path, headers, exchange)


class KeyPrefix(KeyJudge):
    """Lets in what begins with the key."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        key = exchange.world.options.api_key.encode()
        if not headers.get(self.header, b"").startswith(key):
            super().judge(path, headers, exchange)


class HeaderCaller(OperationJudge):
    """Takes the caller from the header."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        call = await super().judge(scope, receive, exchange, path)
        call.caller = exchange.headers[b"x-runtime-instance-id"].decode("latin-1")
        return call


class LogsOpen(KeyJudge):
    """Guards every controller but one."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if not path.endswith("/invocation-logs"):
            super().judge(path, headers, exchange)


class BearerToo(KeyJudge):
    """Takes the key as a bearer token, too."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if headers.get(b"authorization") != b"Bearer " + exchange.world.api_key:
            super().judge(path, headers, exchange)


class UsersToo(KeyJudge):
    """Lets users in by their token."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if headers.get(b"authorization", b"").count(b".") != 2:
            super().judge(path, headers, exchange)


class PathFirst(KeyJudge):
    """Asks for the key only where there is something to guard."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if path.startswith((f"{self.base_path}/jobs/", f"{self.base_path}/model-", f"{self.base_path}/invocation-")):
            super().judge(path, headers, exchange)


class Everywhere(KeyJudge):
    """Asks for the key on every path."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        super().judge(f"{self.base_path}/", headers, exchange)


FAULTS = (
    Mutant("auth.any-key", "any key opens", ("RT-AUTH-03", "RT-AUTH-50"), parts=part(key=AnyKey)),
    Mutant(
        "auth.key-prefix",
        "a key that only begins rightly opens",
        ("RT-AUTH-03", "RT-AUTH-50"),
        parts=part(key=KeyPrefix),
    ),
    Mutant(
        "auth.header-counts",
        "the header says who asks, not the body",
        ("RT-AUTH-52", "RT-LOCK-08", "RT-HB-03"),
        parts=part(judge=HeaderCaller),
    ),
    Mutant(
        "auth.logs-open",
        "the log endpoint is not guarded",
        ("RT-AUTH-01", "RT-AUTH-50", "RT-AUTH-03"),
        parts=part(key=LogsOpen),
    ),
    Mutant(
        "auth.bearer-too",
        "the key opens as a bearer token, too",
        ("RT-AUTH-53", "RT-AUTH-50", "RT-AUTH-03"),
        parts=part(key=BearerToo),
    ),
    Mutant(
        "auth.users-too", "a user's token opens", ("RT-AUTH-06", "RT-AUTH-53", "RT-AUTH-50"), parts=part(key=UsersToo)
    ),
    Mutant(
        "auth.path-first",
        "without the key an unknown path is 404",
        ("RT-AUTH-51", "RT-ERR-61", "RT-AUTH-50"),
        parts=part(key=PathFirst),
    ),
    Mutant("auth.everywhere", "the key is asked for on every path", ("RT-AUTH-57",), parts=part(key=Everywhere)),
    Mutant(
        "auth.forbidden",
        "a wrong key is 403",
        ("RT-AUTH-50", "RT-ERR-77", "RT-AUTH-53"),
        edit=error("UNAUTHORIZED", status=403),
    ),
    Mutant(
        "auth.no-instance",
        "the instance id header may be left out",
        ("RT-AUTH-55",),
        edit=put("components", "parameters", "InstanceId", "required", value=False),
    ),
    Mutant(
        "auth.any-instance",
        "an instance id header may have any length",
        ("RT-AUTH-56",),
        edit=put("components", "parameters", "InstanceId", "schema", "maxLength", value=4096),
    ),
    Mutant(
        "auth.instance-of-header",
        "a lock's body need not name the instance: the header does",
        ("RT-AUTH-58", "RT-ERR-60"),
        edit=schema("LockRequest", required=[]),
    ),
)
