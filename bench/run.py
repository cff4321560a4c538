"""`make bench`: every measurement, or the parts that are named."""

from __future__ import annotations

import argparse
import math
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

# One core: what is measured is the work, not how far it spreads.
os.environ["OMP_NUM_THREADS"] = os.environ["ARROW_IO_THREADS"] = "1"

import backfill
import codec
import delay
import growth
import metrics
import pyarrow as pa
import rebalance
import staging
import store
import whole_store
from client import side_by_side as client
from cluster import side_by_side as cluster
from measure import Figure
from rich.console import Console
from rich.table import Table
from spark import side_by_side
from wire import side_by_side as wire

Parts = Mapping[str, Callable[[], Iterator[Figure]]]
ON_ONE_CORE = {"codec": codec.figures, "store": store.figures, "staging": staging.figures}
JOBS = {
    "delay": delay.figures,
    "rebalance": rebalance.figures,
    "backfill": backfill.figures,
    "whole": whole_store.figures,
    "growth": growth.figures,
    "metrics": metrics.figures,
}
PARTS = (*ON_ONE_CORE, "spark", *JOBS, "wire", "cluster", "client")


def main() -> None:
    arguments = _arguments()
    console = Console(width=120)
    figures: list[Figure] = []
    with _one_core():
        figures += _measured(ON_ONE_CORE, arguments.parts, console)
    if "spark" in arguments.parts:
        figures += side_by_side.measure(
            console,
            rows=arguments.messages,
            sections=arguments.sections,
            json=arguments.json,
        )
    figures += _measured(JOBS, arguments.parts, console)
    if "wire" in arguments.parts:
        figures += wire.measure(console, quick=arguments.quick)
    if "cluster" in arguments.parts:
        figures += cluster.measure(console, quick=arguments.quick)
    if "client" in arguments.parts:
        figures += client.measure(console, quick=arguments.quick)
    table = Table(title=f"rocketpy, Python {platform.python_version()}")
    for heading in ("what", "measured", "unit", "aim"):
        table.add_column(heading, justify="right" if heading == "measured" else "left")
    for figure in figures:
        table.add_row(figure.what, _shown(figure), figure.unit, figure.target)
    console.print(table)


def _measured(parts: Parts, wanted: Sequence[str], console: Console) -> Iterator[Figure]:
    for part in filter(parts.__contains__, wanted):
        for figure in parts[part]():
            console.print(f"{figure.what}: {_shown(figure)} {figure.unit}")
            yield figure


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    spark = parser.add_argument_group("of the part spark")
    spark.add_argument("--messages", type=int, default=side_by_side.MESSAGES)
    spark.add_argument(
        "--sections", nargs="+", choices=side_by_side.SECTIONS, default=[*side_by_side.SECTIONS]
    )
    spark.add_argument("--json", type=Path, help="a file for the figures")
    others = parser.add_argument_group("of the parts wire, cluster and client")
    others.add_argument("--quick", action="store_true", help="seconds, to see that all works")
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(f"there is no part '{part}'; parts are {', '.join(PARTS)}")
    arguments.parts = arguments.parts or PARTS
    return arguments


def _shown(figure: Figure) -> str:
    return "not there yet" if math.isnan(figure.value) else f"{figure.value:,.3f}"


@contextmanager
def _one_core() -> Iterator[None]:
    pa.set_cpu_count(1)
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        # What is started from now on spreads as it likes.
        del os.environ["OMP_NUM_THREADS"], os.environ["ARROW_IO_THREADS"]


if __name__ == "__main__":
    main()
