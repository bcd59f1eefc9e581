"""Whether the hub's answer to a generated request is what it is to be; each finding under the rule that it breaks."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import describe, judge_error_shape
from contract_tests.agent_hub.fuzz.answers import judge_older, judge_order, judge_success
from contract_tests.agent_hub.fuzz.form import FORM, Described
from contract_tests.agent_hub.fuzz.outcomes import SUCCEEDS, outcome
from contract_tests.agent_hub.fuzz.situations import Subject
from contract_tests.calls import Answer
from contract_tests.checks import CheckFailed, about, expect, is_integer
from contract_tests.fuzz import judging as shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from contract_tests.fuzz.judging import Expected, Finding
    from contract_tests.fuzz.trials import Step
    from contract_tests.transport import Request, Response

SHAPES = {
    "submitJobs": "HUB-SUB-09",
    "listJobs": "HUB-LIST-52",
    "getJob": "HUB-GET-70",
    "cancelHubJob": "HUB-CANCEL-50",
    "retryHubJob": "HUB-RETRY-56",
    "getBatch": "HUB-BATCH-12",
    "cancelBatch": "HUB-BATCH-71",
    "listProjects": "HUB-PROJ-50",
    "getOverview": "HUB-OVW-50",
}
"""The rule under which a success is told that is not of its schema, but of what the seed shows."""
ACCEPTED = {
    "prompt": "HUB-FIELD-07",
    "command": "HUB-FIELD-09",
    "timeoutSeconds": "HUB-FIELD-11",
    "mode": "HUB-FIELD-13",
    "priority": "HUB-FIELD-16",
    "maxAttempts": "HUB-FIELD-18",
    "externalId": "HUB-FIELD-21",
    "metadata": "HUB-FIELD-22",
    "callbackUrl": "HUB-FIELD-63",
    "batchId": "HUB-BATCH-50",
}
"""The rules that say what a field may be, for what is refused though it is that."""
STREAM_HEADERS = {"cache-control": ("HUB-SSE-62", "no-cache"), "x-accel-buffering": ("HUB-SSE-63", "no")}
REFUSAL = "HUB-SUB-14"
"""The rule of level seed by which an invalid submission is refused."""


class Judge(shared.Judge[Subject]):
    """Judges answers. Not ``exact``: by the seed alone, which leaves open with which 4xx a request is refused."""

    def described(self, operation_id: str) -> Described:
        """The operation's description."""
        return Described(operation_id)

    def form(self, operation_id: str, request: Request) -> Expected:
        """What a request is to be answered by its form."""
        described: Described = self.of(operation_id)
        return described.expects(request, self.key)

    def is_seeds(self, rule: str) -> bool:
        """Whether the seed states a rule."""
        contract = self.of("submitJobs").contract
        return bool(contract.register[rule].level == "seed")

    def finding(self, step: Step[Subject], response: Response) -> Finding | None:
        """The first thing that is wrong; the same fault only where the same rule is broken."""
        finding = super().finding(step, response)
        if finding is not None:
            finding.kind += f" {', '.join(finding.failure.rules)}"
        return finding

    def judges(self, step: Step[Subject], response: Response) -> Iterator[tuple[str, Callable[[], None]]]:
        """What is judged of an answer."""
        form = self.form(step.operation_id, step.request)
        valid = form.statuses is None
        expected = outcome(step) if valid else form
        yield "5xx", partial(self._no_server_error, step, expected, response)
        if response.status >= 400:
            yield "shape", partial(judge_error_shape, Answer(response))
        yield "status", partial(self._status, step, expected, response)
        if response.status < 400:
            yield "success", partial(judge_success, step, response)
        if not self.exact:
            return
        yield "request id", partial(_request_id, step, response)
        if response.status < 400:
            yield "schema", partial(self._schema, step, response)
            yield "decided", partial(_decided, step, response)
        elif response.status == 400 and step.operation_id == "submitJobs" and not valid:
            yield "details", partial(self._details, step.request, response)

    def _no_server_error(self, step: Step[Subject], expected: Expected, response: Response) -> None:
        rule = expected.rules[0]
        if not self.exact and not self.is_seeds(rule):
            rule = SUCCEEDS[step.operation_id][0] if expected.succeeds or step.operation_id != "submitJobs" else REFUSAL
        with about(rule):
            shared.no_server_error(response, describe(response))

    def _status(self, step: Step[Subject], expected: Expected, response: Response) -> None:
        status, told = response.status, describe(response) + expected.where
        statuses, rule = (
            expected.statuses or frozenset(),
            expected.rules[-1 if self.exact and 401 in (expected.statuses or ()) else 0],
        )
        if step.tolerant and status in (400, 413):
            return
        if expected.succeeds and step.operation_id == "submitJobs":
            rule = _rule_of_refusal(response) or rule
        if not self.exact:
            if self.is_seeds(rule):
                good = status < 300 if expected.succeeds else 400 <= status < 500
                with about(rule):
                    expect(good, ["a success (2xx)"] if expected.succeeds else ["a refusal (4xx)"], told)
            return
        if status < 400:
            with about(rule):
                good, wanted = status in statuses, expected.wanted or [str(item) for item in sorted(statuses)]
                expect(good, wanted, told)
            return
        code = _code(response)
        generic = FORM if expected.codes == {"invalid_request"} and step.operation_id == "submitJobs" else rule
        with about(rule if expected.succeeds or status >= 500 else generic):
            good = status in statuses and code in expected.codes
            expect(good, expected.wanted or [str(item) for item in sorted(statuses)], told)

    def _schema(self, step: Step[Subject], response: Response) -> None:
        described: Described = self.of(step.operation_id)
        validator = described.answers.get(response.status)
        if validator is not None:
            with about(SHAPES[step.operation_id]):
                shared.json_media(response)
                shared.of_schema(validator, response)

    def _details(self, request: Request, response: Response) -> None:
        """Every item at fault is among ``details``, by its index, and the property in words of the build's own."""
        described: Described = self.of("submitJobs")
        try:
            faults = described.faults(shared.parsed(request.content))
        except (ValueError, RecursionError):
            return
        if not faults:
            return
        with about("HUB-SUB-54"):
            entries = response.json["error"].get("details")
            good = isinstance(entries, list) and bool(entries) and all(_is_entry(one) for one in entries)
            expect(good, "`details`, entries with `index`, `field` and `message`", _cut(entries), "/error/details")
        told = {one["index"] for one in entries}
        for fault in faults:
            with about("HUB-SUB-58" if fault.index is None else "HUB-SUB-55"):
                expect(fault.index in told, f"an entry whose index is {json.dumps(fault.index)}", _cut(entries))
            if fault.field is not None and fault.keyword != "additionalProperties":
                fields = [str(one["field"]) for one in entries if one["index"] == fault.index]
                near = any(name in field for field in fields for name in (fault.field, "kind"))
                with about("HUB-SUB-54"):
                    expect(near, f"an entry whose field is {fault.field}", _cut(entries), "/error/details")


def _is_entry(value: Any) -> bool:
    if not isinstance(value, dict) or not {"index", "field", "message"} <= value.keys():
        return False
    index, message = value["index"], value["message"]
    good = index is None or (is_integer(index) and index >= 0)
    return good and isinstance(message, str) and message != "" and isinstance(value["field"], str | None)


def _request_id(step: Step[Subject], response: Response) -> None:
    """The id in the header, and in every body that is JSON."""
    header = response.headers.get("x-request-id")
    with about("HUB-ERR-52"):
        good = header is not None and header.startswith("req_") and header != "req_"
        expect(good, "x-request-id: req_...", str(header), "x-request-id")
    if step.operation_id == "streamJob" and response.status < 400:
        return
    body = response.json
    told = body.get("requestId") if isinstance(body, dict) else None
    with about("HUB-ERR-50" if response.status >= 400 else "HUB-GET-26"):
        good = isinstance(told, str) and told.startswith("req_")
        expect(good, "`requestId` req_...", json.dumps(told)[:100], "/requestId")
    with about("HUB-ERR-52"):
        expect(told == header, f"the requestId that x-request-id has, {header}", told, "/requestId")


def _decided(step: Step[Subject], response: Response) -> None:
    """What decisions say of a success beyond its schema."""
    match step.operation_id:
        case "submitJobs":
            judge_order(step, response)
            _same_as_first(step, response)
        case "listJobs":
            judge_older(step, response)
        case "streamJob":
            for name, (rule, value) in STREAM_HEADERS.items():
                came = response.headers.get(name, "left out")  # other directives may stand beside it
                with about(rule):
                    expect(value in re.split(r"[\s,]+", came.lower()), f"{name}: {value}", came, name)


def _same_as_first(step: Step[Subject], response: Response) -> None:
    """A repeated submission is answered with the first one's data (HUB-IDEM-50)."""
    key = step.request.headers.get("idempotency-key")
    first: Mapping[str, Any] = step.subject.first if step.subject else {}
    if response.status == 200 and key is not None and key in first:
        with about("HUB-IDEM-50"):
            expect(response.json["data"] == first[key], f"the first answer's data: {_cut(first[key])}", response.text)


def _rule_of_refusal(response: Response) -> str | None:
    """The rule of the field that a build names where it wrongly refuses a submission."""
    try:
        fields = [str(entry["field"]) for entry in response.json["error"]["details"]]
    except (CheckFailed, KeyError, TypeError):
        return None
    return next((rule for field in fields for name, rule in ACCEPTED.items() if name in field), None)


def _code(response: Response) -> str | None:
    try:
        found = json.loads(response.content)["error"]["code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def _cut(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:290]}…"
