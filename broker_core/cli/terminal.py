"""How numbers, sizes, times and progress look."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

import orjson
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
from rich.text import Text

_NO_LIMIT = 100_000

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


class Screen(Console):
    """Where tables go: as wide as the terminal; in a pipe or a file as wide as they need.

    A name that was folded to a width that nobody looks at would be lost on `grep`.
    """

    def __init__(self, *, margin: int = 0) -> None:
        is_free = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        super().__init__(highlight=False, width=_NO_LIMIT if is_free else None)
        self.width -= margin

    def on_broken_pipe(self) -> None:
        """Let the command line say how it ends; rich itself would end it with 1."""
        raise BrokenPipeError


def print_json(value: object) -> None:
    """Print a value as one line of JSON; what JSON does not know is text, names are texts."""
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
    sys.stdout.write(orjson.dumps(value, default=str, option=options).decode())


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


def facts_table(facts: Iterable[tuple[str, str | Text]]) -> Table:
    """Return names and what is to say of each, side by side."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in facts:
        table.add_row(name, text)
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


@contextmanager
def counting(what: str, *, beside_output: bool = False) -> Iterator[Callable[[int], None]]:
    """Show on stderr, if that is a terminal, how many messages were done and how fast.

    Where messages are the output itself it is shown only `beside_output` that goes into a file.
    """
    console, began = Console(stderr=True), time.monotonic()
    if beside_output and (sys.stdout.isatty() or _is_piped()):
        yield lambda _: None
        return
    with console.status(what) as status:

        def report(count: int) -> None:
            rate = count / max(time.monotonic() - began, 0.001)
            status.update(f"{what}: {count_text(count, 'message')}, {rate:,.0f}/s")

        yield report


def complain(text: str) -> None:
    """Print a line to stderr; on a terminal it is broken between words."""
    console = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())
    console.print(Text.assemble(("rocketpy:", "red"), " ", text))


def _is_piped() -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # it is no file
        return False
