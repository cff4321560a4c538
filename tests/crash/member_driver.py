"""A driver that shares a topic with others: `python -m tests.crash.member_driver <folder> <name>`.

It waits for `go-<name>`, then notes in `read-<name>` what each batch read, and merges it into one
Delta table with all others. When `stop` appears it ends; `dump` makes it write `table.json` before.
"""

from __future__ import annotations

import fcntl
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import rocketpy

KEY = ("topic", "queue_id", "queue_offset")
LEASE = "10s"
# Short lives on few cores: the first compiler tier is up soonest, and a merge has few tasks.
QUICK = {
    "spark_driver_extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark_driver_memory": "512m",
    "spark_sql_shuffle_partitions": "1",
    "spark_sql_adaptive_enabled": "false",
    "spark_databricks_delta_snapshotPartitions": "1",
}


class SharedTable:
    """A Delta table that several drivers write. On a local disk Delta wants one at a time."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._path = spark, str(folder / "table")
        self._lock = folder / "table.lock"
        with self._alone():
            builder = DeltaTable.createIfNotExists(spark).location(self._path)
            builder = builder.addColumn("topic", "STRING").addColumn("queue_id", "INT")
            builder.addColumn("queue_offset", "BIGINT").addColumn("body", "STRING").execute()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def merge(self, rows: DataFrame) -> None:
        same = " AND ".join(f"held.{name} = new.{name}" for name in KEY)
        with self._alone():
            table = DeltaTable.forPath(self._spark, self._path).alias("held")
            table.merge(rows.alias("new"), same).whenNotMatchedInsertAll().execute()

    def rows(self) -> list[list[object]]:
        return [list(row) for row in self._spark.read.format("delta").load(self._path).collect()]


def main(folder: Path, name: str) -> None:
    spark = rocketpy.local_spark(1, **QUICK)
    table = SharedTable(spark, folder)
    (folder / f"ready-{name}").touch()
    wait_for(folder / f"go-{name}")

    def take(frame: DataFrame, batch_id: int) -> None:
        frame = frame.selectExpr(*KEY, "cast(body as string) body").persist()
        rows = [list(row) for row in frame.collect()]
        with (folder / f"read-{name}").open("a") as notes:
            notes.write(json.dumps([batch_id, rows]) + "\n")
        table.merge(frame)
        frame.unpersist()

    reader = spark.readStream.format("rocketpy").option("path", str(folder / "store"))
    reader = reader.option("topic", "orders").option("consumerGroup", "billing")
    reader = reader.option("member", name).option("memberLease", LEASE)
    writer = reader.load().writeStream.foreachBatch(take).trigger(processingTime="1 second")
    query = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}")).start()
    while not (folder / "stop").exists():
        if query.awaitTermination(1):
            raise RuntimeError(f"the query ended: {query.exception()}")
    query.stop()
    if (folder / "dump").read_text() == name:
        (folder / "table.json").write_text(json.dumps(table.rows()))


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
