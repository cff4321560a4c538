"""`rocketpy job restore`: rows of a Delta table back into topics of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocketpy.broker_core.cli.completion import complete_store, complete_topic
from rocketpy.broker_core.cli.options import AsJson, option
from rocketpy.broker_core.cli.place import folder_for
from rocketpy.broker_core.cli.terminal import Screen, count_text, plain_table, print_json
from rocketpy.broker_core.store_path import is_uri

if TYPE_CHECKING:
    from rocketpy.spark_jobs.restore import RestoreReport

HELP = """Bring messages of a Delta table back into topics of a store, each once.

Tags, keys, properties and queues are kept, and the order within a queue. The
same command goes on where a run that died had been.

[bold]Examples[/bold]

  rocketpy job restore shop-store lake/orders --dry-run
  rocketpy job restore shop-store lake/orders --to-topic orders-again
  rocketpy job restore new-store lake/orders --where "day > '2026-11-01'"
  rocketpy job restore shop-store lake/orders --rate 5000

[bold]Exit codes[/bold]: 0 restored, 2 it could not be done, 130 ended by Ctrl-C."""


_TO_CLUSTER = (
    "it notes each batch in the store's ledger. Write the rows with Spark instead: "
    'df.write.format("rocketpy").option("namesrvAddr", …).option("topic", …), with txnAppId and '
    "txnVersion each version is there once"
)


def restore(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="The store; made if missing.",
            parser=folder_for("a restore", _TO_CLUSTER),
            autocompletion=complete_store,
        ),
    ],
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The folder of the Delta table.")],
    to_topic: Annotated[
        str | None, option("TOPIC", "Send all here, not to its own.", complete=complete_topic)
    ] = None,
    where: Annotated[str | None, option("SQL", "A condition on the table's columns.")] = None,
    rate: Annotated[float | None, option("N", "At most so many rows a second.")] = None,
    order_by: Annotated[
        str, option("COLUMN", "Whole numbers that grow with each row.")
    ] = "commit_log_offset",
    job_name: Annotated[str | None, option("NAME", "Without it, made from the others.")] = None,
    version: Annotated[int | None, option("N", "Of the table; the newest without it.")] = None,
    catalog: Annotated[
        bool, typer.Option("--catalog", help="TABLE is a name in the catalog.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")] = False,
    as_json: AsJson = False,
    cores: Annotated[str, typer.Option(help="How many cores Spark takes.")] = "*",
) -> None:
    """Bring rows back."""
    from rocketpy.spark_jobs import restore as job
    from rocketpy.spark_jobs.quiet_start import quiet_spark

    settings = job.RestoreSettings(
        to_topic=to_topic, where=where, rate=rate, order_by=order_by, job_name=job_name
    )
    _check(table, catalog)
    target = table if catalog or is_uri(table) else Path(table)
    try:
        with quiet_spark(cores, delta=True) as spark, _bar(dry_run) as progress:
            report = job.restore(
                spark,
                target,
                path,
                version=version,
                dry_run=dry_run,
                progress=progress,
                settings=settings,
            )
    except KeyboardInterrupt:
        typer.echo("rocketpy: ended; the store is sound: run the same again to go on", err=True)
        raise
    _show(report, as_json=as_json)


def _check(table: str, catalog: bool) -> None:
    """Refuse a folder that is no Delta table, before Spark starts."""
    from rocketpy.spark_jobs.job_errors import JobRefusedError

    if not catalog and not is_uri(table) and not (Path(table) / "_delta_log").is_dir():
        raise JobRefusedError(table, "there is no such Delta table")


@contextmanager
def _bar(dry_run: bool) -> Iterator[Any]:
    """Show how far it is on stderr, if that is a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = TextColumn("restore"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    hidden = dry_run or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("restore", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show(report: RestoreReport, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
        return
    if report.topics:
        table = plain_table("Topic", "Rows>")
        for topic, count in report.topics.items():
            table.add_row(topic, f"{count:,}")
        Screen().print(table)
    rows, batches = count_text(report.rows, "row"), count_text(report.batches, "batch", "batches")
    did = "would be restored; nothing was done" if report.is_dry else "restored"
    typer.echo(f"{rows} in {batches} of version {report.version} {did}")
