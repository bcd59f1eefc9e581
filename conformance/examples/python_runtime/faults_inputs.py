"""Faults of using a snapshot and a credential."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urljoin

from conformance.examples.python_runtime import api, inputs, model, prompts
from conformance.examples.python_runtime.failures import JobFailed
from conformance.examples.python_runtime.faulty import Fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from conformance.examples.python_runtime.api import Answer
    from conformance.examples.python_runtime.inputs import Credential, Snapshot
    from conformance.examples.python_runtime.jobs import Job
    from conformance.examples.python_runtime.model import Completion, Messages


class ExpiredAsInvalid(Fault):
    """A snapshot that has expired is reported as an invalid one."""

    name, rules = "expired-as-invalid", ("RT-SNAP-60", "RT-SNAP-18")
    rows = ("CF-38",)
    needs = "a snapshot answered 410"

    class Inputs(inputs.Inputs):
        """Knows one class."""

        def snapshot_refused(self, answer: Answer) -> None:
            """All the same."""
            raise JobFailed("INVALID_SNAPSHOT", "There is no snapshot that can be used", f"HTTP {answer.status}")


class ExpiredAskedAgain(Fault):
    """A snapshot that has expired is asked for again and again, nothing reported."""

    name, rules = "expired-asked-again", ("RT-SNAP-18", "RT-SNAP-60")
    rows = ("CF-38",)
    needs = "a snapshot answered 410 for ever"

    class Inputs(inputs.Inputs):
        """Waits for a new one."""

        async def ask(self, what: str, send: Callable[[float], Awaitable[Answer]]) -> Answer:
            """Until it is not expired."""
            while True:
                answer = await super().ask(what, send)
                if answer.status != 410:
                    return answer
                await asyncio.sleep(0.3)


class MissingSnapshotRetryable(Fault):
    """A snapshot that is not there is reported as an error that may pass."""

    name, rules = "missing-snapshot-retryable", ("RT-SNAP-61",)
    rows = ("CF-37", "CF-38")
    needs = "a snapshot answered 404 SNAPSHOT_NOT_FOUND"

    class Inputs(inputs.Inputs):
        """Hopes."""

        def snapshot_refused(self, answer: Answer) -> None:
            """It may come."""
            if answer.status == 404:
                raise JobFailed("INTERNAL_ERROR", "The snapshot is not there yet", "HTTP 404")
            super().snapshot_refused(answer)


class VersionNotChecked(Fault):
    """A snapshot of any version is given to the model."""

    name, rules = "version-not-checked", ("RT-SNAP-62",)
    rows = ("CF-07", "CF-43")
    needs = "a snapshot of an unknown version"

    class Inputs(inputs.Inputs):
        """Does not look."""

        def version_problem(self, body: Snapshot) -> str:
            """None."""
            del body
            return ""


class SectionsNotChecked(Fault):
    """A snapshot of which parts are missing or of a wrong type goes on to the model, with what there is."""

    name, rules = "sections-not-checked", ("RT-SNAP-62",)
    needs = "a snapshot without `allowedModelFields`, or with a section that is no object"

    class Inputs(inputs.Inputs):
        """Makes do."""

        def section_problem(self, body: Snapshot) -> str:
            """Puts something in the place of what is not there."""
            for name in ("privacyScope", "userProfile", "aiSettings", *inputs.SHARED_SECTIONS):
                if not isinstance(body.get(name), dict):
                    body[name] = {}
            if not isinstance(body.get("allowedModelFields"), list):
                body["allowedModelFields"] = []
            return ""


class _UnansweredFinal(inputs.Inputs):
    """What is not answered will never be."""

    what, code = "", ""

    async def ask(self, what: str, send: Callable[[float], Awaitable[Answer]]) -> Answer:
        """With another class of failure."""
        try:
            return await super().ask(what, send)
        except JobFailed:
            if what == self.what:
                raise JobFailed(self.code, f"The {what} could not be had") from None
            raise


class UnansweredSnapshotFinal(Fault):
    """A snapshot answered 5xx or not at all is reported as an invalid one."""

    name, rules = "unanswered-snapshot-final", ("RT-SNAP-63",)
    rows = ("CF-37",)
    needs = "a snapshot answered 5xx or not at all for ever"

    class Inputs(_UnansweredFinal):
        """For snapshots."""

        what, code = "snapshot", "INVALID_SNAPSHOT"


class UnansweredCredentialFinal(Fault):
    """A resolve answered 5xx or not at all is reported as an invalid credential."""

    name, rules = "unanswered-credential-final", ("RT-CRED-72",)
    rows = ("CF-37",)
    needs = "a resolve answered 5xx or not at all for ever"

    class Inputs(_UnansweredFinal):
        """For credentials."""

        what, code = "credential", "INVALID_CREDENTIAL"


class WholeSnapshot(Fault):
    """The whole snapshot goes to the model."""

    name, rules = "whole-snapshot", ("RT-SNAP-64",)
    rows = ("CF-44",)
    needs = "a snapshot with canaries in what is not named"

    class Prompt(prompts.Prompt):
        """Tells all."""

        def data(self, job: Job, snapshot: Snapshot) -> dict[str, Any]:
            """Whole."""
            return {**snapshot, "params": job.params}


class EverySection(Fault):
    """Sections go to the model whether they are named or not."""

    name, rules = "every-section", ("RT-SNAP-64",)
    rows = ("CF-44",)
    needs = "a snapshot with canaries in sections that are not named"

    class Prompt(prompts.Prompt):
        """Filters the profile alone."""

        def data(self, job: Job, snapshot: Snapshot) -> dict[str, Any]:
            """With all of them."""
            return {**super().data(job, snapshot), **{name: snapshot[name] for name in inputs.SHARED_SECTIONS}}


class ContentWithoutLeave(Fault):
    """The content of documents goes to the model where it is named, the user's leave or not."""

    name, rules = "content-without-leave", ("RT-SNAP-65",)
    rows = ("CF-44",)
    needs = "a snapshot with `documentContent`, named, and `allowDocumentContent` false"

    class Prompt(prompts.Prompt):
        """Looks at the name."""

        def may_see_content(self, snapshot: Snapshot) -> bool:
            """That alone."""
            return "documentContent" in snapshot and "documentContent" in snapshot["allowedModelFields"]


class ContentWithoutName(Fault):
    """The content of documents goes to the model where the user allows it, named or not."""

    name, rules = "content-without-name", ("RT-SNAP-65", "RT-SNAP-64")
    rows = ("CF-44",)
    needs = "a snapshot with `documentContent`, `allowDocumentContent` true, and its name not in `allowedModelFields`"

    class Prompt(prompts.Prompt):
        """Looks at the leave."""

        def may_see_content(self, snapshot: Snapshot) -> bool:
            """That alone."""
            return "documentContent" in snapshot and snapshot["privacyScope"].get("allowDocumentContent") is True


class IgnoresConsent(Fault):
    """The model is called although the user does not allow an analysis."""

    name, rules = "ignores-consent", ("RT-SNAP-66",)
    rows = ("CF-44",)
    needs = "a snapshot with `allowAiAnalysis` false"

    class Inputs(inputs.Inputs):
        """Does not look."""

        def may_analyse(self, snapshot: Snapshot) -> None:
            """Always."""


class MissingCredentialRetryable(Fault):
    """A credential refused by 404 or 422 is reported as an error that may pass."""

    name, rules = "missing-credential-retryable", ("RT-CRED-70",)
    rows = ("CF-37",)
    needs = "a resolve answered 404 or 422"

    class Inputs(inputs.Inputs):
        """Hopes."""

        def credential_refused(self, answer: Answer) -> None:
            """It may come."""
            raise JobFailed("INTERNAL_ERROR", "The credential is not there yet", f"HTTP {answer.status}")


class CallsWithoutKey(Fault):
    """Where there is no key anywhere, the model is called without one."""

    name, rules = "calls-without-key", ("RT-CRED-71",)
    needs = "mode platform_key, answered without `apiKey`"

    class Inputs(inputs.Inputs):
        """Tries its luck."""

        def key(self, job: Job, answered: Any) -> str:
            """Something that is no key."""
            return super().key(job, answered) or "none"


class OwnModel(Fault):
    """The model that it calls is a constant, whatever is resolved."""

    name, rules = "own-model", ("RT-CRED-73",)
    needs = "a model call; clearest where another model is resolved than `deepseek-chat`"

    class Inputs(inputs.Inputs):
        """Knows better."""

        async def credential(self) -> Credential:
            """With its own."""
            return replace(await super().credential(), model="deepseek-reasoner")


class CachedCredential(Fault):
    """The first job's credential is used for all others of its mode."""

    name, rules = "cached-credential", ("RT-CRED-74", "RT-CRED-73")
    needs = "two jobs one after the other, half a second between them"

    class Inputs(inputs.Inputs):
        """Saves a request."""

        cache: ClassVar[dict[str, Credential]] = {}

        async def credential(self) -> Credential:
            """The first one."""
            mode = self.hold.job.api_key_mode
            if mode not in self.cache:
                self.cache[mode] = await super().credential()
            return self.cache[mode]


class OwnKeyIgnored(Fault):
    """In mode `platform_key` the key of the answer is used alone, never its own `PLATFORM_MODEL_API_KEY`."""

    name, rules = "own-key-ignored", ("RT-CRED-11", "RT-CRED-76", "RT-CRED-73")
    needs = "`PLATFORM_MODEL_API_KEY` set, and another key in the answer, or none"

    class Inputs(inputs.Inputs):
        """Has never heard of it."""

        def key(self, job: Job, answered: Any) -> str:
            """What is answered."""
            return answered if isinstance(answered, str) else ""


class NoCredentialId(Fault):
    """A resolve does not name the credential."""

    name, rules = "no-credential-id", ("RT-CRED-02",)
    needs = "a job of mode user_deepseek_key"

    class Api(api.Api):
        """Leaves it out."""

        async def resolve(self, job: Job, patience: float) -> Answer:
            """Without it."""
            body = {"jobId": job.id, "apiKeyMode": job.api_key_mode, "provider": job.provider}
            return await self.call("POST", "/model-credentials/resolve", body, patience)


class FollowsRedirects(Fault):
    """A redirect of the model is followed, with the key."""

    name, rules = "follows-redirects", ("RT-CRED-75",)
    needs = "a model call answered 302 or 307"

    class Model(model.Model):
        """Goes where it is sent."""

        async def plain(self, credential: Credential, messages: Messages) -> Completion:
            """Once."""
            headers, content = self.request(credential, messages)
            response = await self.client.post(self.url(credential), headers=headers, content=content)
            if response.is_redirect:
                target = urljoin(self.url(credential), response.headers.get("location", ""))
                response = await self.client.post(target, headers=headers, content=content)
            if not response.is_success:
                raise self.refused(response)
            return self.completion(response.content)
