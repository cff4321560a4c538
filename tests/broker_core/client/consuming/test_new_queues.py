"""Topics and queues that come while a consumer runs."""

from __future__ import annotations

import asyncio

import pytest
from tests.broker_core.client.consuming.consumers import listening, make_topic, send, until
from tests.broker_core.client.consuming.test_push import Received

from rocketpy.broker_core.client.consuming import balancing
from rocketpy.broker_core.local import LocalBroker


def test_a_topic_that_comes_later_is_read(servers: LocalBroker) -> None:
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got):
            await asyncio.to_thread(make_topic, servers)
            send(servers, ["1"])
            await until(lambda: got == ["1"])

    asyncio.run(scenario())


def test_queues_that_come_later_are_read_as_soon_as_their_route_is_known(
    servers: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balancing, "EVERY_S", 3600.0)
    make_topic(servers, queues=1)
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got) as consumer:
            await until(lambda: len(consumer.queues) == 4)  # two of them for retries
            await asyncio.to_thread(make_topic, servers, queues=2)
            await until(lambda: len(consumer.queues) == 6)

    asyncio.run(scenario())
