"""Spark itself on a cluster of two brokers of ours: batch, stream, restart, a broker that goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.connector.cluster.places import OurPlace
from tests.connector.streams import Stream

from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.message_queue import MessageQueue

A, B = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-b", 0)


@pytest.fixture(scope="module")
def servers() -> Iterator[OurPlace]:
    with local_broker(brokers=2) as running:
        place = OurPlace(running)
        with place.cluster:
            yield place


@pytest.fixture
def place(servers: OurPlace) -> OurPlace:
    servers.servers.reset()
    servers.create("orders", 1)
    for queue in (A, B):
        servers.send(queue, *(f"{queue.key}-{number}" for number in range(3)))
    return servers


@pytest.fixture
def stream(spark: SparkSession, place: OurPlace, tmp_path: Path) -> Iterator[Callable[..., Stream]]:
    def make(**options: object) -> Stream:
        made = Stream(spark, tmp_path / "none", {})
        more = {name: str(each) for name, each in options.items()}
        made.options = place.options | {"topic": "orders", "startingOffsets": "earliest"} | more
        return made

    yield make
    for query in spark.streams.active:
        query.stop()


def of(*queues: MessageQueue, first: int = 0, last: int = 3) -> list[str]:
    return [f"{queue.key}-{number}" for queue in queues for number in range(first, last)]


def wait_for(rows: Callable[[], list[str]], expected: list[str]) -> None:
    while sorted(rows()) != sorted(expected):
        assert len(rows()) <= len(expected), rows()
        time.sleep(0.05)


def test_a_batch_is_a_table_with_all_columns(spark: SparkSession, place: OurPlace) -> None:
    reader = spark.read.format("rocketpy").options(**place.options, topic="orders", columns="*")
    rows = reader.load().orderBy("broker", "queue_offset").collect()
    assert [bytes(row["body"]).decode() for row in rows] == of(A, B)
    assert {row["broker"] for row in rows} == {"broker-a", "broker-b"}
    assert rows[0]["properties"]["number"] == "0"


def test_what_a_cluster_cannot_serve_is_refused_by_load(
    spark: SparkSession, place: OurPlace
) -> None:
    reader = spark.read.format("rocketpy").options(**place.options, topic="orders")
    with pytest.raises(PySparkException, match=r"Option 'scan' .* needs the folder of a store"):
        reader.option("scan", "commitlog").load()


@pytest.mark.further
def test_two_queries_that_are_members_share_the_queues_of_a_cluster(
    spark: SparkSession, place: OurPlace, tmp_path: Path
) -> None:
    def start(name: str) -> StreamingQuery:
        named = {"topic": "orders", "consumerGroup": "sharing", "member": name}
        frame = spark.readStream.format("rocketpy").options(**place.options, **named).load()
        bodies = frame.selectExpr("'" + name + "' AS member", "CAST(body AS STRING) AS body")
        started = bodies.writeStream.option("checkpointLocation", str(tmp_path / name))
        return started.format("memory").queryName(f"read_by_{name}").start()

    queries: list[StreamingQuery] = []

    def rows(name: str) -> list[str]:
        assert [query.exception() for query in queries] == [None] * len(queries)
        return [row["body"] for row in spark.table(f"read_by_{name}").collect()]

    try:
        queries.append(start("a"))
        wait_for(lambda: rows("a"), of(A, B))
        queries.append(start("b"))
        while not rows("b"):  # it has a queue by now
            count = len(rows("a")) // 2
            for queue in (A, B):
                place.send(queue, f"{queue.key}-{count}")
            wait_for(lambda: rows("a") + rows("b"), of(A, B, last=count + 1))
    finally:
        for query in queries:
            query.stop()


def test_a_stream_goes_on_at_its_checkpoint_and_commits_its_last_batch(
    stream: Callable[..., Stream], place: OurPlace
) -> None:
    orders = stream(consumerGroup="billing", maxRowsPerTrigger=2)
    batches = orders.run()
    assert [len(rows) for rows in batches] == [2, 2, 2]
    assert sorted(orders.rows()) == of(A, B)
    assert place.committed("billing", [A, B]) == {A: 3, B: 3}
    place.send(B, f"{B.key}-3")
    assert orders.run() == [of(B, first=3, last=4)]
    assert orders.run() == []
    assert place.committed("billing", [A, B]) == {A: 3, B: 4}


def test_a_broker_that_is_killed_and_comes_back_costs_no_message(
    stream: Callable[..., Stream], place: OurPlace
) -> None:
    orders = stream()
    query = orders.start()
    wait_for(orders.rows, of(A, B))
    place.servers.kill_broker(1)
    try:
        place.send(A, f"{A.key}-3")
        wait_for(orders.rows, [*of(A, last=4), *of(B)])
        assert query.isActive
    finally:
        place.servers.start_broker(1)
    place.send(B, f"{B.key}-3")
    wait_for(orders.rows, of(A, B, last=4))
    query.stop()
