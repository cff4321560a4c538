"""The driver of an application on a cluster: reads and writes a store, and prints what it saw.

`python -m tests.connector.cluster_job <master> <store> <checkpoint>`
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, Row, SparkSession

import rocketpy


def session(master: str) -> SparkSession:
    builder = SparkSession.builder.master(master)
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both workers, from the first task
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.cores.max": "2",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def counted(rows: Iterable[Row]) -> Iterator[tuple[int, int]]:
    """Yield how many rows a task has, and which executor's Python counts them."""
    yield sum(1 for _ in rows), os.getppid()


def copy(frame: DataFrame, path: str, checkpoint: str) -> None:
    """Copy what is there to another topic, and end."""
    writer = frame.select("body", "keys").writeStream.format("rocketpy").option("path", path)
    writer = writer.option("topic", "copies").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def main(master: str, path: str, checkpoint: str) -> None:
    spark = session(master)
    orders = spark.read.format("rocketpy").option("path", path).option("topic", "orders").load()
    counts = orders.select("queue_id").rdd.mapPartitions(counted).collect()

    written = orders.select("body").limit(10).write.format("rocketpy").mode("append")
    written.option("path", path).option("topic", "ten").save()

    reader = spark.readStream.format("rocketpy").option("path", path).option("topic", "orders")
    reader = reader.option("consumerGroup", "copier").option("maxRowsPerTrigger", 3000)
    copy(reader.load(), path, checkpoint)
    with rocketpy.open(path) as store:
        for number in range(4):
            store.send("orders", f"late {number}", queue_id=number)
    copy(reader.load(), path, checkpoint)

    rows, executors = sum(count for count, _ in counts), {executor for _, executor in counts}
    print(json.dumps({"rows": rows, "executors": len(executors)}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
