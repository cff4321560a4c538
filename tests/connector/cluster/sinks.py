"""The sink without Spark: batches of a query on a cluster, task by task, and what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.dispatching import wait_until_dispatched
from rocketpy.broker_core.client.pulling import Puller, record_batches
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.protocol.codes import OwnCode
from rocketpy.connector.backend import Writing, WritingTask
from rocketpy.connector.cluster.direct_writing import direct_writing
from rocketpy.connector.write_options import WriteOptions
from rocketpy.connector.writer_names import writer_name

Rows = list[str]
MANY = [f"row {number:05}" for number in range(40_000)]  # more than is encoded at once


class TaskDied(Exception):
    """The end of a task in the midst of its rows."""


class Running(Protocol):
    """What can be written to."""

    @property
    def namesrv_addr(self) -> str: ...


def without_staging(broker: LocalBroker) -> None:
    """Have brokers say of staging what Apache's do."""
    for running in broker.brokers:
        running.faults.refuse(OwnCode.ASK_STAGED, answer="REQUEST_CODE_NOT_SUPPORTED", times=None)


class Sink:
    """The batches of one query on a topic: each run is made of tasks, one for each partition."""

    def __init__(self, broker: Running, topic: str = "t", query: str = "q1") -> None:
        self.options = WriteOptions.parse(
            {
                "namesrvAddr": broker.namesrv_addr,
                "topic": topic,
                "retryTimeout": "5s",
                "requestTimeout": "1s",
            }
        )
        self.writer, self.query = writer_name("query", query, topic), query
        self._broker, self._topic = broker, topic

    def writing(self) -> Writing:
        """Be the driver before a run."""
        assert self.options.cluster is not None
        with self.options.cluster.access.connect() as cluster:
            return direct_writing(cluster, self.options)

    def task(self, number: int, partition: int, attempt: int = 0) -> WritingTask:
        return WritingTask(f"{self.query}-{number}", partition, attempt, self.writer, number)

    def run(self, number: int, *partitions: Rows | pa.Table) -> None:
        """Run a batch to its end."""
        writing = self.writing()
        parts = [
            writing.stage(self.task(number, partition), batches(rows))
            for partition, rows in enumerate(partitions)
        ]
        self.writing().commit(parts, self.writer, number)

    def fail(self, number: int, **partitions: Rows) -> None:
        """Run some tasks of a batch: `p0=[...]`; then the driver dies."""
        writing = self.writing()
        for name, rows in partitions.items():
            writing.stage(self.task(number, int(name[1:])), batches(rows))

    def found(self) -> Rows:
        return sorted(row["body"].decode() for row in stored(self._broker, self._topic))


def batches(rows: Rows | pa.Table, *, dies: bool = False) -> Iterator[pa.RecordBatch]:
    table = rows if isinstance(rows, pa.Table) else pa.table({"body": pa.array(rows, pa.string())})
    yield from table.to_batches(max_chunksize=10_000)
    if dies:
        raise TaskDied


def stored(broker: Running, topic: str) -> list[dict[str, Any]]:
    """Return all messages of a topic, as a client reads them."""
    names = ["body", "queue_id", "queue_offset", "broker", "tags", "keys", "properties", "flag"]
    found: list[dict[str, Any]] = []
    with Cluster(broker.namesrv_addr) as cluster:
        puller = Puller(cluster)
        wait_until_dispatched(cluster, cluster.masters(), timeout_s=30)
        for span in ClusterTopics(cluster).queues(topic):
            pulled = puller.read(span.queue, span.first, span.end)
            for batch in record_batches(pulled, select(names)):
                found += batch.to_pylist()
    return found
