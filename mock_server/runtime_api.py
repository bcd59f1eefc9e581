"""The Runtime API's handlers: thin, since the machine decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.calls import Answer, Refusal
from mock_server.judgement import refused
from mock_server.model import BASE_PATH as MODEL_PATH
from mock_server.privacy import Privacy
from mock_server.store import QueueQuery
from mock_server.violations import missing_in_mode

if TYPE_CHECKING:
    from mock_server.calls import Call, Handler
    from mock_server.executor import Outcome
    from mock_server.store import Row
    from openapi import Contract


class RuntimeApi:
    """Handlers of one contract by operationId; they hold no state. A seeded fault subclasses it."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        schemas = contract.document["components"]["schemas"]
        self.privacy = Privacy(schemas["SnapshotAnswer"]["x-privacy"])
        self.entry_fields: tuple[str, ...] = tuple(schemas["PollEntry"]["properties"])
        self.answer_fields = {
            (operation.id, status): tuple(self._properties(operation.document["responses"][str(status)]))
            for operation in contract.operations.values()
            for status in operation.statuses
            if status < 300
        }
        constants = contract.machine.constants if contract.machine else {}
        self.schema_versions = frozenset(constants["schemaVersions"].value)
        self.snapshot_versions = frozenset(constants["snapshotVersions"].value)

    def handlers(self) -> dict[str, Handler]:
        """The handler of each operation."""
        own: dict[str, Handler] = {"pollJobs": self.poll, "submitInvocationLogs": self.logs}
        return {id_: own.get(id_, self.operate) for id_ in self.contract.operations}

    async def poll(self, call: Call) -> Answer:
        """List jobs that wait; the rules that no machine states (RT-POLL-12 to 14, 50 to 59, RT-SCHED-01 to 06)."""
        capabilities = call.body.get("capabilities", {})
        query = QueueQuery(
            groups=frozenset(call.body["supportedJobTypes"]),
            limit=call.body["limit"],
            output_schema_versions=self.readable(capabilities, "supportedOutputSchemaVersions", self.schema_versions),
            snapshot_versions=self.readable(capabilities, "supportedSnapshotVersions", self.snapshot_versions),
        )
        rows = await self.listed(call, query)
        return Answer(200, {"jobs": [self.entry(row) for row in rows]})

    def readable(self, capabilities: dict[str, Any], name: str, supported: frozenset[str]) -> frozenset[str] | None:
        """A list of versions as a filter; None where it is left out. Refuses one that names no supported version."""
        if name not in capabilities:
            return None
        versions = frozenset(capabilities[name])
        if versions and not versions & supported:
            known = ", ".join(sorted(supported))
            raise Refusal("RUNTIME_VERSION_INCOMPATIBLE", f"{name} names no version that the API supports ({known}).")
        return versions

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        """The jobs that a poll lists. A list of versions that is empty makes it empty, jobs without a snapshot too."""
        if query.snapshot_versions == frozenset() or query.output_schema_versions == frozenset():
            return []
        return await call.world.engine.poll(query)

    def entry(self, row: Row) -> dict[str, Any]:
        """A job as a poll shows it."""
        return {name: row[name] for name in self.entry_fields}

    async def operate(self, call: Call) -> Answer:
        """Any operation of the machine."""
        outcome = await call.world.engine.operate(call.operation_id, caller=call.caller, path=call.path, body=call.body)
        return self.answer(call, outcome)

    def answer(self, call: Call, outcome: Outcome) -> Answer:
        """What the machine decided, as an answer. Raises :class:`Refusal` where it refused."""
        call.exchange.job = outcome.row
        if not isinstance(outcome.answer, int):
            code = str(outcome.answer)
            if code == "INVALID_REQUEST":  # the one rule of a body that is judged after the lock (RT-CRED-51)
                raise refused([missing_in_mode("/credentialId", call.body["apiKeyMode"])])
            raise Refusal(code, f"{self.contract.errors[code].description}.", headers=outcome.headers)
        fields = self.answer_fields[call.operation_id, outcome.answer]
        body = self.body(call, outcome, fields) if fields else None
        return Answer(outcome.answer, body, outcome.headers)

    def body(self, call: Call, outcome: Outcome, fields: tuple[str, ...]) -> dict[str, Any]:
        """The answer's fields are the job's columns of the same name (``jobId`` is its id), and what is no column."""
        row = outcome.row or {}
        values = {**row, "jobId": row["id"]}
        match call.operation_id:
            case "getSnapshot":
                return self.snapshot(values, outcome.related["snapshot"] or {})
            case "resolveCredential":
                values |= self.credential(call, row, outcome.related.get("credential"))
            case "submitResult":
                result = outcome.created.get("Result") or outcome.related["result"] or {}
                values["resultIdempotencyKey"] = result["resultIdempotencyKey"]
        return {name: values[name] for name in fields if name in values}

    def snapshot(self, job: Row, snapshot: Row) -> dict[str, Any]:
        """The job's snapshot as far as a Runtime may see it (RT-SNAP-02, 53, 54)."""
        own = {"jobId": job["jobId"], "snapshotId": snapshot["id"], "snapshotVersion": snapshot["snapshotVersion"]}
        return {**own, **self.privacy.applied(snapshot["content"]), **own}

    def credential(self, call: Call, job: Row, credential: Row | None) -> dict[str, Any]:
        """What a Runtime needs to call the model (RT-CRED-07): the user's key where the job is to use that."""
        users = credential if job["apiKeyMode"] != "platform_key" else None
        key = users["apiKey"] if users else call.world.platform_key
        base_url = self.model_url(call, call.world.model.resolved(job, call.caller, key))
        values = {"provider": job["modelProvider"], "model": job["modelName"], "baseUrl": base_url}
        return values if key is None else {**values, "apiKey": key}

    @staticmethod
    def model_url(call: Call, token: str) -> str:
        """A base URL of its own for each resolve (RT-CRED-59), at the host by which the caller reached us."""
        return f"http://{call.host}{call.world.path}{MODEL_PATH}/{token}/v1"

    async def logs(self, call: Call) -> Answer:
        """Store a batch of invocation logs, all or none (RT-LOG-53); no job is looked at (RT-LOG-56, 57)."""
        redactor = call.world.redactor
        rows = [{"jobId": log["jobId"], "log": redactor.data(log)} for log in call.body["logs"]]
        await call.world.engine.insert_all("StoredLog", rows)
        return Answer(201, {"accepted": len(rows)})

    def _properties(self, response: dict[str, Any]) -> dict[str, Any]:
        content = self.contract.resolve(response).get("content", {}).get("application/json")
        if content is None:
            return {}
        properties: dict[str, Any] = self.contract.resolve(content["schema"]).get("properties", {})
        return properties
