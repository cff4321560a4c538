"""Batch reads of the whole topic, to `noop`: every row is made, none is kept."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from spark import messages
from spark.contest import Contender, Line, contest
from spark.kafka.clients import SETTINGS
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
    def kafka(name: str) -> Contender:
        options, _ = SETTINGS[name]
        frame = bench.kafka.read(messages.TOPIC, options)
        return _reader(f"Kafka {name}", lambda: frame, bench.rows, on_kafka=True)

    def rocketpy(name: str, expected: int = bench.rows, **options: str) -> Contender:
        return _reader(f"rocketpy {name}", lambda: bench.rocketpy(options), expected)

    def floor(name: str, **options: str) -> Contender:
        given = {**bench.floor(), **options}
        return _reader(
            f"floor {name}", bench.spark.read.format("floor").options(**given).load, bench.rows
        )

    return [
        kafka("default"),
        kafka("tuned"),
        rocketpy("7 columns", columns=SEVEN_COLUMNS),
        rocketpy("default columns"),
        rocketpy("body", columns="body"),
        rocketpy(
            "tags of 1 %",
            messages.rare(bench.rows),
            columns=SEVEN_COLUMNS,
            tags=messages.RARE_TAG,
        ),
        _reader("Parquet", lambda: bench.spark.read.parquet(str(bench.archive)), bench.rows),
        floor("7 columns"),
        floor("body", columns="body"),
    ]


def _reader(
    name: str, load: Callable[[], DataFrame], expected: int, *, on_kafka: bool = False
) -> Contender:
    return Contender(
        name=name,
        run=lambda: load().write.format("noop").mode("overwrite").save(),
        count=lambda: load().count(),
        expected=expected,
        on_kafka=on_kafka,
    )


def _counters(bench: Workbench) -> list[Contender]:
    def counter(name: str, **options: str) -> Contender:
        def count() -> int:
            return bench.rocketpy(options).count()

        return Contender(name=name, run=count, count=count, expected=bench.rows)

    return [counter("rocketpy messages"), counter("rocketpy queues", view="queues")]
