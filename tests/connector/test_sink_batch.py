"""`df.write.format("rocketpy")`: what can be written, what comes back, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from tests.broker_core.storage.test_lock import held_elsewhere

import rocketpy
from rocketpy.broker_core.intake.destination import queue_of
from rocketpy.broker_core.storage.existing import is_store
from rocketpy.broker_core.storage.layout import STAGED


def sink(frame: DataFrame, store: rocketpy.Store, **options: object) -> DataFrameWriter:
    writer = frame.write.format("rocketpy").mode("append").option("path", str(store.path))
    return writer.options(**{name: str(value) for name, value in options.items()})


def bodies(store: rocketpy.Store, topic: str) -> list[str]:
    found = store.read(topic, columns=["body"]).read_all()["body"].to_pylist()
    return sorted(body.decode() for body in found)


def staged(store: rocketpy.Store) -> list[Path]:
    return sorted((store.path / STAGED).glob("*"))


def test_every_column_comes_back(
    spark: SparkSession, store: rocketpy.Store, load: Callable[..., DataFrame]
) -> None:
    written = spark.createDataFrame(
        [
            (b"1", "paid", "k1 k2", {"region": "eu"}, 2, 7),
            (b"", None, None, None, 0, None),
        ],
        "body binary, tags string, keys string, properties map<string,string>, "
        "queue_id int, flag int",
    )
    sink(written, store, topic="orders", queues=3).save()
    names = ["body", "tags", "keys", "queue_id"]
    assert_df_equality(
        load(topic="orders").select(*names),
        written.select(*names),
        ignore_row_order=True,
        ignore_nullable=True,
    )
    rows = store.read("orders", columns=["flag", "properties"], queue_id=2).read_all().to_pylist()
    properties = {"KEYS": "k1 k2", "TAGS": "paid", "region": "eu"}
    assert [(row["flag"], dict(row["properties"])) for row in rows] == [(7, properties)]
    assert store.topics()["orders"].write_queues == 3
    assert staged(store) == []


def test_a_topic_that_is_made_gets_the_default_number_of_queues(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    sink(spark.createDataFrame([("x",)], "body string"), store, topic="t").save()
    assert store.topics()["t"].write_queues == store.config.default_topic_queues


def test_keys_may_be_an_array_and_are_found_by_the_index(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    frame = spark.createDataFrame(
        [("a", ["k1", "k2"]), ("b", [])], "body string, keys array<string>"
    )
    sink(frame, store, topic="t").save()
    assert store.query("t", key="k2", columns=["body"])["body"].to_pylist() == [b"a"]


def test_a_sharding_key_always_leads_to_the_same_queue(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    store.create_topic("t", 8)
    frame = spark.range(40).select(
        F.lit("x").alias("body"), (F.col("id") % 10).cast("string").alias("sharding_key")
    )
    sink(frame, store, topic="t").save()
    rows = store.read("t", columns=["queue_id", "properties"]).read_all().to_pylist()
    found = {(dict(row["properties"])["__SHARDINGKEY"], row["queue_id"]) for row in rows}
    assert found == {(str(key), queue_of(str(key), 8)) for key in range(10)}


def test_rows_name_their_topics_unless_the_option_does(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    frame = spark.createDataFrame([("1", "a"), ("2", "b")], "body string, topic string")
    sink(frame, store).save()
    sink(frame, store, topic="c").save()
    assert [bodies(store, topic) for topic in "abc"] == [["1"], ["2"], ["1", "2"]]


def test_columns_become_properties_on_request(spark: SparkSession, store: rocketpy.Store) -> None:
    rows = [("1", "eu", None, {"a": "x", "region": "old"}), ("2", None, "shop", None)]
    columns = "body string, region string, channel string, properties map<string,string>"
    frame = spark.createDataFrame(rows, columns).coalesce(1)
    sink(frame, store, topic="t", queues=1, propertyColumns="region,channel").save()
    read = store.read("t", columns=["properties"]).read_all()["properties"].to_pylist()
    assert [dict(properties) for properties in read] == [
        {"region": "eu", "a": "x"},
        {"channel": "shop"},
    ]


def test_a_column_that_is_to_be_a_property_must_be_there_and_be_text(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    frame = spark.createDataFrame([("1", 5)], "body string, region int")
    with pytest.raises(PySparkException, match=r"'region'.*is int; what can be written is string"):
        sink(frame, store, topic="t", propertyColumns="region").save()
    with pytest.raises(PySparkException, match=r"'channel'.*but is missing"):
        sink(frame.drop("region"), store, topic="t", propertyColumns="channel").save()


def test_bodies_are_compressed_on_request(spark: SparkSession, store: rocketpy.Store) -> None:
    frame = spark.createDataFrame([("x" * 5_000,)], "body string")
    sink(frame, store, topic="t", compress="zstd").save()
    (size,) = store.read("t", columns=["store_size"]).read_all()["store_size"].to_pylist()
    assert size < 500
    assert bodies(store, "t") == ["x" * 5_000]


def test_what_was_read_can_be_written_without_what_the_store_decides(
    store: rocketpy.Store, load: Callable[..., DataFrame]
) -> None:
    store.create_topic("t", 2)
    receipt = store.send("t", "x", tags="paid", keys=["k"], properties={"a": "b"})
    frame = load(topic="t")
    with pytest.raises(PySparkException) as error:
        sink(frame, store, topic="copy").save()
    drop = "'broker', 'queue_offset', 'born_timestamp', 'store_timestamp'"
    assert f"write df.drop({drop})" in str(error.value)
    columns = ["broker", "queue_offset", "born_timestamp", "store_timestamp"]
    sink(frame.drop(*columns), store, topic="copy").save()
    names = ["tags", "keys", "queue_id", "properties"]
    (copy,) = store.read("copy", columns=names).read_all().to_pylist()
    (original,) = store.read("t", columns=names).read_all().to_pylist()
    assert dict(copy.pop("properties")) == dict(original.pop("properties"))
    assert copy == original
    assert copy["queue_id"] == receipt.queue_id


def test_an_empty_dataframe_stores_nothing(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([], "body string")
    path = tmp_path / "none"
    frame.write.format("rocketpy").mode("append").option("path", str(path)).option(
        "topic", "t"
    ).save()
    assert not is_store(path)


def test_a_version_of_an_application_is_written_once_to_each_topic(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    """As foreachBatch runs it again after a crash."""
    for version in (0, 1, 1, 2):
        frame = spark.createDataFrame([(f"v{version}",)], "body string")
        for topic in ("a", "b"):
            sink(frame, store, topic=topic, txnAppId="app/1", txnVersion=version).save()
    assert bodies(store, "a") == bodies(store, "b") == ["v0", "v1", "v2"]


def test_a_version_below_the_last_of_an_application_is_refused(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    frame = spark.createDataFrame([("x", "a"), ("y", "b")], "body string, topic string")
    sink(frame, store, txnAppId="app", txnVersion=3).save()
    with pytest.raises(PySparkException, match=r"batch 2 of 'app app topic \*'.*batch 3"):
        sink(frame, store, txnAppId="app", txnVersion=2).save()
    assert (bodies(store, "a"), bodies(store, "b"), staged(store)) == (["x"], ["y"], [])


def test_a_write_waits_for_the_lock_as_long_as_it_is_told(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    frame = spark.createDataFrame([("x",)], "body string")
    locked = pytest.raises(PySparkException, match=r"is locked by process.*waited 0\.07 s")
    with held_elsewhere(store.path), locked:
        sink(frame, store, topic="t", lockTimeout="70ms").save()
    sink(frame, store, topic="t", lockTimeout="70ms").save()
    assert (bodies(store, "t"), staged(store)) == (["x"], [])


def test_a_uri_of_a_folder_is_taken_and_any_other_refused(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    frame = spark.createDataFrame([("x",)], "body string")
    sink(frame, store, topic="t").option("path", store.path.as_uri()).save()
    assert bodies(store, "t") == ["x"]
    for uri in ("s3a://bucket/x", "dbfs:/x", "hdfs://host/x"):
        with pytest.raises(PySparkException, match=f"'{uri.partition('/')[0]}' is no file system"):
            sink(frame, store, topic="t").option("path", uri).save()


def test_nothing_is_stored_when_one_task_fails(spark: SparkSession, store: rocketpy.Store) -> None:
    store.create_topic("t")
    good = spark.range(20_000).select(F.lit("x").alias("body"))
    frame = good.union(spark.createDataFrame([("ok",), (None,)], "body string").coalesce(1))
    with pytest.raises(PySparkException, match=r"row 1 of partition \d+: column 'body': is null"):
        sink(frame, store, topic="t").save()
    assert bodies(store, "t") == []
    assert staged(store) == []


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("1 AS body", "column 'body': is int; what can be written is binary or string"),
        ("'x' AS body, 1 AS tags", "column 'tags': is int; what can be written is string"),
        ("'x' AS body, array(1) AS keys", "is array<int>; what can be written is string or array"),
        ("'x' AS body, map('a', 1) AS properties", "map<string,int>; what can be written is map<s"),
        ("'x' AS body, '1' AS queue_id", "column 'queue_id': is string; what can be written is in"),
        ("'x' AS body, 1.5 AS flag", "column 'flag': is decimal"),
        ("'x' AS bodi", "column 'bodi': is not stored; did you mean 'body'\\? .*drop\\('bodi'\\)"),
        ("'x' AS body, 'y' AS other", "column 'other': is not stored; known are body, topic"),
        ("'k' AS key, 'x' AS value", "what Kafka calls so is 'keys', and 'sharding_key'"),
        ("'x' AS value", "what Kafka calls so is 'body'"),
        ("'x' AS body, 5 AS deliver_at", "'deliver_at': is int; what can be written is timestamp"),
        ("'x' AS tags", "column 'body': is missing; the DataFrame has tags"),
    ],
)
def test_a_column_that_cannot_be_written_is_refused_before_anything_runs(
    spark: SparkSession, store: rocketpy.Store, columns: str, reason: str
) -> None:
    with pytest.raises(PySparkException, match=reason):
        sink(spark.sql(f"SELECT {columns}"), store, topic="t").save()
    assert store.topics() == {}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "column 'topic': is missing; give .option\\('topic', ...\\)"),
        ({"topic": "a/b"}, "Option 'topic' .* it has '/' at position 1"),
        ({"topic": "t", "queue": "3"}, "no such option; did you mean 'queues'"),
        ({"topic": "t", "queues": "0"}, "Option 'queues' .* at least 1"),
        ({"topic": "t", "compress": "gzip"}, "Option 'compress' .* zlib or lz4 or zstd"),
    ],
)
def test_a_wrong_option_is_refused_with_its_remedy(
    spark: SparkSession, store: rocketpy.Store, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(PySparkException, match=reason):
        sink(spark.sql("SELECT 'x' AS body"), store, **options).save()


def test_a_missing_path_is_refused(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 'x' AS body")
    with pytest.raises(PySparkException, match=r"Option 'path' .* is missing"):
        frame.write.format("rocketpy").mode("append").option("topic", "t").save()


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("overwrite", "only ever added to; write with .mode\\('append'\\)"),
        ("error", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
        ("ignore", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
    ],
)
def test_only_append_is_a_mode(
    spark: SparkSession, store: rocketpy.Store, mode: str, reason: str
) -> None:
    with pytest.raises(PySparkException, match=reason):
        sink(spark.sql("SELECT 'x' AS body"), store, topic="t").mode(mode).save()
