"""The driver of an application whose store is not shared: each machine has another folder there.

`python -m tests.connector.unshared_job <master> <folder>`; prints what each use of the store said.
On one machine a path below `/proc/self/cwd` is such a one: executors run in folders of their own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from tests.connector.cluster_job import session

import rocketpy

PATH = "/proc/self/cwd/store"


def copy(frame: DataFrame) -> None:
    writer = frame.select("body").writeStream.format("rocketpy").option("path", PATH)
    writer = writer.option("topic", "copies").option("checkpointLocation", "checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()


def main(master: str, folder: str) -> None:
    os.chdir(folder)  # the JVM and what it starts on this side follow
    with rocketpy.open(PATH) as store:
        store.create_topic("orders")
        store.send("orders", "one")
    spark = session(master)
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
    for name, use in uses.items():
        try:
            use()
        except PySparkException as error:
            said[name] = str(error)
    with rocketpy.open(PATH, read_only=True) as store:
        topics = sorted(store.topics())
    print(json.dumps({"said": said, "topics": topics}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
