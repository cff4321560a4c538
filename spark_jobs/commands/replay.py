"""`rocketpy job replay`: dead letters of a group back to their topics."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rocketpy.broker_core.cli.completion import complete_group, complete_topic
from rocketpy.broker_core.cli.options import AsJson, StoreOrCluster, option
from rocketpy.broker_core.cli.terminal import Screen, count_text, plain_table, print_json
from rocketpy.spark_jobs.commands.job_place import place_of

if TYPE_CHECKING:
    from rocketpy.spark_jobs.replay import ReplayResult
    from rocketpy.spark_jobs.replay_result import ReplayProgress

HELP = """Bring dead letters of a group back to the topics they came from, each once.

What was brought back before is left alone, also after a run that died: run it
as often as you like. A cluster has no folder for the audit trail: name one.

[bold]Examples[/bold]

  rocketpy job replay shop-store billing --dry-run
  rocketpy job replay shop-store billing --cause timeout
  rocketpy job replay shop-store billing --to orders-2 --rate 200
  rocketpy job replay rocketmq://127.0.0.1:9876 billing --audit lake/replays

[bold]Exit codes[/bold]: 0 brought back, 2 it could not be done."""


def replay(
    path: StoreOrCluster,
    group: Annotated[
        str,
        typer.Argument(
            metavar="GROUP", help="The group that gave them up.", autocompletion=complete_group
        ),
    ],
    to: Annotated[
        str | None, option("TOPIC", "Send all of them here.", complete=complete_topic)
    ] = None,
    since: Annotated[str | None, option("TIME", "Given up at this time or later.")] = None,
    until: Annotated[str | None, option("TIME", "Given up before this time.")] = None,
    tags: Annotated[str | None, option("TAGS", "With one of these tags: 'a || b'.")] = None,
    keys: Annotated[str | None, option("KEYS", "With one of these keys: 'o-1,o-2'.")] = None,
    sql: Annotated[str | None, option("SQL", "That an SQL92 filter lets pass.")] = None,
    cause: Annotated[str | None, option("TEXT", "With this text in their cause.")] = None,
    cause_pattern: Annotated[
        str | None, option("REGEX", "Whose cause this regular expression finds.")
    ] = None,
    limit: Annotated[int | None, option("N", "At most so many, the oldest.")] = None,
    rate: Annotated[float | None, option("N", "At most so many a second.")] = None,
    audit: Annotated[str | None, option("PATH", "Where the audit trail is kept.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring dead letters back."""
    from rocketpy.spark_jobs.dead_letters import DeadLetters
    from rocketpy.spark_jobs.quiet_start import job_spark
    from rocketpy.spark_jobs.replay import check
    from rocketpy.spark_jobs.replay import replay as run

    place = place_of(path)
    letters = DeadLetters(
        path=place,
        group=group,
        since=since,
        until=until,
        tags=tags,
        keys=keys,
        sql=sql,
        cause=cause,
        cause_pattern=cause_pattern,
    )
    check(letters, to, limit, rate)  # before Spark starts
    with job_spark(place, delta=True) as spark, _bar(dry_run) as progress:
        result = run(
            spark,
            letters,
            to=to,
            limit=limit,
            rate=rate,
            audit=audit,
            dry_run=dry_run,
            command=shlex.join(["rocketpy", *sys.argv[1:]]),
            progress=progress,
        )
    if as_json:
        print_json(_document(result))
    else:
        show(result, Screen())


def _document(result: ReplayResult) -> dict[str, Any]:
    known = {field.name: getattr(result, field.name) for field in fields(result)}
    return {**known, "sample": [row.asDict() for row in result.sample]}


@contextmanager
def _bar(dry_run: bool) -> Iterator[ReplayProgress]:
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
        console.print(_sample(result), "", _counts("Cause", result.causes), "", sep="\n")
    if result.topics:
        console.print(_counts("To topic", result.topics), "", sep="\n")
    if result.finished:
        done = count_text(result.finished, "message")
        typer.echo(f"finished the audit of {done} that a run before this had replayed")
    if is_dry:
        typer.echo(f"{count_text(result.selected, 'message')} would be replayed; nothing was done")
    else:
        typer.echo(f"{count_text(result.replayed, 'message')} replayed in run {result.run_id}")
        typer.echo(f"the audit trail is {result.audit}")


def _counts(name: str, counts: dict[Any, int]) -> Table:
    table = plain_table(name, "Messages>")
    for value, count in sorted(counts.items(), key=lambda item: -item[1]):
        table.add_row("-" if value is None else str(value), f"{count:,}")
    return table


def _sample(result: ReplayResult) -> Table:
    names = ("queue_offset", "died_at", "keys", "tags", "cause", "to_topic")
    table = plain_table("Offset>", "Given up at", "Keys", "Tag", "Cause", "To topic")
    for row in result.sample:
        table.add_row(*("-" if row[name] is None else f"{row[name]!s:.60}" for name in names))
    table.caption = "the oldest of them"
    return table
