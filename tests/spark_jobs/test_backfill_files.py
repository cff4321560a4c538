"""How a backfill has Spark write the files of its table."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import rocketpy

pytestmark = [pytest.mark.spark, pytest.mark.further]
TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
DICTIONARY_OF_KEYS = "parquet.enable.dictionary#keys"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A store of orders whose keys repeat."""
    with rocketpy.open(tmp_path / "orders") as store:
        store.create_topic("orders", queues=1)
        for number in range(30):
            store.send("orders", str(number), keys="one", tags="paid", properties={"a": "b"})
    return tmp_path / "orders"


def columns(table: Path) -> dict[str, pq.ColumnChunkMetaData]:
    """Return what the one file of a table says of its columns, by their paths."""
    (file,) = table.rglob("*.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    found = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema: column for column in found}


def has_dictionary(column: pq.ColumnChunkMetaData) -> bool:
    return any("DICTIONARY" in encoding for encoding in column.encodings)


def test_dictionaries_and_statistics_are_made_where_they_serve(
    spark: SparkSession, orders: Path, tmp_path: Path
) -> None:
    rocketpy.backfill(spark, orders, tmp_path / "lake")
    found = columns(tmp_path / "lake")
    assert {path for path, column in found.items() if has_dictionary(column)} >= {
        *("tags", "properties.key_value.key", "store_timestamp"),
    }
    for path in ("body", "keys", "msg_id", "queue_offset", "properties.key_value.value"):
        assert not has_dictionary(found[path]), path
    assert found["store_timestamp"].physical_type == "INT64"
    assert found["keys"].statistics.min == "one"
    assert not (found["body"].is_stats_set and found["body"].statistics.has_min_max)
    (row,) = spark.read.format("delta").load(str(tmp_path / "lake")).where("body = '7'").collect()
    assert (row["keys"], row["properties"]["a"]) == ("one", "b")


def test_what_the_session_sets_stays_and_comes_first(
    spark: SparkSession, orders: Path, tmp_path: Path
) -> None:
    spark.conf.set(DICTIONARY_OF_KEYS, "true")
    spark.conf.set(TIMESTAMPS, "INT96")
    before = spark.conf.getAll
    try:
        rocketpy.backfill(spark, orders, tmp_path / "lake", compact=True)
        assert spark.conf.getAll == before
    finally:
        spark.conf.unset(DICTIONARY_OF_KEYS)
        spark.conf.unset(TIMESTAMPS)
    found = columns(tmp_path / "lake")
    assert has_dictionary(found["keys"])
    assert found["store_timestamp"].physical_type == "INT96"
