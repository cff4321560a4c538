"""What brokers ask consumers, for tools; and what they answer when something is wrong."""

from __future__ import annotations

import asyncio

import pytest
from tests.broker_core.client.consuming.consumers import (
    GROUP,
    TOPIC,
    committed,
    listening,
    make_topic,
    send,
    until,
)
from tests.broker_core.client.consuming.test_push import Received

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.consuming.verdicts import Later
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.protocol.bodies.consuming import ConsumerRunningInfo, DirectlyConsumed
from rocketpy.broker_core.protocol.bodies.offsets import ConsumerStatus
from rocketpy.broker_core.protocol.requests.groups import GetConsumerRunningInfo
from rocketpy.broker_core.protocol.requests.offsets import GetConsumerStatus
from rocketpy.broker_core.protocol.requests.reading import ConsumeDirectly
from rocketpy.broker_core.protocol.requests.request import Request


async def asked(servers: LocalBroker, request: Request) -> bytes:
    """Ask the first broker, as a tool does."""

    def ask() -> bytes:
        with Cluster(servers.namesrv_addr, timeout_s=20) as cluster:
            return bytes(cluster.ask_broker("broker-a", command_of(request)).body)

    return await asyncio.to_thread(ask)


def test_a_tool_sees_queues_positions_and_subscriptions(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(10)))
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got, {TOPIC: "*"}) as consumer:
            await until(lambda: len(got) >= 10)
            await until(lambda: consumer.buffered == 0)
            request = GetConsumerRunningInfo(
                consumer_group=GROUP, client_id=consumer.client_id, jstack_enable=False
            )
            info = ConsumerRunningInfo.decode(await asked(servers, request))
            assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
            assert {each.topic for each in info.subscriptions} == {TOPIC, "%RETRY%shop"}
            assert sum(each["commitOffset"] for each in info.queues.values()) == 10
            status = ConsumerStatus.decode(
                await asked(servers, GetConsumerStatus(topic=TOPIC, group=GROUP))
            )
            offsets = status.offsets_by_client[consumer.client_id]
            assert {each.topic for each in offsets} == {TOPIC}
            assert sum(offsets.values()) == 10

    asyncio.run(scenario())


def test_a_tool_has_one_message_consumed(servers: LocalBroker) -> None:
    make_topic(servers)
    with servers.store(0) as store:
        receipt = store.send(TOPIC, "again")
    got: list[str] = []

    async def handler(message: ReceivedMessage) -> Later | None:
        got.append(message.body.decode())
        return Later() if len(got) == 3 else None

    async def scenario() -> None:
        async with listening(servers, handler) as consumer:
            await until(lambda: len(got) >= 1)
            request = ConsumeDirectly(
                consumer_group=GROUP,
                client_id=consumer.client_id,
                msg_id=receipt.msg_id,
                broker_name="broker-a",
            )
            results = [
                DirectlyConsumed.decode(await asked(servers, request)).consume_result
                for _ in range(2)
            ]
            assert results == ["CR_SUCCESS", "CR_LATER"]

    asyncio.run(scenario())
    assert got == ["again"] * 3


@pytest.mark.parametrize(
    ("answer", "times"),
    [("SUBSCRIPTION_NOT_EXIST", 3), ("SUBSCRIPTION_NOT_LATEST", 3), ("SYSTEM_BUSY", 1)],
)
def test_a_broker_that_refuses_pulls_is_asked_again(
    servers: LocalBroker, answer: str, times: int
) -> None:
    make_topic(servers)
    send(servers, map(str, range(10)))
    got = Received()

    async def scenario() -> None:
        faults = [
            each.faults.refuse("PULL_MESSAGE", times=times, answer=answer)
            for each in servers.brokers
        ]
        async with listening(servers, got):
            await until(lambda: len(got) >= 10)
        assert all(each.happened == times for each in faults)

    asyncio.run(scenario())
    assert sorted(map(int, got)) == [*range(10)]


def test_connections_that_break_and_answers_that_get_lost_cost_nothing_but_time(
    servers: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocketpy.broker_core.client.consuming.reading.HELD_LATE_S", 2.0)
    make_topic(servers)
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got):
            for each in servers.brokers:
                each.faults.drop_connection("PULL_MESSAGE", times=2)
                each.faults.lose_answer("PULL_MESSAGE", times=1)
            send(servers, map(str, range(40)))
            await until(lambda: len({*got}) >= 40)

    asyncio.run(scenario())
    assert committed(servers) == 40


def test_a_commit_that_fails_is_made_up_for(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(10)))
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got) as consumer:
            await until(lambda: len(got) >= 10)
            await until(lambda: consumer.buffered == 0)
            with servers.brokers[0].faults.refuse("UPDATE_CONSUMER_OFFSET", times=None) as fault:
                await consumer.commit()
            assert fault.happened
            assert committed(servers) < 10

    asyncio.run(scenario())
    assert committed(servers) == 10


def test_a_queue_that_ends_before_an_offset_is_read_on_from_its_end(
    servers: LocalBroker,
) -> None:
    make_topic(servers)
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got) as consumer:
            last = consumer.queues[-1]
            await consumer.reset({last: 1_000})
            await until(lambda: consumer.positions()[last] == 0)
            send(servers, map(str, range(10)))
            await until(lambda: len(got) >= 10)

    asyncio.run(scenario())
    assert committed(servers) == 10
