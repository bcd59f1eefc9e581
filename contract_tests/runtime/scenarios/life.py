"""Jobs of which everything goes well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import TYPES, data, good, job, params, script
from contract_tests.runtime.scenarios_steps import all_done, polls_again
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Stage, Timing


def _of_each_type(timing: Timing) -> dict[str, Any]:
    jobs = [job(f"job-{kind.split('_')[0]}", jobType=kind, params=params(kind) or None) for kind in TYPES]
    return {"data": data(timing, *jobs)}


@scenario(
    world=_of_each_type,
    rules=(
        *("RT-AUTH-02", "RT-AUTH-04", "RT-AUTH-09", "RT-AUTH-60", "RT-AUTH-64", "RT-DB-38", "RT-LOCK-14"),
        *(f"RT-POLL-{n:02}" for n in (*range(1, 8), 70, 71, 72)),
        *("RT-LOCK-01", "RT-LOCK-02", "RT-SNAP-01", "RT-CRED-01", "RT-CRED-02", "RT-CRED-03", "RT-CRED-73"),
        *("RT-RES-01", "RT-RES-02", *(f"RT-RES-{n:02}" for n in range(3, 13)), "RT-RES-80", "RT-RES-83", "RT-RES-88"),
        *(f"RT-LOG-{n:02}" for n in range(1, 9)),
        *("RT-LOG-71", "RT-LOG-72", "RT-IDEM-04", "RT-IDEM-05"),
    ),
)
async def each_type(stage: Stage) -> None:
    """One job of each of the five types is run."""
    await all_done(stage, *(f"job-{kind.split('_')[0]}" for kind in TYPES))
    await polls_again(stage)


_KEYS = (
    {"id": "cred-a", "userId": "user-a", "apiKey": "sk-scenario-a/3f+7=0b91"},
    {"id": "cred-b", "userId": "user-b", "apiKey": "sk-scenario-b/5c+2=8d40"},
)


def _many(timing: Timing) -> dict[str, Any]:
    jobs = [
        job(
            f"job-{i}",
            jobType=TYPES[i % 5],
            params=params(TYPES[i % 5]) or None,
            priority=3 - i % 4,
            userId=f"user-{'ab'[i % 2]}",
            apiKeyMode="user_deepseek_key" if i % 3 else "platform_key",
            credentialId=f"cred-{'ab'[i % 2]}" if i % 3 else None,
        )
        for i in range(8)
    ]
    return {"data": data(timing, *jobs, credentials=_KEYS), "model": [script(None, good(0.2))]}


@scenario(
    world=_many,
    rules=(
        "RT-SCHED-63",
        "RT-SCHED-64",
        "RT-CRED-08",
        "RT-CRED-73",
        "RT-CRED-74",
        "RT-CRED-77",
        "RT-CRED-78",
        "RT-LOG-04",
    ),
)
async def many_jobs(stage: Stage) -> None:
    """Eight jobs of all types, of two users with keys of their own, wait at four priorities."""
    await all_done(stage, *(f"job-{i}" for i in range(8)), each=1.5)
