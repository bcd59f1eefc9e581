"""What is expected of one generated request, and whether its answer is that."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from contract_tests.checks import expect
from contract_tests.client import KEY_HEADER, Answer, describe, judge_error_shape
from contract_tests.fuzz import judging as shared
from contract_tests.fuzz.judging import JSON_MEDIA, Expected, escaped, refused
from contract_tests.runtime_api.fuzz.generation import INSTANCE
from contract_tests.runtime_api.fuzz.situations import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contract_tests.fuzz.trials import Step
    from contract_tests.transport import Request, Response

LONGEST_ID = 128
_PATH_ID = re.compile(r"/jobs/([^/]*)/(?:lock|heartbeat|snapshot|result|fail)$")
NO_REFUSAL_OF_FORM = frozenset({400, 401, 405, 413, 415})
"""What a valid request is never answered, but for a rule of the operation's own."""


class Described(shared.Described):
    """An operation as the specification describes it, with compiled schemas."""

    def __init__(self, operation_id: str) -> None:
        super().__init__("runtime-api", operation_id)

    @cached_property
    def forbidden(self) -> frozenset[str]:
        """Names that a body holds nowhere, in lower case."""
        if self.body is None:
            return frozenset()
        schema = self.operation.document["requestBody"]["content"]["application/json"]["schema"]
        names = self.contract.resolve(schema).get("x-forbidden-names", ())
        return frozenset(name.lower() for name in names)

    def expects(self, request: Request, key: str) -> Expected:
        """What the request is to be answered by its form, in the order in which a request is judged."""
        if request.headers.get(KEY_HEADER) != key:
            return refused(401, "UNAUTHORIZED")
        found = _PATH_ID.search(request.path)
        if found is not None and not _can_be_an_id(found.group(1)):
            return refused(404, "JOB_NOT_FOUND", "NOT_FOUND")
        instance = request.headers.get(INSTANCE, "").strip()
        if not 1 <= len(instance) <= LONGEST_ID:
            return refused(400, "INVALID_REQUEST", places=[INSTANCE])
        if self.body is None:
            return Expected()
        media = request.headers.get("content-type")
        if (request.content or media is not None) and not (media and JSON_MEDIA.fullmatch(media.strip())):
            return refused(415, "UNSUPPORTED_MEDIA_TYPE")
        return self._expects_of_body(request.content)

    def _expects_of_body(self, content: bytes) -> Expected:
        try:
            body = shared.parsed(content)
        except (ValueError, RecursionError):
            return refused(400, "INVALID_REQUEST")
        try:
            places = [place for error in self.body.iter_errors(body) for place in shared.places(error)]
        except ValueError:  # nested too deeply to be shown what is wrong with it
            return refused(400, "INVALID_REQUEST")
        places += _holding(body, self.forbidden) if self.forbidden else []
        return refused(400, "INVALID_REQUEST", places=places) if places else Expected()


def _can_be_an_id(text: str) -> bool:
    try:
        return 1 <= len(unquote(text, errors="strict")) <= LONGEST_ID
    except UnicodeDecodeError:
        return False


def _holding(value: Any, names: frozenset[str], at: str = "") -> list[str]:
    if isinstance(value, dict):
        own = [f"{at}/{escaped(name)}" for name in value if name.lower() in names]
        return own + [place for name, item in value.items() for place in _holding(item, names, f"{at}/{escaped(name)}")]
    if isinstance(value, list):
        return [place for i, item in enumerate(value) for place in _holding(item, names, f"{at}/{i}")]
    return []


class Judge(shared.Judge[Job]):
    """Judges answers. ``exact``: statuses and codes are to be those of the specification, else any 4xx will do."""

    def __init__(self, key: str, *, exact: bool) -> None:
        super().__init__(key, exact=exact)
        self.secrets: set[str] = set()
        """Model keys that a resolve has handed out, or that a provider state has made."""

    def described(self, operation_id: str) -> Described:
        """The operation's description."""
        return Described(operation_id)

    def judges(self, step: Step[Job], response: Response) -> Iterator[tuple[str, Callable[[], None]]]:
        """What is judged; ``tolerant``: 400 will do, a build may be unable to keep it (a number beyond doubles)."""
        described: Described = self.of(step.operation_id)
        expected = described.expects(step.request, self.key)
        yield "5xx", lambda: shared.no_server_error(response, describe(response))
        yield "status", lambda: self._status(described, expected, response, tolerant=step.tolerant)
        yield "shape", lambda: _shape(response)
        yield "body", lambda: _body(described, response)
        yield "details", lambda: _details(expected, response) if self.exact else None
        yield "secret", lambda: self._secrets(step.operation_id, response)

    def _status(self, described: Described, expected: Expected, response: Response, *, tolerant: bool) -> None:
        status, code = response.status, code_of(response)
        if expected.statuses is not None:
            wanted = expected.wanted
            if self.exact:
                good = status in expected.statuses and code in expected.codes
            else:
                good, wanted = 400 <= status < 500, ["a refusal (4xx)"]
            expect(good, wanted, describe(response) + expected.where)
            return
        if status < 400:
            documented = [str(item) for item in described.operation.statuses if item < 400]
            expect(str(status) in documented, documented, describe(response))
        elif self.exact:
            allowed = {
                item: described.codes[item]
                for item in described.operation.statuses
                if 400 <= item < 500
                and (item not in NO_REFUSAL_OF_FORM or self._own(described, item, tolerant=tolerant))
            }
            wanted = [f"{item} {name}" for item, names in allowed.items() for name in names]
            expect(code in allowed.get(status, ()), ["a success", *wanted], describe(response))

    @staticmethod
    def _own(described: Described, status: int, *, tolerant: bool) -> bool:
        """Whether the operation's own rules, or limits of the build, may answer so to a request of the right form."""
        return (tolerant and status in (400, 413)) or (described.operation.id == "resolveCredential" and status == 400)

    def _secrets(self, operation_id: str, response: Response) -> None:
        resolved = operation_id == "resolveCredential" and response.status == 200
        text = response.text
        if resolved:
            body = response.json
            handed = body.pop("apiKey", None) if isinstance(body, dict) else None
            if isinstance(handed, str) and len(handed) > 3:
                self.secrets.add(handed)
            text = json.dumps(body, ensure_ascii=False)
        text += "".join(f"\n{name}: {value}" for name, value in response.headers.items())
        for secret in (self.key, *sorted(self.secrets)):
            expect(secret not in text, "an answer without a key", "a key stands in it")


def code_of(response: Response) -> str | None:
    """The error code of an answer, where it has one."""
    try:
        code = json.loads(response.content).get("errorCode")
    except (ValueError, AttributeError, RecursionError):
        return None
    return code if isinstance(code, str) else None


def _shape(response: Response) -> None:
    if response.status >= 400:
        shared.json_media(response)
        judge_error_shape(Answer(response))
        retryable = response.json.get("retryable", False)
        expect(isinstance(retryable, bool), "`retryable`, true or false", json.dumps(retryable), "/retryable")


def _body(described: Described, response: Response) -> None:
    validator = described.answers.get(response.status)
    if validator is None:
        if response.status < 400:
            expect(not response.content, "an empty body", response.text[:200])
    else:
        if response.status < 400:
            shared.json_media(response)
        shared.of_schema(validator, response)
    shared.documented_headers(described, response)


def _details(expected: Expected, response: Response) -> None:
    """Where a 400 lists violations, each place that is wrong is among them."""
    details = response.json.get("details") if response.status == 400 else None
    if not details or not expected.places:
        return
    named = [str(entry.get("location")) for entry in details]
    for place in expected.places:
        near = any(_near(place.lower(), name.lower()) for name in named)
        expect(near, f"`details` names {place or 'the body'}", f"it names {', '.join(named)}", "/details")


def _near(place: str, named: str) -> bool:
    """Whether a violation's place is named, or what holds it, or what is in it."""
    return place == named or named.startswith(f"{place}/") or (bool(named) and place.startswith(f"{named}/"))
