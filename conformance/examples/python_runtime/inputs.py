"""What a job needs: its snapshot, judged before it is used, and the credential with which to call the model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime.api import PATIENCE, Answer, Lost
from conformance.examples.python_runtime.config import SNAPSHOT_VERSIONS
from conformance.examples.python_runtime.failures import JobFailed
from conformance.examples.python_runtime.jobs import Hold, LockLost, Reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from conformance.examples.python_runtime.jobs import Job
    from conformance.examples.python_runtime.runtime import Runtime

Snapshot = dict[str, Any]
TRIES = 3
_NUMBER = (int, float)
_SECTIONS: dict[
    str, dict[str, type | tuple[type, ...]]
] = {  # each an object; what its known fields are, where they are there
    "privacyScope": {"allowDocumentContent": bool},
    "userProfile": {"learningGoal": str, "currentLevel": str},
    "aiSettings": {"allowAiAnalysis": bool},
    "learningBehaviorSummary": {"totalActiveSeconds": _NUMBER},
    "materialProgressSummary": {"progress": _NUMBER},
    "behaviorSignals": {"engagementSignal": str},
    "scoreSignals": {"masteryRiskScore": _NUMBER},
    "constraints": {"dailyAvailableMinutes": _NUMBER},
}
SHARED_SECTIONS = (  # those that may reach the model whole where `allowedModelFields` names them
    "learningBehaviorSummary",
    "materialProgressSummary",
    "behaviorSignals",
    "scoreSignals",
    "constraints",
)


@dataclass(frozen=True)
class Credential:
    """Where and with which key to call the model, for one lock's job; the key shows in no text of this object."""

    provider: str
    model: str
    base_url: str
    key: str = field(repr=False)


class Inputs:
    """Gets a hold's snapshot and credential; raises :class:`JobFailed` or :class:`LockLost` where there are none."""

    def __init__(self, runtime: Runtime, hold: Hold) -> None:
        self.runtime, self.hold = runtime, hold

    async def snapshot(self) -> Snapshot:
        """The snapshot, sound and open to the model."""
        job = self.hold.job
        answer = await self.ask("snapshot", lambda patience: self.runtime.api.snapshot(job, patience))
        if not answer.ok:
            self.snapshot_refused(answer)
        snapshot = self.sound(answer.body)
        self.may_analyse(snapshot)
        return snapshot

    def snapshot_refused(self, answer: Answer) -> None:
        """A status that is final. Raises :class:`JobFailed`."""
        if answer.status == 410:
            raise JobFailed("SNAPSHOT_EXPIRED", "The snapshot has expired", "HTTP 410")
        if answer.unauthorized:
            raise JobFailed("INTERNAL_ERROR", "The API refused to give the snapshot", f"HTTP {answer.status}")
        raise JobFailed("INVALID_SNAPSHOT", "There is no snapshot that can be used", f"HTTP {answer.status}")

    def sound(self, body: Any) -> Snapshot:
        """A snapshot of a known version with every section (RT-SNAP-62). Raises :class:`JobFailed`."""
        problem = self.problem(body)
        if problem:
            raise JobFailed("INVALID_SNAPSHOT", f"The snapshot can't be used: {problem}")
        snapshot: Snapshot = body
        return snapshot

    def problem(self, body: Any) -> str:
        """What is wrong with a snapshot; empty where nothing is."""
        if not isinstance(body, dict):
            return "it is no object"
        return self.version_problem(body) or self.section_problem(body)

    def version_problem(self, body: Snapshot) -> str:
        """Whose it is, and whether we know its version."""
        if body.get("jobId") != self.hold.job.id:
            return "it is not of this job"
        if not isinstance(body.get("snapshotId"), str):
            return "it has no id"
        return "" if body.get("snapshotVersion") in SNAPSHOT_VERSIONS else "its version is not known"

    def section_problem(self, body: Snapshot) -> str:
        """Whether every section is there and of its type."""
        for name, known in _SECTIONS.items():
            section = body.get(name)
            if not isinstance(section, dict):
                return f"{name} is missing or no object"
            for key, kinds in known.items():
                value = section.get(key)
                if key in section and (not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool)):
                    return f"{name}.{key} is of a wrong type"
        names = body.get("allowedModelFields")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return "allowedModelFields is missing or no list of names"
        return ""

    def may_analyse(self, snapshot: Snapshot) -> None:
        """The user's consent (RT-SNAP-66). Raises :class:`JobFailed`."""
        if snapshot["aiSettings"].get("allowAiAnalysis") is False:
            raise JobFailed("INVALID_SNAPSHOT", "The user does not allow an analysis by AI")

    async def credential(self) -> Credential:
        """The credential of this job."""
        job = self.hold.job
        answer = await self.ask("credential", lambda patience: self.runtime.api.resolve(job, patience))
        if not answer.ok:
            self.credential_refused(answer)
        body = answer.body if isinstance(answer.body, dict) else {}
        base_url, model = body.get("baseUrl"), body.get("model")
        if not isinstance(base_url, str) or not base_url.startswith(("http:", "https:")):
            raise JobFailed("INTERNAL_ERROR", "The credential does not say where the model is")
        key = self.key(job, body.get("apiKey"))
        if not key:
            raise JobFailed("INVALID_CREDENTIAL", "There is no key for the model")
        provider = body.get("provider")
        return Credential(
            provider if isinstance(provider, str) else job.provider,
            model if isinstance(model, str) and model else job.model,
            base_url.rstrip("/"),
            key,
        )

    def credential_refused(self, answer: Answer) -> None:
        """A status that is final. Raises :class:`JobFailed`."""
        if answer.unauthorized:
            raise JobFailed("INTERNAL_ERROR", "The API refused to resolve the credential", f"HTTP {answer.status}")
        raise JobFailed("INVALID_CREDENTIAL", "The credential can't be used", f"HTTP {answer.status}")

    def key(self, job: Job, answered: Any) -> str:
        """The key: in mode `platform_key` our own one first (RT-CRED-11); empty where there is none."""
        own = self.runtime.config.platform_key if job.api_key_mode == "platform_key" else None
        return own or (answered if isinstance(answered, str) else "")

    async def ask(self, what: str, send: Callable[[float], Awaitable[Answer]]) -> Answer:
        """Ask up to three times while nothing final is answered. Raises :class:`JobFailed`, :class:`LockLost`."""
        patience = min(PATIENCE, self.hold.job.timeout_seconds / 6)
        failed = JobFailed("INTERNAL_ERROR", f"The {what} could not be had")
        refused = 0
        for number in range(TRIES):
            if number:
                await asyncio.sleep(min(0.3 * number, patience / 4))
            self.hold.check()
            try:
                answer = await send(patience)
            except Lost as lost:
                failed = JobFailed("NETWORK_ERROR", f"The {what} request was not answered", str(lost))
                continue
            if answer.lock_lost:
                self.lost()
            refused += answer.unauthorized
            if answer.transient or (answer.unauthorized and refused < 2) or (what == "credential" and self.odd(answer)):
                failed = JobFailed("INTERNAL_ERROR", f"The {what} could not be had", f"HTTP {answer.status}")
                continue
            return answer
        raise failed

    def odd(self, answer: Answer) -> bool:
        """A success that is no answer: worth another try."""
        return answer.ok and not isinstance(answer.body, dict)

    def lost(self) -> None:
        """The API says that the lock is not ours. Raises :class:`LockLost`."""
        self.hold.stop(Reason.LOST)
        raise LockLost
