"""A world whose model is called as a Runtime calls it."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
from mock_world import KEY, World

BODY = {"model": "deepseek-chat", "messages": [{"role": "user", "content": "How does the learner do?"}]}


@dataclass
class Resolved:
    """What a resolve handed out."""

    job: str
    url: str
    key: str | None

    @property
    def token(self):
        """Its own part of the URL."""
        return self.url.split("/")[-4]


class ModelWorld(World):
    """A world with a model."""

    def script(self, *scripts):
        """Put scripts in the place of those that are there; what is shown of them."""
        answer = self.try_scripts(list(scripts))
        assert answer.status_code == 200, answer.text
        return answer.json()["scripts"]

    def try_scripts(self, body):
        """Put scripts that may be refused."""
        return self.control("PUT", "/model/scripts", json=body)

    def answered(self):
        """How many calls each script answered."""
        return [script["answered"] for script in self.control("GET", "/model/scripts").json()["scripts"]]

    def resolved(self, by="runtime-1", **params):
        """A job that is locked, with what a resolve handed out for it."""
        return self.resolved_again(self.locked(by, **params), by)

    def resolved_again(self, job, by="runtime-1", **body):
        """Another resolve of a job."""
        answer = self.resolve(job, by, **body)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return Resolved(job, f"{found['baseUrl']}/chat/completions", found.get("apiKey"))

    def ask(self, resolved, body=None, key=None, **options):
        """One model call, with the key that was handed out unless it is another."""
        headers = {"authorization": f"Bearer {key or resolved.key}", **options.pop("headers", {})}
        headers = {name: value for name, value in headers.items() if value is not None}
        return self.client.post(resolved.url, json=BODY if body is None else body, headers=headers, **options)

    def text(self, resolved, **body):
        """The text of a completion."""
        answer = self.ask(resolved, {**BODY, **body})
        assert answer.status_code == 200, answer.text
        return answer.json()["choices"][0]["message"]["content"]

    def stream(self, resolved, **body):
        """The chunks of a streamed completion, which came to its end."""
        answer = self.ask(resolved, {**BODY, "stream": True, **body})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
        *events, end = answer.text.removesuffix("\n\n").split("\n\n")
        assert end == "data: [DONE]"
        return [json.loads(event.removeprefix("data: ")) for event in events]

    def calls(self, number, **query):
        """Journal entries of model calls, once there are so many."""
        end = time.monotonic() + 5
        while len(found := self.journal(operationId="chatCompletions", **query)) < number:
            assert time.monotonic() < end, f"{len(found)} of {number} calls ended"
            time.sleep(0.01)
        return found


@contextmanager
def world_on(base_url, **options):
    """A world of its own."""
    with httpx.Client(trust_env=False, verify=False) as client:
        made = client.post(f"{base_url}/__control__/worlds", json=options)
        assert made.status_code == 201, made.text
        yield ModelWorld(client, base_url, made.json()["path"])
        client.delete(f"{base_url}/__control__/worlds/{made.json()['id']}")


__all__ = ["BODY", "KEY", "ModelWorld", "Resolved", "world_on"]
