"""Generated valid requests of every operation: boundaries, random ones, awkward ones; jobs in every state first.

At level seed never 5xx, and a success as the seed shows it or a refusal in the error shape; as decided, exactly the
documented answer of its schema. Streams are closed as soon as their head is there.
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
    "HUB-SUB-05", "HUB-SUB-06", "HUB-SUB-07", "HUB-SUB-08", "HUB-SUB-09", "HUB-SUB-10", "HUB-SUB-11", "HUB-FIELD-20",
    "HUB-FIELD-22", "HUB-GET-09", "HUB-FIELD-03", "HUB-NODE-01", "HUB-NODE-05", "HUB-FIELD-07", "HUB-FIELD-09",
    "HUB-FIELD-11", "HUB-FIELD-13", "HUB-FIELD-16", "HUB-FIELD-18", "HUB-FIELD-21",
)  # fmt: skip
async def test_submissions(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid submissions are accepted, and their jobs are as they were submitted."""
    await running.submissions(given, reach, seed, examples, exact=False)


@fuzz
@requirement(
    "HUB-SUB-50", "HUB-SUB-52", "HUB-SUB-61", "HUB-SUB-62", "HUB-IDEM-50", "HUB-IDEM-55", "HUB-IDEM-57", "HUB-IDEM-59",
    "HUB-FIELD-50", "HUB-FIELD-51", "HUB-FIELD-52", "HUB-FIELD-54", "HUB-FIELD-55", "HUB-GET-69", "HUB-GET-71",
)  # fmt: skip
async def test_submissions_as_decided(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated valid submissions, at every kind of place and under keys, are answered exactly as documented."""
    await running.submissions(given, reach, seed, examples, exact=True)


@fuzz
@requirement(
    "HUB-LIST-01", "HUB-LIST-02", "HUB-LIST-03", "HUB-LIST-04", "HUB-LIST-05", "HUB-LIST-06",
    "HUB-LIST-08", "HUB-LIST-09", "HUB-LIST-10", "HUB-LIST-11",
)  # fmt: skip
async def test_lists(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated lists hold what their filters say and no more, the newest first."""
    await running.lists(given, reach, seed, examples, exact=False)


@fuzz
@requirement("HUB-LIST-52", "HUB-LIST-57", "HUB-LIST-59", "HUB-LIST-64", "HUB-LIST-65")
async def test_lists_as_decided(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated lists are pages of the documented schema; after a cursor there are older jobs alone."""
    await running.lists(given, reach, seed, examples, exact=True)


@fuzz
@requirement("HUB-GET-01", "HUB-GET-02", "HUB-GET-03")
async def test_details(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated reads of jobs in every state: the job's detail, and the job is as before."""
    await running.by_id(given, reach, seed, examples, "getJob", exact=False)


@fuzz
@requirement("HUB-GET-70")
async def test_details_as_decided(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated reads of jobs in every state: every field of the documented schema."""
    await running.by_id(given, reach, seed, examples, "getJob", exact=True)


@fuzz
@requirement("HUB-SSE-01", "HUB-SSE-02")
async def test_streams(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated requests for streams of jobs in every state, wherever they are to go on: a stream."""
    await running.by_id(given, reach, seed, examples, "streamJob", exact=False)


@fuzz
@requirement("HUB-SSE-60", "HUB-SSE-62", "HUB-SSE-63")
async def test_streams_as_decided(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated requests for streams, wherever they are to go on: 200 with the documented headers."""
    await running.by_id(given, reach, seed, examples, "streamJob", exact=True)


@fuzz
@requirement("HUB-CANCEL-01", "HUB-CANCEL-02", "HUB-CANCEL-03", "HUB-CANCEL-05")
async def test_cancels(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated cancels of jobs in every state: the job, or a refusal that changes nothing."""
    await running.by_id(given, reach, seed, examples, "cancelHubJob", exact=False)


@fuzz
@requirement("HUB-CANCEL-50", "HUB-CANCEL-51", "HUB-CANCEL-52")
async def test_cancels_as_decided(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated cancels of jobs in every state: 200 with the job, or 409 `job_finished` that changes nothing."""
    await running.by_id(given, reach, seed, examples, "cancelHubJob", exact=True)


@fuzz
@requirement("HUB-RETRY-06", "HUB-RETRY-07", "HUB-RETRY-08")
async def test_retries(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated retries of jobs in every state: the job, or a refusal that changes nothing."""
    await running.by_id(given, reach, seed, examples, "retryHubJob", exact=False)


@fuzz
@requirement("HUB-RETRY-56")
async def test_retries_as_decided(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated retries of jobs in every state: 200 with the job, or 409 `job_not_retryable` that changes nothing."""
    await running.by_id(given, reach, seed, examples, "retryHubJob", exact=True)


@fuzz
@requirement("HUB-BATCH-03", "HUB-BATCH-04", "HUB-BATCH-05", "HUB-BATCH-06", "HUB-BATCH-07", "HUB-BATCH-08")
async def test_batches(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated reads of batches: a summary whose counts add up."""
    await running.by_id(given, reach, seed, examples, "getBatch", exact=False)


@fuzz
@requirement("HUB-BATCH-16", "HUB-BATCH-17")
async def test_batch_cancels(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated cancels of batches, finished or not: how many were cancelled."""
    await running.by_id(given, reach, seed, examples, "cancelBatch", exact=False)


@fuzz
@requirement("HUB-BATCH-70", "HUB-BATCH-71")
async def test_batch_cancels_as_decided(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Generated cancels of batches, finished or not: 200 with the documented body."""
    await running.by_id(given, reach, seed, examples, "cancelBatch", exact=True)


@fuzz
@requirement("HUB-PROJ-01")
async def test_projects(given: HubGiven, reach: Reach, seed: int) -> None:
    """The list of projects has the one that was submitted to."""
    await running.plain(given, reach, seed, "listProjects", exact=False)


@fuzz
@requirement("HUB-OVW-01")
async def test_overviews(given: HubGiven, reach: Reach, seed: int) -> None:
    """The overview tells its load."""
    await running.plain(given, reach, seed, "getOverview", exact=False)


@fuzz
@requirement("HUB-ERR-50", "HUB-ERR-52", "HUB-PROJ-50", "HUB-OVW-50")
async def test_answers_of_every_operation(given: HubGiven, reach: Reach, seed: int) -> None:
    """Successes and refusals of every operation: `requestId` in the body, the same in `x-request-id`."""
    await running.answers_of_all(given, reach, seed)
