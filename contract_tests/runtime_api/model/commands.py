"""What a sequence is made of: commands whose callers, instants and jobs are found when it is played."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract_tests.client import Call, RuntimeApi
    from contract_tests.model.sequences import Command
    from contract_tests.runtime_api.model.believed import Job

RUNTIMES = ("runtime-a", "runtime-b", "runtime-c")
CALLERS = ("holder", "former", "stranger")
OTHER_HASH = "sha256-other"


OPERATIONS = {
    "lock": "lockJob",
    "heartbeat": "heartbeatJob",
    "snapshot": "getSnapshot",
    "resolve": "resolveCredential",
    "result": "submitResult",
    "fail": "failJob",
}
"""The trigger of the machine that a request is."""
WAYS: Mapping[str, tuple[str, ...]] = {
    "lock": ("",),
    "heartbeat": ("",),
    "snapshot": ("",),
    "resolve": ("", "platform", "own", "own, unnamed", "other provider"),
    "result": ("", "other", "unsupported", "not the job's"),
    "fail": ("", "final"),
    "cancel": ("",),
    "revoke": ("",),
    "rerun": ("",),
    "again": ("",),
    "time": ("third", "before", "at", "after"),
}
"""How a command of each kind can be given; the first is the usual one."""
KINDS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "once": {"maxRetryCount": 0},
    "twice": {"maxRetryCount": 1},
    "short": {"timeoutSeconds": 0.5},
    "short, once": {"timeoutSeconds": 0.5, "maxRetryCount": 0},
    "named": {"idempotencyKey": True},
    "quiz": {"jobType": "quiz_generation"},
    "snapshot expired": {"snapshot": "expired"},
    "snapshot missing": {"snapshot": "missing"},
    "snapshot none": {"snapshot": "none"},
    "key valid": {"credential": "valid"},
    "key invalid": {"credential": "invalid"},
    "key of another": {"credential": "others"},
}
"""Jobs that ``make`` makes; ``timeoutSeconds`` is in locks here, and 1.7 where nothing is said."""
NEEDS = {
    "cancel": "cancel-job",
    "revoke": "revoke-ai-consent",
    "rerun": "rerun-job",
    "time": "advance-time",
}
"""The provider state without which a command can't be given."""


def needs(command: Command) -> frozenset[str]:
    """The provider states that it takes."""
    if command.kind == "make":
        return frozenset({"job", "credential"} if "credential" in KINDS[command.what] else {"job"})
    return frozenset({NEEDS[command.kind]} if command.kind in NEEDS else ())


def request(api: RuntimeApi, command: Command, job: Job, by: str) -> Call:
    """The request that an operation's command is."""
    ref, what = job.ref, command.what
    match command.kind:
        case "lock":
            return api.lock(ref, by=by)
        case "heartbeat":
            return api.heartbeat(ref, by=by)
        case "snapshot":
            return api.snapshot(ref, by=by)
        case "resolve":
            return api.resolve(ref, by=by, **_resolve(job, what))
        case "result":
            schemas = {"unsupported": "essay_output_v1", "not the job's": "flashcard_output_v1"}
            schema = schemas.get(what, job.row.get("outputSchemaVersion") or "analysis_output_v1")
            more = {"hash": OTHER_HASH} if what == "other" else {}
            return api.result(ref, by=by, schema=schema, **more)
        case "fail":
            return api.fail(ref, by=by, retryable=what != "final", rawError="upstream said no")
    raise ValueError(f"{command.kind} is no request")


def _resolve(job: Job, what: str) -> dict[str, Any]:
    """What the resolve of a job says: what fits the job, or something else."""
    platform: dict[str, Any] = {"mode": "platform_key", "provider": "deepseek"}
    mine = {
        "mode": "user_deepseek_key",
        "provider": "deepseek",
        "credential": job.row.get("credentialId") or "cred-none",
    }
    match what:
        case "platform":
            return platform
        case "own":
            return mine
        case "own, unnamed":
            return {"mode": "user_deepseek_key", "provider": "deepseek"}
        case "other provider":
            return {**(mine if job.row["apiKeyMode"] == "user_deepseek_key" else platform), "provider": "openai"}
    return mine if job.row["apiKeyMode"] == "user_deepseek_key" else platform
