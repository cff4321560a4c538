"""The sink's columns `delay_level` and `deliver_at`."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from pyspark.sql import SparkSession
from tests.connector.test_sink_batch import bodies, sink

import rocketpy
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, TIMER_TOPIC


def test_rows_wait_as_their_columns_say(spark: SparkSession, store: rocketpy.Store) -> None:
    soon = datetime.fromtimestamp(int(time.time()) + 7200, timezone.utc)
    rows = [("now", None, None), ("later", 5, None), ("at", 0, soon)]
    frame = spark.createDataFrame(rows, "body string, delay_level int, deliver_at timestamp")
    sink(frame, store, topic="orders", queues=2).save()
    assert bodies(store, "orders") == ["now"]
    assert bodies(store, SCHEDULE_TOPIC) == ["later"]
    (row,) = store.read(TIMER_TOPIC, columns=["body", "properties"]).read_all().to_pylist()
    noted = dict(row["properties"])
    assert (row["body"], noted["REAL_TOPIC"]) == (b"at", "orders")
    assert noted["TIMER_DELIVER_MS"] == str(int(soon.timestamp()) * 1000)
    queues = {name: config.write_queues for name, config in store.topics().items()}
    assert queues == {"orders": 2, SCHEDULE_TOPIC: 18, TIMER_TOPIC: 1}
