"""Rows that a query could not deal with: sent back, once a batch, and the query goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.connector.conftest import Load
from tests.connector.streams import AVAILABLE_NOW

import rocketpy
from rocketpy.broker_core.errors import ColumnError, MessageRefusedError, StoreNotFoundError
from rocketpy.broker_core.stale_batch import StaleBatchError
from rocketpy.connector.failed_rows import SentBackRows

SCHEDULE = "SCHEDULE_TOPIC_XXXX"
POISON = "cast(body as string) like '%7'"


@pytest.fixture
def orders(store: rocketpy.Store) -> rocketpy.Store:
    store.create_topic("orders", 3)
    store.append("orders", pa.table({"body": [f"order {number}" for number in range(100)]}))
    return store


def rows(store: rocketpy.Store, topic: str) -> list[tuple[str, str | None]]:
    """Bodies and causes of a topic."""
    table = store.read(topic, columns="body,properties").read_all().to_pylist()
    return sorted(
        (row["body"].decode(), dict(row["properties"]).get("ROCKETPY_CAUSE")) for row in table
    )


def start(
    spark: SparkSession, store: rocketpy.Store, take: Callable[[DataFrame, int], None]
) -> None:
    reader = spark.readStream.format("rocketpy").option("path", str(store.path))
    reader = reader.option("topic", "orders").option("consumerGroup", "billing")
    writer = reader.load().writeStream.foreachBatch(take)
    writer = writer.option("checkpointLocation", str(store.path.parent / "checkpoint"))
    writer.trigger(**AVAILABLE_NOW).start().awaitTermination()


def test_rows_of_a_batch_that_is_run_again_are_sent_back_once(
    spark: SparkSession, orders: rocketpy.Store
) -> None:
    counts = list[SentBackRows]()

    def take(frame: DataFrame, _: int) -> None:
        poison = frame.where(POISON).withColumn("why", F.concat(F.lit("no "), "body"))
        counts.append(rocketpy.send_back(poison, group="billing", cause="why", path=orders.path))
        if len(counts) == 1:
            raise RuntimeError("the sink failed")

    with pytest.raises(StreamingQueryException, match="the sink failed"):
        start(spark, orders, take)
    start(spark, orders, take)

    bodies = [f"order {number}" for number in range(7, 100, 10)]
    assert counts == [SentBackRows(retried=10, dead=0), SentBackRows(0, 0)]
    assert rows(orders, SCHEDULE) == sorted((body, f"no {body}") for body in bodies)
    assert "%RETRY%billing" in orders.topics()
    assert not list((orders.path / "rocketpy" / "staged").iterdir())


def test_a_second_call_of_one_batch_is_refused_unless_it_has_a_name(
    spark: SparkSession, orders: rocketpy.Store
) -> None:
    def take(frame: DataFrame, _: int) -> None:
        for app_id in ("one", "other"):
            rocketpy.send_back(
                frame.where(POISON).limit(1), group="billing", path=orders.path, app_id=app_id
            )
        rocketpy.send_back(frame.where(POISON), group="billing", path=orders.path, app_id="one")

    with pytest.raises(StreamingQueryException, match=r"batch 0 was sent back before.*union"):
        start(spark, orders, take)
    assert len(rows(orders, SCHEDULE)) == 2


def test_a_message_of_several_rows_is_sent_back_once_with_a_cause_of_theirs(
    orders: rocketpy.Store, load: Load
) -> None:
    orders.create_group("billing", retry_max_times=0)
    frame = load(topic="orders", columns="topic,queue_id,queue_offset,body").where(POISON)
    twice = frame.union(frame)
    sent = rocketpy.send_back(twice, group="billing", cause="a text", path=orders.path)
    assert sent == SentBackRows(retried=0, dead=10)
    assert {cause for _, cause in rows(orders, "%DLQ%billing")} == {"a text"}


def test_outside_of_streams_a_call_has_the_number_that_it_is_given(
    orders: rocketpy.Store, load: Load
) -> None:
    frame, name = load(topic="orders").where(POISON), {"group": "g", "path": orders.path}
    for number, new in ((0, 10), (0, 0), (1, 10)):
        sent = rocketpy.send_back(frame, **name, app_id="job", batch_id=number)  # type: ignore[arg-type]
        assert sent.retried == new
    with pytest.raises(StaleBatchError, match="batch 0 of 'app job sends back to g'"):
        rocketpy.send_back(frame, **name, app_id="job", batch_id=0)  # type: ignore[arg-type]
    with pytest.raises(MessageRefusedError, match="batch_id is missing"):
        rocketpy.send_back(frame, **name, app_id="job")  # type: ignore[arg-type]


def test_nothing_is_nothing(orders: rocketpy.Store, load: Load) -> None:
    none = load(topic="orders").where("false")
    assert rocketpy.send_back(none, group="g", path=orders.path) == SentBackRows(0, 0)
    assert SCHEDULE not in orders.topics()


@pytest.mark.parametrize("column", ["topic", "queue_id", "queue_offset"])
def test_rows_without_a_position_are_refused(
    orders: rocketpy.Store, load: Load, column: str
) -> None:
    frame = load(topic="orders")
    with pytest.raises(ColumnError, match=f"{column}.*is missing"):
        rocketpy.send_back(frame.drop(column), group="g", path=orders.path)
    wrong = frame.withColumn(column, F.col("body"))
    with pytest.raises(ColumnError, match=f"{column}.*is binary"):
        rocketpy.send_back(wrong, group="g", path=orders.path)


def test_a_message_that_is_not_there_fails_the_batch_whole(
    orders: rocketpy.Store, load: Load
) -> None:
    frame = load(topic="orders").withColumn("queue_offset", F.col("queue_offset") + 5)
    with pytest.raises((PythonException, Py4JJavaError), match="is not there"):
        rocketpy.send_back(frame, group="g", path=orders.path)
    assert SCHEDULE not in orders.topics()


def test_a_message_of_another_broker_is_refused(orders: rocketpy.Store, load: Load) -> None:
    frame = load(topic="orders").withColumn("broker", F.lit("other"))
    with pytest.raises((PythonException, Py4JJavaError), match="the store is that of 'rocketpy'"):
        rocketpy.send_back(frame, group="g", path=orders.path)


def test_a_store_that_is_not_there(load: Load, orders: rocketpy.Store, tmp_path: Path) -> None:
    frame = load(topic=next(iter(orders.topics())))
    with pytest.raises(StoreNotFoundError):
        rocketpy.send_back(frame, group="g", path=tmp_path / "absent")
