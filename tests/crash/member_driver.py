"""Members of one group: `python -m tests.crash.member_driver <folder> <name>...`, a query each.

A query starts when `go-<name>` appears, notes in `read-<name>` what each batch read, and merges it
into one Delta table with all others. When `stop` appears the driver writes `table.json` and ends.
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
from pyspark.sql.streaming.query import StreamingQuery

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


class Members:
    """The queries of this driver."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self._spark = rocketpy.local_spark(len(names), **QUICK)
        self._folder, self._table = folder, SharedTable(self._spark, folder)
        self._waiting, self._running = names, list[StreamingQuery]()

    def run(self) -> None:
        while not (self._folder / "stop").exists():
            for name in list(self._waiting):
                if (self._folder / f"go-{name}").exists():
                    self._waiting.remove(name)
                    self._running.append(self._start(name))
            for query in self._running:
                if not query.isActive:
                    raise RuntimeError(f"a query ended: {query.exception()}")
            time.sleep(0.05)
        for query in self._running:
            query.stop()
        (self._folder / "table.json").write_text(json.dumps(self._table.rows()))

    def _start(self, name: str) -> StreamingQuery:
        def take(frame: DataFrame, batch_id: int) -> None:
            frame = frame.selectExpr(*KEY, "cast(body as string) body").persist()
            rows = [list(row) for row in frame.collect()]
            with (self._folder / f"read-{name}").open("a") as notes:
                notes.write(json.dumps([batch_id, rows]) + "\n")
            self._table.merge(frame)
            frame.unpersist()

        reader = self._spark.readStream.format("rocketpy")
        reader = reader.option("path", str(self._folder / "store")).option("topic", "orders")
        reader = reader.option("consumerGroup", "billing").option("member", name)
        writer = reader.option("memberLease", LEASE).load().writeStream.foreachBatch(take)
        writer = writer.option("checkpointLocation", str(self._folder / f"checkpoint-{name}"))
        return writer.trigger(processingTime="1 second").start()


if __name__ == "__main__":
    Members(Path(sys.argv[1]), sys.argv[2:]).run()
