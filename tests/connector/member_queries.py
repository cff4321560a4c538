"""Streams that share a group, as Spark uses them: plan a batch, read it, plan the next."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.connector.streams import reader_of

import rocketpy
from rocketpy.broker_core.clock import ManualClock, SystemClock
from rocketpy.broker_core.errors import StoreLockedError
from rocketpy.connector.consumer import MemberConsumer
from rocketpy.connector.offsets import SourceOffset
from rocketpy.connector.partitions import QueuePartition
from rocketpy.connector.stream_reader import StreamReader

Offset = dict[str, Any]
Read = list[tuple[str, int, int, int]]  # topic, queue, first offset, offset behind the last
TOPIC = {"topic": "orders"}
LONG_AFTER_MS = 3_600_000


class Query:
    """What Spark does with the reader of a stream: plan a batch, read it, plan the next."""

    def __init__(self, store: rocketpy.Store, member: str, **options: object) -> None:
        given: dict[str, object] = {"consumerGroup": "billing", "member": member} | options
        self.reader = reader_of(store, **({} if "topicPattern" in given else TOPIC), **given)
        self.at: Offset = self.reader.initialOffset()
        self.planned: list[tuple[Offset, Offset]] = []  # as the checkpoint keeps them

    def batch(self) -> Read:
        """Run a batch to its end; return what it read."""
        self.plan()
        return self.finish()

    def plan(self) -> Read:
        """Plan a batch, which is in hand from then on; return what it reads."""
        end = self.reader.latestOffset(self.at, ReadAllAvailable())
        if json.dumps(end) == json.dumps(self.at):
            self.planned.append((self.at, self.at))
            return []
        self.planned.append((self.at, end))
        return self.replay(self.reader)

    def replay(self, reader: StreamReader) -> Read:
        """Return what the last batch reads for a reader, as after a restart."""
        start, end = (json.loads(json.dumps(each)) for each in self.planned[-1])
        found = []
        for task in reader.partitions(start, end) if start != end else []:
            assert isinstance(task, QueuePartition)
            found += [(p.queue.topic, p.queue.queue_id, p.start, p.end) for p in task.ranges]
        return sorted(found)

    def finish(self) -> Read:
        """End the batch in hand."""
        done = self.replay(self.reader)
        self.at = self.planned[-1][1]
        self.reader.commit(self.at)
        return done

    def queues(self) -> list[int]:
        """Return the queues that it holds."""
        consumer = self.reader._consumer
        assert isinstance(consumer, MemberConsumer)
        return sorted(queue.queue_id for queue in consumer._member.holds)

    def leave(self) -> None:
        """End as AvailableNow does."""
        self.reader._consumer.finish(SourceOffset.from_json(self.at))

    def die(self) -> None:
        """Cease to renew the lease."""
        consumer = self.reader._consumer
        assert isinstance(consumer, MemberConsumer)
        if consumer._member._keeper is not None:  # else it has not joined yet
            consumer._member._keeper.stop()


def locked_elsewhere() -> Any:
    """Be the lock of a store that another process keeps."""
    raise StoreLockedError("store", 1, 1.0)


def bury_the_dead(store: rocketpy.Store, *alive: Query) -> None:
    """Let the leases of all others be over."""
    later = ManualClock(SystemClock().now_ms() + LONG_AFTER_MS)
    with rocketpy.open(store.path, clock=later) as future:
        future.join("billing", "gravedigger", "orders")
        future.leave("billing", "gravedigger")
    for query in alive:
        query.batch()
