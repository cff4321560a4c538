"""Which columns are read, of which types, and what a schema of the user's may say."""

from __future__ import annotations

import zlib

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.connector.conftest import Load

import rocketpy
from rocketpy.broker_core.codec.columns import ALL_COLUMNS

LARGE = b"so large that it pays to store it compressed " * 50


@pytest.fixture
def filled(store: rocketpy.Store) -> rocketpy.Store:
    store.create_topic("orders", queues=1)
    store.send("orders", LARGE, compress="zlib", keys="k1", properties={"region": "eu"})
    store.send("orders", b"plain", tags="paid", keys="k2")
    return store


@pytest.mark.usefixtures("filled")
class TestColumns:
    def test_columns_are_chosen_in_any_order(self, load: Load) -> None:
        frame = load(topic="orders", columns="body , queue_offset,store_size")
        assert frame.columns == ["body", "queue_offset", "store_size"]
        assert [row["queue_offset"] for row in frame.collect()] == [0, 1]

    def test_a_star_is_every_column(self, load: Load) -> None:
        frame = load(topic="orders", columns="*")
        assert frame.columns == ALL_COLUMNS.names
        assert [row["uniq_key"] is not None for row in frame.collect()] == [True, True]

    @pytest.mark.parametrize(
        ("columns", "words"),
        [("bodi", "did you mean 'body'"), ("body,body", "name each column once"), (",", "once")],
    )
    def test_wrong_columns_are_refused_before_anything_is_read(
        self, load: Load, columns: str, words: str
    ) -> None:
        with pytest.raises(AnalysisException, match=words):
            load(topic="orders", columns=columns)

    def test_properties_are_a_map_as_stored(self, load: Load) -> None:
        row = load(topic="orders", columns="properties").first()
        assert row is not None
        assert (row["properties"]["region"], row["properties"]["KEYS"]) == ("eu", "k1")

    @pytest.mark.parametrize("way", [{}, {"keys": "k1"}, {"scan": "commitlog"}])
    def test_bodies_are_decompressed_unless_they_shall_not(
        self, load: Load, way: dict[str, str]
    ) -> None:
        rows = load(topic="orders", **way).collect()
        assert bytes(rows[0]["body"]) == LARGE
        stored = load(topic="orders", decompress="false", **way).collect()
        assert zlib.decompress(bytes(stored[0]["body"])) == LARGE


@pytest.mark.usefixtures("filled")
class TestSchemaOfTheUsers:
    def read(
        self, spark: SparkSession, store: rocketpy.Store, schema: str
    ) -> list[tuple[object, ...]]:
        reader = spark.read.format("rocketpy").schema(schema).option("topic", "orders")
        return [tuple(row) for row in reader.load(str(store.path)).collect()]

    def test_it_is_a_subset_in_its_own_order(
        self, spark: SparkSession, store: rocketpy.Store
    ) -> None:
        rows = self.read(spark, store, "queue_offset BIGINT, tags STRING, store_host STRING")
        assert rows == [(0, None, "127.0.0.1:10911"), (1, "paid", "127.0.0.1:10911")]

    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            ("queue_offset STRING", "the schema says string, but the column is bigint"),
            ("body STRING", "the schema says string, but the column is binary"),
            ("bodi BINARY", "did you mean 'body'"),
            ("tags STRING NOT NULL", "says NOT NULL, but messages may have none"),
            ("store_timestamp TIMESTAMP_NTZ", "but the column is timestamp"),
        ],
    )
    def test_a_wrong_one_is_refused(
        self, spark: SparkSession, store: rocketpy.Store, schema: str, words: str
    ) -> None:
        with pytest.raises(AnalysisException, match=words):
            self.read(spark, store, schema)
