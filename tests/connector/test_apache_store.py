"""A store that Apache's broker wrote, read by a Spark that was told nothing but a format's name."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType

GOLDEN = Path(__file__).parents[1] / "golden"


def test_spark_finds_the_format_by_itself_and_reads_what_apache_wrote(
    spark: SparkSession, apache_store: str
) -> None:
    expected = [
        (message["queueId"], message["queueOffset"], message.get("tags"), message["properties"])
        for message in map(json.loads, (GOLDEN / "messages.jsonl").read_text().splitlines())
        if message["topic"] == "lab_tags"
    ]
    reader = spark.read.format("rocketpy").option("path", apache_store)
    frame = reader.option("topic", "lab_tags").load()
    rows = frame.select("queue_id", "queue_offset", "tags", "properties").collect()
    assert sorted(map(tuple, rows), key=lambda row: row[:2]) == sorted(
        expected, key=lambda row: row[:2]
    )


def test_a_schema_of_the_users_reads_only_its_columns(
    spark: SparkSession, apache_store: str
) -> None:
    wanted = StructType().add("queue_offset", LongType(), nullable=False)
    reader = spark.read.format("rocketpy").schema(wanted).option("path", apache_store)
    frame = reader.option("topic", "lab_tags").load()
    assert frame.columns == ["queue_offset"]
    assert frame.count() == 10
