"""Runtimes that race for one job on connections of their own, while time moves and faults meet them; and the history.

A grant's lease begins at ``lockUntil`` minus a minute, of the world's clock, which moves only when it is advanced: so
two leases that overlap are two holders at one instant, whatever order the answers came in and whoever lost them.
"""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from itertools import pairwise

from mock_world import KEY

LEASE = 60_000
RACERS = 8
READ_EVERY = 40
LONG = 10**9

LOST_AND_LATE = [
    {"fault": {"kind": "reset", "at": "after-commit"}, "match": {"operationId": "lockJob"}, "when": {"share": 0.05}},
    {"fault": {"kind": "close", "at": "after-commit"}, "when": {"share": 0.03, "seed": 1}},
    {"fault": {"kind": "reset", "at": "before"}, "when": {"share": 0.02, "seed": 2}},
    {
        "fault": {"kind": "close", "at": "mid-body"},
        "match": {"operationId": "lockJob"},
        "when": {"share": 0.02, "seed": 3},
    },
    {"fault": {"kind": "status", "status": 503}, "when": {"share": 0.02, "seed": 4}},
    {"fault": {"kind": "delay", "distribution": {"uniform": [0.0002, 0.004]}}, "when": {"share": 0.1, "seed": 5}},
    {
        "fault": {"kind": "delay", "distribution": {"uniform": [0.0002, 0.004]}, "at": "answer"},
        "when": {"share": 0.1, "seed": 6},
    },
]


class Caller(asyncio.Protocol):
    """One connection; an answer that does not come whole is None."""

    def __init__(self, port):
        self.port = port
        self.transport = self.waiting = None
        self.buffer, self.expected = b"", 0

    async def ask(self, request):
        """Status and body of the answer, or None."""
        if self.transport is None or self.transport.is_closing():
            self.transport, _ = await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self.port)
        self.buffer, self.expected = b"", 0
        self.waiting = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.waiting

    def data_received(self, data):
        self.buffer += data
        if not self.expected:
            head, end, _ = self.buffer.partition(b"\r\n\r\n")
            if not end:
                return
            self.head = len(head) + 4
            _, found, rest = head.lower().partition(b"content-length: ")
            self.expected = self.head + (int(rest.partition(b"\r\n")[0]) if found else 0)
        if len(self.buffer) >= self.expected and not self.waiting.done():
            self.waiting.set_result((int(self.buffer[9:12]), self.buffer[self.head :]))

    def connection_lost(self, _error):
        self.transport = None
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)


def request(method, path, body=None, caller=None):
    """The bytes of a request."""
    content = b"" if body is None else json.dumps(body).encode()
    fields = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(content)}"]
    fields += ["content-type: application/json"] if content else []
    fields += [f"x-internal-api-key: {KEY}", f"x-runtime-instance-id: {caller}"] if caller else []
    return "\r\n".join([*fields, "", ""]).encode() + content


def _until(grant):
    return grant[1]


@dataclass
class History:
    """What happened to one job."""

    rounds: int = 0
    grants: list = field(default_factory=list)
    """Of the server's journal: who, lockUntil, attemptNo."""
    beats: list = field(default_factory=list)
    """Of the server's journal: who, and an instant at or before which the heartbeat was accepted."""
    told: list = field(default_factory=list)
    """Grants as clients were told of them."""
    lost: int = 0
    late: int = 0

    def double_locks(self):
        """Each pair of grants with an instant at which both hold."""
        grants = sorted(self.grants, key=_until)
        found = [(a, b) for a, b in pairwise(grants) if b[1] - LEASE <= a[1]]
        # A heartbeat that was accepted keeps its sender's lease for a minute at least.
        held, number = None, 0
        for who, at in sorted(self.beats, key=lambda beat: beat[1]):
            while number < len(grants) and grants[number][1] - LEASE <= at:
                held, number = grants[number], number + 1
            assert held is not None
            if held[0] != who:
                found.append((held, (who, at)))
            if number < len(grants) and grants[number][1] - LEASE <= at + LEASE:
                found.append(((who, at), grants[number]))
        return found

    def judge(self):
        """Raises ``AssertionError`` for two holders, an attempt that is missing or there twice, a false answer."""
        doubles = self.double_locks()
        assert not doubles, f"{len(doubles)} double locks, first {doubles[0]}"
        # In the order of the leases; answers that came late stand later in the journal.
        assert [attempt for _, _, attempt in sorted(self.grants, key=_until)] == [*range(len(self.grants))]
        assert set(self.told) <= set(self.grants)
        assert len(self.told) == len(set(self.told))


class Race:
    """One world in which Runtimes race for one job, round after round."""

    def __init__(self, port, path, seed):
        self.path, self.random = path, random.Random(seed)
        self.control = Caller(port)
        self.racers = [(f"runtime-{i}", Caller(port)) for i in range(RACERS)]
        self.history = History()
        self.since = 0

    async def told(self, method, path, body=None):
        """The JSON that the control plane answers."""
        status, raw = await self.control.ask(request(method, f"{self.path}/__control__{path}", body))
        assert status in (200, 201), raw
        return json.loads(raw)

    async def state(self, state, **params):
        """A provider state's values."""
        body = {"action": "setup", "state": state, "params": params}
        return await self.told("POST", "/provider-states/runtime-api", body)

    async def run(self, rounds):
        """The history of so many rounds."""
        created = await self.state("job", maxRetryCount=LONG, timeoutSeconds=LONG)
        job = f"{self.path}/internal/runtime/jobs/{created['jobId']}"
        locks = [request("POST", f"{job}/lock", {"runtimeInstanceId": who}, who) for who, _ in self.racers]
        beats = [request("POST", f"{job}/heartbeat", {"runtimeInstanceId": who}, who) for who, _ in self.racers]
        if not self.since:
            await self.told("POST", "/faults", [{**plan, "when": dict(plan["when"])} for plan in LOST_AND_LATE])
        for number in range(1, rounds + 1):
            await self.round(locks, beats)
            if number % READ_EVERY == 0 or number == rounds:
                await self.read()
        for caller in [self.control, *(caller for _, caller in self.racers)]:
            if caller.transport is not None:
                caller.transport.close()
        return self.history

    async def round(self, locks, beats):
        """All ask for the job at once while the clock moves: mostly over the end of the lease, at times just not."""
        chance = self.random
        seconds = chance.choices([60.001, 61, 60, 30, 200], [5, 5, 1, 1, 1])[0]
        order = [*range(RACERS)]
        chance.shuffle(order)
        asking = [self.racers[i][1].ask(locks[i]) for i in order]
        asking.insert(chance.choice([0, 0, 0, 4, RACERS]), self.state("advance-time", seconds=seconds))
        answers = [answer for answer in await asyncio.gather(*asking) if not isinstance(answer, dict)]
        self.history.rounds += 1
        winner = None
        for i, answer in zip(order, answers, strict=True):
            if answer is None:
                self.history.lost += 1
            elif answer[0] == 200:
                body, winner = json.loads(answer[1]), i
                self.history.told.append((self.racers[i][0], body["lockUntil"], body["attemptNo"]))
            else:
                assert answer[0] in (409, 503), answer
        if winner is not None and chance.random() < 0.2:
            await asyncio.gather(self.state("advance-time", seconds=20), self.racers[winner][1].ask(beats[winner]))

    async def read(self):
        """Add to the history what the journal has; it comes once every request of the round has ended."""
        while True:
            found = await self.told("GET", f"/journal?since={self.since}&limit=1000")
            for entry in found["entries"]:
                self.since = entry["number"]
                self.history.late += bool(entry["fault"] and entry["fault"]["seconds"])
                if entry["status"] == 200 and entry["operationId"] == "lockJob":
                    body = json.loads(entry["responseBody"])
                    self.history.grants.append((entry["caller"], body["lockUntil"], body["attemptNo"]))
                elif entry["status"] == 204 and entry["operationId"] == "heartbeatJob":
                    self.history.beats.append((entry["caller"], entry["at"]))
            if len(found["entries"]) < 1000:
                return


async def _make(port, mutant):
    caller = Caller(port)
    status, raw = await caller.ask(request("POST", "/__control__/worlds", {"clock": "manual", "mutant": mutant}))
    assert status == 201, raw
    caller.transport.close()
    return json.loads(raw)["path"]


async def contend(ports, rounds, worlds, mutant=None):
    """The histories of so many rounds, spread over worlds that run at once on the servers at ``ports``."""
    paths = [(ports[i % len(ports)], await _make(ports[i % len(ports)], mutant)) for i in range(worlds)]
    shares = [rounds // worlds + (i < rounds % worlds) for i in range(worlds)]
    races = [Race(port, path, seed) for seed, (port, path) in enumerate(paths)]
    return await asyncio.gather(*(race.run(share) for race, share in zip(races, shares, strict=True)))
