"""Where the same messages lie in three ways: a folder, a cluster of ours, a cluster of Apache's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from tests.interop.cluster_addresses import has_only_loopback

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.message_queue import MessageQueue

# Brokers of 4.9.7 listen on all addresses: see test_brokers_of_4.py.
KINDS = ("apache 4.9.7",) if has_only_loopback() else ("folder", "ours", "apache")


class Place(Protocol):
    """What a scenario needs of a place, besides the connector."""

    options: dict[str, str]

    def create(self, topic: str, queues: int) -> list[MessageQueue]:
        """Make a topic, or give it more queues on each broker; return all its queues."""

    def send(self, queue: MessageQueue, *bodies: str, tag: str = "") -> None:
        """Store messages in one queue; return when they can be read."""

    def committed(self, group: str, queues: list[MessageQueue]) -> dict[MessageQueue, int]:
        """Return where a group reads on."""


class FolderPlace:
    """A store's folder, with one broker's queues."""

    def __init__(self, path: Path) -> None:
        self.options = {"path": str(path)}
        self.store = rocketpy.open(path)

    def create(self, topic: str, queues: int) -> list[MessageQueue]:
        self.store.create_topic(topic, queues)
        return [MessageQueue(topic, "rocketpy", queue_id) for queue_id in range(queues)]

    def send(self, queue: MessageQueue, *bodies: str, tag: str = "") -> None:
        put(self.store, queue, bodies, tag)

    def committed(self, group: str, queues: list[MessageQueue]) -> dict[MessageQueue, int]:
        found = {queue.topic: self.store.committed(group, queue.topic) for queue in queues}
        return {
            queue: found[queue.topic][queue.queue_id]
            for queue in queues
            if queue.queue_id in found[queue.topic]
        }


def put(store: rocketpy.Store, queue: MessageQueue, bodies: tuple[str, ...], tag: str) -> None:
    for body in bodies:
        store.send(
            queue.topic,
            body,
            queue_id=queue.queue_id,
            tags=tag or None,
            keys=[f"k{body}"],
            properties={"number": body.rpartition("-")[2]},
        )


class ClusterPlace:
    """A cluster, asked and filled by our client."""

    def __init__(self, namesrv_addr: str) -> None:
        self.options = {"namesrvAddr": namesrv_addr, "retryTimeout": "20s"}
        self.cluster = Cluster(namesrv_addr)

    def create(self, topic: str, queues: int) -> list[MessageQueue]:
        ClusterTopics(self.cluster).create(topic, queues=queues)
        return self.cluster.route(topic, fresh=True).all()

    def send(self, queue: MessageQueue, *bodies: str, tag: str = "") -> None:
        before = self.end(queue)
        drafts = [
            MessageDraft(
                body=body.encode(),
                tags=tag or None,
                keys=f"k{body}",
                properties={"number": body.rpartition("-")[2]},
                queue_id=queue.queue_id,
            )
            for body in bodies
        ]
        Producer(self.cluster).send_many(queue.topic, drafts)
        self.wait_for(queue, before + len(bodies))

    def wait_for(self, queue: MessageQueue, end: int) -> None:
        """Return when a queue has its messages: Apache's broker shows them a moment later."""
        while self.end(queue) < end:
            time.sleep(0.01)

    def end(self, queue: MessageQueue) -> int:
        return ClusterOffsets(self.cluster).ranges([queue])[queue][1]

    def committed(self, group: str, queues: list[MessageQueue]) -> dict[MessageQueue, int]:
        return ClusterOffsets(self.cluster).committed(group, queues)


class OurPlace(ClusterPlace):
    """Two brokers of ours; messages are put into their folders, each broker into its own."""

    def __init__(self, servers: LocalBroker) -> None:
        super().__init__(servers.namesrv_addr)
        self.servers = servers

    def send(self, queue: MessageQueue, *bodies: str, tag: str = "") -> None:
        names = [broker.name for broker in self.servers.brokers]
        with self.servers.store(names.index(queue.broker)) as store:
            put(store, queue, bodies, tag)


@contextmanager
def running(
    kind: str, folder: Path, settings: Mapping[str, str | int | bool] = MappingProxyType({})
) -> Iterator[Place]:
    """Have one kind of place; the settings are for a broker of Apache's."""
    if kind == "folder":
        place = FolderPlace(folder)
        with place.store:
            yield place
    elif kind == "ours":
        with local_broker(brokers=2) as servers:
            ours = OurPlace(servers)
            with ours.cluster:
                yield ours
    elif kind == "apache 4.9.7":
        from tests.interop.cluster_addresses import apache_4_target

        with apache_4_target() as target:
            older = ClusterPlace(target.namesrv_addr)
            with older.cluster:
                yield older
    else:
        from tests.interop.apache import ApacheBroker

        with ApacheBroker(
            folder, settings={"mappedFileSizeCommitLog": 16 << 20, **settings}
        ) as broker:
            theirs = ClusterPlace(broker.namesrv_addr)
            with theirs.cluster:
                yield theirs
