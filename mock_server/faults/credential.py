"""Seeded faults of resolving credentials: whose key is given to whom, and what is asked before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.calls import Answer, Refusal
from mock_server.faults.edits import error, part, schema_property, set_step, several
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.calls import Call
    from mock_server.executor import Outcome
    from mock_server.faults.edits import Document
    from mock_server.mutants import Parts
    from mock_server.store import Row


class UsersInstead(RuntimeApi):
    """Gives the user's own key where the user has one, whatever the mode."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        if call.operation_id == "resolveCredential":
            row = await call.world.engine.job(call.body["jobId"]) or {}
            for other in await call.world.engine.store.rows("Credential"):
                if other["userId"] == row["userId"]:
                    answer.body["apiKey"] = other["apiKey"]
        return answer


class OwnKeyFirst(RuntimeApi):
    """Gives no platform key to users who have a key of their own."""

    async def operate(self, call: Call) -> Answer:
        if call.operation_id == "resolveCredential" and call.body["apiKeyMode"] == "platform_key":
            row = await call.world.engine.job(call.body["jobId"]) or {}
            for other in await call.world.engine.store.rows("Credential"):
                if other["userId"] == row.get("userId"):
                    raise Refusal("CREDENTIAL_INVALID", "The user has a key.")
        return await super().operate(call)


class BodyCaller(RuntimeApi):
    """Believes an instance that the body names, although this operation has none there."""

    async def operate(self, call: Call) -> Answer:
        if call.operation_id == "resolveCredential":
            call.caller = call.body.get("runtimeInstanceId", call.caller)
        return await super().operate(call)


def resolved(change: Callable[[dict[str, Any], Call, Row], None]) -> Callable[[Parts], None]:
    """Change the answer of resolve: ``change`` gets its body, the call and the credential's row (or ``{}``)."""

    class Changed(RuntimeApi):
        def body(self, call: Call, outcome: Outcome, fields: tuple[str, ...]) -> dict[str, Any]:
            body = super().body(call, outcome, fields)
            if call.operation_id == "resolveCredential":
                change(body, call, outcome.related.get("credential") or {})
            return body

    return part(runtime_api=Changed)


def in_mode(mode: str, **values: Any) -> Callable[[Parts], None]:
    """Other values of the answer in one mode."""

    def change(body: dict[str, Any], call: Call, _: Row) -> None:
        if call.body["apiKeyMode"] == mode:
            body.update(values)

    return resolved(change)


def masked(body: dict[str, Any], _: Call, credential: Row) -> None:
    """A key as a settings page shows it."""
    if credential:
        body["apiKey"] = f"{credential['apiKey'][:3]}****{credential['apiKey'][-4:]}"


def platforms_instead(body: dict[str, Any], call: Call, _: Row) -> None:
    """The platform's key in each mode."""
    body["apiKey"] = call.world.platform_key


def headers(document: Document) -> None:
    """Answers of resolve without headers."""
    for id_ in ("credential.platform", "credential.user"):
        set_step(id_, headers=None)(document)


def cacheable_for_users(document: Document) -> None:
    """Only the platform's key is marked."""
    set_step("credential.user", headers={"Cache-Control": "'private, max-age=60'"})(document)


def created(document: Document) -> None:
    """201 for 200."""
    responses = document["paths"]["/internal/runtime/model-credentials/resolve"]["post"]["responses"]
    responses["201"] = responses.pop("200")
    for id_ in ("credential.platform", "credential.user"):
        set_step(id_, answer=201)(document)


def elsewhere(document: Document) -> None:
    """The endpoint stands under the job."""
    paths = document["paths"]
    paths["/internal/runtime/credentials/resolve"] = paths.pop("/internal/runtime/model-credentials/resolve")


def moved(id_: str, to: int) -> Callable[[Document], None]:
    """Judge a step of resolve at another place."""

    def edit(document: Document) -> None:
        steps = document["x-state-machine"]["operations"]["resolveCredential"]["steps"]
        place = next(i for i, step in enumerate(steps) if step["id"] == id_)
        steps.insert(to, steps.pop(place))

    return edit


def any_mode(document: Document) -> None:
    """Every mode that is not the user's is taken for the platform's."""
    document["components"]["schemas"]["ApiKeyMode"] = {"type": "string"}
    platform = "body.apiKeyMode != 'user_deepseek_key'"
    set_step("credential.named", require=f"{platform} || body.credentialId != null")(document)
    own = f"body.provider == job.modelProvider && ({platform} || body.apiKeyMode == job.apiKeyMode)"
    set_step("credential.of-job", require=own)(document)
    set_step("credential.platform", when=platform)(document)


def foreign_told(document: Document) -> None:
    """Another user's credential gets another code than one that does not exist."""
    set_step("credential.known", require="credential != null")(document)
    steps = document["x-state-machine"]["operations"]["resolveCredential"]["steps"]
    owned = {
        "id": "credential.owned",
        "require": "credential.userId == job.userId",
        "else": "CREDENTIAL_INVALID",
        "requirements": ["RT-CRED-55"],
    }
    steps.insert(next(i for i, item in enumerate(steps) if item["id"] == "credential.valid"), owned)


OWN_ID = "(body.credentialId == job.credentialId || body.apiKeyMode == 'platform_key' && body.credentialId == null)"

FAULTS = (
    Mutant("credential.elsewhere", "resolve stands under another path", ("RT-CRED-01",), edit=elsewhere),
    Mutant("credential.created", "resolve is answered 201", ("RT-CRED-06",), edit=created),
    Mutant(
        "credential.stranger",
        "whoever asks gets the key of a job in work",
        ("RT-CRED-50", "RT-AUTH-08", "RT-ERR-75"),
        edit=set_step("credential.held", require="job.status in ['locked', 'running'] && now <= job.lockUntil"),
    ),
    Mutant(
        "credential.no-lock",
        "the key of a job that nobody holds is given",
        ("RT-CRED-50", "RT-AUTH-08", "RT-ERR-75"),
        edit=set_step("credential.held", require="job.lockedBy == null || job.lockedBy == caller"),
    ),
    Mutant(
        "credential.body-says-who",
        "a runtimeInstanceId in the body opens another's lock",
        ("RT-CRED-50", "RT-AUTH-52", "RT-ERR-63"),
        parts=part(runtime_api=BodyCaller),
    ),
    Mutant(
        "credential.foreign",
        "another user's key is handed out",
        ("RT-CRED-10", "RT-CRED-55"),
        edit=set_step("credential.known", require="credential != null"),
    ),
    Mutant(
        "credential.foreign-is-422",
        "another user's credential is told from an unknown one",
        ("RT-CRED-55",),
        edit=foreign_told,
    ),
    Mutant(
        "credential.any-of-user",
        "any credential that the caller names is resolved",
        ("RT-CRED-52", "RT-AUTH-08"),
        edit=set_step(
            "credential.of-job", require="body.apiKeyMode == job.apiKeyMode && body.provider == job.modelProvider"
        ),
    ),
    Mutant(
        "credential.any-mode",
        "a mode other than the job's own is resolved",
        ("RT-CRED-52", "RT-AUTH-08"),
        edit=set_step("credential.of-job", require=f"body.provider == job.modelProvider && {OWN_ID}"),
    ),
    Mutant(
        "credential.any-provider",
        "a provider other than the job's own is resolved",
        ("RT-CRED-52",),
        edit=set_step("credential.of-job", require=f"body.apiKeyMode == job.apiKeyMode && {OWN_ID}"),
    ),
    Mutant(
        "credential.third-mode",
        "an unknown mode is taken for the platform's",
        ("RT-CRED-03", "RT-ERR-60"),
        edit=any_mode,
    ),
    Mutant(
        "credential.invalid-given",
        "a key that is marked invalid is handed out",
        ("RT-CRED-13", "RT-ERR-11"),
        edit=set_step("credential.valid", require="credential.status != ''"),
    ),
    Mutant(
        "credential.invalid-404",
        "an invalid credential is CREDENTIAL_NOT_FOUND",
        ("RT-CRED-13", "RT-ERR-11"),
        edit=set_step("credential.valid", **{"else": "CREDENTIAL_NOT_FOUND"}),
    ),
    Mutant(
        "credential.invalid-retryable",
        "CREDENTIAL_INVALID is called retryable",
        ("RT-ERR-11", "RT-ERR-64"),
        edit=error("CREDENTIAL_INVALID", retryable=True),
    ),
    Mutant(
        "credential.unknown-422",
        "an unknown credential is CREDENTIAL_INVALID",
        ("RT-CRED-12", "RT-ERR-10", "RT-CRED-55"),
        edit=set_step("credential.known", **{"else": "CREDENTIAL_INVALID"}),
    ),
    Mutant("credential.masked", "a user's key comes masked", ("RT-CRED-05",), parts=resolved(masked)),
    Mutant(
        "credential.platforms-instead",
        "in a user's mode the platform's key is given",
        ("RT-CRED-05",),
        parts=resolved(platforms_instead),
    ),
    Mutant(
        "credential.users-instead",
        "in the platform's mode the user's key is given",
        ("RT-CRED-04",),
        parts=part(runtime_api=UsersInstead),
    ),
    Mutant(
        "credential.own-key-first",
        "the platform's mode is refused to users with a key of their own",
        ("RT-CRED-11", "RT-CRED-04"),
        parts=part(runtime_api=OwnKeyFirst),
    ),
    Mutant(
        "credential.platform-null",
        "a platform key that is not given is null",
        ("RT-CRED-54", "RT-CRED-07"),
        parts=in_mode("platform_key", apiKey=None),
    ),
    Mutant(
        "credential.platform-empty",
        "a platform key that is not given is an empty string",
        ("RT-CRED-54",),
        parts=in_mode("platform_key", apiKey=""),
    ),
    Mutant(
        "credential.no-base-url",
        "the answer does not say where to call the model",
        ("RT-CRED-07",),
        parts=resolved(lambda body, *_: body.pop("baseUrl")),
    ),
    Mutant("credential.cacheable", "the answer may be cached", ("RT-CRED-57",), edit=headers),
    Mutant(
        "credential.cached-a-minute",
        "a user's key may be cached for a minute",
        ("RT-CRED-57",),
        edit=cacheable_for_users,
    ),
    Mutant(
        "credential.null-id",
        "credentialId null is refused with the body",
        ("RT-CRED-53", "RT-CRED-51", "RT-ERR-73"),
        edit=schema_property("ResolveRequest", "credentialId", nullable=False),
    ),
    Mutant(
        "credential.no-id-422",
        "a user's mode without credentialId is CREDENTIAL_INVALID",
        ("RT-CRED-51", "RT-CRED-56"),
        edit=set_step("credential.named", **{"else": "CREDENTIAL_INVALID"}),
    ),
    Mutant(
        "credential.settings-first",
        "the job's settings are judged before the lock",
        ("RT-CRED-56", "RT-CRED-50", "RT-CRED-51"),
        edit=moved("credential.of-job", 0),
    ),
    Mutant(
        "credential.unknown-first",
        "whether a credential exists is judged before whether it is the job's",
        ("RT-CRED-56", "RT-CRED-52"),
        edit=several(
            set_step(
                "credential.known",
                require="body.apiKeyMode == 'platform_key' || credential != null && credential.userId == job.userId",
            ),
            moved("credential.known", 2),
        ),
    ),
    Mutant(
        "credential.valid-first",
        "whether a credential is valid is judged before whose it is",
        ("RT-CRED-56", "RT-CRED-55"),
        edit=several(
            set_step("credential.valid", require="credential == null || credential.status == 'valid'"),
            moved("credential.valid", 4),
        ),
    ),
    Mutant(
        "credential.any-job-id",
        "a jobId of any length is judged as an id",
        ("RT-CRED-58", "RT-ERR-60"),
        edit=schema_property("ResolveRequest", "jobId", minLength=0, maxLength=4096),
    ),
)
