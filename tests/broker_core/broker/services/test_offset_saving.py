from __future__ import annotations

import asyncio
from pathlib import Path

from tests.broker_core.broker.running_broker import BrokerClient, commit, running

from rocketpy.broker_core.metadata.groups import GroupConfig


def test_commits_are_saved_while_the_broker_runs(tmp_path: Path) -> None:
    async def run() -> None:
        properties = {"flushConsumerOffsetInterval": "20"}
        async with running(tmp_path, properties=properties) as broker:
            await broker.in_pool(broker.store.create_topic, "orders", 1)
            broker.groups.put(GroupConfig("billing"))
            assert (await commit(BrokerClient(broker), "billing", 0, 4)).code == 0

            async def saved() -> None:
                while broker.store.offsets.committed("billing", "orders") != {0: 4}:
                    await asyncio.sleep(0.01)

            await asyncio.wait_for(saved(), 20)

    asyncio.run(run())


def test_a_stop_saves_what_came_after_the_last_save(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await broker.in_pool(broker.store.create_topic, "orders", 1)
            broker.groups.put(GroupConfig("billing"))
            await commit(BrokerClient(broker), "billing", 0, 4)
            assert broker.store.offsets.all() == []
        text = (tmp_path / "store" / "config" / "consumerOffset.json").read_text()
        assert '"orders@billing":{\n\t\t\t0:4' in text

    asyncio.run(run())
