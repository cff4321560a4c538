"""Brokers whose stores no machine of the Spark cluster holds: all goes over the network.

`python -m tests.connector.unshared_brokers <master> <name server> <stores> <checkpoint>`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession
from tests.connector.cluster_job import session


def names_in(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


def looking(folder: str) -> Callable[[Iterable[Row]], Iterator[tuple[list[str], int]]]:
    """Return what tells of each task what it finds in a folder, and how many rows it reads."""

    def look(rows: Iterable[Row]) -> Iterator[tuple[list[str], int]]:
        yield names_in(folder), sum(1 for _ in rows)

    return look


def use(spark: SparkSession, address: str, stores: str, checkpoint: str) -> dict[str, Any]:
    """Read a topic, and copy it by a batch and by a stream; return what tasks and driver saw."""
    place = {"namesrvAddr": address}
    orders = spark.read.format("rocketpy").options(**place, topic="orders").load()
    tasks = orders.select("queue_id").rdd.mapPartitions(looking(stores)).collect()

    writer = orders.select("body").write.format("rocketpy").mode("append")
    writer.options(**place, topic="written").save()

    stream = spark.readStream.format("rocketpy").options(**place, topic="orders")
    stream = stream.option("startingOffsets", "earliest").option("consumerGroup", "copier")
    copies = stream.load().select("body").writeStream.format("rocketpy")
    copies = copies.options(**place, topic="copies", checkpointLocation=checkpoint)
    copies.trigger(availableNow=True).start().awaitTermination()
    return {
        "rows": sum(count for _, count in tasks),
        "found": [*names_in(stores), *(name for names, _ in tasks for name in names)],
    }


def main(master: str, address: str, stores: str, checkpoint: str) -> None:
    spark = session(master)
    print(json.dumps(use(spark, address, stores, checkpoint)))
    spark.stop()


if __name__ == "__main__":  # so that what tasks run is not looked for on executors
    main(*sys.argv[1:])
