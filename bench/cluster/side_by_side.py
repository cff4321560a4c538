"""Spark on clusters in one run: `python bench/run.py cluster`. The aims are ratios of its lines."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from measure import Figure
from rich.console import Console
from spark import latency, reading, report, streaming, writing
from spark.contest import Line, Rounds
from spark.latency import Pace
from spark.workbench import workbench

from cluster.contests import latencies, reads, sinks, streams
from cluster.places import filled_places


@dataclass(frozen=True)
class Effort:
    """How much, how often, how long."""

    rows: int
    rounds: Rounds
    pace: Pace
    heap: str  # of Apache's broker


FULL = Effort(rows=1_000_000, rounds=Rounds(warm_up=2, measured=3), pace=latency.PACE, heap="1g")
QUICK = Effort(
    rows=50_000,
    rounds=Rounds(warm_up=0, measured=1),
    pace=Pace(warm_up_s=4, measured_s=4),
    heap="512m",
)
# At most so many times the CPU of Kafka's connector as it comes, by the place that is read.
_CPU_AIMS = {
    reading.READING: {"our broker": 1.0, "Apache's broker": 2.0},
    streaming.SECTION: {"our broker": 1.0, "Apache's broker": 2.0},
    writing.SECTION: {"our broker": 1.3, "Apache's broker": 2.0},
}


def measure(console: Console, *, quick: bool) -> list[Figure]:
    """Measure all, show the lines and return the aims. Quick figures only show that all works."""
    # Ended by a signal, too, the bench has to stop the brokers that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    effort = QUICK if quick else FULL
    lines: list[Line] = []
    with (
        workbench(effort.rows, effort.rounds) as bench,
        filled_places(bench, heap=effort.heap) as places,
    ):
        for section in (reads, streams, sinks):
            console.print(f"measuring: {section.__name__}")
            lines += section(bench, places)
        console.print("measuring: latencies")
        lines += latencies(bench, places, effort.pace)
    console.print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    console.print(report.as_table(lines, f"{effort.rows:,} messages, Spark local[2]"))
    return [*_cpu_figures(lines), *_latency_figures(lines)]


def _cpu_figures(lines: Sequence[Line]) -> Iterator[Figure]:
    found = {(line.section, line.name): line.figures.get("cpu_s", float("nan")) for line in lines}
    for section, aims in _CPU_AIMS.items():
        for place, most in aims.items():
            ours = found[section, f"rocketpy, {place}"]
            for other, aim in (("Kafka default", f"<= {most:g}"), ("Kafka tuned", "")):
                ratio = ours / found[section, other]
                yield Figure(f"{section}, {place}, CPU of {other}", ratio, "times", aim)


def _latency_figures(lines: Sequence[Line]) -> Iterator[Figure]:
    late = {line.name: line.figures for line in lines if line.section == latency.SECTION}
    for place in ("our broker", "Apache's broker"):
        for figure in ("p50_s", "p99_s"):
            ours = late[f"rocketpy, {place}"].get(figure, float("nan"))
            ratio = ours / late["Kafka tuned"][figure]
            yield Figure(f"latency, {place}, {figure[:3]} of Kafka tuned", ratio, "times", "<= 1")
