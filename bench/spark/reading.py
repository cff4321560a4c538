"""Batch reads of the whole topic, to `noop`: every row is made, none is kept."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from spark import messages
from spark.contest import Contender, Line, contest
from spark.kafka.clients import SETTINGS
from spark.process_tree import Family
from spark.workbench import Workbench

READING = "batch read"
COUNTING = "count"
SEVEN_COLUMNS = ",".join(messages.COLUMNS)


def lines(bench: Workbench) -> list[Line]:
    """Return the lines of all reads, and of counting with and without the messages."""
    return [
        *contest(
            *(READING, _readers(bench)),
            rows=bench.rows,
            meter=bench.meter,
            rounds=bench.rounds,
        ),
        *contest(
            *(COUNTING, _counters(bench)),
            rows=bench.rows,
            meter=bench.meter,
            rounds=bench.rounds,
        ),
    ]


def _readers(bench: Workbench) -> list[Contender]:
    def rocketpy(name: str, expected: int = bench.rows, **options: str) -> Contender:
        return reader(f"rocketpy {name}", lambda: bench.rocketpy(options), expected)

    def floor(name: str, **options: str) -> Contender:
        given = {**bench.floor(), **options}
        return reader(
            f"floor {name}", bench.spark.read.format("floor").options(**given).load, bench.rows
        )

    return [
        kafka(bench, "default"),
        kafka(bench, "tuned"),
        rocketpy("7 columns", columns=SEVEN_COLUMNS),
        rocketpy("default columns"),
        rocketpy("body", columns="body"),
        rocketpy(
            "tags of 1 %",
            messages.rare(bench.rows),
            columns=SEVEN_COLUMNS,
            tags=messages.RARE_TAG,
        ),
        reader("Parquet", lambda: bench.spark.read.parquet(str(bench.archive)), bench.rows),
        floor("7 columns"),
        floor("body", columns="body"),
    ]


def kafka(bench: Workbench, name: str) -> Contender:
    """Return the read of Kafka's connector, as it comes or tuned."""
    options, _ = SETTINGS[name]
    frame = bench.kafka.read(messages.TOPIC, options)
    return reader(f"Kafka {name}", lambda: frame, bench.rows, broker=bench.broker_family)


def reader(
    name: str, load: Callable[[], DataFrame], expected: int, *, broker: Family | None = None
) -> Contender:
    """Return a batch read that makes every row and keeps none."""
    return Contender(
        name=name,
        run=lambda: load().write.format("noop").mode("overwrite").save(),
        count=lambda: load().count(),
        expected=expected,
        broker=broker,
    )


def _counters(bench: Workbench) -> list[Contender]:
    def counter(name: str, **options: str) -> Contender:
        def count() -> int:
            return bench.rocketpy(options).count()

        return Contender(name=name, run=count, count=count, expected=bench.rows)

    return [counter("rocketpy messages"), counter("rocketpy queues", view="queues")]
