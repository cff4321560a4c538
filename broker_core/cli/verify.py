"""`rocketpy store verify`: problems as lines, or as JSON objects."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from rocketpy.broker_core.cli.exits import FOUND
from rocketpy.broker_core.cli.terminal import count_text, print_json, progress_bar
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.storage.store import MessageStore


def check(path: Path, *, as_json: bool) -> None:
    """Print every problem as it is found; exit with 1 if there is any."""
    store = MessageStore(path, StoreConfig(), clock=SystemClock(), read_only=True)
    found = 0
    with progress_bar() as report:
        for problem in store.verify(partial(report, "checking")):
            found += 1
            if as_json:
                print_json({**problem._asdict(), "path": str(problem.path)})
            else:
                print(problem)
    if not as_json:
        typer.echo(f"{path}: {count_text(found, 'problem') if found else 'sound'}", err=bool(found))
    raise typer.Exit(FOUND if found else 0)
