"""`make bench`: every measurement, one table. Name parts to run only these: codec, store."""

from __future__ import annotations

import os
import platform
import sys

# One core: what is measured is the work, not how far it spreads.
os.environ["OMP_NUM_THREADS"] = os.environ["ARROW_IO_THREADS"] = "1"

import codec
import pyarrow as pa
import store
from rich.console import Console
from rich.table import Table

PARTS = {"codec": codec.figures, "store": store.figures}


def main() -> None:
    pa.set_cpu_count(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    console = Console(width=100)
    shown = Table(title=f"rocketpy on one core, Python {platform.python_version()}")
    for heading in ("what", "measured", "unit", "aim"):
        shown.add_column(heading, justify="right" if heading == "measured" else "left")
    for name in sys.argv[1:] or PARTS:
        for figure in PARTS[name]():
            console.print(f"{figure.what}: {figure.value:,.3f} {figure.unit}")
            shown.add_row(figure.what, f"{figure.value:,.3f}", figure.unit, figure.target)
    console.print(shown)


if __name__ == "__main__":
    main()
