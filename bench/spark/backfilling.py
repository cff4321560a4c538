"""The whole topic into a new Delta table, by topic and day: Kafka's connector, and ours."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import functions as F

from rocketpy.spark_jobs.backfill import backfill
from spark import messages
from spark.contest import Contender, Line, contest
from spark.kafka.clients import SETTINGS
from spark.process_tree import Family
from spark.workbench import Workbench

SECTION = "into Delta"
PARTITIONS = ("topic", "day")
# What our job sets for itself: without it Spark sorts the rows of each task by topic and day.
WRITERS = "spark.sql.maxConcurrentOutputFileWriters"


def lines(bench: Workbench) -> list[Line]:
    """Return the lines of all ways."""
    seven = (*messages.COLUMNS, "commit_log_offset")
    contenders = [
        _kafka(bench, "default", {}),
        _kafka(bench, "tuned", {WRITERS: "16"}),
        _rocketpy(bench, "default columns", {}),
        _rocketpy(bench, "7 columns", {"columns": messages.COLUMNS}),
        _rocketpy(bench, "7 columns, by queues", {"columns": seven, "topics": messages.TOPIC}),
    ]
    return contest(SECTION, contenders, rows=bench.rows, meter=bench.meter, rounds=bench.rounds)


def _kafka(bench: Workbench, name: str, settings: Mapping[str, str]) -> Contender:
    options, _ = SETTINGS[name]
    frame = bench.kafka.read(messages.TOPIC, options)
    dated = frame.withColumn("day", F.to_date("timestamp"))
    table = bench.folder / bench.new_name("table")

    def run() -> None:
        before = {name: bench.spark.conf.get(name) for name in settings}
        for each, value in settings.items():
            bench.spark.conf.set(each, value)
        try:
            writer = dated.write.format("delta").mode("append").partitionBy(*PARTITIONS)
            writer.option("txnAppId", "kafka").option("txnVersion", 1).save(str(table))
        finally:
            for each, held in before.items():
                bench.spark.conf.set(each, str(held))

    return _contender(bench, f"Kafka {name}", run, table, broker=bench.broker_family)


def _rocketpy(bench: Workbench, name: str, settings: Mapping[str, object]) -> Contender:
    table = bench.folder / bench.new_name("table")
    return _contender(
        bench,
        f"rocketpy, {name}",
        lambda: backfill(bench.spark, bench.store, table, **settings),
        table,
    )


def _contender(
    bench: Workbench, name: str, run: object, table: Path, *, broker: Family | None = None
) -> Contender:
    return Contender(
        name=name,
        prepare=lambda: shutil.rmtree(table, ignore_errors=True),
        run=run,  # type: ignore[arg-type]
        count=lambda: bench.spark.read.format("delta").load(str(table)).count(),
        expected=bench.rows,
        broker=broker,
    )
