"""Faults by which keys get where they do not belong."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime import inputs, logs, model, reports
from conformance.examples.python_runtime.failures import JobFailed
from conformance.examples.python_runtime.faulty import Fault
from conformance.examples.python_runtime.say import say

if TYPE_CHECKING:
    import httpx

    from conformance.examples.python_runtime.failures import Failure
    from conformance.examples.python_runtime.inputs import Credential
    from conformance.examples.python_runtime.jobs import Hold
    from conformance.examples.python_runtime.logs import Entry
    from conformance.examples.python_runtime.model import Completion, Messages

_KEYS: dict[str, str] = {}
"""What the careless Runtimes of this module keep: the latest key, under `key`."""


class _Remembers(inputs.Inputs):
    """Keeps the key after it was resolved."""

    async def credential(self) -> Credential:
        """As usual, and kept."""
        credential = await super().credential()
        _KEYS["key"] = credential.key
        return credential


class KeyOnOutput(Fault):
    """Every resolved credential is printed for whoever looks for errors."""

    name, rules = "key-on-output", ("RT-CRED-78", "RT-CRED-08")
    rows = ("CF-49",)
    needs = "a job with a key"

    class Inputs(inputs.Inputs):
        """Talks."""

        async def credential(self) -> Credential:
            """Prints it."""
            credential = await super().credential()
            say(f"credential for {credential.model}: {credential.key}")
            return credential


class KeyOnOutputEncoded(Fault):
    """The header with the key is printed in base64 where a model call failed."""

    name, rules = "key-on-output-encoded", ("RT-CRED-79", "RT-CRED-78")
    rows = ("CF-49",)
    needs = "a model call that fails"

    class Model(model.Model):
        """Dumps its request."""

        async def ask(self, hold: Hold, credential: Credential, messages: Messages) -> Completion:
            """As usual; what failed is dumped."""
            try:
                return await super().ask(hold, credential, messages)
            except JobFailed:
                say(f"request failed: {base64.b64encode(credential.key.encode()).decode()}")
                raise


class TokenOnOutput(Fault):
    """Prints its configuration at the first poll, the service token included."""

    name, rules = "token-on-output", ("RT-AUTH-63",)
    rows = ("CF-49",)
    needs = "a start"

    async def main(self) -> None:
        """Talks first."""
        say(f"configured: {self.config}")
        await super().main()


class KeyInErrorMessage(Fault):
    """A failure's `errorMessage` tells which key was refused."""

    name, rules = "key-in-error-message", ("RT-CRED-08",)
    rows = ("CF-50",)
    needs = "a job that fails after its credential was resolved"
    Inputs = _Remembers

    class Reports(reports.Reports):
        """Tells all."""

        async def failure(self, failure: Failure) -> None:
            """With the key."""
            await super().failure(replace(failure, message=f"{failure.message} (key {_KEYS.get('key')})"))


class CopiesErrorBodies(Fault):
    """`rawError` is what the provider answered, which may repeat the header with the key."""

    name, rules = "copies-error-bodies", ("RT-FAIL-09", "RT-CRED-08")
    rows = ("CF-50",)
    needs = "a model's refusal whose body repeats the Authorization header"

    class Model(model.Model):
        """Copies."""

        def refused(self, response: httpx.Response) -> JobFailed:
            """With the body."""
            failed = super().refused(response)
            failed.failure = replace(failed.failure, raw=response.text[:2000])
            return failed


class KeyInRawErrorEncoded(Fault):
    """`rawError` holds the failed request in hex, the key in it."""

    name, rules = "key-in-raw-error-encoded", ("RT-CRED-79", "RT-FAIL-09")
    rows = ("CF-50",)
    needs = "a job that fails after its credential was resolved"
    Inputs = _Remembers

    class Reports(reports.Reports):
        """Dumps."""

        async def failure(self, failure: Failure) -> None:
            """With the key in hex."""
            await super().failure(replace(failure, raw=f"request {_KEYS.get('key', '').encode().hex()}"))


class KeyInQuery(Fault):
    """The model is called with the key in the query string, too."""

    name, rules = "key-in-query", ("RT-CRED-77",)
    needs = "a model call"

    class Model(model.Model):
        """As some providers want it."""

        def url(self, credential: Credential) -> str:
            """With the key."""
            return f"{super().url(credential)}?key={credential.key}"


class KeyInLog(Fault):
    """Invocation logs have a field `apiKey`."""

    name, rules = "key-in-log", ("RT-LOG-08", "RT-CRED-08")
    rows = ("CF-50",)
    needs = "a model call"
    Inputs = _Remembers

    class Logs(logs.Logs):
        """Logs all."""

        def add(self, entry: Entry) -> None:
            """With the key."""
            super().add({**entry, "apiKey": _KEYS.get("key", "")})


class KeyInLogMessage(Fault):
    """The log of a failed call tells in `errorMessage` which key was used."""

    name, rules = "key-in-log-message", ("RT-CRED-08",)
    rows = ("CF-50",)
    needs = "a model call that fails"
    Inputs = _Remembers

    class Logs(logs.Logs):
        """Logs all."""

        def add(self, entry: Entry) -> None:
            """With the key."""
            told: dict[str, Any] = {} if entry["success"] else {"errorMessage": f"refused: Bearer {_KEYS.get('key')}"}
            super().add({**entry, **told})
