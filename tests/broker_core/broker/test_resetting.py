"""Groups are reset, over real connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker_core.broker.running_broker import (
    BrokerClient,
    commit,
    put_messages,
    running,
    stored_times,
)

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.protocol.bodies.offsets import ResetOffsets, ResetOffsetsForC
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.offsets import ResetOffset


def queue(queue_id: int) -> MessageQueue:
    return MessageQueue("orders", "shop", queue_id)


async def reset(client: BrokerClient, **wanted: int | bool) -> RemotingCommand:
    given = {"timestamp": -1, "is_force": True, "queue_id": -1, "offset": -1, **wanted}
    header = ResetOffset(topic="orders", group="billing", **given)  # type: ignore[arg-type]
    return await client.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)


def test_a_group_is_reset_by_time_to_the_end_and_to_an_offset(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 2)
            for _ in range(3):
                await broker.in_pool(put_messages, broker, "orders", 0)
                await asyncio.sleep(0.003)
            broker.groups.put(GroupConfig("billing"))
            last_ms = stored_times(broker, 0)[2]
            for wanted, expected in (
                ({"timestamp": -1}, {0: 3, 1: 0}),
                ({"timestamp": last_ms}, {0: 2, 1: 0}),
                ({"timestamp": last_ms + 60_000}, {0: 3, 1: 0}),
                ({"timestamp": 0}, {0: 0, 1: 0}),
                ({"queue_id": 0, "offset": 1}, {0: 1}),
                ({"queue_id": 1, "timestamp": 0}, {1: 0}),
            ):
                answer = await reset(client, **wanted)
                table = ResetOffsets.decode(answer.body).offset_table
                assert table == {queue(number): at for number, at in expected.items()}
            assert broker.store.offsets.committed("billing", "orders") == {0: 1, 1: 0}
            answer = await reset(client, queue_id=0, offset=4)
            assert (answer.code, answer.remark) == (
                1,
                "Target offset 4 not in consume queue range [0-3]",
            )

    asyncio.run(run())


def test_a_group_that_is_not_forced_only_goes_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 2)
            await broker.in_pool(put_messages, broker, "orders", 0, 0, 1, 1)
            broker.groups.put(GroupConfig("billing"))
            await commit(client, "billing", 0, 1)
            await reset(client, timestamp=-1, is_force=False)
            assert broker.offsets.committed("billing", "orders") == {0: 1, 1: 2}
            await reset(client, timestamp=0, is_force=False)
            assert broker.offsets.committed("billing", "orders") == {0: 0, 1: 0}

    asyncio.run(run())


def test_consumers_that_are_online_are_told_in_the_form_of_their_language(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            java, cpp = BrokerClient(broker, "j"), BrokerClient(broker, "c", language="CPP")
            await broker.in_pool(broker.store.create_topic, "orders", 1)
            await broker.in_pool(put_messages, broker, "orders", 0, 0)
            await java.consume("billing", "orders")
            await cpp.consume("billing", "orders")
            await reset(java, timestamp=-1)
            code = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
            (to_java,), (to_cpp,) = await java.told(code), await cpp.told(code)
            assert to_java.is_oneway
            header = ResetOffset.decode(to_java.fields)
            assert (header.topic, header.group, header.timestamp) == ("orders", "billing", -1)
            table = {queue(0): 2}
            assert ResetOffsets.decode(to_java.body).offset_table == table
            assert ResetOffsetsForC.decode(to_cpp.body) == ResetOffsetsForC.of(table)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("has_topic", "code", "remark"),
    [
        (False, 17, "Topic orders does not exist"),
        (True, 26, "Group billing does not exist"),
    ],
)
def test_what_is_not_there_is_not_reset(
    tmp_path: Path, *, has_topic: bool, code: int, remark: str
) -> None:
    async def run() -> RemotingCommand:
        async with running(tmp_path) as broker:
            if has_topic:
                await broker.in_pool(broker.store.create_topic, "orders", 1)
            return await reset(BrokerClient(broker))

    answer = asyncio.run(run())
    assert (answer.code, answer.remark) == (code, remark)
