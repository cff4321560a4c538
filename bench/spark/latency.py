"""How old a message is when a stream's user gets it, at a steady pace of sending.

Another process sends. The age of a row is the time at which its batch lay in the driver, collected
by `foreachBatch`, less the time that the producer wrote into the message when it was sent
(Kafka's CreateTime, RocketMQ's born timestamp). Both are clocks of this machine.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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
SENDER = Path(__file__).with_name("sender.py")


class Pace(NamedTuple):
    """How long is sent."""

    warm_up_s: int
    measured_s: int
    grace_s: int = 30  # for the last ones to arrive

    @property
    def messages(self) -> int:
        """All that are sent."""
        return PER_SECOND * (self.warm_up_s + self.measured_s)


PACE = Pace(warm_up_s=15, measured_s=30)


def lines(bench: Workbench) -> list[Line]:
    """Return the lines of all streams, measured one after the other."""
    return [kafka(bench, "default"), kafka(bench, "tuned"), _rocketpy(bench)]


def kafka(bench: Workbench, name: str, pace: Pace = PACE) -> Line:
    """Return the line of Kafka's connector, as it comes or tuned."""
    topic = bench.new_name("latency")
    bench.kafka.create_topic(topic, messages.QUEUES)
    stream = bench.kafka.stream(topic, SETTINGS[name][0])
    producer = java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(pace.messages), "--throughput", str(PER_SECOND)),
        *("--record-size", str(messages.BODY_BYTES)),
        *("--producer-props", f"bootstrap.servers={bench.broker.address}"),
    )
    return Line(SECTION, f"Kafka {name}", _measure(bench, stream, "timestamp", producer, pace))


def _rocketpy(bench: Workbench) -> Line:
    with rocketpy.open(bench.store) as store:
        store.create_topic("latency", messages.QUEUES)
    return ours(bench, "rocketpy", ("path", str(bench.store)), "latency")


def ours(
    bench: Workbench, name: str, place: tuple[str, str], topic: str, pace: Pace = PACE
) -> Line:
    """Return the line of our connector; `place` is the option that says where, and its value."""
    words = (*place, topic, str(pace.messages), str(PER_SECOND))
    producer = [sys.executable, str(SENDER), *words]
    try:
        stream = (
            bench.spark.readStream.format("rocketpy")
            .option(*place)
            .option("topic", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        return Line(SECTION, name, _measure(bench, stream, "born_timestamp", producer, pace))
    except Exception as error:
        return Line(SECTION, name, missing=first_line(error))


def _measure(
    bench: Workbench, stream: DataFrame, sent: str, producer: Sequence[str], pace: Pace
) -> dict[str, float]:
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
            sending = subprocess.Popen(producer, stdout=log, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + pace.warm_up_s + pace.measured_s + pace.grace_s
            while len(sent_ms) < pace.messages and time.monotonic() < deadline:
                query.awaitTermination(timeout=0.5)  # raises what the query died of
        finally:
            sending.terminate()
            sending.wait()
    finally:
        query.stop()
    if len(sent_ms) != pace.messages:
        raise RuntimeError(f"{len(sent_ms):,} of {pace.messages:,} messages arrived in time")
    return _percentiles(np.array(sent_ms), np.array(arrived_ms), pace)


def _percentiles(sent_ms: np.ndarray, arrived_ms: np.ndarray, pace: Pace) -> dict[str, float]:
    warm = sent_ms >= sent_ms.min() + pace.warm_up_s * 1000
    median, almost_all = np.percentile((arrived_ms - sent_ms)[warm], [50, 99]) / 1000
    return {"p50_s": float(median), "p99_s": float(almost_all)}
