"""Spark on protected clusters, in a process whose every word is kept: see test_access.py.

`python -m tests.interop.access_job <folder>`: the folder has `places.json`, and files with
credentials and settings of TLS by the names used here. The last line printed tells what happened.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import rocketpy

ROWS = 20


def session(folder: Path) -> SparkSession:
    """Return a Spark that says much, and keeps its events."""
    (folder / "events").mkdir()
    spark = rocketpy.local_spark(
        2,
        spark_eventLog_enabled="true",
        spark_eventLog_compress="false",
        spark_eventLog_rolling_enabled="false",
        spark_eventLog_dir=str(folder / "events"),
    )
    spark.sparkContext.setLogLevel("INFO")
    return spark


class Job:
    """Reads and writes with options that name files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        places: dict[str, str] = json.loads((folder / "places.json").read_text())
        self.protected, self.tls_only, self.ours = (
            {"namesrvAddr": places[name], "topic": "orders", "retryTimeout": "1s"}
            for name in ("protected", "tls_only", "ours")
        )

    def file(self, name: str) -> str:
        return str(self._folder / "secrets" / name)

    def read(self, place: Mapping[str, str], **more: str) -> DataFrame:
        return self._spark.read.format("rocketpy").options(**place, **more).load()

    def write(self, place: Mapping[str, str], **more: str) -> None:
        rows = self._spark.range(ROWS, numPartitions=2).selectExpr("string(id) AS body")
        rows.write.format("rocketpy").mode("append").options(**place, **more).save()

    def stream(self, place: Mapping[str, str], **more: str) -> int:
        """Copy a topic to files; return how many rows these have."""
        reader = self._spark.readStream.format("rocketpy").options(**place, **more)
        reader = reader.option("startingOffsets", "earliest").option("consumerGroup", "billing")
        writer = reader.load().writeStream.format("parquet")
        writer = writer.option("path", str(self._folder / "table"))
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        return self._spark.read.parquet(str(self._folder / "table")).count()


def what_it_says(action: Callable[[], object]) -> str:
    try:
        action()
    except (PySparkException, Py4JJavaError) as error:
        return str(error)
    return "nothing"


def main(folder: Path) -> None:
    spark = session(folder)
    job = Job(spark, folder)
    good = {"credentials": job.file("spark.yml")}
    encrypted = {"tls": job.file("tls.properties")}
    job.write(job.protected, **good)
    job.write(job.ours, **encrypted)
    frame = job.read(job.protected, **good)
    frame.explain(True)
    print(repr(frame), frame.schema)
    closed = {**job.protected, "topic": "salaries"}
    found = {
        "written": ROWS,
        "read": frame.count(),
        "streamed": job.stream(job.protected, **good),
        "encrypted": job.read(job.ours, **encrypted).count(),
        "wrong key": what_it_says(
            lambda: job.read(job.protected, credentials=job.file("wrong.yml")).collect()
        ),
        "no key": what_it_says(lambda: job.read(job.protected).collect()),
        "may not write": what_it_says(
            lambda: job.write(job.protected, credentials=job.file("reader.yml"))
        ),
        "may not read": what_it_says(lambda: job.read(closed, **good).collect()),
        "may not stream": what_it_says(lambda: job.stream(closed, **good)),
        "plain": what_it_says(lambda: job.read(job.tls_only).collect()),
        "not trusted": what_it_says(lambda: job.read(job.ours, tls="on").collect()),
    }
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
