from __future__ import annotations

import asyncio
from pathlib import Path

from tests.broker_core.broker.running_broker import BrokerClient, running

from rocketpy.broker_core.broker.services.client_expiry import ClientExpiry
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.codes import RequestCode


def test_a_client_without_heartbeats_for_two_minutes_is_gone_and_its_group_told(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        clock = ManualClock()
        async with running(tmp_path, clock=clock) as broker:
            expiry = ClientExpiry(broker)
            silent, live = BrokerClient(broker, "silent"), BrokerClient(broker, "live")
            await silent.consume("billing", "orders")
            queue = MessageQueue("orders", "shop", 0)
            broker.queue_locks.lock("billing", "silent", [queue], now_ms=clock.steady_ms())
            clock.advance(119_000)
            await live.consume("billing", "orders")
            clock.advance(1_000)
            await expiry.look()
            assert broker.clients.consumer_ids("billing") == ["silent", "live"]
            clock.advance(1)
            await expiry.look()
            assert broker.clients.consumer_ids("billing") == ["live"]
            await live.told(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, 2)
            assert len(broker.queue_locks) == 0

    asyncio.run(run())
