"""How fast is a validated poll, against a stock Connexion handler on the same machine in the same minutes?

    python benchmarks/poll_vs_stock.py [--seconds 5] [--rounds 3] [--connections 16]

Two servers answer the same poll from the same specification, handlers and 1,000 jobs of state, one after the other, in
turns: the reference (request and response validated, journal on) and Connexion's ``AsyncApp`` as its manual shows it
(request validated). Both run on uvicorn with uvloop and httptools, without an access log, in a process of their own. A
load generator of ours keeps the connections busy and checks that every answer is a 200 of the same length as the first.
Prints the requests per second of each turn, the CPU time per request, and the ratio of the medians; exit 1 below 4.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import resource
import signal
import statistics
import subprocess
import sys
import time
from typing import Any

import uvloop

LEAST = 4.0
KEY = "benchmark-key"
JOBS = 1000
TYPES = [
    "learning_state_analysis",
    "weak_point_analysis",
    "next_action_planning",
    "quiz_generation",
    "flashcard_generation",
]
BODY = json.dumps(
    {
        "runtimeInstanceId": "runtime-001",
        "supportedJobTypes": ["learning_state_analysis", "quiz_generation"],
        "limit": 5,
        "capabilities": {
            "supportedSnapshotVersions": ["ai_snapshot_v1"],
            "supportedOutputSchemaVersions": ["analysis_output_v1", "quiz_output_v1"],
        },
    }
).encode()
REQUEST = (
    b"POST /internal/runtime/jobs/poll HTTP/1.1\r\nhost: 127.0.0.1\r\nx-internal-api-key: "
    + KEY.encode()
    + b"\r\nx-runtime-instance-id: runtime-001\r\ncontent-type: application/json\r\ncontent-length: "
    + str(len(BODY)).encode()
    + b"\r\n\r\n"
    + BODY
)

PLANS: dict[str, list[dict[str, Any]]] = {
    "a plan": [{"match": {"operationId": "lockJob"}, "fault": {"kind": "reset"}}],
    "ten plans": [
        {
            "match": {"operationId": "pollJobs", "caller": "runtime-001"},
            "when": {"share": 1e-9, "seed": i, "perCaller": True},
            "fault": {"kind": "reset"},
        }
        for i in range(10)
    ],
}
"""Fault plans that meet no poll: one of another operation, and ten that count, draw and read bodies."""


class Caller(asyncio.Protocol):
    """One connection that polls again as soon as an answer is there; ``count`` counts full answers."""

    def __init__(self) -> None:
        self.count = 0
        self.expected = 0
        self.buffer = b""
        self.failed: str | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        if not self.expected:
            head, end, _ = self.buffer.partition(b"\r\n\r\n")
            if not end:
                return
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            self.expected = len(head) + 4 + int(fields[b"content-length"])
        if len(self.buffer) < self.expected:
            return
        if len(self.buffer) > self.expected or not self.buffer.startswith(b"HTTP/1.1 200"):
            self.failed = self.buffer[:300].decode("latin-1")
            self.transport.close()
            return
        self.buffer = b""
        self.count += 1
        self.transport.write(REQUEST)


async def load(port: int, connections: int, seconds: float) -> float:
    """Answers per second."""
    loop = asyncio.get_running_loop()
    callers = [(await loop.create_connection(Caller, "127.0.0.1", port))[1] for _ in range(connections)]
    await asyncio.sleep(1)  # warm
    before, start = sum(caller.count for caller in callers), time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (sum(caller.count for caller in callers) - before) / (time.perf_counter() - start)
    for caller in callers:
        caller.transport.close()
        if caller.failed is not None:
            raise SystemExit(f"an answer is not the expected 200:\n{caller.failed}")
    return rate


def serve(kind: str) -> None:
    """Serve on a port that the system picks; tells it, and at the end the CPU seconds that were used."""
    import uvicorn

    from mock_server.control import Guard
    from mock_server.fault_plans import plans_of
    from mock_server.provider_states import snapshot_content
    from mock_server.seed_data import SeedData
    from mock_server.serve import listen
    from mock_server.server import Server
    from mock_server.stock import stock_app
    from mock_server.wire import HTTP
    from mock_server.worlds import Options, Worlds

    logging.disable(logging.WARNING)  # Connexion warns that its Swagger UI is not installed
    worlds = Worlds(Options(api_key=KEY))
    jobs = [
        {
            "id": f"job-{i:05d}",
            "userId": "user-1",
            "jobType": TYPES[i % 5],
            "targetType": "material",
            "targetId": "mat-1",
            "snapshotId": f"snap-{i:05d}",
            "priority": i % 7,
            "promptVersion": "learning_state_v1",
        }
        for i in range(JOBS)
    ]
    content = snapshot_content(worlds.default, allow_document=True, fields=[])
    snapshots = [{"id": f"snap-{i:05d}", "content": content} for i in range(JOBS)]
    app = stock_app(worlds.default) if kind == "stock" else Server(worlds, Guard(None, None))
    if kind in PLANS:
        worlds.default.faults.add(plans_of(PLANS[kind], worlds.default.build.targets))
    sock = listen("127.0.0.1", 0)
    config = uvicorn.Config(app, log_level="error", access_log=False, loop="uvloop", http=HTTP)
    server = uvicorn.Server(config)

    async def run() -> None:
        await worlds.default.fill(SeedData.parse({"jobs": jobs, "snapshots": snapshots}))
        sys.stdout.write(f"{sock.getsockname()[1]}\n")
        sys.stdout.flush()
        gc.collect()
        gc.freeze()
        used = time.process_time()
        await server.serve([sock])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        sys.stdout.write(json.dumps({"cpu": time.process_time() - used, "memory": memory}) + "\n")
        sys.stdout.flush()

    signal.signal(signal.SIGTERM, lambda *_: None)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())


def turn(kind: str, connections: int, seconds: float) -> tuple[float, float, int]:
    """One turn of a server: requests per second, CPU microseconds per request, largest memory in MB."""
    with subprocess.Popen([sys.executable, __file__, "--serve", kind], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                rate = runner.run(load(port, connections, seconds))
        finally:
            process.terminate()
        end = json.loads(process.stdout.readline())
    return rate, end["cpu"] / (rate * (seconds + 1)) * 1e6, end["memory"]


def main() -> int:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--serve", choices=["reference", "stock", *PLANS], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    rates: dict[str, list[float]] = {"stock": [], "reference": []}
    for number in range(1, options.rounds + 1):
        for kind, found in rates.items():
            rate, cpu, memory = turn(kind, options.connections, options.seconds)
            found.append(rate)
            print(
                f"round {number}  {kind:9}  {rate:8,.0f} polls/s   about {cpu:4.0f} us CPU each   {memory} MB",
                flush=True,
            )
    ratio = statistics.median(rates["reference"]) / statistics.median(rates["stock"])
    print(f"reference / stock Connexion: {ratio:.1f} (at least {LEAST:.0f})")
    return 0 if ratio >= LEAST else 1


if __name__ == "__main__":
    raise SystemExit(main())
