"""`rocketpy job backfill`: messages of a store or of a cluster into a Delta table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocketpy.broker_core.cli.completion import complete_topic
from rocketpy.broker_core.cli.options import AsJson, StoreOrCluster, option
from rocketpy.broker_core.cli.terminal import (
    Screen,
    count_text,
    plain_table,
    print_json,
    size_text,
)
from rocketpy.broker_core.store_path import is_uri
from rocketpy.spark_jobs.commands.job_place import place_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rocketpy.spark_jobs.backfill import BackfillReport, Estimate
    from rocketpy.spark_jobs.job_cluster import JobCluster

HELP = """Bring messages of a store or a cluster into a Delta table, each once; again for more.

The table knows how far it is: what a run that died, or was ended by Ctrl-C,
left to do is done by the next one. It works on a dead broker's disk, with or
without its consume queues, and while others write; and on a cluster, of which
topics are named. Rows are partitioned by topic and day.

[bold]Examples[/bold]

  rocketpy job backfill shop-store lake/orders --dry-run
  rocketpy job backfill shop-store lake/orders --topic orders
  rocketpy job backfill shop-store lake/orders --since 2026-11-01 --compact
  rocketpy job backfill shop-store lake/paid --body json --schema 'id BIGINT'
  rocketpy job backfill rocketmq://127.0.0.1:9876 lake/orders --topic orders

[bold]Exit codes[/bold]: 0 copied, 2 it could not be done, 130 ended by Ctrl-C."""


def backfill(
    path: StoreOrCluster,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The folder of the Delta table.")],
    topic: Annotated[
        list[str] | None,
        option("NAME", "Only this topic; give it several times.", complete=complete_topic),
    ] = None,
    topic_pattern: Annotated[
        str | None, option("REGEX", "Topics whose whole name matches.")
    ] = None,
    since: Annotated[str | None, option("TIME", "Stored at this time or later.")] = None,
    until: Annotated[str | None, option("TIME", "Stored before this time.")] = None,
    offsets: Annotated[
        str | None, option("JSON", 'Of queues: {"orders": {"0": [10, 20]}}.')
    ] = None,
    log_start: Annotated[int | None, option("BYTE", "From this byte of the log on.")] = None,
    log_end: Annotated[int | None, option("BYTE", "Before this byte of the log.")] = None,
    columns: Annotated[str | None, option("NAMES", "Columns, with commas; * for all.")] = None,
    body: Annotated[str | None, option("FORMAT", "Bodies are json, avro or protobuf.")] = None,
    schema: Annotated[str | None, option("SCHEMA", "Their schema: a text, or its file.")] = None,
    message: Annotated[str | None, option("NAME", "Of Protobuf: which message.")] = None,
    keep_body: Annotated[
        bool, typer.Option("--keep-body", help="Keep typed bodies as bytes.")
    ] = False,
    scan: Annotated[str, option("WAY", "auto, commitlog or queues.")] = "auto",
    job_name: Annotated[str, option("NAME", "One table may hold several jobs.")] = "backfill",
    catalog: Annotated[
        bool, typer.Option("--catalog", help="TABLE is a name in the catalog.")
    ] = False,
    chunk_size: Annotated[str | None, option("SIZE", "Of the log, a commit: 512m.")] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Make few files of many at the end.")
    ] = False,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Pass over damaged records.")
    ] = False,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Go on after what is deleted.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")] = False,
    as_json: AsJson = False,
    cores: Annotated[str, typer.Option(help="How many cores Spark takes.")] = "*",
) -> None:
    """Bring messages into a table."""
    from rocketpy.connector.options import Given, Option
    from rocketpy.spark_jobs.quiet_start import job_spark

    sizes = Given(
        {"chunk-size": chunk_size} if chunk_size else {}, [Option("chunk-size", "", "", "")]
    )
    settings: dict[str, Any] = {
        "topics": tuple(topic or ()),
        "topic_pattern": topic_pattern,
        "since": since,
        "until": until,
        "offsets": _offsets(offsets),
        "log_start": log_start,
        "log_end": log_end,
        "scan": scan,
        "job_name": job_name,
        "chunk_bytes": sizes.size("chunk-size"),
        "compact": compact,
        "skip_damaged": skip_damaged,
        "allow_gaps": allow_gaps,
    }
    if columns is not None:
        settings["columns"] = _columns(columns)
    target = table if catalog or is_uri(table) else Path(table)
    place = place_of(path)
    _check(place, settings)
    with job_spark(place, cores, delta=True) as spark:
        settings["body"] = _body(body, schema, message, keep_body)  # Spark reads a DDL
        if dry_run:
            _estimate(spark, place, target, settings, as_json=as_json)
        else:
            _copy(spark, place, target, settings, as_json=as_json)


def _check(place: Path | JobCluster, settings: dict[str, Any]) -> None:
    """Refuse a place, a topic or a time that cannot be, before Spark starts."""
    from rocketpy.spark_jobs.backfill.selection import BackfillSelection
    from rocketpy.spark_jobs.backfill.settings import BackfillSettings
    from rocketpy.spark_jobs.backfill.store_log import StoreLog
    from rocketpy.spark_jobs.backfill.topic_queues import TopicQueues

    selection = BackfillSelection(
        **{each.name: settings[each.name] for each in fields(BackfillSelection)}
    )
    if isinstance(place, Path):
        StoreLog(str(place.absolute()), selection.of_folder()).close()
        return
    scan, skip_damaged = settings["scan"], settings["skip_damaged"]
    BackfillSettings(selection=selection, scan=scan, skip_damaged=skip_damaged).of_cluster()
    TopicQueues(place, selection).close()


def _estimate(
    spark: SparkSession, path: Path | JobCluster, table: str | Path, settings: Any, *, as_json: bool
) -> None:
    from rocketpy.spark_jobs.backfill import estimate

    _show_estimate(estimate(spark, path, table, **settings), as_json=as_json)


def _copy(
    spark: SparkSession, path: Path | JobCluster, table: str | Path, settings: Any, *, as_json: bool
) -> None:
    from rocketpy.spark_jobs.backfill import backfill

    try:
        with _bar() as progress:
            report = backfill(spark, path, table, progress=progress, **settings)
    except KeyboardInterrupt:
        typer.echo("rocketpy: ended; the table is sound: run the same again to go on", err=True)
        raise
    _show(report, as_json=as_json)


def _offsets(text: str | None) -> Any:
    from rocketpy.spark_jobs.backfill import JobRefusedError

    try:
        return json.loads(text) if text else {}
    except ValueError as cause:
        example = '{"orders": {"0": [10, 20]}}'
        raise JobRefusedError("offsets", f"no JSON ({cause}); give {example}") from cause


def _columns(names: str) -> tuple[str, ...]:
    from rocketpy.broker_core.codec.columns import ALL_COLUMNS

    if names.strip() == "*":
        return tuple(ALL_COLUMNS.names)
    return tuple(name.strip() for name in names.split(","))


def _body(kind: str | None, schema: str | None, message: str | None, keep: bool) -> Any:
    from rocketpy.spark_jobs.backfill import JobRefusedError, body_format

    if kind is None:
        if schema is not None or message is not None or keep:
            raise JobRefusedError("schema", "of what? give --body json, avro or protobuf")
        return None
    if schema is None:
        raise JobRefusedError("body", "needs a schema; give --schema, a text or a file")
    return body_format(kind, schema, message=message, keep=keep)


@contextmanager
def _bar() -> Iterator[Any]:
    """Show how far it is on stderr, if that is a terminal; the time left is by bytes of the log."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("backfill"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("backfill", total=None, rows=0, rate=0.0)

        def report(done: int, total: int, rows: int) -> None:
            seconds = bar.tasks[0].elapsed or 0.0
            rate = rows / seconds if seconds else 0.0
            bar.update(task, completed=done, total=total, rows=rows, rate=rate)

        yield report


def _show(report: BackfillReport, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
        return
    rate = report.rows / report.seconds if report.seconds else 0
    rows = f"{count_text(report.rows, 'row')}, {rate:,.0f}/s"
    chunks = count_text(report.chunks, "chunk")
    typer.echo(f"{rows}, in {chunks} of {size_text(report.size_bytes)}, by {report.scan}")
    if report.bad_rows:
        bad = count_text(report.bad_rows, "row")
        typer.echo(f"{bad} with a body that does not fit: see the column 'cause'")
    missing: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("deleted by retention", report.gaps),
        ("damaged", report.damaged),
    )
    for name, stretches in missing:
        for stretch in stretches:
            typer.echo(f"not copied, {name}: {stretch}")
    if report.position is not None:
        typer.echo(f"{report.table} holds the log up to {report.position}")
        return
    queues, ends = count_text(len(report.queues), "queue"), sum(each.end for each in report.queues)
    typer.echo(f"{report.table} holds {queues} up to where they ended; offsets add up to {ends:,}")


def _show_estimate(found: Estimate, *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(found), "rows": found.rows, "size_bytes": found.size_bytes})
        return
    table = plain_table("Topic", "Rows>", "Size>", "Days")
    for each in found.topics:
        days = f"{each.first_day} … {each.last_day}" if each.first_day else "-"
        table.add_row(each.topic, f"{each.rows:,}", size_text(each.size_bytes), days)
    Screen().print(table)
    how = "counted in the queues" if found.is_exact else "estimated by a sample of the log"
    rows, chunks = count_text(found.rows, "row"), count_text(found.chunks, "chunk")
    size = size_text(found.size_bytes)
    typer.echo(f"{rows} ({size}) in {chunks} would be copied, {how}; nothing was done")
