"""The lines of a run as a table to look at, and as JSON to work with."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from measure import Figure
from rich.table import Table

from spark.contest import Line

FORMATS = {
    "wall_s": "{:.2f}",
    "rows_per_s": "{:,.0f}",
    "jvm_s": "{:.2f}",
    "python_s": "{:.2f}",
    "broker_s": "{:.2f}",
}
HEADINGS = ("", "wall s", "rows/s", "CPU-s: JVM", "Python", "broker", "")


def as_table(lines: Sequence[Line], title: str) -> Table:
    """Return the lines, a block per section."""
    table = Table(title=title)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading else "left")
    for section, block in groupby(lines, key=lambda line: line.section):
        table.add_row(f"[bold]{section}")
        for line in block:
            table.add_row(f"  {line.name}", *_cells(line), _remark(line))
        table.add_section()
    return table


def write_json(path: Path, lines: Sequence[Line], aims: Sequence[Figure]) -> None:
    """Write all lines and aims; a value that is not there yet is null."""
    figures = [
        {**aim._asdict(), "value": None if math.isnan(aim.value) else aim.value} for aim in aims
    ]
    content = {"lines": [asdict(line) for line in lines], "aims": figures}
    path.write_text(json.dumps(content, indent=2) + "\n")


def _cells(line: Line) -> list[str]:
    return [
        format_.format(line.figures[name]) if name in line.figures else ""
        for name, format_ in FORMATS.items()
    ]


def _remark(line: Line) -> str:
    if line.missing:
        return f"not there yet: {line.missing}"
    if "p50_s" in line.figures:
        return "p50 {p50_s:.2f} s, p99 {p99_s:.2f} s".format(**line.figures)
    if "peak_mib" in line.figures:
        return "{peak_mib:.0f} MiB".format(**line.figures)
    return ""
