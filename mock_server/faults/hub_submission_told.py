"""Seeded faults of how a submission is sent and answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import part
from mock_server.faults.hub_submission import answers
from mock_server.hub.api import HubApi
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from mock_server.calls import Answer, Call


def put_instead(document: dict[str, Any]) -> None:
    """PUT instead of POST."""
    path = document["paths"]["/v1/jobs"]
    path["put"] = path.pop("post")


class WithoutRequestId(HubApi):
    """Answers a submission with its data alone."""

    async def submit(self, call: Call) -> Answer:
        answer = await super().submit(call)
        del answer.body["requestId"]
        return answer


FAULTS = (
    Mutant("hub-submission.put-instead", "jobs are submitted with PUT", ("HUB-SUB-01",), edit=put_instead),
    Mutant(
        "hub-submission.no-request-id",
        "the answer to a submission has no requestId",
        ("HUB-SUB-06",),
        parts=part(api=WithoutRequestId),
    ),
    Mutant(
        "hub-submission.no-external-id",
        "the answer to a submission tells no externalId",
        ("HUB-SUB-09",),
        parts=answers(lambda data: [item.pop("externalId") for item in data["items"]]),
    ),
)
