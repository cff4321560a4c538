"""`rocketpy job replay`: dead letters of a group back to their topics."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rocketpy.broker_core.cli.options import StorePath
from rocketpy.broker_core.cli.terminal import count_text

if TYPE_CHECKING:
    from rocketpy.spark_jobs.replay import ReplayResult
    from rocketpy.spark_jobs.replay_run import Progress as Report

HELP = """Bring dead letters of a group back to the topics they came from, each once.

What was brought back before is left alone, also after a run that died: run it
as often as you like.

[bold]Examples[/bold]

  rocketpy job replay shop-store billing --dry-run
  rocketpy job replay shop-store billing --cause timeout
  rocketpy job replay shop-store billing --to orders-2 --rate 200

[bold]Exit codes[/bold]: 0 brought back, 2 it could not be done."""


def _option(metavar: str, text: str) -> Any:
    return typer.Option(metavar=metavar, help=text)


def replay(
    path: StorePath,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group that gave them up.")],
    to: Annotated[str | None, _option("TOPIC", "Send all of them here.")] = None,
    since: Annotated[str | None, _option("TIME", "Given up at this time or later.")] = None,
    until: Annotated[str | None, _option("TIME", "Given up before this time.")] = None,
    tags: Annotated[str | None, _option("TAGS", "With one of these tags: 'a || b'.")] = None,
    keys: Annotated[str | None, _option("KEYS", "With one of these keys: 'o-1,o-2'.")] = None,
    sql: Annotated[str | None, _option("SQL", "That an SQL92 filter lets pass.")] = None,
    cause: Annotated[str | None, _option("TEXT", "With this text in their cause.")] = None,
    cause_pattern: Annotated[
        str | None, _option("REGEX", "Whose cause this regular expression finds.")
    ] = None,
    limit: Annotated[int | None, _option("N", "At most so many, the oldest.")] = None,
    rate: Annotated[float | None, _option("N", "At most so many a second.")] = None,
    audit: Annotated[str | None, _option("PATH", "Where the audit trail is kept.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")] = False,
) -> None:
    """Bring dead letters back."""
    from rocketpy.connector.session import local_spark
    from rocketpy.spark_jobs.dead_letters import DeadLetters
    from rocketpy.spark_jobs.replay import replay as run

    letters = DeadLetters(
        path=path,
        group=group,
        since=since,
        until=until,
        tags=tags,
        keys=keys,
        sql=sql,
        cause=cause,
        cause_pattern=cause_pattern,
    )
    with _bar(dry_run) as progress:
        result = run(
            local_spark(),
            letters,
            to=to,
            limit=limit,
            rate=rate,
            audit=audit,
            dry_run=dry_run,
            command=shlex.join(["rocketpy", *sys.argv[1:]]),
            progress=progress,
        )
    show(result, Console())


@contextmanager
def _bar(dry_run: bool) -> Iterator[Report]:
    """Show how far it is on stderr, if that is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    hidden = dry_run or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("replaying", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def show(result: ReplayResult, console: Console) -> None:
    """Print what was done, or what would be."""
    is_dry = result.run_id is None
    if is_dry and result.selected:
        console.print(_counts("cause", result.causes))
        console.print(_sample(result))
    if result.topics:
        console.print(_counts("to topic", result.topics))
    if result.finished:
        done = count_text(result.finished, "message")
        typer.echo(f"finished the audit of {done} that a run before this had replayed")
    if is_dry:
        typer.echo(f"{count_text(result.selected, 'message')} would be replayed; nothing was done")
    else:
        typer.echo(f"{count_text(result.replayed, 'message')} replayed in run {result.run_id}")
        typer.echo(f"the audit trail is {result.audit}")


def _counts(name: str, counts: dict[Any, int]) -> Table:
    table = Table(name, "messages")
    for value, count in sorted(counts.items(), key=lambda item: -item[1]):
        table.add_row("-" if value is None else str(value), f"{count:,}")
    return table


def _sample(result: ReplayResult) -> Table:
    names = ("queue_offset", "died_at", "keys", "tags", "cause", "to_topic")
    table = Table(*names, title="the oldest of them")
    for row in result.sample:
        table.add_row(*("-" if row[name] is None else f"{row[name]!s:.60}" for name in names))
    return table
