"""Generated invalid requests, where a valid one would succeed: each schema broken in each way, one thing at a time.

Refused with the documented status and code in the error shape; `details` name the items that are wrong; nothing is
queued. At level seed any 4xx will do, and only what the seed itself forbids is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.agent_hub.fuzz import running
from contract_tests.checks import fuzz, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.reach import Reach


@fuzz
@requirement(
    "HUB-SUB-14", "HUB-SUB-15", "HUB-FIELD-01", "HUB-FIELD-02", "HUB-FIELD-06", "HUB-FIELD-07", "HUB-FIELD-08",
    "HUB-FIELD-09", "HUB-FIELD-11", "HUB-FIELD-13", "HUB-FIELD-16", "HUB-FIELD-18", "HUB-FIELD-21",
)  # fmt: skip
async def test_submissions(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated submissions that break the seed's rules of fields are refused, and nothing is queued."""
    await running.invalid_submissions(given, reach, seed, examples, exact=False)


@fuzz
@requirement(
    "HUB-SUB-51", "HUB-SUB-53", "HUB-SUB-54", "HUB-SUB-55", "HUB-SUB-58", "HUB-FIELD-51", "HUB-FIELD-56",
    "HUB-FIELD-57", "HUB-FIELD-58", "HUB-FIELD-59", "HUB-FIELD-60", "HUB-FIELD-61", "HUB-FIELD-62", "HUB-FIELD-63",
    "HUB-BATCH-50", "HUB-ERR-66",
)  # fmt: skip
async def test_submissions_as_decided(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated invalid submissions: 400 `invalid_request`, `details` name what is wrong, nothing is queued."""
    await running.invalid_submissions(given, reach, seed, examples, exact=True)


@fuzz
@requirement("HUB-IDEM-59")
async def test_idempotency_keys(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated ill-formed `Idempotency-Key`s are refused, and nothing is queued."""
    await running.invalid_keys(given, reach, seed, examples)


@fuzz
@requirement("HUB-ERR-59", "HUB-ERR-64")
async def test_bodies(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated submissions that are no JSON, or not said to be, are refused, and nothing is queued."""
    await running.broken_submissions(given, reach, seed, examples)


@fuzz
@requirement("HUB-LIST-50", "HUB-LIST-51", "HUB-LIST-62", "HUB-LIST-63")
async def test_lists(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated lists with an ill-formed parameter are refused."""
    await running.invalid_lists(given, reach, seed, examples)


@fuzz
@requirement("HUB-ERR-53", "HUB-ERR-54")
async def test_ids(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated ids that no job and no batch has: 404 in the error shape, of a stream, too."""
    await running.unknown(given, reach, seed, examples)


@fuzz
@requirement("HUB-AUTH-01")
async def test_keys(given: HubGiven, reach: Reach, seed: int) -> None:
    """Every operation without a key, or with a wrong one, is refused."""
    await running.without_key(given, reach, seed, exact=False)


@fuzz
@requirement("HUB-AUTH-50", "HUB-AUTH-51")
async def test_keys_as_decided(given: HubGiven, reach: Reach, seed: int) -> None:
    """Every operation without a key, or with a wrong one: 401 `unauthorized`, and nothing is changed."""
    await running.without_key(given, reach, seed, exact=True)
