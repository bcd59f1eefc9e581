"""What a job is done with: snapshots and keys that are missing, wrong or not allowed, and what may reach the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import (
    CARDS,
    CONTENT,
    FIELDS,
    QUIZ,
    add,
    canary,
    content,
    cut,
    data,
    gateway,
    hang,
    job,
    locks,
    params,
    patch,
    plan,
    put,
    rate_limit,
    remove,
    status,
)
from contract_tests.runtime.scenarios_steps import REPEATS, START, all_done
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Stage, Timing

_FAILS = ("RT-FAIL-01", "RT-FAIL-02", "RT-FAIL-03", "RT-FAIL-04", "RT-FAIL-05", "RT-FAIL-06", "RT-FAIL-70")


_KEYS = (
    {"id": "cred-invalid", "userId": "user-1", "apiKey": "sk-scenario-invalid-70c5", "status": "invalid"},
    {"id": "cred-other", "userId": "user-2", "apiKey": "sk-scenario-other-1e88"},
)


def _absent(timing: Timing) -> dict[str, Any]:
    ids = {"job-keyless": "cred-nowhere", "job-invalid": "cred-invalid", "job-anothers": "cred-other"}
    jobs = [
        job("job-missing", snapshotId="snap-nowhere"),
        job("job-without", snapshotId=None),
        job("job-expired", expiresAt=1, maxRetryCount=1),
        *(job(id_, apiKeyMode="user_deepseek_key", credentialId=key) for id_, key in ids.items()),
    ]
    return {"data": data(timing, *jobs, credentials=_KEYS)}


@scenario(
    world=_absent,
    rules=(
        *("RT-SNAP-18", "RT-SNAP-60", "RT-SNAP-61", "RT-CRED-70", "RT-CRED-02", "RT-CRED-03"),
        *("RT-RETRY-12", "RT-RETRY-14", *_FAILS),
    ),
)
async def absent(stage: Stage) -> None:
    """Three snapshots are missing, not named, expired; three credentials are missing, invalid, another user's."""
    await all_done(stage, "job-missing", "job-without", "job-expired", "job-keyless", "job-invalid", "job-anothers")


_MALFORMED = {
    "job-newer": [put("/snapshotVersion", "ai_snapshot_v9")],
    "job-halved": [
        remove("/privacyScope"),
        remove("/aiSettings"),
        remove("/userProfile"),
        remove("/allowedModelFields"),
    ],
    "job-mistyped": [put("/userProfile", "exam"), put("/allowedModelFields", "all"), put("/privacyScope", 7)],
    "job-listed": [put("", ["a", "list"])],
}


def _malformed(timing: Timing) -> dict[str, Any]:
    faults = [plan(patch(*changes), "getSnapshot", id_, answers=[200]) for id_, changes in _MALFORMED.items()]
    return {"data": data(timing, *(job(id_, maxRetryCount=0) for id_ in _MALFORMED)), "faults": faults}


@scenario(world=_malformed, rules=("RT-SNAP-62", "RT-RETRY-12", *_FAILS))
async def malformed_snapshots(stage: Stage) -> None:
    """The snapshots of four jobs are of an unknown version, incomplete, of wrong types, and no object."""
    await all_done(stage, *_MALFORMED)


def _no_key(timing: Timing) -> dict[str, Any]:
    return {"data": data(timing, job("job-keyless")), "platformKey": None}


@scenario(world=_no_key, rules=("RT-CRED-71", "RT-CRED-11", "RT-CRED-76"))
async def no_key_anywhere(stage: Stage) -> None:
    """The API answers without a platform key, and the Runtime has none of its own."""
    await all_done(stage, "job-keyless")


def _own_key(timing: Timing) -> dict[str, Any]:
    # The world's platform key is the Runtime's own, which the answer leaves out, or has another one instead of.
    faults = [
        plan(patch(remove("/apiKey")), "resolveCredential", "job-silent", answers=[200]),
        plan(patch(put("/apiKey", "sk-scenario-another-5d20")), "resolveCredential", "job-told", answers=[200]),
    ]
    return {"data": data(timing, job("job-silent"), job("job-told")), "faults": faults}


@scenario(world=_own_key, own_key=True, by_hand=False, rules=("RT-CRED-11", "RT-CRED-76", "RT-CRED-78"))
async def own_key(stage: Stage) -> None:
    """The Runtime has a platform key of its own; the API answers without one, and with another one."""
    await all_done(stage, "job-silent", "job-told")


def _canaries(timing: Timing) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {
        "job-plain": {"content": content("plain")},
        "job-document": {"content": content("document", fields=[*FIELDS, CONTENT])},
        "job-unnamed": {"content": content("unnamed", fields=[*FIELDS, "behaviorSignals"])},
        "job-private": {"content": content("private", fields=[*FIELDS, CONTENT], document=False)},
        "job-strict": {"content": content("strict", fields=[])},
        "job-quiz": {
            "content": content("quiz", fields=["currentLevel"]),
            "jobType": QUIZ,
            "params": params(QUIZ) | {"topic": f"slopes {canary('quiz/params')}"},
        },
        "job-cards": {
            "content": content("cards", fields=["currentLevel"], document=False),
            "jobType": CARDS,
            "params": params(CARDS) | {"topic": f"lines {canary('cards/params')}"},
        },
        "job-forbidden": {"content": content("forbidden", ai=False)},
    }
    # An API that sends more than it may: the Runtime looks for itself at what is allowed.
    more = patch(
        add(f"/{CONTENT}", {"text": canary("private/sent")}), add("/userProfile/nickname", canary("private/nickname"))
    )
    jobs = data(timing, *(job(id_, **columns) for id_, columns in kinds.items()))
    return {"data": jobs, "faults": [plan(more, "getSnapshot", "job-private", answers=[200])]}


@scenario(world=_canaries, rules=("RT-SNAP-64", "RT-SNAP-65", "RT-SNAP-66"))
async def what_the_model_may_see(stage: Stage) -> None:
    """Snapshots are marked in every section, under different permissions; one forbids analysis altogether."""
    names = ("plain", "document", "unnamed", "private", "strict", "quiz", "cards", "forbidden")
    await all_done(stage, *(f"job-{name}" for name in names), each=1.5)


def _once(timing: Timing) -> dict[str, Any]:
    pause = min(timing.lock * 0.4, 5)
    faults = [
        plan(status(503), "getSnapshot", "job-a", nth=[1]),
        plan(cut("reset"), "getSnapshot", "job-b", nth=[1]),
        plan(hang(pause), "getSnapshot", "job-c", nth=[1]),
        plan(gateway(), "resolveCredential", "job-d", nth=[1]),
        plan(cut("close", "mid-body"), "resolveCredential", "job-e", nth=[1]),
        plan(rate_limit(1), "resolveCredential", "job-f", nth=[1]),
    ]
    return {"data": data(timing, *(job(f"job-{name}") for name in "abcdef")), "faults": faults}


@scenario(world=_once, rules=("RT-SNAP-63", "RT-CRED-72", "RT-ERR-16"))
async def passing_troubles(stage: Stage) -> None:
    """Of six jobs the snapshot or the credential can't be had at the first try."""
    await all_done(stage, *(f"job-{name}" for name in "abcdef"))


def _for_ever(timing: Timing) -> dict[str, Any]:
    faults = {
        ("job-a", "getSnapshot"): status(500),
        ("job-b", "getSnapshot"): cut("reset"),
        ("job-c", "resolveCredential"): gateway(503),
        ("job-d", "resolveCredential"): cut("close"),
    }
    jobs = [job(id_, maxRetryCount=0, timeoutSeconds=locks(timing, 1)) for id_, _ in faults]
    return {"data": data(timing, *jobs), "faults": [plan(fault, op, id_) for (id_, op), fault in faults.items()]}


@scenario(world=_for_ever, model_timeout=0.5, rules=("RT-SNAP-63", "RT-CRED-72", "RT-RETRY-10", *_FAILS))
async def lasting_troubles(stage: Stage) -> None:
    """Of four jobs the snapshot or the credential can't be had at all."""
    await stage.done("job-a", "job-b", "job-c", "job-d", within=START + 4 * min(REPEATS, stage.timing.lock))
