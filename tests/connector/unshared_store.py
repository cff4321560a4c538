"""A store that is not shared: each machine of the cluster has another folder there.

On one machine a path below `/proc/self/cwd` is such a one: executors run in folders of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import rocketpy

PATH = "/proc/self/cwd/store"


def copy(frame: DataFrame) -> None:
    writer = frame.select("body").writeStream.format("rocketpy").option("path", PATH)
    writer = writer.option("topic", "copies").option("checkpointLocation", "checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()


def use(spark: SparkSession) -> dict[str, Any]:
    """Make a store in the driver's folder; return what each use of it said, and its topics."""
    with rocketpy.open(PATH) as store:
        store.create_topic("orders")
        store.send("orders", "one")
    reader = spark.read.format("rocketpy").option("path", PATH).option("topic", "orders")
    stream = spark.readStream.format("rocketpy").option("path", PATH).option("topic", "orders")
    rows = spark.range(2, numPartitions=2).selectExpr("string(id) AS body")
    writer = rows.write.format("rocketpy").mode("append").option("path", PATH)
    uses: dict[str, Callable[[], object]] = {
        "read": lambda: reader.load().collect(),
        "write": lambda: writer.option("topic", "written").save(),
        "stream": lambda: copy(stream.option("startingOffsets", "earliest").load()),
        "send_back": lambda: rocketpy.send_back(reader.load(), group="g", path=PATH),
    }
    said = {}
    for name, tried in uses.items():
        try:
            tried()
        except PySparkException as error:
            said[name] = str(error)
    with rocketpy.open(PATH, read_only=True) as store:
        return {"said": said, "topics": sorted(store.topics())}
