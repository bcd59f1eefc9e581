"""The provider states of a Runtime API build: how a check puts a job where it needs it (boundary of the harness)."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from mock_server.calls import Refusal
from mock_server.privacy import OWN_FIELDS
from mock_server.state_set import StateSet, Values

if TYPE_CHECKING:
    from mock_server.store import Row
    from mock_server.worlds import World
    from openapi import Contract


class ProviderStates(StateSet):
    """The states that ``x-states`` of the control plane's specification lists, on any world."""

    def __init__(self, control: Contract) -> None:
        setups = {
            "reset": self.reset,
            "job": self.job,
            "credential": self.credential,
            "cancel-job": self.cancel_job,
            "rerun-job": self.rerun_job,
            "revoke-ai-consent": self.revoke_ai_consent,
            "advance-time": self.advance_time,
            "inspect-job": self.inspect_job,
        }
        super().__init__(control, "x-states", setups)

    async def reset(self, world: World, _: Values) -> Values:
        """Remove every row; virtual time back to real time."""
        await world.engine.reset()
        if world.has_hub:
            world.hub.driver.rearm(await world.hub.engine.next_instant())
        return {}

    async def job(self, world: World, params: Values) -> Values:
        """Create a job through the application's own path, with the snapshot that is asked for."""
        kind, columns = params.pop("snapshot"), dict(params)
        version = columns.pop("snapshotVersion", None)
        document, fields = columns.pop("allowDocumentContent"), columns.pop("allowedModelFields")
        columns["snapshotId"] = None if kind == "none" else f"snap-{secrets.token_hex(8)}"
        outcome = await world.engine.act("createJob", columns)
        created = outcome.created.get("Job")
        row: Row = created or outcome.row or {}
        if created and kind in ("valid", "expired"):
            content = snapshot_content(world, allow_document=document, fields=fields)
            expires = world.clock.now() - 1 if kind == "expired" else None
            snapshot = {"id": row["snapshotId"], "snapshotVersion": version, "expiresAt": expires, "content": content}
            await world.engine.insert("Snapshot", snapshot)
        return {"jobId": row["id"], "userId": row["userId"], "snapshotId": row["snapshotId"]}

    async def credential(self, world: World, params: Values) -> Values:
        """Create a user's model key; from here on the world's redactor knows it."""
        key = f"sk-{secrets.token_hex(16)}"
        world.learn(key)
        row = await world.engine.insert("Credential", {**params, "apiKey": key})
        return {"credentialId": row["id"], "userId": row["userId"], "apiKey": key}

    async def cancel_job(self, world: World, params: Values) -> Values:
        """A user or Admin cancels a pending job."""
        outcome = await self._act(world, "cancelJob", params, "only a pending job can be cancelled")
        return {"status": outcome["status"]}

    async def rerun_job(self, world: World, params: Values) -> Values:
        """An Admin reruns a failed job as a new one."""
        row = await self._act(world, "rerunJob", params, "only a failed job can be rerun")
        return {"jobId": row["id"]}

    async def _act(self, world: World, action: str, params: Values, conflict: str) -> Row:
        outcome = await world.engine.act(action, params)
        if outcome.answer == "JOB_NOT_FOUND":
            raise _no_job(params["jobId"])
        if isinstance(outcome.answer, str):
            status = outcome.row["status"] if outcome.row else "unknown"
            raise Refusal("CONFLICT", f"{conflict}; this one is {status}")
        return outcome.created.get("Job") or outcome.row or {}

    async def revoke_ai_consent(self, world: World, params: Values) -> Values:
        """The user switches AI off."""
        await world.engine.act("revokeConsent", params)
        return {}

    async def inspect_job(self, world: World, params: Values) -> Values:
        """Every column of a job, and how many results and logs it has."""
        row = await world.engine.job(params["jobId"])
        if row is None:
            raise _no_job(params["jobId"])
        results = await world.engine.rows_of("Result", params["jobId"])
        logs = await world.engine.rows_of("StoredLog", params["jobId"])
        return {**row, "resultCount": len(results), "logCount": len(logs)}


def _no_job(id_: str) -> Refusal:
    return Refusal("INVALID_REQUEST", f"/jobId of params: no job has the id `{id_}`")


def snapshot_content(world: World, *, allow_document: bool, fields: list[str]) -> Values:
    """The sections of a snapshot before privacy is applied: the specification's own example, and what privacy keeps."""
    document = world.build.contract.document
    example = document["components"]["examples"]["SnapshotAnswer"]["value"]
    content = {name: value for name, value in example.items() if name not in OWN_FIELDS}
    content["privacyScope"] = {"allowDocumentContent": allow_document}
    content["allowedModelFields"] = list(fields)
    content["userProfile"] = {**content["userProfile"], "displayName": "Learner One", "dailyGoalMinutes": 45}
    content["documentContent"] = {"title": "Linear equations", "text": "A line has a slope and an intercept."}
    return content
