"""A short form of the comparisons with Kafka's connector, held to what was noted of the last one.

`python bench/check.py` fails if a ratio is more than a quarter worse than in `noted.json`, so that
who makes a change that costs speed sees it. `--note` writes the ratios of this run there instead.
Both sides of a ratio are of one run: it means the same on any machine on which nothing else runs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table
from spark import side_by_side
from spark.contest import Rounds

NOTED = Path(__file__).with_name("noted.json")
MESSAGES = 300_000
SECTIONS = ("read", "stream", "sink", "backfill")
ROUNDS = Rounds(warm_up=1, measured=3)
MOST = 1.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--note", action="store_true", help="write the ratios, compare nothing")
    is_noting = parser.parse_args().note
    console = Console(width=120)
    found = _measured(console)
    if is_noting:
        NOTED.write_text(json.dumps(found, indent=2) + "\n")
        return
    noted = json.loads(NOTED.read_text())
    worse = {what for what in noted if times_worse(what, found, noted) > MOST}
    console.print(_table(found, noted, worse))
    if worse:
        console.print(f"load of the machine: {os.getloadavg()[0]:.1f}; on a busy one run it again")
        sys.exit(f"{len(worse)} of {len(noted)} ratios are more than a quarter worse than noted")


def times_worse(what: str, found: Mapping[str, float], noted: Mapping[str, float]) -> float:
    """Return how many times worse a ratio is than noted; one that is missing is infinitely so."""
    now = found.get(what, math.nan)
    if math.isnan(now):
        return math.inf
    return noted[what] / now if "rows/s" in what else now / noted[what]


def _measured(console: Console) -> dict[str, float]:
    figures = side_by_side.measure(
        console, rows=MESSAGES, sections=SECTIONS, rounds=ROUNDS, json=None
    )
    return {figure.what: round(figure.value, 3) for figure in figures if figure.unit == "times"}


def _table(found: Mapping[str, float], noted: Mapping[str, float], worse: set[str]) -> Table:
    table = Table(title=f"{MESSAGES:,} messages")
    for heading in ("ratio", "noted", "now", "times worse"):
        table.add_column(heading, justify="left" if heading == "ratio" else "right")
    for what, before in noted.items():
        now, times = found.get(what, math.nan), times_worse(what, found, noted)
        style = "bold red" if what in worse else ""
        table.add_row(what, f"{before:.2f}", f"{now:.2f}", f"{times:.2f}", style=style)
    return table


if __name__ == "__main__":
    main()
