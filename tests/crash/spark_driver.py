"""The driver that is killed: copies a topic to a Delta table and to another topic.

`python -m tests.crash.spark_driver <folder> run` goes on until it is killed; with `drain` it reads
all that is there, writes what the table holds to `table.json`, and ends. The topics are in the
store of the folder, or in the cluster whose options `cluster.json` has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import rocketpy


class Copies:
    """The queries, each with a checkpoint of its own in the folder."""

    def __init__(self, spark: SparkSession, folder: Path, most_rows: int) -> None:
        self._spark, self._folder, self._most_rows = spark, folder, most_rows
        self._table = str(folder / "table")
        cluster = folder / "cluster.json"
        self._place: dict[str, str] = {"path": str(folder / "store")}
        if cluster.exists():
            self._place = json.loads(cluster.read_text())

    def writers(self) -> list[DataStreamWriter]:
        """Return the queries, ready to be started."""
        return [
            self._from_orders("to-table").format("delta").option("path", self._table),
            self._from_orders("to-topic")
            .format("rocketpy")
            .options(**self._place)
            .option("topic", "copies"),
        ]

    def _from_orders(self, name: str) -> DataStreamWriter:
        reader = self._spark.readStream.format("rocketpy").options(**self._place)
        reader = reader.option("topic", "orders").option("maxRowsPerTrigger", self._most_rows)
        writer = reader.option("consumerGroup", name).load().select("body").writeStream
        return writer.option("checkpointLocation", str(self._folder / name))

    def table(self) -> list[str]:
        """Return the bodies that the table holds."""
        rows = self._spark.read.format("delta").load(self._table).collect()
        return [bytes(row["body"]).decode() for row in rows]


def main(folder: Path, task: str) -> None:
    spark = rocketpy.local_spark("2,4")  # tasks that are killed are run again
    is_drain = task == "drain"
    copies = Copies(spark, folder, most_rows=100_000 if is_drain else 200)
    if not is_drain:
        for writer in copies.writers():
            writer.trigger(processingTime="0 seconds").start()
        spark.streams.awaitAnyTermination()
    for writer in copies.writers():
        writer.trigger(availableNow=True).start().awaitTermination()
    (folder / "table.json").write_text(json.dumps(copies.table()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
