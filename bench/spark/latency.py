"""How old a message is when a stream's user gets it, at a steady pace of sending.

Another process sends. The age of a row is the time at which its batch lay in the driver, collected
by `foreachBatch`, less the time that the producer wrote into the message when it was sent
(Kafka's CreateTime, RocketMQ's born timestamp). Both are clocks of this machine.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame

import rocketpy
from spark import messages
from spark.contest import Line, first_line
from spark.kafka.broker import java
from spark.kafka.clients import SETTINGS
from spark.workbench import Workbench

SECTION = "latency"
PER_SECOND = 1_000
WARM_UP_S = 15
MEASURED_S = 30
GRACE_S = 30
SENDER = Path(__file__).with_name("sender.py")


def lines(bench: Workbench) -> list[Line]:
    """Return the lines of all streams, measured one after the other."""
    return [_kafka(bench, "default"), _kafka(bench, "tuned"), _rocketpy(bench)]


def _kafka(bench: Workbench, name: str) -> Line:
    topic = bench.new_name("latency")
    bench.kafka.create_topic(topic, messages.QUEUES)
    stream = bench.kafka.stream(topic, SETTINGS[name][0])

    def producer(count: int) -> list[str]:
        return java(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(count), "--throughput", str(PER_SECOND)),
            *("--record-size", str(messages.BODY_BYTES)),
            *("--producer-props", f"bootstrap.servers={bench.broker.address}"),
        )

    return Line(SECTION, f"Kafka {name}", _measure(bench, stream, "timestamp", producer))


def _rocketpy(bench: Workbench) -> Line:
    name, topic = "rocketpy", "latency"
    with rocketpy.open(bench.store) as store:
        store.create_topic(topic, messages.QUEUES)

    def producer(count: int) -> list[str]:
        return [sys.executable, str(SENDER), str(bench.store), topic, str(count), str(PER_SECOND)]

    try:
        stream = (
            bench.spark.readStream.format("rocketpy")
            .option("path", str(bench.store))
            .option("topic", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        return Line(SECTION, name, _measure(bench, stream, "born_timestamp", producer))
    except Exception as error:
        return Line(SECTION, name, missing=first_line(error))


def _measure(
    bench: Workbench, stream: DataFrame, sent: str, producer: Callable[[int], Sequence[str]]
) -> dict[str, float]:
    count = PER_SECOND * (WARM_UP_S + MEASURED_S)
    sent_ms: list[int] = []
    arrived_ms: list[float] = []

    def collect(batch: DataFrame, _: int) -> None:
        rows = batch.collect()
        arrived_ms.extend([time.time() * 1000] * len(rows))
        sent_ms.extend(row[0] for row in rows)

    query = (
        stream.selectExpr(f"unix_millis({sent})")
        .writeStream.foreachBatch(collect)
        .option("checkpointLocation", str(bench.folder / bench.new_name("checkpoint")))
        .start()
    )
    try:
        with (bench.folder / "producer.log").open("wb") as log:
            sending = subprocess.Popen(producer(count), stdout=log, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + WARM_UP_S + MEASURED_S + GRACE_S
            while len(sent_ms) < count and time.monotonic() < deadline:
                query.awaitTermination(timeout=0.5)  # raises what the query died of
        finally:
            sending.terminate()
            sending.wait()
    finally:
        query.stop()
    if len(sent_ms) != count:
        raise RuntimeError(f"{len(sent_ms):,} of {count:,} messages arrived in time")
    return _percentiles(np.array(sent_ms), np.array(arrived_ms))


def _percentiles(sent_ms: np.ndarray, arrived_ms: np.ndarray) -> dict[str, float]:
    warm = sent_ms >= sent_ms.min() + WARM_UP_S * 1000
    median, almost_all = np.percentile((arrived_ms - sent_ms)[warm], [50, 99]) / 1000
    return {"p50_s": float(median), "p99_s": float(almost_all)}
