"""A Spark whose tasks may fail twice: each partition fails once, in the midst of its rows.

`python retrying_job.py <store> <how> ...`: by an error, or by the death of its Python worker. Each
way writes to a topic of its name; a line with that name goes to stderr before.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator

from pyspark import TaskContext
from pyspark.sql import SparkSession

ROWS = 40_000


def failing_once(how: str, numbers: Iterable[int]) -> Iterator[tuple[str]]:
    context = TaskContext.get()
    assert context is not None
    for count, number in enumerate(numbers):
        if context.attemptNumber() == 0 and count == ROWS // 3:
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("the first try fails")
        yield (str(number),)


def write(spark: SparkSession, path: str, how: str) -> None:
    numbers = spark.sparkContext.range(0, ROWS, 1, 2)
    rows = numbers.mapPartitions(lambda part: failing_once(how, part))
    frame = spark.createDataFrame(rows, "body string")
    writer = frame.write.format("rocketpy").mode("append").option("path", path)
    writer.option("topic", how).save()


def main(path: str, *ways: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    for how in ways:
        print(how, file=sys.stderr, flush=True)
        write(spark, path, how)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
