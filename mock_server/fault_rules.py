"""Whether a fault plan is sound: its schema in ``control.yaml``, and what no schema says: it can meet something."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import orjson

import openapi
from mock_server.fault_patches import unsound
from mock_server.judgement import compile_normaliser
from mock_server.violations import body_violations
from openapi.problems import nearest
from openapi.redaction import Redactor
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mock_server.calls import Violation
    from mock_server.fault_targets import Target, Targets

Found = tuple[str, str, str]
"""Place (a JSON Pointer), what is wrong, and the mend."""

BODILESS = frozenset({204, 205, 304})
NEED_BODY = frozenset({"truncated-json", "malformed-json", "wrong-types", "wrong-length", "drip"})
SPOILING = (*sorted(NEED_BODY), "skew", "patch")
"""Kinds that change an answer, always; ``reset`` and ``close`` do at other places than ``before``."""
_FRAMING = frozenset({"content-length", "transfer-encoding", "connection", "trailer", "upgrade", "keep-alive"})
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")


class PlanError(ValueError):
    """Plans that can't be used; ``problems`` are texts with place and mend, at least one."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def judge_plans(
    data: Any, targets: Targets, place: str = ""
) -> tuple[list[tuple[dict[str, Any], frozenset[str] | None]], list[Found]]:
    """Every plan of the data with its defaults filled in and the operations that it is for, and every problem."""
    entries = data if isinstance(data, list) else [data]
    sound, problems = [], []
    ids: dict[str, str] = {}
    for i, entry in enumerate(entries):
        at = f"{place}/{i}" if isinstance(data, list) else place
        found = list({item[0]: item for item in reversed([*_misshapen(entry)])}.values())[::-1]  # one of a place
        if not found:
            plan = _filled(entry)
            operations, found = _aim(plan["match"], targets)
            aimed = [targets.by_id[id_] for id_ in sorted(operations)] if operations is not None else None
            found += [*_counting(plan["when"], aimed), *_sense(plan["fault"], aimed, targets, plan["match"])]
            if "id" in plan and plan["id"] in ids:
                found.append(("/id", f"`{plan['id']}` is at {ids[plan['id']]}, too", "give each plan an id of its own"))
            if "id" in plan:
                ids.setdefault(plan["id"], f"{at}/id")
            sound.append((plan, operations))
        problems += [(at + pointer, what, mend) for pointer, what, mend in found]
    return sound, problems


class _Shapes:
    """The compiled schemas: of a plan whose fault is any object, and of each kind of fault."""

    def __init__(self) -> None:
        document = openapi.load("control").document
        schemas = document["components"]["schemas"]
        self.names = {
            "": list(schemas["FaultPlan"]["properties"]),
            "/match": list(schemas["FaultMatch"]["properties"]),
            "/when": list(schemas["FaultWhen"]["properties"]),
        }
        self.kinds: dict[str, Any] = {}
        for item in schemas["FaultPlan"]["properties"]["fault"]["oneOf"]:
            name = item["$ref"].rpartition("/")[2]
            schema = to_json_schema(item, document)
            for kind in schemas[name]["properties"]["kind"]["enum"]:
                self.kinds[kind] = (_compiled(schema), compile_normaliser(schema), list(schemas[name]["properties"]))
        plan = dict(schemas["FaultPlan"])
        kinds = {"type": "string", "enum": list(self.kinds)}
        fault = {"type": "object", "required": ["kind"], "properties": {"kind": kinds}}
        plan["properties"] = {**plan["properties"], "fault": fault}
        schema = to_json_schema(plan, document)
        self.plan, self.normalise = _compiled(schema), compile_normaliser(schema)


def _compiled(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema)


@cache
def _shapes() -> _Shapes:
    return _Shapes()


def _misshapen(entry: Any) -> Iterator[Found]:
    shapes = _shapes()
    violations = body_violations(shapes.plan, entry, Redactor())
    yield from (_told(item, "", shapes.names) for item in violations)
    fault = entry.get("fault") if isinstance(entry, dict) else None
    kind = fault.get("kind") if isinstance(fault, dict) else None
    if isinstance(kind, str) and kind in shapes.kinds:
        validator, _, fields = shapes.kinds[kind]
        for item in body_violations(validator, fault, Redactor()):
            yield _told(item, "/fault", {"": fields})


def _told(item: Violation, base: str, names: Mapping[str, list[str]]) -> Found:
    what = item.message.removeprefix(item.location or "the body").strip()
    parent, _, name = item.location.rpartition("/")
    if item.rule == "additionalProperties":
        known = names.get(parent)
        what = "is not known here"
        mend = nearest(name, known, f"known are {', '.join(known)}") if known else "leave it out"
    elif base + item.location == "/fault/kind" and isinstance(item.actual, str):
        what = f"no kind of fault is named `{item.actual}`"
        mend = nearest(item.actual, _shapes().kinds, f"there are {', '.join(_shapes().kinds)}")
    elif item.rule == "not":
        what, mend = "must not be 0, which changes nothing", "give another number"
    else:
        mend = "FaultPlan in openapi/control.yaml has the fields"
    return base + item.location, what, mend


def _filled(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with whole numbers as ``int`` and the kind's defaults."""
    plan = orjson.loads(orjson.dumps(entry))
    shapes = _shapes()
    when = plan.get("when", {})
    given = set(when)
    plan = shapes.normalise({"match": {}, **plan, "when": when})
    plan["when"] = {name: value for name, value in plan["when"].items() if name in given}
    plan["fault"] = shapes.kinds[plan["fault"]["kind"]][1](plan["fault"])
    return dict(plan)


def _aim(match: Mapping[str, Any], targets: Targets) -> tuple[frozenset[str] | None, list[Found]]:
    """The operations that the plan is for (None: all, and unknown paths), and what is wrong with ``match``."""
    wanted = set(targets.by_id)
    if "operationId" in match:
        id_ = match["operationId"]
        if id_ not in wanted:
            return None, [("/match/operationId", f"no operation is named `{id_}`", nearest(id_, sorted(wanted)))]
        wanted = {id_}
    if "path" in match:
        at = {target.id for target in targets.at(match["path"])}
        if not at:
            known = sorted({target.path for target in targets.by_id.values()})
            return None, [("/match/path", f"no operation is at `{match['path']}`", nearest(match["path"], known))]
        if not wanted & at:
            mend = f"leave one out: {match['operationId']} is at {targets.by_id[match['operationId']].path}"
            return None, [("/match/path", "is not the operation's own", mend)]
        wanted &= at
    if "method" in match:
        methods = {targets.by_id[id_].method for id_ in wanted}
        if match["method"] not in methods:
            mend = f"use {', '.join(sorted(methods))}, or leave it out"
            return None, [("/match/method", f"no operation that the plan is for has {match['method']}", mend)]
        wanted = {id_ for id_ in wanted if targets.by_id[id_].method == match["method"]}
    found: list[Found] = []
    aimed = [targets.by_id[id_] for id_ in wanted]
    names = ", ".join(sorted(wanted))
    if "jobId" in match and not any(target.has_job for target in aimed):
        found.append(("/match/jobId", f"no request of {names} names a job", "leave it out"))
    if "caller" in match and not any(target.has_caller for target in aimed):
        found.append(("/match/caller", f"no request of {names} names a caller", "leave it out"))
    return frozenset(wanted) if match.keys() & {"operationId", "path", "method"} else None, found


def _counting(when: Mapping[str, Any], aimed: list[Target] | None) -> Iterator[Found]:
    for other in ("from", "every"):
        if "nth" in when and other in when:
            yield f"/when/{other}", "does not go together with `nth`", "keep one of the two"
    if aimed is not None:
        if when.get("perJob") and not any(target.has_job for target in aimed):
            yield "/when/perJob", "no request that the plan is for names a job", "leave it out"
        if when.get("perCaller") and not any(target.has_caller for target in aimed):
            yield "/when/perCaller", "no request that the plan is for names a caller", "leave it out"


def statuses_of(match: Mapping[str, Any]) -> frozenset[int] | None:
    """The statuses of the answers that a plan is for; None: it is for requests, whatever is answered."""
    given = match.get("status")
    return None if given is None else frozenset(given if isinstance(given, list) else [given])


def _sense(
    fault: Mapping[str, Any], aimed: list[Target] | None, targets: Targets, match: Mapping[str, Any]
) -> Iterable[Found]:
    """What is wrong with a fault beyond its schema."""
    own: dict[str, Callable[[Mapping[str, Any], list[Target], Targets], Iterable[Found]]] = {
        "delay": _delay,
        "status": _status,
        "wrong-types": _wrong_types,
        "skew": _skew,
        "patch": _patch,
    }
    kind, met = fault["kind"], aimed if aimed is not None else list(targets.by_id.values())
    found = list(own[kind](fault, met, targets)) if kind in own else []
    statuses, cut = statuses_of(match), fault.get("at") == "mid-body"
    if statuses is not None and kind not in SPOILING and fault.get("at") not in ("after-commit", "mid-body"):
        what = f"`{kind}` never sees an answer"
        if kind in ("reset", "close"):
            what, mend = f"`{kind}` at `before` never sees an answer", "use at: after-commit, or mid-body"
        else:
            mend = f"leave it out, or use a kind that spoils answers: {', '.join(SPOILING)}"
        found.append(("/match/status", what, mend))
    # Every failure has a body: who is to meet one has something to spoil. A patch meets them unless it is told not to.
    failures = kind == "patch" if statuses is None else any(status >= 400 for status in statuses)
    if (kind in NEED_BODY or kind == "patch" or cut) and not failures and not any(target.bodies for target in met):
        names = ", ".join(target.id for target in met)
        what = f"{names} answers without a body: there is nothing for `{'mid-body' if cut else kind}` to spoil"
        mend = "use after-commit" if cut else "use close, reset, status or delay"
        found.append(("/fault/at" if cut else "/fault/kind", what, mend))
    return found


def _delay(fault: Mapping[str, Any], _met: list[Target], _: Targets) -> Iterator[Found]:
    if ("seconds" in fault) == ("distribution" in fault):
        yield "/fault", "a delay has `seconds` or a `distribution`", "give one of the two"
    least, most = fault.get("distribution", {}).get("uniform", (0, 1))
    if least > most or most == 0:
        yield "/fault/distribution/uniform", "must be the least seconds, then the most", "as in [0.1, 0.5]"


def _status(fault: Mapping[str, Any], _met: list[Target], targets: Targets) -> Iterator[Found]:
    code = fault.get("errorCode")
    known = {*targets.errors, *(words(status) for status in range(300, 600))}
    if code is not None and code not in known:
        yield "/fault/errorCode", f"`{code}` is no error code", nearest(code, sorted(known), "leave it out")
    for name in ("errorCode", "message"):
        if fault["status"] in BODILESS and name in fault:
            yield f"/fault/{name}", f"an answer {fault['status']} has no body", "leave it out, or use another status"
    yield from (("/fault" + at, what, mend) for at, what, mend in header_faults(fault.get("headers")))


def header_faults(headers: Mapping[str, str] | None) -> Iterator[Found]:
    """What is wrong with further header fields of an answer."""
    for name in headers or ():
        if not name or not set(name.lower()) <= _TOKEN:
            yield "/headers", f"`{name}` is no name of a header field", "use letters, digits and -"
        elif name.lower() in _FRAMING:
            yield f"/headers/{name}", "says how the answer is framed", "use wrong-length, close or reset"


def _wrong_types(fault: Mapping[str, Any], met: list[Target], _: Targets) -> Iterator[Found]:
    known = frozenset[str]().union(*(target.fields for target in met))
    field = fault.get("field")
    if field is not None and field not in known:
        yield "/fault/field", f"no answer has a field `{field}`", nearest(field, sorted(known))


def _skew(_fault: Mapping[str, Any], met: list[Target], targets: Targets) -> Iterator[Found]:
    if not any(target.skewable for target in met):
        able = [target.id for target in targets.by_id.values() if target.skewable]
        names = ", ".join(target.id for target in met)
        yield "/fault/kind", f"no answer of {names} has a `lockUntil`", f"meet {', '.join(able)}"


def _patch(fault: Mapping[str, Any], _met: list[Target], _: Targets) -> Iterator[Found]:
    yield from ((f"/fault/operations{at}", what, mend) for at, what, mend in unsound(fault["operations"]))


def words(status: int) -> str:
    """The words of an HTTP status as an error code: ``SERVICE_UNAVAILABLE`` of 503, ``HTTP_599`` without any."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP_{status}"
    return "".join(letter if letter.isalnum() else "_" for letter in phrase.upper().replace("'", ""))
