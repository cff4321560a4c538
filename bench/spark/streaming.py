"""The topic as a stream to `noop`, by AvailableNow: from the first message to the last."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from pyspark.sql import DataFrame

from spark import messages
from spark.contest import Contender, Line, contest
from spark.kafka.clients import SETTINGS
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
        return _stream(
            bench,
            f"{format_} 7 columns",
            lambda: bench.spark.readStream.format(format_).options(**options).load(),
        )

    def kafka(name: str) -> Contender:
        options = {**SETTINGS[name][0], "maxOffsetsPerTrigger": at_most}
        return _stream(
            bench,
            f"Kafka {name}",
            lambda: bench.kafka.stream(messages.TOPIC, options),
            on_kafka=True,
        )

    contenders = [
        kafka("default"),
        kafka("tuned"),
        python_source("rocketpy", rocketpy),
        python_source("floor", floor),
    ]
    return contest(SECTION, contenders, rows=bench.rows, meter=bench.meter, rounds=bench.rounds)


def _stream(
    bench: Workbench, name: str, load: Callable[[], DataFrame], *, on_kafka: bool = False
) -> Contender:
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
        on_kafka=on_kafka,
        clean=lambda: shutil.rmtree(checkpoint),
    )
