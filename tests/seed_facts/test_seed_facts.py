"""The specifications say what the seeds say.

The server and the suites both read the specification, so an error in it would be theirs together. These facts were
taken from the Chinese text alone, by another reader. How a fact is written: README.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from seed_machine import NOW, ROOT, Machine, instants, pairs
from seed_reading import Fact, columns, example, facts, rows
from seed_spec import SUCCESS, MissingPlaceError, Spec, escape

if TYPE_CHECKING:
    from collections.abc import Callable

JOB = "/components/schemas/Job"
HUB_JOB = "/components/schemas/HubJob"
ERROR = "/components/schemas/Error"
SEED_EXAMPLE = "seed"
NOTHING = "(nothing)"


class Difference(NamedTuple):
    place: str
    seed: Any
    spec: Any


Differences = Iterator[Difference]
KINDS: dict[str, Callable[..., Differences]] = {}


def kind(compare: Callable[..., Differences]) -> Callable[..., Differences]:
    """A comparison. Its keyword arguments are what a fact of this kind may have, so a misspelt one is an error."""
    KINDS[compare.__name__.rstrip("_").replace("_", "-")] = compare
    return compare


def differ(place: str, seed: Any, spec: Any) -> Differences:
    if type(seed) is not type(spec) or seed != spec:
        yield Difference(place, seed, spec)


def differ_as_sets(place: str, seed: list[str], spec: list[str]) -> Differences:
    yield from differ(place, sorted(seed), sorted(spec))


# ---- values at a place


@kind
def equal(spec: Spec, fact: Fact, *, at: str, value: Any) -> Differences:
    yield from differ(at, value, spec.get(at))


@kind
def member(spec: Spec, fact: Fact, *, at: str, value: str) -> Differences:
    if value not in spec.get(at):
        yield Difference(at, value, spec.get(at))


@kind
def absent(spec: Spec, fact: Fact, *, at: str, value: str) -> Differences:
    if value in spec.get(at):
        yield Difference(at, f"not {value}", spec.get(at))


@kind
def missing(spec: Spec, fact: Fact, *, at: str, value: str) -> Differences:
    yield from absent(spec, fact, at=at, value=value)


@kind
def enum(spec: Spec, fact: Fact, *, at: str, values: list[str]) -> Differences:
    yield from differ_as_sets(at, values, spec.get(at))


@kind
def keys(spec: Spec, fact: Fact, *, at: str, values: list[str], decided: tuple[str, ...] = ()) -> Differences:
    yield from differ_as_sets(at, [*values, *decided], list(spec.get(at)))


@kind
def prefix(spec: Spec, fact: Fact, *, at: str, values: list[str], decided: tuple[str, ...] = ()) -> Differences:
    yield from differ(at, [*values, *decided], spec.get(at))


@kind
def paths(spec: Spec, fact: Fact, *, value: str) -> Differences:
    for path in spec.get("/paths"):
        if not path.startswith(value):
            yield Difference(f"/paths/{escape(path)}", f"starts with {value}", path)


# ---- the job


@kind
def column(
    spec: Spec,
    fact: Fact,
    *,
    type: str,  # noqa: A002 - the word of the facts
    nullable: bool = False,
    default: Any = None,
    enum: list[str] | None = None,
) -> Differences:
    at = f"{JOB}/properties/{fact.id}"
    schema = spec.schema(at)
    yield from differ(f"{at}/type", fact.of_section["types"][type], schema.get("type"))
    yield from differ(f"{at}/nullable", nullable, schema.get("nullable", False))
    yield from differ(f"{at}/default", default, schema.get("default"))
    yield from differ(f"{at}/enum", enum and sorted(enum), values_of(schema))


def values_of(schema: dict[str, Any]) -> list[Any] | None:
    return sorted(value for value in schema["enum"] if value is not None) if "enum" in schema else None


@kind
def columns_(spec: Spec, fact: Fact, *, decided: dict[str, dict[str, Any]]) -> Differences:
    at = f"{JOB}/properties"
    yield from differ_as_sets(at, list(columns()), list(spec.get(at)))
    for name, about in decided.items():
        if "default" in about:
            yield from differ(f"{at}/{name}/default", about["default"], spec.schema(f"{at}/{name}").get("default"))


# ---- the machine


@kind
def state(spec: Spec, fact: Fact, *, state: str, final: bool) -> Differences:
    at = f"{ROOT}/states/{state}"
    yield from differ(f"{at}/final", final, spec.get(at).get("final", False))


@kind
def transition(spec: Spec, fact: Fact, *, to: str, by: str, **of: str) -> Differences:
    (start,) = (of.pop("from"),)
    assert not of
    if (start, to, by) not in set(pairs(spec)):
        found = sorted(f"{a} → {b}" for a, b, how in pairs(spec) if how == by)
        yield Difference(f"{ROOT} ({by})", f"{start} → {to}", found)


@kind
def transitions(spec: Spec, fact: Fact, *, drawn: list[list[str]], decided: list[dict[str, Any]]) -> Differences:
    seed = {f"{a} → {b}" for a, b in [*drawn, *(one["pair"] for one in decided)]}
    yield from differ_as_sets(ROOT, list(seed), list({f"{a} → {b}" for a, b, _ in pairs(spec)}))


@kind
def case(
    spec: Spec,
    fact: Fact,
    *,
    trigger: str,
    row: str,
    after: dict[str, Any] | None = None,
    answer: int | str | None = None,
    creates: dict[str, Any] | str | None = NOTHING,
    passes: str | None = None,
    headers: dict[str, Any] | None = None,
    **given: Any,
) -> Differences:
    machine = Machine(spec, columns())
    before = instants(rows()[row] | given.pop("with", {}))
    unknown = set(given) - {"caller", "body", "params", "related"}
    assert not unknown, f"unknown: {unknown}"
    outcome = machine.run(trigger, before, **given)
    at = f"{machine.place(trigger)} ({outcome.step})"
    if answer == "refused":
        if not isinstance(outcome.answer, str):
            yield Difference(f"{at}: answer", "an error code", outcome.answer)
    elif answer is not None:
        yield from differ(f"{at}: answer", answer, outcome.answer)
    for name, value in (after or {}).items():
        yield from differ(f"{at}: job.{name}", instants(value), outcome.row[name])
    if passes is not None:
        yield from differ(f"{at}: passes", [passes], outcome.passed)
    if creates is None:
        yield from differ(f"{at}: create", {}, outcome.created)
    elif creates != NOTHING:
        created = next(iter(outcome.created.values()), {})
        for name, value in creates.items():
            yield from differ(f"{at}: create.{name}", value, created.get(name, NOTHING))
    for name, value in (headers or {}).items():
        yield from differ(f"{at}: headers.{name}", value, outcome.headers.get(name, NOTHING))


# ---- the hub's machine


def hub_row(spec: Spec, **given: Any) -> dict[str, Any]:
    """A row of a job of the hub: what is not given is null."""
    row = dict.fromkeys(spec.get(f"{HUB_JOB}/properties"))
    return row | {"id": "job_1", "account": "a", "attempt": 1, "maxAttempts": 4, "queuedAt": NOW} | given


def after_a_round(spec: Spec, failure: str, retriable: bool | None, attempt: int = 1) -> tuple[str, dict[str, Any]]:
    """The step that a failed round takes, and the row after it."""
    machine = Machine(spec, {})
    report = {"type": failure, "message": "m", "retriable": retriable, "result": None}
    row = hub_row(spec, status="running", attempt=attempt)
    outcome = machine.run("report", row, inputs={"report": report})
    return f"{machine.place('report')} ({outcome.step})", outcome.row


@kind
def retried(spec: Spec, fact: Fact, *, when: str) -> Differences:
    """Whether a round that ends with this failure leaves a retry to come: always, where it is retriable, or never."""
    for retriable, expected in ((True, when != "never"), (False, when == "always"), (None, when == "always")):
        at, row = after_a_round(spec, fact.id, retriable)
        yield from differ(f"{at}: job.status", "failed", row["status"])
        yield from differ(f"{at}, retriable {retriable}: a retry is to come", expected, row["nextRetryAt"] is not None)


@kind
def waits(spec: Spec, fact: Fact, *, failure: str, seconds: list[int | None]) -> Differences:
    """How long after the end of each attempt the next one starts, from the first on; null: there is none."""
    for attempt, expected in enumerate(seconds, 1):
        at, row = after_a_round(spec, failure, True, attempt)
        found = None if row["nextRetryAt"] is None else row["nextRetryAt"] - row["finishedAt"]
        yield from differ(f"{at}: after attempt {attempt}", expected and expected * 1000, found)


@kind
def leads(
    spec: Spec,
    fact: Fact,
    *,
    trigger: str,
    states: dict[str, str],
    after: dict[str, Any] | None = None,
    **given: Any,
) -> Differences:
    """From each state: the state that the trigger leads to, or the code that refuses it."""
    machine = Machine(spec, {})
    for status, expected in states.items():
        row = hub_row(spec, status=status, **given.get("with", {}))
        outcome = machine.run(trigger, row, caller="a", inputs={"nextPlace": NOW, "report": given.get("report")})
        at = f"{machine.place(trigger)} ({outcome.step}) from {status}"
        found = outcome.answer if isinstance(outcome.answer, str) else outcome.row["status"]
        yield from differ(at, expected, found)
        for name, value in (after or {}).items():
            yield from differ(f"{at}: job.{name}", value, outcome.row[name])


@kind
def tells(spec: Spec, fact: Fact, *, state: str, event: str, **given: Any) -> Differences:
    """What a change into the state tells."""
    found = Machine(spec, {}).told(hub_row(spec, status=state, **given.get("with", {})))
    yield from differ(f"{ROOT}/states/{state}/events", event, found)


# ---- errors


@kind
def error(spec: Spec, fact: Fact, *, status: int, retryable: bool) -> Differences:
    at = f"/x-errors/{fact.id}"
    yield from differ(f"{at}/status", status, spec.get(f"{at}/status"))
    yield from differ(f"{at}/retryable", retryable, spec.get(f"{at}/retryable"))


@kind
def failure(spec: Spec, fact: Fact, *, retryable: bool) -> Differences:
    at = f"/x-failure-codes/{fact.id}/retryable"
    yield from differ(at, retryable, spec.get(at))


@kind
def error_field(
    spec: Spec,
    fact: Fact,
    *,
    field: str,
    type: str,  # noqa: A002
    keywords: dict[str, Any] | None = None,
) -> Differences:
    at = spec.field(ERROR, field)
    schema = spec.schema(at)
    for keyword, value in ({"type": type} | (keywords or {})).items():
        yield from differ(f"{at}/{keyword}", value, schema.get(keyword))
    yield from error_required(spec, fact, fields=[field])


@kind
def error_fields(spec: Spec, fact: Fact, *, fields: list[str], decided: dict[str, str]) -> Differences:
    yield from differ_as_sets(f"{ERROR}/properties", [*fields, *decided], list(spec.schema(ERROR)["properties"]))


@kind
def error_required(spec: Spec, fact: Fact, *, fields: list[str]) -> Differences:
    required = spec.schema(ERROR).get("required", [])
    if not set(fields) <= set(required):
        yield Difference(f"{ERROR}/required", fields, required)


@kind
def failures(spec: Spec, fact: Fact, *, schema: str) -> Differences:
    for path, item in spec.get("/paths").items():
        for method, operation in item.items():
            for status in operation["responses"] if isinstance(operation, dict) else ():
                if int(status) not in SUCCESS:
                    at = f"/paths/{escape(path)}/{method}/responses/{status}/content/application~1json/schema"
                    if spec.get(at) is not spec.get(schema):
                        yield Difference(at, schema, spec.get(at))


@kind
def refusal(spec: Spec, fact: Fact, *, operation: str, status: int, code: str) -> Differences:
    at = f"{spec.operation(operation)}/responses/{status}/x-error-codes"
    if code not in spec.get(at):
        yield Difference(at, code, spec.get(at))


# ---- operations


@kind
def operation_(spec: Spec, fact: Fact, *, operation: str, method: str, path: str) -> Differences:
    at = f"/paths/{escape(path)}/{method}"
    yield from differ(f"{at}/operationId", operation, spec.get(f"{at}/operationId"))
    in_path = [one["name"] for one in parameters(spec, method, path) if one["in"] == "path" and one["required"]]
    yield from differ_as_sets(f"{at}/parameters", re.findall(r"{(\w+)}", path), in_path)


@kind
def success(spec: Spec, fact: Fact, *, operation: str, statuses: list[int]) -> Differences:
    at = f"{spec.operation(operation)}/responses"
    yield from differ(at, statuses, sorted(int(status) for status in spec.get(at) if int(status) in SUCCESS))


@kind
def empty(spec: Spec, fact: Fact, *, operation: str, request: bool = False, response: int | None = None) -> Differences:
    at = spec.operation(operation)
    whole, part = (spec.get(at), "requestBody") if request else (spec.get(f"{at}/responses/{response}"), "content")
    if part in whole:
        yield Difference(at, f"no {part}", whole[part])


@kind
def field(
    spec: Spec,
    fact: Fact,
    *,
    operation: str,
    field: str,
    type: str,  # noqa: A002
    request: bool = False,
    response: int | None = None,
    keywords: dict[str, Any] | None = None,
) -> Differences:
    at = spec.field(spec.message(operation, request=request, response=response) + "/schema", field)
    schema = spec.schema(at)
    yield from differ(f"{at}/type", type, schema.get("type", "any"))
    for keyword, value in (keywords or {}).items():
        found = values_of(schema) if keyword == "enum" else schema.get(keyword)
        yield from differ(f"{at}/{keyword}", value, found)


@kind
def fields(
    spec: Spec,
    fact: Fact,
    *,
    operation: str,
    field: str,
    fields: list[str],
    request: bool = False,
    response: int | None = None,
    decided: tuple[str, ...] = (),
) -> Differences:
    at = spec.field(spec.message(operation, request=request, response=response) + "/schema", field)
    yield from differ_as_sets(f"{at}/properties", [*fields, *decided], list(spec.schema(at).get("properties", {})))


@kind
def optional(spec: Spec, fact: Fact, *, operation: str, field: str, response: int) -> Differences:
    at = spec.message(operation, request=False, response=response) + "/schema"
    spec.field(at, field)
    if field in spec.schema(at).get("required", []):
        yield Difference(f"{at}/required", f"{field} may be left out", spec.schema(at)["required"])


def parameters(spec: Spec, method: str, path: str) -> list[dict[str, Any]]:
    """The parameters of an operation, those of its path too."""
    item = spec.get(f"/paths/{escape(path)}")
    return spec.inlined([*item.get("parameters", []), *item[method].get("parameters", [])])


def guards(spec: Spec, method: str, path: str) -> tuple[list[set[str]], set[str]]:
    """The key headers that each way in asks for, and the header parameters."""
    at = f"/paths/{escape(path)}"
    operation = spec.get(f"{at}/{method}")
    ways = operation.get("security", spec.document.get("security", []))
    schemes = [[spec.get(f"/components/securitySchemes/{name}") for name in way] for way in ways]
    asked = [{scheme["name"] for scheme in way if scheme.get("in") == "header"} for way in schemes]
    headers = [one for one in parameters(spec, method, path) if one["in"] == "header" and one.get("required")]
    return asked, {one["name"] for one in headers}


@kind
def guarded(spec: Spec, fact: Fact, *, method: str, path: str) -> Differences:
    asked, headers = guards(spec, method, path)
    guard = fact.of_section["guard"]
    at = f"/paths/{escape(path)}/{method}"
    if not asked or not all(guard["key"] in way for way in asked):
        yield Difference(f"{at}/security", guard["key"], [sorted(way) for way in asked])
    if guard["instance"] not in headers:
        yield Difference(f"{at}/parameters", guard["instance"], sorted(headers))


@kind
def open_(spec: Spec, fact: Fact, *, method: str, path: str) -> Differences:
    asked, headers = guards(spec, method, path)
    if any(asked) or headers:
        yield Difference(f"/paths/{escape(path)}/{method}", "no key and no header", [asked, headers])


# ---- examples


@kind
def example_(
    spec: Spec,
    fact: Fact,
    *,
    file: str,
    operation: str | None = None,
    request: bool = False,
    response: int | None = None,
    schema: str | None = None,
    add: dict[str, Any] | None = None,
) -> Differences:
    instance = example(file)
    at = spec.message(operation, request=request, response=response) if operation else None
    place = schema or f"{at}/schema"
    if add:  # what was decided in addition is all that the seed's example lacks
        lacking = [
            violation for violation in spec.violations(place, instance) if "is a required property" not in violation
        ]
        yield from differ(place, [], lacking)
    yield from differ(f"{place} against {file}", [], spec.violations(place, instance | (add or {})))
    if at:
        published = f"{at}/examples/{SEED_EXAMPLE}/value"
        yield from differ(published, instance, spec.get(published))


def judged(spec: Spec, operation: str, request: bool, file: str, at: str, add: dict[str, Any]) -> tuple[str, list[str]]:
    instance = deepcopy(example(file))
    part = instance
    for token in at.split("/")[1:]:
        part = part[int(token)] if isinstance(part, list) else part[token]
    part.update(add)
    place = spec.message(operation, request=request, response=None) + "/schema"
    return place, spec.violations(place, instance)


@kind
def valid(
    spec: Spec, fact: Fact, *, operation: str, request: bool, file: str, at: str, add: dict[str, Any]
) -> Differences:
    place, violations = judged(spec, operation, request, file, at, add)
    yield from differ(f"{place} against {file} with {add}", [], violations)


@kind
def invalid(
    spec: Spec, fact: Fact, *, operation: str, request: bool, file: str, at: str, add: dict[str, Any]
) -> Differences:
    place, violations = judged(spec, operation, request, file, at, add)
    if not any(name in violation for name in add for violation in violations):
        yield Difference(f"{place} against {file} with {add}", "refused", violations or "accepted")


# ---- rules of the register, where a seed states in prose what no part of OpenAPI can hold


@kind
def rule(spec: Spec, fact: Fact, *, says: list[str]) -> Differences:
    register = spec.get("/x-requirements")
    source = f"{fact.seed} §{fact.section}"
    rules = {
        name: one["sentence"] for name, one in register.items() if one["level"] == "seed" and source in one["source"]
    }
    if not any(all(stands(word, sentence) for word in says) for sentence in rules.values()):
        yield Difference("/x-requirements", says, rules or f"no rule of {source}")


def stands(word: str, sentence: str) -> bool:
    """A number is not part of a longer one; other words may have an ending."""
    after = r"(?!\d)" if word.isdecimal() else ""
    return re.search(rf"(?<![\w.]){re.escape(word)}{after}", sentence, re.IGNORECASE) is not None


# ---- where a seed contradicts itself


def at_pointer(value: Any, pointer: str) -> Any:
    for token in pointer.split("/")[1:]:
        value = value[int(token)] if isinstance(value, list) else value[token]
    return value


@kind
def deviation(
    spec: Spec,
    fact: Fact,
    *,
    settled: str,
    superseded: str | None = None,
    file: str | None = None,
    whole: str | None = None,
    parts: tuple[str, ...] = (),
    at: str | None = None,
    value: Any = None,
    expected: tuple[Any, ...] = (),
) -> Differences:
    register = spec.get("/x-requirements")
    if settled not in register:
        yield Difference("/x-requirements", f"{settled} settles it", "no such rule")
    if superseded and not register[superseded].keys() & {"superseded", "supersededInPart"}:
        yield Difference(f"/x-requirements/{superseded}", "superseded", register[superseded])
    if whole:
        sums = at_pointer(example(file), whole), sum(at_pointer(example(file), part) for part in parts)
        if len(set(sums)) == 1:
            yield Difference(f"examples/{file}{whole}", "does not add up", sums)
    if at:
        yield from differ(f"examples/{file}{at}", value, at_pointer(example(file), at))
        assert value not in expected


# ---- the tests


def differences(fact: Fact, spec: Spec) -> list[Difference]:
    try:
        return list(KINDS[fact.kind](spec, fact, **fact.values))
    except MissingPlaceError as missing_place:
        return [Difference(str(missing_place), fact.values, NOTHING)]


def report(fact: Fact, found: list[Difference]) -> str:
    lines = [f"\nfact {fact.id} ({fact.kind}), seed {fact.seed} §{fact.section}: {fact.zh!r}"]
    if fact.decision:
        lines.append(f"  settled by decisions.md {fact.decision}")
    for one in found:
        lines += [
            f"  openapi/{fact.spec}.yaml {one.place}",
            f"    the seed: {one.seed!r}",
            f"    the specification: {one.spec!r}",
        ]
    return "\n".join(lines)


@pytest.mark.parametrize("fact", facts(), ids=lambda fact: fact.name)
def test_the_specification_says_what_the_seed_says(fact: Fact) -> None:
    found = differences(fact, Spec(fact.spec))
    if found:
        pytest.fail(report(fact, found), pytrace=False)


@pytest.mark.parametrize("fact", facts(), ids=lambda fact: fact.name)
def test_a_fact_that_the_specification_leaves_out_is_a_difference(fact: Fact) -> None:
    assert differences(fact, Spec(fact.spec, {}))


def test_every_fact_has_a_name_of_its_own() -> None:
    assert [name for name, times in Counter(fact.name for fact in facts()).items() if times > 1] == []


def test_every_kind_is_used() -> None:
    assert {fact.kind for fact in facts()} == set(KINDS)
