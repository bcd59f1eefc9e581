"""Submissions: the rules of their bodies, where their jobs go, and the ``Idempotency-Key``."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import orjson

from mock_server.calls import Refusal, Violation
from mock_server.hub.entities import JOB, NODE, SUBMISSION
from mock_server.judgement import compile_normaliser, refused
from mock_server.violations import body_violations, unreadable
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from mock_server.hub.hub import Hub
    from mock_server.store import Row
    from openapi import Contract
    from openapi.redaction import Redactor

Item = dict[str, Any]
_EXACT = 2**53
_DEEPEST = 200
"""Levels of a body; what we write JSON with takes 254, and answers put some around what was sent."""


class Submissions:
    """Judges submissions and makes jobs of them. It holds no state; a seeded fault subclasses it."""

    def __init__(self, contract: Contract) -> None:
        schemas = contract.document["components"]["schemas"]
        self.schema = to_json_schema(schemas["Submission"], contract.document)
        self.validator = jsonschema_rs.Draft202012Validator(self.schema, validate_formats=True)
        self.normalise = compile_normaliser(_without_defaults(self.schema))  # they depend on the kind
        item = schemas["JobItem"]
        self.kinds: Mapping[str, Mapping[str, list[str]]] = item["x-kinds"]
        self.defaults = {
            name: schema["default"] for name, schema in _resolved(contract, item["properties"]) if "default" in schema
        }
        self.most_bytes: int = item["properties"]["metadata"]["x-maxBytes"]

    @staticmethod
    def read(body: Any) -> None:
        """Refuse a body that is nested too deeply to be answered, as one that the parser can't take."""
        level = [body]
        for _ in range(_DEEPEST):
            level = [inner for one in level for inner in _inside(one)]
            if not level:
                return
        what = f"the body is nested too deeply: more than {_DEEPEST} levels"
        raise refused([unreadable("depth", f"at most {_DEEPEST} levels", None, what)])

    # Idempotency

    async def earlier(self, hub: Hub, account: str, key: str, body: Any, now: int) -> dict[str, Any] | None:
        """The first answer's data where the key was used before (HUB-IDEM-02 to 05, 50 to 58, 60).

        Raises :class:`Refusal` where it was used with another body.
        """
        row = await hub.store.get(SUBMISSION, self.key(account, key))
        if row is None or now - row["at"] > hub.constants["idempotencyWindow"]:
            return None
        if row["digest"] != self.digest(body):
            what = "The Idempotency-Key was used with another body; use a key of its own for each submission."
            raise Refusal("idempotency_key_reused", what)
        data: dict[str, Any] = row["data"]
        return data

    @staticmethod
    def key(account: str, key: str) -> str:
        """Where a submission is remembered: keys of different API keys are apart (HUB-IDEM-61)."""
        return f"{account}:{key}"

    @staticmethod
    def digest(body: Any) -> str:
        """Equal for bodies that are the same JSON value, and for no others (HUB-IDEM-57)."""
        return hashlib.sha256(orjson.dumps(_plain(body), option=orjson.OPT_SORT_KEYS)).hexdigest()

    async def remember(
        self, hub: Hub, account: str, key: str, body_digest: str, data: Mapping[str, Any], now: int
    ) -> None:
        """Remember a 202."""
        row = {"id": self.key(account, key), "account": account, "key": key, "digest": body_digest}
        await hub.engine.replace(SUBMISSION, {**row, "data": data, "at": now})

    # The body's rules

    def judge(self, hub: Hub, body: Any, redactor: Redactor) -> tuple[str | None, list[Item]]:
        """The batch id that was given and the items, defaults filled in. Raises :class:`Refusal` for violations."""
        violations: list[Violation] = []
        if not self.validator.is_valid(body):
            violations += body_violations(self.validator, body, redactor, schema=self.schema)
        if isinstance(body, dict) and isinstance(body.get("items"), list):
            known = {(violation.location) for violation in violations}
            for i, item in enumerate(body["items"]):
                if isinstance(item, dict):
                    found = self.item_violations(hub, f"/items/{i}", item)
                    violations += [violation for violation in found if violation.location not in known]
        if violations:
            raise refused(violations)
        body = self.normalise(body)
        return body.get("batchId"), [self.filled(item) for item in body["items"]]

    def item_violations(self, hub: Hub, place: str, item: Mapping[str, Any]) -> Iterator[Violation]:
        """What no schema says of an item: fields of its kind, metadata's size, hosts (HUB-FIELD-51, 56 to 59)."""
        kind = item.get("kind")
        rule = self.kinds.get(kind, {}) if isinstance(kind, str) else {}
        for name in rule.get("required", ()):
            if name not in item:
                what = f"{place}/{name} is required where kind is {kind}"
                yield Violation(f"{place}/{name}", "required", "a value", None, what)
        for name in rule.get("refused", ()):
            if name in item:
                what = f"{place}/{name} must not be there where kind is {kind}"
                yield Violation(f"{place}/{name}", "x-kinds", "no such property", "present", what)
        if "metadata" in item and (size := len(_compact(item["metadata"]))) > self.most_bytes:
            what = f"{place}/metadata must have at most {self.most_bytes} bytes as compact JSON; it has {size}"
            yield Violation(f"{place}/metadata", "x-maxBytes", self.most_bytes, size, what)
        url = item.get("callbackUrl")
        if isinstance(url, str) and not hub.webhooks.allowed_host(url):
            what = f"{place}/callbackUrl is no URL to which this mock delivers: a port there is, and a loopback "
            what += "host or one named with --allow-callback-host"
            yield Violation(f"{place}/callbackUrl", "host", "an allowed host", None, what)

    def filled(self, item: Item) -> Item:
        """An item with the defaults of its kind."""
        refused_here = self.kinds[item["kind"]]["refused"]
        defaults = {name: value for name, value in self.defaults.items() if name not in refused_here}
        return {**defaults, **item}

    # Where it goes

    async def place(self, hub: Hub, items: Iterable[Item]) -> list[str]:
        """The node of each item. Raises :class:`Refusal` for the first kind of fault there is (HUB-SUB-63)."""
        nodes = await hub.store.rows(NODE)
        faults: dict[str, list[Violation]] = {"project_not_found": [], "ambiguous_project": [], "node_offline": []}
        placed: list[str] = []
        for i, item in enumerate(items):
            project, wanted = item["projectId"], item.get("nodeId")
            having = [node for node in nodes if project in node["projects"] and wanted in (None, node["id"])]
            at = f"/items/{i}/{'projectId' if wanted is None else 'nodeId'}"
            if not having:
                where = "" if wanted is None else f" on the node {wanted}"
                what = f"the project {project} does not exist{where}"
                faults["project_not_found"].append(Violation(at, "project_not_found", "a known project", None, what))
            elif len(having) > 1:
                ids = ", ".join(node["id"] for node in having)
                what = f"the project {project} exists on several nodes ({ids}); give the nodeId"
                faults["ambiguous_project"].append(Violation(at, "ambiguous_project", "a nodeId", None, what))
            else:
                node = having[0]
                placed.append(node["id"])
                if not node["online"]:
                    what = f"the node {node['id']} is offline"
                    faults["node_offline"].append(Violation(at, "node_offline", "a node that is online", None, what))
        for code, violations in faults.items():
            if violations:
                said = "; ".join(dict.fromkeys(violation.message for violation in violations))
                raise Refusal(code, f"{said[:1].upper()}{said[1:]}.", violations)
        return placed

    def rows(self, hub: Hub, account: str, batch_id: str, items: list[Item], nodes: list[str], first: int) -> list[Row]:
        """The rows of a submission's jobs; ``queuedAt`` rises from ``first`` as sent (HUB-GET-53, HUB-LIST-56)."""
        length: int = hub.constants["titleLength"]
        return [
            {
                **item,
                "id": f"job_{secrets.token_hex(8)}",
                "account": account,
                "batchId": batch_id,
                "nodeId": node,
                "title": str(item.get("prompt") or item.get("command"))[:length],
                "queuedAt": first + i,
            }
            for i, (item, node) in enumerate(zip(items, nodes, strict=True))
        ]

    async def create(self, hub: Hub, rows: list[Row]) -> list[Row]:
        """Store the jobs, all or none."""
        return await hub.engine.insert_all(JOB, rows)


def _resolved(contract: Contract, properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Properties with what ``allOf`` and references say of them."""
    for name, schema in properties.items():
        parts = [contract.resolve(part) for part in (schema, *schema.get("allOf", ()))]
        yield name, {key: value for part in reversed(parts) for key, value in part.items()}


def _inside(value: Any) -> Iterable[Any]:
    """The objects and lists that stand directly in a value."""
    held: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (one for one in held if isinstance(one, dict | list))


def _without_defaults(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _without_defaults(item) for name, item in schema.items() if name != "default"}
    return [_without_defaults(item) for item in schema] if isinstance(schema, list) else schema


def _plain(value: Any) -> Any:
    """A JSON value with ``1.0`` made 1, which it equals."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _compact(value: Any) -> bytes:
    """Compact UTF-8 JSON with no unneeded escapes."""
    return orjson.dumps(value)
