"""The topic as a stream to `noop`, by AvailableNow: from the first message to the last."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from pyspark.sql import DataFrame

from spark import messages
from spark.contest import Contender, Line, contest
from spark.kafka.clients import SETTINGS
from spark.process_tree import Family
from spark.workbench import Workbench

SECTION = "AvailableNow"
ROWS_PER_BATCH = 200_000


def lines(bench: Workbench) -> list[Line]:
    """Return the lines of all streams."""
    at_most = str(ROWS_PER_BATCH)
    rocketpy = {
        "path": str(bench.store),
        "topic": messages.TOPIC,
        "columns": ",".join(messages.COLUMNS),
        "startingOffsets": "earliest",
        "maxRowsPerTrigger": at_most,
    }
    floor = {**bench.floor(), "rowsPerTrigger": at_most}

    def python_source(format_: str, options: dict[str, str]) -> Contender:
        # A reader keeps what it was told last: each stream needs one of its own.
        return stream(
            bench,
            f"{format_} 7 columns",
            lambda: bench.spark.readStream.format(format_).options(**options).load(),
        )

    contenders = [
        kafka(bench, "default"),
        kafka(bench, "tuned"),
        python_source("rocketpy", rocketpy),
        python_source("floor", floor),
    ]
    return contest(SECTION, contenders, rows=bench.rows, meter=bench.meter, rounds=bench.rounds)


def kafka(bench: Workbench, name: str, rows_per_batch: int = ROWS_PER_BATCH) -> Contender:
    """Return the stream of Kafka's connector, as it comes or tuned."""
    options = {**SETTINGS[name][0], "maxOffsetsPerTrigger": str(rows_per_batch)}
    return stream(
        bench,
        f"Kafka {name}",
        lambda: bench.kafka.stream(messages.TOPIC, options),
        broker=bench.broker_family,
    )


def stream(
    bench: Workbench,
    name: str,
    load: Callable[[], DataFrame],
    *,
    broker: Family | None = None,
) -> Contender:
    """Return a stream that reads what is there, from the first message to the last."""
    moved = 0
    checkpoint = bench.folder / bench.new_name("checkpoint")

    def run() -> None:
        nonlocal moved
        query = (
            load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()
        moved = sum(batch.numInputRows for batch in query.recentProgress)

    return Contender(
        name=name,
        run=run,
        count=lambda: moved,
        expected=bench.rows,
        broker=broker,
        clean=lambda: shutil.rmtree(checkpoint),
    )
