"""`rocketpy report`: what a store or a cluster tells of itself, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from rocketpy.broker_core.cli.completion import complete_topic
from rocketpy.broker_core.cli.exits import FOUND
from rocketpy.broker_core.cli.options import AsJson, StoreOrCluster, option
from rocketpy.broker_core.cli.terminal import Screen, plain_table, print_json
from rocketpy.spark_jobs.commands.job_place import place_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from rich.table import Table

    from rocketpy.spark_jobs.job_cluster import JobCluster

HELP = """Tell what a store holds: sizes, rates, hot tags and keys, skew, lag, failures.

Runs on Spark, on this machine or wherever its settings say. No body is read,
and no broker has to run; docs/analytics.md says what each table costs. Of a
cluster messages are read only of the topics that are named.

[bold]Examples[/bold]

  rocketpy report shop-store
  rocketpy report shop-store --top 20 --every "1 hour"
  rocketpy report shop-store --json | jq .dead_letters
  rocketpy report rocketmq://127.0.0.1:9876 --topic orders

[bold]Exit codes[/bold]: 0 told, 1 some of it could not be read, 2 it could not be done."""

_SHORT = 40  # characters of a cell
# Answers that take no topics: by which column those are chosen.
_BY_COLUMN = {
    "lag": "topic",
    "retries": "first_topic",
    "dead_letters": "first_topic",
    "consumers": "topic",
}


class Section(NamedTuple):
    """One table: the answer that it shows, and which of its columns fit a terminal."""

    name: str
    title: str
    columns: Sequence[str]  # a name that ends in > is that of a number


SECTIONS = (
    Section(
        "message_sizes",
        "Sizes in bytes, by topic",
        ("topic", "messages>", "bytes>", "mean>", "p50>", "p95>", "p99>", "max>"),
    ),
    Section(
        "throughput",
        "Busiest windows",
        ("topic", "start", "messages>", "bytes>", "messages_per_s>"),
    ),
    Section("hot_tags", "Hottest tags", ("topic", "tag", "messages>", "share>")),
    Section("hot_keys", "Hottest keys", ("topic", "key", "messages>", "share>")),
    Section(
        "queue_skew",
        "Spread over queues",
        ("topic", "queues>", "largest_queue>", "largest_share>", "max_over_mean>", "gini>"),
    ),
    Section(
        "lag",
        "Behind, by group",
        ("consumer_group", "topic", "messages>", "bytes>", "age_seconds>"),
    ),
    Section(
        "retries", "Retries", ("consumer_group", "first_topic", "cause", "attempts>", "messages>")
    ),
    Section(
        "dead_letters",
        "Dead letters",
        ("consumer_group", "first_topic", "cause", "attempts>", "messages>"),
    ),
    Section(
        "delay_accuracy",
        "Lateness of delayed messages, in ms",
        ("kind", "level>", "messages>", "early>", "p50_ms>", "p99_ms>", "max_ms>"),
    ),
    Section("producers", "Producers", ("topic", "host", "clients>", "messages>", "newest")),
    Section("consumers", "Consumers", ("consumer_group", "topic", "queues>", "members")),
)


def report(
    path: StoreOrCluster,
    topic: Annotated[
        list[str] | None,
        option("NAME", "Only of this topic; may be given again.", complete=complete_topic),
    ] = None,
    top: Annotated[int, option("N", "Rows of each table, at most.", least=1)] = 10,
    every: Annotated[str, option("TIME", "The windows of throughput.")] = "1 minute",
    as_json: AsJson = False,
) -> None:
    """Print the tables."""
    from pyspark.errors import PySparkException

    from rocketpy.spark_jobs.analytics.arguments import window_text
    from rocketpy.spark_jobs.quiet_start import job_spark
    from rocketpy.spark_jobs.task_errors import task_error

    window_text(every)  # wrong? then before Spark starts
    asked = _Asked(place_of(path), tuple(topic or ()), top, every)
    screen, waiting = Screen(), Console(stderr=True)
    found: dict[str, list[dict[str, Any]]] = {}
    errors: dict[str, str] = {}
    left_out = {name: reason for name, _, _ in SECTIONS if (reason := asked.why_not(name))}
    with job_spark(asked.place, is_short=True) as spark:
        for section in SECTIONS:
            name = section.name
            try:
                if name not in left_out:
                    with waiting.status(f"reading: {section.title.lower()}"):
                        found[name] = _rows(spark, asked, section)
            except PySparkException as cause:  # damage, say; the rest needs other files
                ours = task_error(cause)
                errors[name] = ours.text if ours else str(cause)
            if not as_json:
                if name in left_out:
                    screen.print(Text(f"{section.title}: {left_out[name]}", "dim"))
                else:
                    screen.print(_shown(section, found.get(name), errors.get(name)))
                screen.print()
    if as_json:
        print_json({**found, "errors": errors, **({"left_out": left_out} if left_out else {})})
    if errors:
        raise typer.Exit(FOUND)


def _shown(section: Section, rows: list[dict[str, Any]] | None, error: str | None) -> Table | Text:
    if rows:
        return _table(section, rows)
    return Text(f"{section.title}: {error or 'none'}", "red" if error else "")


class _Asked(NamedTuple):
    """What the command was told."""

    place: Path | JobCluster
    topics: tuple[str, ...]
    top: int
    every: str

    def why_not(self, name: str) -> str | None:
        """Return why a table cannot be had, or should not without being asked for."""
        from rocketpy.spark_jobs import analytics

        if isinstance(self.place, Path):
            return None
        if name in analytics.FOLDER_ONLY:
            return "left out, it needs the folder of a store: run it where a broker keeps its own"
        if name in analytics.READS_MESSAGES and not self.topics:
            return "left out, it reads all messages of topics over the network: give --topic"
        return None

    def arguments(self, name: str) -> dict[str, Any]:
        """Return what an answer is asked besides the place."""
        given: dict[str, dict[str, Any]] = {
            "throughput": {"every": self.every},
            "hot_tags": {"n": self.top},
            "hot_keys": {"n": self.top},
        }
        of_topics = {"topics": self.topics} if self.topics and name not in _BY_COLUMN else {}
        return {**given.get(name, {}), **of_topics}


def _rows(spark: SparkSession, asked: _Asked, section: Section) -> list[dict[str, Any]]:
    from pyspark.sql import functions as F

    from rocketpy.spark_jobs import analytics

    answer: Callable[..., DataFrame] = getattr(analytics, section.name)
    frame = answer(spark, asked.place, **asked.arguments(section.name))
    if section.name == "throughput":
        frame = frame.orderBy(F.desc("messages"), "start", "topic")
    if asked.topics and section.name in _BY_COLUMN:
        frame = frame.where(F.col(_BY_COLUMN[section.name]).isin(*asked.topics))
    rows: list[dict[str, Any]] = frame.limit(asked.top).toArrow().to_pylist()
    return rows


def _table(section: Section, rows: list[dict[str, Any]]) -> Table:
    table = plain_table(*(name.replace("_", " ") for name in section.columns))
    table.title, table.title_justify, table.title_style = section.title, "left", "bold"
    for row in rows:
        # Text, as causes and keys may look like markup.
        cells = [(name.rstrip(">"), row[name.rstrip(">")]) for name in section.columns]
        table.add_row(*(Text(_text(name, value)) for name, value in cells))
    return table


def _text(name: str, value: Any) -> str:
    if value is None or value == []:
        return "-"
    if name.endswith("share"):
        return f"{value:.1%}"
    if isinstance(value, float):
        return f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
    text = ", ".join(value) if isinstance(value, list) else str(value)
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
