"""The systems whose builds are judged, each by a suite of its own: what the one runner has to know of them."""

from __future__ import annotations

import base64
import importlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import contract_tests
import openapi
from contract_tests.client import BASE, INSTANCE_HEADER, KEY_HEADER
from contract_tests.runtime.stage import Timing
from contract_tests.transport import Request
from openapi.redaction import Redactor

if TYPE_CHECKING:
    from types import ModuleType

    from openapi import Contract

FUZZ_FILES = "test_fuzz*.py"
"""Where the checks that generate their requests stand."""

Settings = Mapping[str, Any]
"""What a suite has to know of a target beside its address: fields of its services' ``Settings``, plain data."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret of a target: where ``Settings`` has it, and how the user gives it. Commands show the variable."""

    setting: str
    variable: str
    option: str
    title: str
    what: str
    """What the user is to give, as an object in a sentence."""
    probe: Callable[[str], Request] | None = None
    """For a key: a plain request with it that every build answers with a success, and that changes nothing."""
    guess: Callable[[Settings], str] | None = None
    """What is tried where the user gives none."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of target that some rules need to be shown by: where its settings and its world of the mock differ."""

    rules: frozenset[str] = frozenset()
    settings: Settings = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)


USUAL = Kind()
"""What shows every rule that no other kind is for."""


@dataclass(frozen=True, eq=False)
class System:
    """One API. ``name`` is its contract's, what a report calls it, and what its provider states are listed under."""

    name: str
    suite: str
    """The folder of its checks; ``services.py`` there says what they take."""
    timing: str
    """The class of what ``--timing`` can say, ``module:class``."""
    secrets: tuple[Secret, ...]
    """Its secrets; the first one is the key that every request carries."""
    made_up: Callable[[], dict[str, Any]]
    """Settings, with secrets that nobody can know, for a reference of ours."""
    probed: str
    """The rule, of level seed, by which there is what the probe asks for: where that is answered 5xx, it fails."""
    prefix: str = ""
    """What the ids of its checks begin with: an id stands once over all suites."""
    shares: int = 1
    """Into how many shares the self-check divides the scenarios."""
    lacking: Mapping[str, str] = field(default_factory=dict)
    """Why a service, by the parameter's name, can't be had for a target that has none."""
    other_kinds: tuple[Kind, ...] = ()
    """Further kinds of target that the self-check needs: no one build shows all rules."""

    @property
    def contract(self) -> Contract:
        """Its specification, with the register of its rules."""
        return openapi.load(self.name)

    @property
    def key(self) -> Secret:
        """What every request carries."""
        return self.secrets[0]

    def probe(self, settings: Settings) -> Request:
        """A plain request that every build answers with a success, and that changes nothing."""
        if self.key.probe is None:
            raise ValueError(f"{self.name} names no request that its key opens")
        return self.key.probe(settings[self.key.setting])

    @property
    def folder(self) -> Path:
        """Where its checks stand."""
        return Path(contract_tests.__file__).parent / self.suite

    @cached_property
    def timing_class(self) -> Any:
        """The dataclass of its timing, seconds; imported when it is asked for."""
        module, _, name = self.timing.partition(":")
        return getattr(importlib.import_module(module), name)

    def services(self) -> ModuleType:
        """The module that makes what checks take: ``Settings``, ``open_services`` and ``given_for``."""
        return importlib.import_module(f"contract_tests.{self.suite}.services")

    def check_id(self, path: Path, name: str) -> str:
        """``lock.locks_for_60_seconds`` of ``test_lock.py`` and ``test_locks_for_60_seconds``, with its parameters."""
        return f"{self.prefix}{path.stem.removeprefix('test_')}.{name.removeprefix('test_')}"

    def kinds(self, rules: Sequence[str] | None = None) -> list[tuple[Kind, list[str]]]:
        """The kinds of target that these rules (all: None) need to be shown, each with its rules; none without any."""
        ids = list(self.contract.register) if rules is None else [id_ for id_ in rules if id_ in self.contract.register]
        apart = frozenset[str]().union(*(kind.rules for kind in self.other_kinds))
        found = [(USUAL, [id_ for id_ in ids if id_ not in apart])]
        found += [(kind, [id_ for id_ in ids if id_ in kind.rules]) for kind in self.other_kinds]
        return [(kind, own) for kind, own in found if own]

    def states_url(self, base_url: str) -> str:
        """Where a world of the mock takes its provider states."""
        return f"{base_url}/__control__/provider-states/{self.name}"

    def variables(self, settings: Settings) -> dict[str, str]:
        """The secrets that a target has, each with the environment variable that holds it."""
        found = {settings.get(secret.setting): secret.variable for secret in self.secrets}
        return {value: variable for value, variable in found.items() if value}

    def redactor(self, settings: Settings) -> Redactor:
        """What takes a target's secrets out of texts."""
        return self.contract.redactor(self.variables(settings))


def _poll(key: str) -> Request:
    body = {"runtimeInstanceId": "runtime-probe", "supportedJobTypes": ["quiz_generation"], "limit": 1}
    headers = {KEY_HEADER: key, INSTANCE_HEADER: "runtime-probe", "content-type": "application/json"}
    return Request("POST", f"{BASE}/jobs/poll", headers, json.dumps(body).encode())


def _list_jobs(token: str) -> Request:
    return Request("GET", "/v1/jobs?limit=1", {"authorization": f"Bearer {token}"})


def _second_token(settings: Settings) -> str:
    """The mock's second key."""
    return f"{settings['token']}_b"


def _made_up_hub() -> dict[str, Any]:
    token = f"zqa_live_{secrets.token_hex(12)}"
    return {
        "token": token,
        "second_token": _second_token({"token": token}),
        "webhook_host": "127.0.0.1",
        "webhook_secret": f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}",
    }


RUNTIME_API = System(
    name="runtime-api",
    suite="runtime_api",
    timing="contract_tests.given:Timing",
    secrets=(Secret("api_key", "CONTRACT_API_KEY", "--api-key", "the key", "its service token", _poll),),
    made_up=lambda: {"api_key": f"key-{secrets.token_hex(8)}"},
    probed="RT-POLL-01",
    shares=2,
)
_TOKEN = Secret("token", "CONTRACT_HUB_TOKEN", "--token", "the key", "an API key of it", _list_jobs)
_TOKEN_B = Secret(
    "second_token",
    "CONTRACT_HUB_TOKEN_B",
    "--second-token",
    "the second key",
    "another API key of it",
    _list_jobs,
    _second_token,
)
_WEBHOOK_SECRET = Secret(
    "webhook_secret", "CONTRACT_WEBHOOK_SECRET", "--webhook-secret", "the webhook secret", "what it signs webhooks with"
)


@dataclass(frozen=True, slots=True)
class Client:
    """What is judged as a client, by what it sends: no suite asks it anything."""

    name: str
    timing_class: Any
    """The dataclass of what ``--timing`` can say, seconds."""


RUNTIME_CLIENT = Client("runtime", Timing)
AGENT_HUB = System(
    name="agent-hub",
    suite="agent_hub",
    timing="contract_tests.agent_hub.given:HubTiming",
    secrets=(_TOKEN, _TOKEN_B, _WEBHOOK_SECRET),
    made_up=_made_up_hub,
    probed="HUB-LIST-01",
    prefix="hub.",
    other_kinds=(Kind(frozenset({"HUB-WH-64"}), {"webhook_secret": None}, {"webhookSecret": None}),),
    lacking={"other": f"needs a second API key of the build; give one as {_TOKEN_B.variable} or {_TOKEN_B.option}"},
)
SYSTEMS = (RUNTIME_API, AGENT_HUB)


def find(name: str) -> System:
    """A system by name. Raises ``KeyError`` for one that there is not."""
    return {system.name: system for system in SYSTEMS}[name]


def redactor(targets: Iterable[tuple[System, Settings]]) -> Redactor:
    """What takes the secrets of all these targets out of texts.

    What looks like a key to one API need not be one to another (``task-1`` holds an ``sk-1``), so that is left to the
    children, which know whose texts they tell; a target that is alone has it looked for here again.
    """
    targets = list(targets)
    if len({system for system, _ in targets}) == 1:
        system, settings = targets[0]
        return system.redactor(settings)
    return Redactor(value for system, settings in targets for value in system.variables(settings))
