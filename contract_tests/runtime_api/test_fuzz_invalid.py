"""Generated invalid requests of every operation, where a valid one would succeed.

One thing is wrong with each: a keyword of the schema in the body, the instance id, the path, the media type, the JSON
itself, the key. Refused with the documented status and code in the error shape; where ``details`` are there they name
the place; every column of the job is as before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import fuzz, requirement
from contract_tests.runtime_api.fuzz.running import invalid

if TYPE_CHECKING:
    from contract_tests.given import Given
    from contract_tests.reach import Reach


@fuzz
@requirement("RT-POLL-51", "RT-POLL-52")
async def test_polls(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated invalid polls are refused."""
    await invalid(given, reach, seed, examples, "pollJobs")


@fuzz
@requirement("RT-AUTH-58", "RT-ERR-57")
async def test_locks(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated invalid locks are refused, and the job stays pending."""
    await invalid(given, reach, seed, examples, "lockJob")


@fuzz
@requirement("RT-ERR-62", "RT-HB-53")
async def test_heartbeats(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated invalid heartbeats are refused and change nothing."""
    await invalid(given, reach, seed, examples, "heartbeatJob")


@fuzz
@requirement("RT-AUTH-55", "RT-AUTH-56", "RT-ERR-79")
async def test_snapshots(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated invalid reads of a snapshot are refused."""
    await invalid(given, reach, seed, examples, "getSnapshot")


@fuzz
@requirement("RT-CRED-58", "RT-ERR-72")
async def test_resolves(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated invalid resolves are refused."""
    await invalid(given, reach, seed, examples, "resolveCredential")


@fuzz
@requirement("RT-RES-65", "RT-RES-68", "RT-RES-69")
async def test_results(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated invalid results are refused, however deep the fault, and nothing is stored."""
    await invalid(given, reach, seed, examples, "submitResult")


@fuzz
@requirement("RT-FAIL-63", "RT-FAIL-64")
async def test_failures(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated invalid failures are refused, and the job goes on."""
    await invalid(given, reach, seed, examples, "failJob")


@fuzz
@requirement("RT-LOG-52", "RT-LOG-53", "RT-LOG-61")
async def test_logs(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated invalid batches of logs are refused whole."""
    await invalid(given, reach, seed, examples, "submitInvocationLogs")
