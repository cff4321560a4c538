"""What Spark's API for Python sources is known to do to the unwary, each with a test."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import to_arrow_schema
from tests.connector.conftest import Load

import rocketpy
import rocketpy.connector
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.connector.batch_reader import BatchReader
from rocketpy.connector.schema import VIEW_COLUMNS
from rocketpy.connector.source import RocketPyDataSource

COUNT = 10


@pytest.fixture(autouse=True)
def filled(store: rocketpy.Store) -> rocketpy.Store:
    store.create_topic("orders", queues=2)
    numbers = range(COUNT)
    columns = {
        "body": [f"{number}" for number in numbers],
        "tags": ["ab"[number % 2] for number in numbers],
        "keys": [f"k{number}" for number in numbers],
    }
    store.append("orders", pa.table(columns))
    store.commit("billing", "orders", {0: 1})
    return store


def source(store: rocketpy.Store, **options: str) -> RocketPyDataSource:
    return RocketPyDataSource({"path": str(store.path)} | options)


# 1. One read plan is cached per loaded table: what a filter prunes is gone for all.


def test_a_filtered_frame_leaves_the_frame_it_came_from_whole(load: Load) -> None:
    frame = load(topic="orders")
    assert frame.where(col("tags") == "a").count() == COUNT // 2
    assert frame.count() == COUNT


def test_two_filters_of_one_frame_can_be_joined(load: Load) -> None:
    frame = load(topic="orders")
    left = frame.where(col("tags") == "a").select("queue_id").alias("left")
    right = frame.where(col("tags") == "b").select("queue_id").alias("right")
    assert left.crossJoin(right).count() == (COUNT // 2) ** 2


# 2. A reader that overrides pushFilters fails in every session with default settings.


def test_filters_are_left_to_spark(load: Load, spark: SparkSession) -> None:
    assert BatchReader.pushFilters is DataSourceReader.pushFilters
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert load(topic="orders").where(col("tags") == "a").count() == COUNT // 2
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


# 11. Partitions are planned once per frame, and must be a real list.


def test_a_frame_is_a_snapshot_for_all_its_actions(load: Load, store: rocketpy.Store) -> None:
    frame = load(topic="orders")
    assert frame.count() == COUNT
    store.send("orders", "later")
    assert frame.count() == COUNT
    assert load(topic="orders").count() == COUNT + 1


@pytest.mark.parametrize(
    "options",
    [
        {"topic": "orders"},
        {"topic": "orders", "startingOffsets": "latest"},
        {"topic": "orders", "keys": "k1"},
        {"scan": "commitlog"},
        {"view": "index"},
        {"view": "topics"},
    ],
)
def test_partitions_are_a_list(store: rocketpy.Store, options: dict[str, str]) -> None:
    planned = source(store, **options)
    assert type(planned.reader(planned.schema()).partitions()) is list


def test_no_partitions_are_no_rows(load: Load) -> None:
    assert load(topic="orders", startingOffsets="latest").collect() == []


# 12. Option names arrive in lower case.


def test_options_may_be_spelt_in_any_case(spark: SparkSession, store: rocketpy.Store) -> None:
    reader = spark.read.format("rocketpy").option("PATH", str(store.path))
    frame = reader.option("tOPIC", "orders").option("maxrowsperpartition", 1).load()
    assert frame.rdd.getNumPartitions() == COUNT


# 13. Arrow batches must have exactly the schema that Spark derives; only the first is checked.


@pytest.mark.parametrize(
    "options",
    [
        {"topic": "orders", "columns": "*"},
        {"topic": "orders", "columns": "*", "keys": "k1"},
        {"scan": "commitlog", "columns": "*"},
        {"view": "queues", "topic": "orders"},
        {"view": "index"},
        {"view": "groups"},
        {"view": "topics"},
    ],
)
def test_every_batch_has_the_schema_that_spark_expects(
    store: rocketpy.Store, options: dict[str, str]
) -> None:
    planned = source(store, **options)
    schema = planned.schema()
    reader = planned.reader(schema)
    batches: list[pa.RecordBatch] = [
        batch for part in reader.partitions() for batch in reader.read(part)
    ]
    assert {batch.schema for batch in batches} == {to_arrow_schema(schema, timezone="UTC")}
    assert all(batch.num_rows for batch in batches)
    assert schema.names == VIEW_COLUMNS[options.get("view", "messages")].names
    times = [field.type for field in batches[0].schema if pa.types.is_timestamp(field.type)]
    assert set(times) <= {pa.timestamp("us", "UTC")}


# 15. Planner and reader are other objects in other processes.


@pytest.mark.parametrize(
    "options",
    [{"topic": "orders"}, {"topic": "orders", "keys": "k1,k2"}, {"scan": "commitlog"}],
)
def test_what_was_planned_is_read_by_a_copy(store: rocketpy.Store, options: dict[str, str]) -> None:
    planned = source(store, **options)
    reader = planned.reader(planned.schema())
    parts = reader.partitions()
    copied, copies = pickle.loads(pickle.dumps((reader, parts)))
    there = [batch for part in copies for batch in copied.read(part)]
    assert there == [batch for part in parts for batch in reader.read(part)] != []


# 16. What a stream reader raises when it is made is hidden under a chain of tracebacks.


@pytest.mark.parametrize("way", ["read", "readStream"])
def test_wrong_options_are_refused_by_load_itself(
    spark: SparkSession, store: rocketpy.Store, way: str
) -> None:
    reader = getattr(spark, way).format("rocketpy").option("startingOffset", "latest")
    with pytest.raises(AnalysisException, match="did you mean 'startingOffsets'") as raised:
        reader.load(str(store.path))
    assert "During handling of the above exception" not in str(raised.value)


# 18. Exceptions that hand only a message to their base do not survive the way to the driver.


def errors_of_the_connector() -> list[type[RocketPyError]]:
    found = set()
    for module in pkgutil.iter_modules(rocketpy.connector.__path__, "rocketpy.connector."):
        for _, each in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(each, RocketPyError) and each.__module__ == module.name:
                found.add(each)
    return sorted(found, key=lambda each: each.__name__)


@pytest.mark.parametrize("kind", errors_of_the_connector())
def test_every_error_survives_pickling(kind: type[RocketPyError]) -> None:
    parameters = inspect.signature(kind).parameters.values()
    tables = ("Mapping", "dict")  # as their annotations begin
    arguments = [
        {} if str(each.annotation).startswith(tables) else each.name for each in parameters
    ]
    error = kind(*arguments)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), vars(copy), str(copy)) == (kind, vars(error), str(error))
