"""A Spark that writes to a cluster and is killed, or whose tasks are.

`python sink_kill_job.py <name server> <folder> stream` copies the lines of <folder>/lines to the
topic `lines`; `… tasks` too, and writes to `error` and `kill` then, where each task fails once.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.connector.retrying_job import ROWS, failing_once


def stream(spark: SparkSession, address: str, folder: Path) -> None:
    lines = spark.readStream.text(str(folder / "lines")).withColumnRenamed("value", "body")
    writer = lines.writeStream.format("rocketpy").option("namesrvAddr", address)
    writer = writer.option("topic", "lines").option("checkpointLocation", str(folder / "check"))
    assert writer.trigger(availableNow=True).start().awaitTermination(200)


def write(frame: DataFrame, address: str, topic: str) -> None:
    writer = frame.write.format("rocketpy").mode("append").option("namesrvAddr", address)
    writer.option("topic", topic).save()


def main(address: str, folder: str, what: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    stream(spark, address, Path(folder))
    for how in ("error", "kill") if what == "tasks" else ():
        numbers = spark.sparkContext.range(0, ROWS, 1, 2)
        rows = numbers.mapPartitions(partial(failing_once, how))
        write(spark.createDataFrame(rows, "body string"), address, how)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
