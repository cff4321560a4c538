"""What tools ask of clients through the broker, over real connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker_core.broker.running_broker import BrokerClient, put_messages, running

from rocketpy.broker_core.broker.handlers import relaying
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.offsets import ConsumerStatus
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.requests.groups import GetConsumerRunningInfo
from rocketpy.broker_core.protocol.requests.offsets import GetConsumerStatus
from rocketpy.broker_core.protocol.requests.reading import ConsumeDirectly

RUNNING_INFO = RequestCode.GET_CONSUMER_RUNNING_INFO
DIRECTLY = RequestCode.CONSUME_MESSAGE_DIRECTLY
STATUS, STATUS_OF_CLIENT = (
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
)
INFO = GetConsumerRunningInfo(consumer_group="billing", client_id="c1", jstack_enable=True)


def test_running_info_is_the_clients_own_answer(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            tool, client = BrokerClient(broker, "tool"), BrokerClient(broker, "c1")
            client.answers[RUNNING_INFO] = ResponseCode.SUCCESS, b'{"jstack":"..."}'
            await client.consume("billing", "orders")
            answer = await tool.ask(RUNNING_INFO, INFO)
            assert (answer.code, bytes(answer.body)) == (0, b'{"jstack":"..."}')
            assert answer.fields["by"] == "c1"
            (asked,) = await client.told(RUNNING_INFO)
            assert GetConsumerRunningInfo.decode(asked.fields) == INFO

    asyncio.run(run())


def test_a_client_that_is_not_there_or_silent_or_breaks_off_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            tool, client = BrokerClient(broker, "tool"), BrokerClient(broker, "c1")
            answer = await tool.ask(RUNNING_INFO, INFO)
            assert (answer.code, answer.remark) == (1, "The Consumer <billing> <c1> not online")
            await client.consume("billing", "orders")
            monkeypatch.setattr(relaying, "_TIMEOUT_S", 0.05)
            assert (await tool.ask(RUNNING_INFO, INFO)).code == ResponseCode.CONSUME_MSG_TIMEOUT
            monkeypatch.setattr(relaying, "_TIMEOUT_S", 30.0)
            asking = asyncio.ensure_future(tool.ask(RUNNING_INFO, INFO))
            await client.told(RUNNING_INFO, 2)
            client.close()
            answer = await asking
            assert answer.code == 1
            assert "invoke consumer <billing> <c1> Exception" in (answer.remark or "")

    asyncio.run(run())


def test_a_message_is_handed_to_the_client_to_consume(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            tool, client = BrokerClient(broker, "tool"), BrokerClient(broker, "c1")
            await broker.in_pool(broker.store.create_topic, "orders", 1)
            await broker.in_pool(put_messages, broker, "orders", 0, 0)
            client.answers[DIRECTLY] = ResponseCode.SUCCESS, b'{"consumeResult":"CR_SUCCESS"}'
            await client.consume("billing", "orders")
            unit = broker.store.queue("orders", 0).queue.unit(1)
            assert unit is not None
            message = broker.store.message_at(unit.physical_offset)
            header = ConsumeDirectly(
                consumer_group="billing", client_id="c1", msg_id=message.msg_id, topic="orders"
            )
            answer = await tool.ask(DIRECTLY, header)
            assert bytes(answer.body) == b'{"consumeResult":"CR_SUCCESS"}'
            (asked,) = await client.told(DIRECTLY)
            assert asked.body == broker.store.log_bytes(unit.physical_offset, unit.size)
            assert asked.fields["brokerName"] == "shop"
            assert asked.fields["topicSysFlag"] == "0"

    asyncio.run(run())


@pytest.mark.parametrize("msg_id", ["no-id", "7F000001" + "0" * 8 + "7" * 16, "F" * 32])
def test_an_id_of_no_message_is_refused(tmp_path: Path, msg_id: str) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            header = ConsumeDirectly(consumer_group="billing", client_id="c1", msg_id=msg_id)
            answer = await BrokerClient(broker).ask(DIRECTLY, header)
            assert answer.code == 1
            assert msg_id in (answer.remark or "")

    asyncio.run(run())


def test_where_the_clients_of_a_group_are_is_gathered_from_those_that_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relaying, "_STATUS_TIMEOUT_S", 0.3)

    async def run() -> None:
        async with running(tmp_path) as broker:
            clients = [BrokerClient(broker, name) for name in ("a", "b", "silent")]
            for number, client in enumerate(clients):
                offsets = {MessageQueue("orders", "shop", number): number + 5}
                if client.client_id != "silent":
                    body = ConsumerStatus(offsets=offsets).encode()
                    client.answers[STATUS_OF_CLIENT] = ResponseCode.SUCCESS, body
                await client.consume("billing", "orders")
            everybody = GetConsumerStatus(topic="orders", group="billing")
            answer = await clients[0].ask(STATUS, everybody)
            assert ConsumerStatus.decode(answer.body).offsets_by_client == {
                "a": {MessageQueue("orders", "shop", 0): 5},
                "b": {MessageQueue("orders", "shop", 1): 6},
            }
            one = GetConsumerStatus(topic="orders", group="billing", client_addr="b")
            answer = await clients[0].ask(STATUS, one)
            assert ConsumerStatus.decode(answer.body).offsets_by_client.keys() == {"b"}
            nobody = GetConsumerStatus(topic="orders", group="audit")
            assert (await clients[0].ask(STATUS, nobody)).code == ResponseCode.SYSTEM_ERROR

    asyncio.run(run())
