"""What do fault plans cost a poll that none of them meets?

    python benchmarks/poll_with_plans.py [--seconds 5] [--rounds 3] [--connections 16]

The reference serves the same poll without a plan, with one plan of another operation, and with ten that count each
poll by its caller (which they read from the body) and draw for it. Turns, load and state are those of
``poll_vs_stock.py``. Prints how many times as much time a poll takes: by the medians of the rates, and by the least CPU
time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import statistics

from poll_vs_stock import PLANS, turn


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    rates: dict[str, list[float]] = {"reference": [], **{name: [] for name in PLANS}}
    times: dict[str, list[float]] = {kind: [] for kind in rates}
    for number in range(1, options.rounds + 1):
        for kind, found in rates.items():
            rate, cpu, _ = turn(kind, options.connections, options.seconds)
            found.append(rate)
            times[kind].append(cpu)
            print(f"round {number}  {kind:9}  {rate:8,.0f} polls/s   about {cpu:4.0f} us CPU each", flush=True)
    without = statistics.median(rates["reference"])
    for kind in PLANS:
        by_rate, by_cpu = without / statistics.median(rates[kind]), min(times[kind]) / min(times["reference"])
        print(f"with {kind} / without: {by_rate:.2f} by the rate, {by_cpu:.2f} by CPU time")


if __name__ == "__main__":
    main()
