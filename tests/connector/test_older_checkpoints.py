"""Queries and writers go on from what older versions left."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.older.archives import VERSIONS, unpacked

import rocketpy


@pytest.mark.parametrize("version", VERSIONS)
def test_a_query_goes_on_from_the_checkpoint_of_an_older_version(
    spark: SparkSession, version: str, tmp_path: Path
) -> None:
    path, checkpoint = unpacked(version, tmp_path)
    with rocketpy.open(path) as store:
        store.send("orders", "new", queue_id=0)
        store.send("orders", "newer", queue_id=1)
    found: list[bytes] = []

    def keep(batch: DataFrame, _: int) -> None:
        found.extend(row.body for row in batch.select("body").collect())

    stream = spark.readStream.format("rocketpy").option("path", str(path))
    reading = stream.option("topic", "orders").option("startingOffsets", "earliest").load()
    writer = reading.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert sorted(found) == [b"new", b"newer"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_that_an_older_version_stored_is_not_stored_again(
    spark: SparkSession, version: str, tmp_path: Path
) -> None:
    path, _ = unpacked(version, tmp_path)
    rows = spark.range(10).selectExpr("concat('batch ', id) AS body", "'batches' AS topic")
    for number, count in ((4, 10), (5, 20)):
        writing = rows.write.format("rocketpy").mode("append").option("path", str(path))
        writing.option("txnAppId", "nightly").option("txnVersion", number).save()
        with rocketpy.open(path, read_only=True) as store:
            assert store.read("batches").read_all().num_rows == count
