"""A topic together with what its group sent back."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.connector.conftest import Load
from tests.connector.streams import AVAILABLE_NOW, reader_of, send
from tests.connector.test_new_and_lost_queues import plan

import rocketpy
from rocketpy.connector.options import OptionError
from rocketpy.connector.read_options import ReadOptions

RETRY = "%RETRY%billing"


@pytest.mark.parametrize(
    "source", [{"topic": "orders"}, {"topicPattern": "ord.*"}, {"queues": '{"orders": [0]}'}]
)
def test_the_retry_topic_is_read_once_it_is_there(
    store: rocketpy.Store, source: dict[str, str]
) -> None:
    send(store, "a")
    reader = reader_of(store, **source, consumerGroup="billing", includeRetry=True)
    start = reader.initialOffset()
    first, bodies = plan(reader, start)
    assert bodies == ["a"]
    send(store, "retried", topic=RETRY)
    send(store, "not mine", topic="%RETRY%other")
    send(store, "b")
    second, bodies = plan(reader, first)
    assert sorted(bodies) == ["b", "r"]
    reader.commit(second)
    assert store.committed("billing", RETRY) == {0: 1}
    assert store.committed("billing", "orders") == {0: 2}


def test_rows_say_where_they_are_and_properties_where_they_were(
    store: rocketpy.Store, load: Load
) -> None:
    store.create_topic("orders", 1)
    store.send("orders", "a")
    store.create_topic(RETRY, 1)
    store.send(RETRY, "b", properties={"RETRY_TOPIC": "orders"})
    rows = load(topic="orders", consumerGroup="billing", includeRetry="true").collect()
    told = {(row["topic"], row["properties"].get("RETRY_TOPIC")) for row in rows}
    assert told == {("orders", None), (RETRY, "orders")}
    assert load(topic="orders", consumerGroup="billing").count() == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scan": "commitlog", "includeRetry": "true"}, "leave it out"),
        ({"view": "topics", "includeRetry": "true"}, "says nothing of view"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=rf"includeRetry.*{words}"):
        ReadOptions.parse({"path": "p", **options})


def test_a_row_that_fails_comes_again_when_it_is_due(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path
) -> None:
    store.create_topic("orders", 2)
    store.append("orders", pa.table({"body": [f"order {number}" for number in range(20)]}))
    seen = list[tuple[str, int]]()

    def take(frame: DataFrame, _: int) -> None:
        rows = frame.select(F.col("body").cast("string"), "reconsume_times").collect()
        seen.extend((row[0], row[1]) for row in rows)
        fails = frame.where("body like '%7' and reconsume_times < 2")
        rocketpy.send_back(fails, group="billing", path=store.path, delay_level=1)

    def run() -> None:
        reader = spark.readStream.format("rocketpy").option("path", str(store.path))
        reader = reader.option("columns", "topic,queue_id,queue_offset,body,reconsume_times")
        reader = reader.option("topic", "orders").option("consumerGroup", "billing")
        writer = reader.option("includeRetry", "true").load().writeStream.foreachBatch(take)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(**AVAILABLE_NOW).start().awaitTermination()

    run()
    for _ in range(2):
        delivered = 0
        while delivered < 2:
            delivered += store.deliver_due()
            time.sleep(0.05)
        run()
    again = [(f"order {number}", tries) for tries in (1, 2) for number in (7, 17)]
    assert sorted(seen) == sorted([*((f"order {number}", 0) for number in range(20)), *again])
    assert store.committed("billing", RETRY) == {0: 4}
