"""How numbers, sizes, times and progress look."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

Report = Callable[[str, int, int], None]  # what is done, bytes done, bytes in all


def size_text(size: int) -> str:
    """Return a size as a person reads it: 1.5 MiB."""
    amount, units = float(size), ["KiB", "MiB", "GiB", "TiB", "PiB"]
    if size < 1024:
        return f"{size} B"
    unit = ""
    while amount >= 1024 and units:
        amount, unit = amount / 1024, units.pop(0)
    return f"{amount:.1f} {unit}"


def time_text(time_ms: int) -> str:
    """Return a time in a form that --start-time takes."""
    when = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def count_text(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: 1 file, 2 files."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def plain_table(*columns: str) -> Table:
    """Return a table without lines; a name that ends in > is that of a column of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        is_number = name.endswith(">")
        table.add_column(
            name.rstrip(">"), justify="right" if is_number else "left", overflow="fold"
        )
    table.caption_justify = "left"
    return table


@contextmanager
def progress_bar() -> Iterator[Report]:
    """Show what is under way on stderr, if that is a terminal.

    What is printed meanwhile goes above the bar. Where it goes into a pipe there is no bar: the
    one who reads it may write to the same terminal.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(bar_width=20),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(
        *columns,
        console=console,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
        disable=not console.is_terminal or _is_piped(),
    ) as bar:

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield report


def _is_piped() -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # there is no file behind it
        return False
