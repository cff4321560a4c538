"""Consumers for tests, and messages for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.consuming.opening import listen
from rocketpy.broker_core.client.consuming.push import Handler, PushConsumer
from rocketpy.broker_core.client.consuming.subscriptions import Topics
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.local import LocalBroker

GROUP, TOPIC = "shop", "orders"
PATIENCE_S = 60.0  # of tests that wait for something; nothing is measured by it


def make_topic(servers: LocalBroker, topic: str = TOPIC, queues: int = 2) -> None:
    with Cluster(servers.namesrv_addr) as cluster:
        ClusterTopics(cluster).create(topic, queues=queues)


def make_group(servers: LocalBroker, group: str = GROUP) -> None:
    with Cluster(servers.namesrv_addr) as cluster:
        ClusterGroups(cluster).create(group)


def send(servers: LocalBroker, bodies: Iterable[str], topic: str = TOPIC, **more: Any) -> None:
    """Store messages, in turns on all brokers."""
    sent = [*bodies]
    for number in range(len(servers.brokers)):
        part = sent[number :: len(servers.brokers)]
        if part:
            with servers.store(number) as store:
                store.append(topic, [{"body": each, **more} for each in part])


def committed(servers: LocalBroker, group: str = GROUP, topic: str = TOPIC) -> int:
    """Return how many messages of a topic a group has done with, as brokers know it."""
    with Cluster(servers.namesrv_addr) as cluster:
        queues = cluster.route(topic).readable()
        return sum(ClusterOffsets(cluster).committed(group, queues).values())


@contextlib.asynccontextmanager
async def listening(
    servers: LocalBroker,
    handler: Handler,
    topics: Topics = TOPIC,
    *,
    group: str = GROUP,
    close_s: float = 5.0,
    **more: Any,
) -> AsyncIterator[PushConsumer]:
    """A session of its own with one consumer, which begins with the first message."""
    async with Session(servers.namesrv_addr) as session:
        consumer = await listen(session, group, topics, handler, **{"start": "earliest"} | more)
        try:
            yield consumer
        finally:
            await consumer.close(timeout_s=close_s)


async def until(claim: Callable[[], object]) -> None:
    """Wait until something holds."""

    async def look() -> None:
        while not claim():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(look(), PATIENCE_S)
