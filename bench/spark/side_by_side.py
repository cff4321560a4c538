"""All sections in one run, on one Spark and one Kafka: `python bench/run.py spark`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from measure import Figure
from rich.console import Console

from spark import (
    aims,
    backfilling,
    cold_start,
    first_row,
    latency,
    memory,
    reading,
    report,
    streaming,
    writing,
)
from spark.contest import Line, Rounds
from spark.workbench import Workbench, workbench

MESSAGES = 2_000_000
ROUNDS = Rounds(warm_up=2, measured=3)
SECTIONS: dict[str, Callable[[Workbench], list[Line]]] = {
    "read": reading.lines,
    "stream": streaming.lines,
    "sink": writing.lines,
    "latency": latency.lines,
    "start": cold_start.lines,
    "first": first_row.lines,
    "memory": memory.lines,
    "backfill": backfilling.lines,
}


def measure(
    console: Console,
    *,
    rows: int,
    sections: Sequence[str],
    json: Path | None,
    rounds: Rounds = ROUNDS,
) -> list[Figure]:
    """Run the sections, show their lines and return the aims."""
    # Ended by a signal, too, the bench has to stop the broker that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    lines: list[Line] = []
    with workbench(rows, rounds, delta="backfill" in sections) as bench:
        for section in sections:
            console.print(f"measuring: {section}")
            lines += SECTIONS[section](bench)
    console.print(report.as_table(lines, f"{rows:,} messages, Spark local[2]"))
    figures = list(aims.figures(lines))
    if json:
        report.write_json(json, lines, figures)
    return figures
