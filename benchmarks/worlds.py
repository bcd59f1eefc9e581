"""What does a world cost: to make, reset, snapshot, restore, export and drop it, over HTTP, while 1,000 others live?

    python benchmarks/worlds.py [--worlds 1000] [--rounds 500]

A mock is started in a process of its own with so many worlds; then one world after the other is made and used through
the control plane on one kept connection, so that every time is a caller's. Prints a table of medians and of the 99th
percentiles in milliseconds, and the memory of the mock; exit 1 where the median of creating, resetting or dropping one
is over 2 ms.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import yaml

MOST = 2.0
SERVE = [sys.executable, "-c", "from mock_server.serve import serve_command; serve_command()"]


class Caller:
    """One kept connection; ``times`` has what each kind of call took, milliseconds."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(url.partition("//")[2])
        self.times: dict[str, list[float]] = {}

    def ask(self, kind: str, method: str, path: str, body: object = None) -> dict:
        content = None if body is None else json.dumps(body).encode()
        begin = time.perf_counter()
        self.connection.request(method, path, content, {"content-type": "application/json"})
        answer = self.connection.getresponse()
        raw = answer.read()
        self.times.setdefault(kind, []).append((time.perf_counter() - begin) * 1000)
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {raw.decode()}")
        return json.loads(raw) if raw else {}


def memory(pid: int) -> str:
    """The resident memory of a process, where the system tells it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "not known"
    return f"{int(status.partition('VmRSS:')[2].split()[0]) / 1024:.0f} MB"


def measure(caller: Caller, rounds: int) -> None:
    """So many worlds, empty and with data, from their making to their end."""
    data = yaml.safe_load(files("mock_server").joinpath("data/example.yaml").read_text())
    worlds = "/__control__/worlds"
    for _ in range(rounds):
        for kind, options in (("create", {}), ("create, with five jobs", {"data": data})):
            path = f"{worlds}/{caller.ask(kind, 'POST', worlds, {'clock': 'manual', **options})['id']}"
            if options:
                caller.ask("snapshot", "POST", f"{path}/snapshots", {"name": "s"})
                caller.ask("restore", "POST", f"{path}/snapshots/s/restore")
                caller.ask("export", "GET", f"{path}/data")
                caller.ask("reset, with five jobs", "POST", f"{path}/reset")
            else:
                caller.ask("reset", "POST", f"{path}/reset")
            caller.ask("drop", "DELETE", path)
        path = caller.ask("create, with a port", "POST", worlds, {"port": True})["id"]
        caller.ask("drop, with a port", "DELETE", f"{worlds}/{path}")
        path = caller.ask("create, with a key", "POST", worlds, {"apiKey": f"key-of-{path}"})["id"]
        caller.ask("drop, with a key", "DELETE", f"{worlds}/{path}")
        caller.ask("(a request that does nothing)", "GET", "/__control__/health")


def main() -> int:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=500)
    options = parser.parse_args()
    with subprocess.Popen([*SERVE, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            caller = Caller(json.loads(process.stdout.readline())["baseUrl"])
            before = memory(process.pid)
            for _ in range(options.worlds):
                caller.ask("others", "POST", "/__control__/worlds", {"clock": "manual"})
            after = memory(process.pid)
            measure(caller, options.rounds)
        finally:
            process.terminate()
    del caller.times["others"]
    print(f"{'':32}{'median ms':>10}{'99 % ms':>10}")
    for kind, times in caller.times.items():
        print(f"{kind:32}{statistics.median(times):10.2f}{statistics.quantiles(times, n=100)[98]:10.2f}")
    print(f"memory: {before} with one world, {after} with {options.worlds} more")
    slow = [kind for kind in ("create", "reset", "drop") if statistics.median(caller.times[kind]) > MOST]
    print(f"over {MOST:.0f} ms: {', '.join(slow) or 'none'} of create, reset and drop")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
