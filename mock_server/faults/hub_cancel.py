"""Seeded faults of cancelling hub jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import add_step, machine, part, set_step, several
from mock_server.faults.hub_retry import TakesEach
from mock_server.hub.api import HubApi
from mock_server.hub.scheduler import Place, Scheduler
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.calls import Answer, Call
    from mock_server.store import Row

ABORT: dict[str, Any] = {
    "failureType": "cancelledType",
    "failureMessage": "cancelledType",
    "finishedAt": "now",
    "nextRetryAt": None,
}
REPORTED = ["running", "cancelled"]


def abort(**values: Any) -> Callable[[dict[str, Any]], None]:
    """What a cancel makes of a job."""
    return machine("effects", "abort", value={**ABORT, **values})


class CancelsEach(TakesEach):
    """Cancels at the same moment are all taken."""

    operation = "cancelHubJob"
    states = ("queued", "running")


class Accepted(HubApi):
    """Answers a cancel with 202."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        if call.operation_id == "cancelHubJob":
            answer.status = 202
        return answer


class CountsAll(HubApi):
    """The cancel of a batch counts all of its jobs."""

    async def cancel_batch(self, call: Call) -> Answer:
        answer = await super().cancel_batch(call)
        answer.body["data"]["cancelled"] = len(await self.batch(call))
        return answer


class LeavesWaiting(HubApi):
    """The cancel of a batch leaves the jobs that wait for a retry."""

    async def batch(self, call: Call) -> Any:
        jobs = await super().batch(call)
        if call.operation_id == "cancelBatch":
            return [row for row in jobs if row["status"] != "failed"]
        return jobs


class StaysBusy(Scheduler):
    """Takes the project of a running job that was cancelled for busy ever after."""

    def _note(self, row: Row) -> Place:
        place = (row["nodeId"], row["projectId"])
        if row["status"] == "cancelled" and self.busy.get(place) == row["id"]:
            return place
        return super()._note(row)


RETRIES_CANCELLED = machine("timers", "retry-due", "from", value=["failed", "cancelled"])


def revived(which: str) -> Callable[[dict[str, Any]], None]:
    """Jobs of which this expression is true are retried 30 s after their end, the others as is right."""
    due = machine("timers", "retry-due", "at", value=f"{which} ? job.finishedAt + 30000 : job.nextRetryAt")
    return several(RETRIES_CANCELLED, due)


FAULTS = (
    Mutant(
        "hub-cancel.noted",
        "the cancel of a queued job takes effect when its node takes it",
        ("HUB-CANCEL-02", "HUB-CANCEL-50", "HUB-CANCEL-54"),
        edit=several(
            add_step(
                "cancel",
                {
                    "id": "seeded",
                    "from": ["queued"],
                    "set": [{"mode": "'cancelling'"}],
                    "answer": 200,
                    "requirements": ["HUB-CANCEL-02"],
                },
            ),
        ),
    ),
    Mutant(
        "hub-cancel.not-running",
        "a running job can't be cancelled",
        ("HUB-CANCEL-01", "HUB-CANCEL-50", "HUB-CANCEL-03"),
        edit=set_step("cancel", **{"from": ["queued"]}),
    ),
    Mutant(
        "hub-cancel.forgets-round",
        "a running job that is cancelled loses its session",
        ("HUB-CANCEL-03",),
        edit=abort(sessionId=None),
    ),
    Mutant(
        "hub-cancel.late-result",
        "the result of a cancelled round is kept, and the job done",
        ("HUB-CANCEL-04",),
        edit=set_step("report.done", **{"from": REPORTED}),
    ),
    Mutant(
        "hub-cancel.late-failure",
        "a cancelled round that fails is retried",
        ("HUB-CANCEL-04", "HUB-FAIL-09"),
        edit=set_step("report.retried", **{"from": REPORTED}),
    ),
    Mutant(
        "hub-cancel.late-end",
        "a cancelled round that fails for good, or takes too long, makes the job failed",
        ("HUB-CANCEL-04",),
        edit=set_step("report.final", **{"from": REPORTED}),
    ),
    Mutant(
        "hub-cancel.stale-result",
        "the result of the round that was cancelled ends the job that was retried meanwhile",
        ("HUB-CANCEL-04",),
        edit=set_step(
            "report.done",
            **{"from": ["running", "queued"]},
            set=["over", {"finishedAt": "now", "result": "report.result", "startedAt": "job.roundStartedAt"}],
        ),
    ),
    Mutant(
        "hub-cancel.stale-failure",
        "the failure of the round that was cancelled ends the job that was retried meanwhile",
        ("HUB-CANCEL-04",),
        edit=set_step("report.final", **{"from": ["running", "queued"]}),
    ),
    Mutant(
        "hub-cancel.busy",
        "a cancelled round never frees its project",
        ("HUB-NODE-53", "HUB-CANCEL-04"),
        parts=part(scheduler=StaysBusy),
    ),
    Mutant(
        "hub-cancel.done",
        "a done job can be cancelled",
        ("HUB-CANCEL-05", "HUB-CANCEL-52"),
        edit=set_step("cancel", **{"from": ["queued", "running", "done"]}),
    ),
    Mutant(
        "hub-cancel.again",
        "a cancel is taken again and again",
        ("HUB-CANCEL-52", "HUB-CANCEL-05"),
        edit=set_step("cancel", **{"from": ["queued", "running", "cancelled"]}),
    ),
    Mutant(
        "hub-cancel.failed",
        "a job that failed for good can be cancelled",
        ("HUB-CANCEL-52", "HUB-CANCEL-05"),
        edit=set_step("cancel.waiting", when=None),
    ),
    Mutant(
        "hub-cancel.not-waiting",
        "a job that waits for a retry can't be cancelled",
        ("HUB-CANCEL-51", "HUB-BATCH-68", "HUB-BATCH-16"),
        edit=set_step("cancel.waiting", when="false"),
    ),
    Mutant(
        "hub-cancel.revived",
        "the retry that was to come revives a cancelled job",
        ("HUB-CANCEL-51", "HUB-CANCEL-55", "HUB-FAIL-09"),
        edit=several(abort(nextRetryAt="job.nextRetryAt"), RETRIES_CANCELLED),
    ),
    Mutant(
        "hub-cancel.retried",
        "a cancelled job is retried after 30 s, as one that failed",
        ("HUB-FAIL-09", "HUB-CANCEL-51"),
        edit=revived("job.status == 'cancelled'"),
    ),
    Mutant(
        "hub-cancel.revived-quietly",
        "a cancelled job is revived after a while, though no retry was told",
        ("HUB-CANCEL-51", "HUB-FAIL-09"),
        edit=revived("job.status == 'cancelled' && job.lastError != null"),
    ),
    Mutant(
        "hub-cancel.says-next",
        "a cancelled job still names a next time",
        ("HUB-CANCEL-55",),
        edit=abort(nextRetryAt="job.nextRetryAt"),
    ),
    Mutant(
        "hub-cancel.no-finish",
        "a cancel does not set `finishedAt`",
        ("HUB-CANCEL-54",),
        edit=abort(finishedAt="job.finishedAt"),
    ),
    Mutant(
        "hub-cancel.other-type",
        "a cancelled job has failure type rejected",
        ("HUB-CANCEL-53", "HUB-FAIL-09"),
        edit=abort(failureType="'rejected'"),
    ),
    Mutant(
        "hub-cancel.no-reason",
        "a cancelled job forgets why its last attempt failed",
        ("HUB-CANCEL-56",),
        edit=set_step("cancel", set=["abort", {"lastError": None}]),
    ),
    Mutant(
        "hub-cancel.waiting-reason",
        "a job that is cancelled while it waits shows the reason before the last",
        ("HUB-CANCEL-56",),
        edit=set_step("cancel.waiting", set=["abort"]),
    ),
    Mutant("hub-cancel.202", "a cancel is answered 202", ("HUB-CANCEL-50",), parts=part(api=Accepted)),
    Mutant(
        "hub-cancel.each",
        "cancels at the same moment are all taken",
        ("HUB-CANCEL-52", "HUB-CANCEL-05"),
        parts=part(engine=CancelsEach),
    ),
    Mutant(
        "hub-cancel.batch-counts-all",
        "the cancel of a batch counts all of its jobs",
        ("HUB-BATCH-69", "HUB-BATCH-70", "HUB-BATCH-17"),
        parts=part(api=CountsAll),
    ),
    Mutant(
        "hub-cancel.batch-leaves-waiting",
        "the cancel of a batch leaves the jobs that wait for a retry",
        ("HUB-BATCH-68", "HUB-BATCH-16"),
        parts=part(api=LeavesWaiting),
    ),
)
