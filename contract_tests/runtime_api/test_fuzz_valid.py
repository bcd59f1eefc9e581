"""Generated valid requests of every operation, for jobs in every state: boundaries, random ones, awkward ones.

Never 5xx, a documented answer of its schema, errors in the error shape, no key where none belongs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import fuzz, requirement
from contract_tests.runtime_api.fuzz.running import valid

if TYPE_CHECKING:
    from contract_tests.given import Given
    from contract_tests.reach import Reach


@fuzz
@requirement("RT-POLL-09", "RT-POLL-11")
async def test_polls(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid polls: a list of jobs of the documented shape, or a refusal in the error shape."""
    await valid(given, reach, seed, examples, "pollJobs", exact=False)


@fuzz
@requirement("RT-LOCK-04", "RT-LOCK-05")
async def test_locks(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid locks of jobs in every state: an answer of the documented shape, or a well-formed refusal."""
    await valid(given, reach, seed, examples, "lockJob", exact=False)


@fuzz
@requirement("RT-HB-05", "RT-HB-06")
async def test_heartbeats(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid heartbeats for jobs in every state: 204 and nothing, or a refusal in the error shape."""
    await valid(given, reach, seed, examples, "heartbeatJob", exact=False)


@fuzz
@requirement("RT-SNAP-03")
async def test_snapshots(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid reads of snapshots: a snapshot of the documented shape, or a refusal in the error shape."""
    await valid(given, reach, seed, examples, "getSnapshot", exact=False)


@fuzz
@requirement("RT-CRED-06", "RT-CRED-09")
async def test_resolves(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid resolves: a credential of the documented shape, or a refusal; the key stands nowhere else."""
    await valid(given, reach, seed, examples, "resolveCredential", exact=False)


@fuzz
@requirement("RT-RES-50", "RT-RES-66")
async def test_results(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid results for jobs in every state: stored, or a documented refusal that changes nothing."""
    await valid(given, reach, seed, examples, "submitResult", exact=True)


@fuzz
@requirement("RT-FAIL-61", "RT-FAIL-65")
async def test_failures(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid failures of jobs in every state: taken, or a documented refusal that changes nothing."""
    await valid(given, reach, seed, examples, "failJob", exact=True)


@fuzz
@requirement("RT-LOG-54", "RT-LOG-57")
async def test_logs(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid batches of logs, of jobs that exist and that do not: stored."""
    await valid(given, reach, seed, examples, "submitInvocationLogs", exact=True)
