"""Messages of one sharding key keep their order through sink and source."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import rocketpy

KEYS, NUMBERS, BATCHES = 7, 40, 2


@pytest.fixture
def written(spark: SparkSession, store: rocketpy.Store) -> rocketpy.Store:
    """Numbers that rise within each key, written by the sink in two batches, two tasks each."""
    for batch in range(BATCHES):
        rows = [
            (f"key-{key}", f"{batch * NUMBERS + number:06}")
            for number in range(NUMBERS)
            for key in range(KEYS)
        ]
        frame = spark.createDataFrame(rows, "sharding_key string, body string")
        frame = frame.repartition(2, "sharding_key").sortWithinPartitions("body")
        frame.write.format("rocketpy").option("topic", "orders").mode("append").save(
            str(store.path)
        )
    return store


def in_order(frame: DataFrame) -> dict[str, list[str]]:
    """Return what each key holds, in the order of partitions and of rows within them."""
    found: dict[str, list[str]] = {}
    for row in frame.selectExpr("properties['__SHARDINGKEY'] key", "string(body) body").collect():
        found.setdefault(row["key"], []).append(row["body"])
    return found


EXPECTED = {
    f"key-{key}": [f"{number:06}" for number in range(BATCHES * NUMBERS)] for key in range(KEYS)
}


def test_each_key_is_in_one_queue_and_in_order_however_partitions_are_cut(
    spark: SparkSession, written: rocketpy.Store
) -> None:
    for options in ({}, {"maxRowsPerPartition": "9"}, {"minPartitions": "13"}):
        reader = spark.read.format("rocketpy").option("topic", "orders").options(**options)
        frame = reader.load(str(written.path))
        assert in_order(frame) == EXPECTED
    cut = frame.selectExpr("queue_id", "properties['__SHARDINGKEY'] key").distinct()
    assert cut.count() == KEYS


def test_each_key_is_in_order_from_batch_to_batch_of_a_member(
    spark: SparkSession, written: rocketpy.Store, tmp_path: Path
) -> None:
    found: dict[str, list[str]] = {}

    def take(frame: DataFrame, _: int) -> None:
        for key, bodies in in_order(frame).items():
            found.setdefault(key, []).extend(bodies)

    reader = spark.readStream.format("rocketpy").option("path", str(written.path))
    reader = reader.option("topic", "orders").option("consumerGroup", "billing")
    reader = reader.option("member", "one").option("maxRowsPerTrigger", 250)
    reader = reader.option("maxRowsPerPartition", 30)
    writer = reader.load().writeStream.foreachBatch(take).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert found == EXPECTED
    assert written.members("billing") == {}  # it left
    ends = {queue_id: end for queue_id, (_, end) in written.queues("orders").items()}
    assert written.committed("billing", "orders") == ends
