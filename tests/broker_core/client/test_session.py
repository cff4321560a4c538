"""A session against two brokers of ours: routes, heartbeats, what servers ask, its end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from typing import Any

import pytest

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.errors import ClientClosedError, NoBrokerError
from rocketpy.broker_core.client.heartbeats import ClientGroups
from rocketpy.broker_core.client.session import Answering, ServerRequest, Session
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.net.service import Reply
from rocketpy.broker_core.protocol.bodies.connections import ConsumerList, ProducerConnection
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    ConsumerData,
    ProducerData,
    SubscriptionData,
)
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.requests.groups import (
    GetConsumerList,
    GetConsumerRunningInfo,
    GetProducerConnections,
)

CLOSED = "127.0.0.1:1"  # nobody listens there


class Group:
    """A part in a producer group and a consumer group."""

    def __init__(self, topic: str = "t", **handlers: Answering) -> None:
        self._topic = topic
        self._handlers = {int(RequestCode[name]): each for name, each in handlers.items()}

    def groups(self) -> ClientGroups:
        subscribed = SubscriptionData(topic=self._topic)
        consumer = ConsumerData(group_name="readers", subscriptions=(subscribed,))
        return ClientGroups((ProducerData(group_name="senders"),), (consumer,))

    def topics(self) -> Collection[str]:
        return (self._topic,)

    def handlers(self) -> Mapping[int, Answering]:
        return self._handlers


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


async def until(condition: Any) -> None:
    while not await condition():
        await asyncio.sleep(0.02)


async def senders(session: Session, broker: str) -> list[str]:
    request = command_of(GetProducerConnections(producer_group="senders"))
    answer = await session.try_broker(broker, request)
    if answer.code != ResponseCode.SUCCESS:
        return []
    return [each.client_id for each in ProducerConnection.decode(answer.body).connections]


async def readers(session: Session, broker: str) -> list[str]:
    request = command_of(GetConsumerList(consumer_group="readers"))
    answer = await session.try_broker(broker, request)
    return [] if answer.code else [*ConsumerList.decode(answer.body).consumer_id_list]


@pytest.fixture
def topic(cluster: Cluster) -> str:
    ClusterTopics(cluster).create("t", queues=2)
    return "t"


def test_a_route_has_the_queues_of_all_brokers(servers: LocalBroker, topic: str) -> None:
    async def work() -> None:
        async with Session(servers.namesrv_addr) as session:
            route = await session.route(topic)
            assert [str(queue) for queue in route.writable()] == [
                *("t/broker-a:0", "t/broker-a:1", "t/broker-b:0", "t/broker-b:1"),
            ]
            assert session.known_route(topic) is route

    run(work())


@pytest.mark.usefixtures("topic")
def test_a_topic_that_is_not_there_is_named_in_the_error(servers: LocalBroker) -> None:
    async def work() -> None:
        async with Session(servers.namesrv_addr) as session:
            with pytest.raises(TopicNotFoundError, match=r"'tt'.*t"):
                await session.route("tt")

    run(work())


def test_a_name_server_that_is_down_is_passed_over(servers: LocalBroker, topic: str) -> None:
    async def work() -> None:
        async with Session(f"{CLOSED};{servers.namesrv_addr}") as session:
            assert (await session.route(topic)).topic == topic

    run(work())


def test_an_error_names_all_name_servers_that_do_not_answer() -> None:
    async def work() -> None:
        async with Session(f"{CLOSED};127.0.0.1:2") as session:
            with pytest.raises(ServerUnreachableError, match=r"127.0.0.1:1: .*; 127.0.0.1:2: "):
                await session.route("t")

    run(work())


def test_brokers_of_topics_in_use_know_the_groups_of_parts(
    servers: LocalBroker, topic: str
) -> None:
    async def work() -> None:
        async with Session(servers.namesrv_addr) as session:
            session.register(Group())
            await session.route(topic)
            await session.beat()
            for broker in ("broker-a", "broker-b"):
                assert await senders(session, broker) == [session.client_id]
                assert await readers(session, broker) == [session.client_id]

    run(work())


def test_a_part_is_known_without_being_asked_for_anything(servers: LocalBroker, topic: str) -> None:
    async def work() -> None:
        async with Session(servers.namesrv_addr) as session:
            session.register(Group(topic))
            await until(lambda: senders(session, "broker-b"))

    run(work())


def test_groups_are_left_at_the_end(servers: LocalBroker, topic: str) -> None:
    async def work() -> None:
        async with Session(servers.namesrv_addr) as session, Session(servers.namesrv_addr) as other:
            session.register(Group())
            await session.route(topic)
            await session.beat()
            assert await senders(other, "broker-a") == [session.client_id]
            await session.close()
            assert await senders(other, "broker-a") == []
            assert await readers(other, "broker-a") == []

    run(work())


def test_a_broker_that_comes_back_hears_of_us_again(servers: LocalBroker, topic: str) -> None:
    async def work() -> None:
        async with Session(servers.namesrv_addr) as session:
            session.register(Group(topic))
            await session.route(topic)
            await session.beat()
            await asyncio.to_thread(servers.kill_broker, 1)
            with pytest.raises((ServerUnreachableError, NoBrokerError)):
                await senders(session, "broker-b")
            await asyncio.to_thread(servers.start_broker, 1)
            await until(lambda: senders(session, "broker-b"))

    run(work())


def test_what_a_broker_asks_is_answered_by_the_part_that_takes_it(
    servers: LocalBroker, topic: str
) -> None:
    asked: list[ServerRequest] = []

    async def answer(request: ServerRequest) -> Reply:
        asked.append(request)
        return Reply(body=b'{"properties":{"from":"python"}}')

    async def work() -> None:
        async with Session(servers.namesrv_addr) as session:
            session.register(Group(GET_CONSUMER_RUNNING_INFO=answer))
            await session.route(topic)
            await session.beat()
            request = GetConsumerRunningInfo(consumer_group="readers", client_id=session.client_id)
            told = await session.ask_broker("broker-b", command_of(request))
            assert b"python" in told.body
            assert [each.address for each in asked] == [servers.brokers[1].address]

    run(work())


def test_a_request_that_no_part_takes_is_answered_nevertheless(
    servers: LocalBroker, topic: str
) -> None:
    async def work() -> None:
        async with Session(servers.namesrv_addr) as session:
            session.register(Group())
            await session.route(topic)
            await session.beat()
            request = GetConsumerRunningInfo(consumer_group="readers", client_id=session.client_id)
            told = await session.try_broker("broker-b", command_of(request))
            assert told.code != ResponseCode.SUCCESS
            assert session.client_id in (told.remark or "")

    run(work())


def test_a_closed_session_says_so(servers: LocalBroker, topic: str) -> None:
    async def work() -> None:
        session = Session(servers.namesrv_addr)
        await session.close()
        await session.close()
        with pytest.raises(ClientClosedError, match="connect again"):
            await session.route(topic)

    run(work())


def test_closing_does_not_wait_for_a_broker_that_hangs(servers: LocalBroker, topic: str) -> None:
    async def work() -> None:
        session = Session(servers.namesrv_addr, timeout_s=60)
        session.register(Group())
        await session.route(topic)
        await session.beat()
        with servers.faults.delay("UNREGISTER_CLIENT", 60, times=None):
            await session.close(timeout_s=0.1)

    run(work())
