"""From a generated case to a request to the hub: what it names is the subject's own, so that it gets somewhere."""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from contract_tests.agent_hub.fuzz.form import METADATA_BYTES
from contract_tests.fuzz.awkward import HARD_TEXTS, HARD_VALUES, MEDIA, RAW, spoilt, spoilt_somewhere, written
from contract_tests.fuzz.generation import NOTHING
from contract_tests.fuzz.trials import Step
from contract_tests.transport import Request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from contract_tests.agent_hub.fuzz.situations import Subject
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.fuzz.generation import Case

JOBS = "/v1/jobs"
PATHS = {
    "submitJobs": ("POST", JOBS),
    "listJobs": ("GET", JOBS),
    "getJob": ("GET", JOBS + "/{}"),
    "streamJob": ("GET", JOBS + "/{}/events"),
    "cancelHubJob": ("POST", JOBS + "/{}/cancel"),
    "retryHubJob": ("POST", JOBS + "/{}/retry"),
    "getBatch": ("GET", "/v1/batches/{}"),
    "cancelBatch": ("POST", "/v1/batches/{}/cancel"),
    "listProjects": ("GET", "/v1/projects"),
    "getOverview": ("GET", "/v1/overview"),
}
JSON = "application/json"
LONGEST_NAME = 128
OWN = 0.6
"""How often a filter names what there is."""
LARGE = 20 * 2**20 + 1
SEEDS = {"prompt": 4000, "command": 4000, "externalId": 64, "metadata": 1500}
"""Up to which size nobody can tell characters from bytes, or one way of counting from another."""
SEEDS_ITEMS = 100
_URL = re.compile("https?://", re.IGNORECASE)
_ODD = re.compile(r"[/\\.?#;]")
"""What servers, or what stands before them, may take for something else than a part of an id."""
KEYS = ("%s%n{0}", "'--", '"\\', "a:b/c=d")
FILTERS = ("%", "_", "*", "' or '1'='1", "🦀", "[object Object]")
IDS = ("\x00", "%", "🦀", "\u202e", "null", "x" * 300)
"""Parts of keys, filters and ids that are like any other, and that one layer or another of a build may trip over."""
OF_JOBS = ("getJob", "streamJob", "cancelHubJob", "retryHubJob")
OF_BATCHES = ("getBatch", "cancelBatch")


class Composer:
    """Makes requests; ``random`` decides what a case leaves open. ``exact``: what only decisions allow is used, too."""

    def __init__(self, given: HubGiven, random: Random, *, exact: bool) -> None:
        self.given, self.random, self.exact = given, random, exact
        self._callback: str | None = None

    @property
    def callback(self) -> str:
        """Where webhooks may go: never to a host that was generated."""
        if self._callback is None:
            self._callback = self.given.hook().url
        return self._callback

    def submission(self, case: Case, subject: Subject) -> Step[Subject]:
        """A valid submission for a place, named as its situation has it."""
        body = copy.deepcopy(case.body)
        self.steer(body, subject)
        for item in body["items"]:
            self._name(item, subject)
        headers = {}
        key = case.headers.get("idempotency-key")
        if self.exact and key and subject.situation.accepts and self.random.random() < 0.5:
            headers["idempotency-key"] = self._key(key, subject)
        return self.step("submitJobs", subject, body=body, headers=headers, tolerant=not self.exact and _loose(body))

    def again(self, step: Step[Subject], *, changed: bool) -> Step[Subject]:
        """A submission under the key of another: the same JSON written otherwise, or ``changed``."""
        body = json.loads(step.request.content)
        content = json.dumps(dict(reversed(body.items())), indent=1, ensure_ascii=True).encode()
        if changed:
            body["items"][0]["priority"] = 1 + body["items"][0].get("priority", 0) % 7
            content = json.dumps(body).encode()
        return self.step("submitJobs", step.subject, body=content, headers=dict(step.request.headers))

    def invalid(self, case: Case, subject: Subject, plain: Any) -> Step[Subject]:
        """An invalid submission for a place, all else being right; ``plain`` is a valid body."""
        body = copy.deepcopy(case.body if case.part == "body" else plain)
        body = b"" if body is NOTHING else body
        if isinstance(body, dict):
            body.setdefault("batchId", subject.batch)
            self.steer(body, subject)
        headers = dict(case.headers) if case.part == "header" else {}
        return self.step("submitJobs", subject, body=body, headers=headers, media=case.content_type or JSON)

    def broken(self, subject: Subject, plain: Any, count: int) -> list[Step[Subject]]:
        """Submissions that are no JSON, or not said to be."""
        body = copy.deepcopy(plain)
        body["batchId"] = subject.batch
        self.steer(body, subject)
        text = json.dumps(body, ensure_ascii=False).encode()
        steps = [self.step("submitJobs", subject, body=body, media=media) for media in MEDIA]
        contents = [*spoilt(text), *(spoilt_somewhere(text, self.random) for _ in range(count))]
        return steps + [self.step("submitJobs", subject, body=content) for content in contents]

    def beyond_schema(self, plain: Any, subject: Subject) -> list[Step[Subject]]:
        """Submissions that are broken in ways that no generator knows: by the job's kind, blank, too large."""
        steps = []
        body = copy.deepcopy(plain)
        body["batchId"] = subject.batch
        self.steer(body, subject)
        for name, value in (("prompt", "p"), ("command", "c"), ("timeoutSeconds", 60), ("mode", "auto")):
            item = body["items"][0]
            changed = (
                {key: kept for key, kept in item.items() if key != name} if name in item else {**item, name: value}
            )
            steps.append(self.step("submitJobs", subject, body={**body, "items": [item, changed]}))
        name = "command" if body["items"][0]["kind"] == "script" else "prompt"
        for blank in ("", " ", "\t\r\n\u2003"):
            item = {**body["items"][0], name: blank}
            steps.append(self.step("submitJobs", subject, body={**body, "items": [item]}))
        for size in (2049, 2300):  # metadata, with and without characters of more than one byte
            text = ("x" if size == 2049 else "ж") * ((size - 2) // (1 if size == 2049 else 2))
            item = {**body["items"][0], "metadata": text}
            steps.append(self.step("submitJobs", subject, body={**body, "items": [item]}))
        return steps

    def with_keys(self, subject: Subject, plain: Any) -> list[Step[Subject]]:
        """Submissions with keys that are too long, or not of visible characters."""
        body = copy.deepcopy(plain)
        body["batchId"] = subject.batch
        self.steer(body, subject)
        keys = ("k" * 256, "k" * self.random.randint(257, 3000), "", "two words")
        return [self.step("submitJobs", subject, body=body, headers={"idempotency-key": key}) for key in keys]

    def awkward(self, case: Case, subject: Subject, value: Any) -> Step[Subject]:
        """A valid submission with a value that is hard to take, wherever that may stand."""
        body = copy.deepcopy(case.body)
        self.steer(body, subject)
        text = isinstance(value, str) and not value.startswith(RAW)
        for item in body["items"]:
            item["metadata"] = {"more": [value]}
            if text:
                item |= {"externalId": value}
                item["command" if item["kind"] == "script" else "prompt"] = f"{value}!"
        tolerant = value in (HARD_TEXTS if text else HARD_VALUES)
        return self.step("submitJobs", subject, body=written(body, escaped=False), tolerant=tolerant)

    def keyed(self, case: Case, subject: Subject, key: str) -> Step[Subject]:
        """A valid submission under a key that holds something awkward."""
        body = copy.deepcopy(case.body)
        self.steer(body, subject)
        return self.step("submitJobs", subject, body=body, headers={"idempotency-key": f"{subject.tag}{key}"})

    def at_the_limit(self, case: Case, subject: Subject) -> Step[Subject]:
        """A valid submission with as many bytes of metadata, and as many characters of text, as are allowed."""
        body = copy.deepcopy(case.body)
        self.steer(body, subject)
        item = body["items"][0]
        item["metadata"] = 'ж"' + "x" * (METADATA_BYTES - 6)  # a character of two bytes, a needed escape
        item["command" if item["kind"] == "script" else "prompt"] = "🦀" * 8000
        item["externalId"] = "🦀" * 128
        return self.step("submitJobs", subject, body=body)

    def large(self, case: Case, subject: Subject) -> Step[Subject]:
        """A valid submission with so many blanks that it may be refused for its size."""
        body = copy.deepcopy(case.body)
        self.steer(body, subject)
        text = json.dumps(body).encode()
        return self.step("submitJobs", subject, body=text + b" " * (LARGE - len(text)), tolerant=True)

    def steer(self, body: dict[str, Any], subject: Subject) -> None:
        """Put the subject's own ids in the place of valid ones; wrong ones stay: they are what is tried."""
        given = body.get("batchId")
        if isinstance(given, str) and re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", given):
            body["batchId"] = (
                f"{subject.batch}.{given}"[:LONGEST_NAME] if self._is_other(given, subject) else subject.batch
            )
        items = body.get("items")
        for item in items if isinstance(items, list) else ():
            if not isinstance(item, dict):
                continue
            for name, own in (("projectId", subject.project.id), ("nodeId", subject.project.node.id)):
                if isinstance(item.get(name), str) and item[name]:
                    item[name] = own
            if isinstance(item.get("callbackUrl"), str) and _URL.match(item["callbackUrl"]):
                item["callbackUrl"] = self.callback

    def _is_other(self, given: str, subject: Subject) -> bool:
        return self.exact and given != subject.batch and self.random.random() < 0.5

    def _name(self, item: dict[str, Any], subject: Subject) -> None:
        """Name project and node as the subject's situation has it."""
        match subject.situation.names:
            case "no node":
                item.pop("nodeId", None)
            case "a node":
                item["nodeId"] = self.random.choice(list(subject.nodes))
            case "no such project":
                item["projectId"] = f"no-{subject.project.id}"
            case "no such node":
                item["nodeId"] = f"no-{subject.project.node.id}"
            case "the other":
                item["nodeId"] = next(id_ for id_, (_, has) in subject.nodes.items() if not has)

    def _key(self, generated: str, subject: Subject) -> str:
        """A key that nobody else has, as long as the generated one where that is long enough."""
        own = f"{subject.tag}:{self.given.unique('key')}:{generated}"
        return own[: max(len(generated), len(own) - len(generated))]

    def listing(self, case: Case, subject: Subject, cursor: str) -> Step[Subject]:
        """A list: filters name what there is, now and then what there is not; a cursor is always one of the build's."""
        own = {
            "nodeId": subject.project.node.id,
            "projectId": subject.project.id,
            "batchId": subject.batch,
            "externalId": f"{subject.tag}-0",
            "cursor": cursor,
        }
        query = {}
        for name, value in case.query.items():
            query[name] = own[name] if name in own and (name == "cursor" or self.random.random() < OWN) else value
        return self.step("listJobs", subject, query=query)

    def by_id(self, case: Case, subject: Subject, unknown: str | None = None) -> Step[Subject]:
        """A request for the subject's own job or batch, or for one that nobody has, with ``unknown`` in its id."""
        id_ = subject.batch if case.operation_id in OF_BATCHES else subject.job or ""
        tolerant = False
        if unknown is not None:
            id_ = f"no-{_ODD.sub('-', unknown)}-{subject.tag}"
            tolerant = any(ord(char) < 32 or ord(char) == 127 for char in unknown)
        headers = {name: value for name, value in case.headers.items() if name == "last-event-id"}
        return self.step(case.operation_id, subject, id_=id_, query=case.query, headers=headers, tolerant=tolerant)

    def step(
        self,
        operation_id: str,
        subject: Subject | None,
        *,
        id_: str = "",
        query: Mapping[str, str] | None = None,
        body: Any = NOTHING,
        headers: Mapping[str, str] | None = None,
        media: str = JSON,
        token: str | None = "",
        tolerant: bool = False,
    ) -> Step[Subject]:
        """A request as it is sent. ``token``: None sends none, "" the right one."""
        sent = dict(headers or {})
        if token is not None:
            sent["authorization"] = f"Bearer {token or self.given.api.token}"
        if operation_id == "streamJob":
            sent["accept"] = "text/event-stream"
        content = b""
        if body is not NOTHING:
            content = body if isinstance(body, bytes) else written(body, escaped=False)
            sent["content-type"] = media
        method, path = PATHS[operation_id]
        path = path.format(quote(id_, safe=""))
        if query:
            path += "?" + "&".join(f"{name}={quote(value, safe='', errors='replace')}" for name, value in query.items())
        return Step(operation_id, Request(method, path, sent, content), subject, tolerant)


def _loose(body: Any) -> bool:
    """Whether a submission holds what the seed does not clearly allow."""
    items = body["items"]
    return len(items) > SEEDS_ITEMS or any(_item_is_loose(item) for item in items)


def _item_is_loose(item: Mapping[str, Any]) -> bool:
    if item.get("metadata", "") is None or any(isinstance(value, float) for value in item.values()):
        return True
    long = any(len(str(item.get(name, ""))) > most for name, most in SEEDS.items())
    return long or any(isinstance(value, str) and not value.isprintable() for value in item.values())
