"""Spark on the folder of a running broker: both write and read, nothing is lost or doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.pulling import Puller, record_batches
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.message_queue import MessageQueue


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    with rocketpy.local_broker(tmp_path / "served", topics={"orders": 2, "bills": 2}) as running:
        yield running


@pytest.fixture
def cluster(broker: LocalBroker) -> Iterator[Cluster]:
    with Cluster(broker.namesrv_addr) as connected:
        yield connected


def pulled(cluster: Cluster, broker: LocalBroker, topic: str) -> Counter[str]:
    """Return the bodies of a topic as a client of the broker gets them."""
    found: Counter[str] = Counter()
    puller, schema = Puller(cluster), select(["body"])
    for queue_id in range(2):
        queue = MessageQueue(topic, broker.brokers[0].name, queue_id)
        (low, end) = ClusterOffsets(cluster).ranges([queue])[queue]
        for batch in record_batches(puller.read(queue, low, end), schema):
            found.update(body.decode() for body in batch["body"].to_pylist())
    return found


def test_a_stream_reads_and_writes_exactly_once_while_clients_send(
    spark: SparkSession,
    broker: LocalBroker,
    cluster: Cluster,
    tmp_path: Path,
) -> None:
    producer, place = Producer(cluster), str(broker.store_path)
    for part in range(2):
        producer.send_many(
            "orders", [MessageDraft(body=b"%d" % n) for n in range(part * 100, part * 100 + 100)]
        )
        orders = spark.readStream.format("rocketpy").options(
            path=place, topic="orders", consumerGroup="billing", startingOffsets="earliest"
        )
        query = (
            orders.load()
            .select("body")
            .writeStream.format("rocketpy")
            .options(path=place, topic="bills", checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        producer.send("orders", MessageDraft(body=b"late %d" % part))
        query.awaitTermination()
    read = spark.read.format("rocketpy").options(path=place, topic="bills").load()
    by_spark = Counter(bytes(row.body).decode() for row in read.select("body").collect())
    wanted = Counter(map(str, range(200)))
    assert by_spark == pulled(cluster, broker, "bills")
    assert Counter({body: count for body, count in by_spark.items() if body in wanted}) == wanted
    assert set(by_spark.values()) == {1}
    with broker.store() as store:
        assert sum(store.committed("billing", "orders").values()) == sum(by_spark.values())
