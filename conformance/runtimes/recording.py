"""What is recorded of one scenario: the exchanges of its world, and what happened beside them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.recorded import Known, histories

if TYPE_CHECKING:
    from conformance.runtimes.leaks import Leak
    from conformance.runtimes.mock import MockWorld
    from contract_tests.runtime.history import Facts, History


class Recording:
    """The recording of one scenario, as far as it was read from the world's journal."""

    def __init__(self, world: MockWorld, facts: Facts, others: list[str]) -> None:
        """``others``: the instance ids of other Runtimes that are played."""
        self.world, self.facts = world, facts
        self.events: list[dict[str, Any]] = []
        self._others = others
        self._known: Known = {}
        self._made: tuple[tuple[int, int], History] | None = None

    def tell(self, kind: str, at: float | None = None, **data: Any) -> None:
        """Something happened beside the requests, now, or ``at`` (epoch seconds)."""
        self.events.append({"at": (time.time() if at is None else at) * 1000, "kind": kind, **data})

    def leaked(self, leak: Leak) -> None:
        """A secret was in the process's output."""
        self.tell("output", secret=leak.secret, form=leak.form, text=leak.text)

    @property
    def zero(self) -> float:
        """The instant from which a history's seconds count, epoch seconds: that of the first event."""
        return float(self.events[0]["at"]) / 1000

    @property
    def log(self) -> dict[str, Any]:
        """The archive's ``log``."""
        facts = self.facts
        runtime = {
            "instanceId": facts.instance_id,
            "pollIntervalMs": _ms(facts.poll),
            "heartbeatIntervalMs": _ms(facts.heartbeat),
            "modelTimeoutMs": _ms(facts.model_timeout),
            "lockSeconds": facts.lock,
            "ownKey": facts.own_key,
            "others": self._others,
        }
        told = {"scenario": facts.scenario, "runtime": runtime, "events": self.events}
        return {**self.world.archive, "entries": self.world.entries, "_scenarios": {self.world.path: told}}

    @property
    def history(self) -> History:
        """What monitors would judge now."""
        size = (len(self.world.entries), len(self.events))
        if self._made is None or self._made[0] != size:
            self._made = (size, histories(self.log, self._known)[0])
        return self._made[1]

    @property
    def polled(self) -> bool:
        """Whether the Runtime polled, as far as it was read."""
        return bool(self.history.polls)


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
