"""A stream on a test's store: what its batches held is seen on the driver, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import rocketpy
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import spark_schema
from rocketpy.connector.stream_reader import StreamReader

AVAILABLE_NOW: dict[str, Any] = {"availableNow": True}


class Stream:
    """One query, started as often as a test wants from one checkpoint."""

    def __init__(self, spark: SparkSession, root: Path, options: dict[str, object]) -> None:
        self._spark, self.checkpoint = spark, root.parent / "checkpoint"
        self.options = {"path": str(root)} | {name: str(each) for name, each in options.items()}
        self.batches: dict[int, list[str]] = {}  # bodies in the order of queues, by batch id
        self.partitions: dict[int, int] = {}  # how many, by batch id

    def start(
        self,
        trigger: dict[str, Any] | None = None,
        *,
        before: Callable[[int], None] = lambda _: None,
        after: Callable[[int], None] = lambda _: None,
    ) -> StreamingQuery:
        """Start it; the sink takes each batch between two calls with the batch's id."""

        def take(frame: DataFrame, batch_id: int) -> None:
            before(batch_id)
            rows = frame.select("topic", "queue_id", "queue_offset", "body").collect()
            self.batches[batch_id] = [bytes(row["body"]).decode() for row in sorted(rows)]
            self.partitions[batch_id] = frame.rdd.getNumPartitions()
            after(batch_id)

        reader = self._spark.readStream.format("rocketpy").options(**self.options)
        writer = reader.load().writeStream.foreachBatch(take)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(**trigger or {"processingTime": "0 seconds"}).start()

    def run(self, **hooks: Callable[[int], None]) -> list[list[str]]:
        """Read all that is there, and end; return the batches that this made."""
        known = set(self.batches)
        self.start(AVAILABLE_NOW, **hooks).awaitTermination()
        return [rows for batch_id, rows in self.batches.items() if batch_id not in known]

    def rows(self) -> list[str]:
        """Return what all batches held."""
        return [row for rows in self.batches.values() for row in rows]

    def planned(self) -> int:
        """Return how many batches the checkpoint knows."""
        return len(
            [path for path in (self.checkpoint / "offsets").iterdir() if path.name.isdigit()]
        )


def reader_of(store: rocketpy.Store, **options: object) -> StreamReader:
    """Return what plans a stream: Spark has it in a process of its own."""
    given = {"path": str(store.path)} | {name: str(value) for name, value in options.items()}
    return StreamReader(ReadOptions.parse(given), spark_schema("messages", None))


def send(store: rocketpy.Store, *bodies: str, topic: str = "orders", queue_id: int = 0) -> None:
    """Store messages in one queue; the topic is made if it is missing."""
    store.create_topic(topic, queue_id + 1)
    for body in bodies:
        store.send(topic, body, queue_id=queue_id)


def fail(_: int) -> None:
    """Be a sink that fails."""
    raise RuntimeError("the sink failed")
