"""Cases of monitors: a recording made by hand, a rule, and what its monitor has to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape import Tape

if TYPE_CHECKING:
    from typing import Any

AREAS = ("RT-SNAP-", "RT-CRED-", "RT-RES-", "RT-FAIL-", "RT-LOG-", "RT-RETRY-", "RT-AUTH-63")


def begun(job: str = "j", **more: Any) -> Tape:
    """A job that was listed and locked, its inputs read: the model is next."""
    return Tape().poll(job).lock(job, **more).heartbeat(job).snapshot(job).resolve(job)


def said(tape: Tape, rule: str, status: str, also: str = "") -> str:
    """Judge a recording by a rule: the first finding's ``actual``, where it is broken.

    A broken one breaks, of these areas, only the rule and those that ``also`` names; a kept one none at all.
    """
    outcome = tape.said(rule)
    faults = [(finding.expected, finding.actual) for finding in outcome.broken]
    assert (outcome.status, outcome.problem) == (status, None), faults
    found = {rule for rule in tape.failing() if rule.startswith(AREAS)}
    if status != "untested":
        assert found == ({rule, *also.split()} if status == "failed" else set())
    return faults[0][1] if faults else ""
