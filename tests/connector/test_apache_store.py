"""A store that Apache's broker wrote, read by Spark: every message, every field."""

from __future__ import annotations

from datetime import timezone
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.golden.recorded import Row, messages, stored_bodies


def rows_of(frame: DataFrame) -> list[Row]:
    """Return rows in the form of what was recorded: times in ms, bodies as bytes."""
    rows: list[Row] = []
    for each in frame.collect():
        row: dict[str, Any] = each.asDict()
        row["body"] = bytes(row["body"])
        for name in ("born_timestamp", "store_timestamp"):
            utc = row[name].astimezone(timezone.utc)
            row[name] = round(utc.timestamp() * 1000)
        rows.append(row)
    return sorted(rows, key=lambda row: (row["topic"], row["queue_id"], row["queue_offset"]))


@pytest.fixture(scope="module")
def recorded() -> list[Row]:
    return messages()


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("rocketpy").options(columns="*", **options).load(path)


def test_every_field_of_every_message_is_what_apache_handed_out(
    spark: SparkSession, apache_store: str, recorded: list[Row]
) -> None:
    topics = ",".join({row["topic"] for row in recorded})
    assert rows_of(load(spark, apache_store, topic=topics)) == recorded


def test_a_scan_of_the_log_is_the_same(
    spark: SparkSession, apache_store: str, recorded: list[Row]
) -> None:
    assert rows_of(load(spark, apache_store, scan="commitlog", minPartitions="3")) == recorded


def test_bodies_are_given_as_stored_on_request(
    spark: SparkSession, apache_store: str, recorded: list[Row]
) -> None:
    expected = stored_bodies()
    rows = rows_of(load(spark, apache_store, scan="commitlog", decompress="false"))
    assert [row["body"] for row in rows] == [expected[row["commit_log_offset"]] for row in recorded]


def test_messages_are_found_by_their_keys(
    spark: SparkSession, apache_store: str, recorded: list[Row]
) -> None:
    keyed = [row for row in recorded if row["keys"]]
    assert keyed
    wanted = keyed[len(keyed) // 2]
    key = wanted["keys"].split(" ")[0]
    expected = [
        row
        for row in recorded
        if row["topic"] == wanted["topic"] and key in (row["keys"] or "").split(" ")
    ]
    assert rows_of(load(spark, apache_store, topic=wanted["topic"], keys=key)) == expected


@pytest.mark.parametrize("tags", ["TagA", "TagB || TagC", "nothing"])
def test_messages_are_chosen_by_their_tags(
    spark: SparkSession, apache_store: str, recorded: list[Row], tags: str
) -> None:
    names = {name.strip() for name in tags.split("||")}
    expected = [row for row in recorded if row["topic"] == "lab_tags" and row["tags"] in names]
    assert rows_of(load(spark, apache_store, topic="lab_tags", tags=tags)) == expected
