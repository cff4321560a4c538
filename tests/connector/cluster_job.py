"""The driver of an application on a cluster: reads and writes stores, and prints what it saw.

`python -m tests.connector.cluster_job <master> <store> <checkpoint> <folder>`: the store is one
that all share; in the folder the driver makes one that the executors do not see.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from tests import quick_spark
from tests.connector import unshared_store

import rocketpy


def session(master: str) -> SparkSession:
    builder = SparkSession.builder.master(master)
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": quick_spark.jvm_options(),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both workers, from the first task
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.cores.max": "2",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "5s",  # none but the task that waits for it
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def signed(folder: Path) -> Callable[[Iterable[Row]], Iterator[Row]]:
    """Return what leaves a file in a folder for each executor that runs a task, or a copy of it."""

    def sign(rows: Iterable[Row]) -> Iterator[Row]:
        (folder / str(os.getppid())).touch()
        yield from rows

    return sign


def copy(frame: DataFrame, path: str, checkpoint: str) -> None:
    """Copy what is there to another topic, and end."""
    writer = frame.select("body", "keys").writeStream.format("rocketpy").option("path", path)
    writer = writer.option("topic", "copies").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def slow_at_first(second_try: Path) -> Callable[[Iterable[Row]], Iterator[Row]]:
    """Return what lets the last task wait until Spark has begun it a second time elsewhere."""

    def pass_on(rows: Iterable[Row]) -> Iterator[Row]:
        task = TaskContext.get()
        assert task is not None
        if task.partitionId() == 1:
            if task.attemptNumber():
                second_try.touch()
            while not second_try.exists():
                time.sleep(0.05)
        yield from rows

    return pass_on


def use_shared(spark: SparkSession, path: str, checkpoint: str) -> dict[str, int]:
    orders = spark.read.format("rocketpy").option("path", path).option("topic", "orders").load()
    executors = Path(checkpoint + ".executors")
    executors.mkdir()
    count = orders.select("queue_id").rdd.mapPartitions(signed(executors)).count()

    written = orders.select("body").limit(10).write.format("rocketpy").mode("append")
    written.option("path", path).option("topic", "ten").save()

    numbers = spark.range(1000, numPartitions=2).selectExpr("string(id) AS body")
    twice = numbers.rdd.mapPartitions(slow_at_first(Path(checkpoint + ".second-try")))
    written = twice.toDF("body string").write.format("rocketpy").mode("append").option("path", path)
    written.option("topic", "speculated").save()

    reader = spark.readStream.format("rocketpy").option("path", path).option("topic", "orders")
    reader = reader.option("consumerGroup", "copier").option("maxRowsPerTrigger", 3000)
    copy(reader.load(), path, checkpoint)
    with rocketpy.open(path) as store:
        for number in range(4):
            store.send("orders", f"late {number}", queue_id=number)
    copy(reader.load(), path, checkpoint)
    return {"rows": count, "executors": len(list(executors.iterdir()))}


def main(master: str, path: str, checkpoint: str, folder: str) -> None:
    os.chdir(folder)  # the JVM and what it starts on this side follow
    spark = session(master)
    print(json.dumps(use_shared(spark, path, checkpoint)))
    if Path(unshared_store.PATH).parent.exists():  # on Linux
        print(json.dumps(unshared_store.use(spark)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
