"""Heartbeats, leaving, and who is there, over real connections."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.broker_core.broker.running_broker import BrokerClient, running

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.protocol.bodies.connections import (
    CheckedSubscription,
    ConsumerConnection,
    ConsumerList,
    ProducerConnection,
    ProducerTable,
)
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    BROADCASTING,
    SQL92,
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketpy.broker_core.protocol.bodies.queue_locks import (
    LockBatchRequest,
    LockBatchResponse,
    UnlockBatchRequest,
)
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.clients import UnregisterClient
from rocketpy.broker_core.protocol.requests.groups import (
    GetAllProducers,
    GetConsumerConnections,
    GetConsumerList,
    GetProducerConnections,
)

CHANGED = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED


async def _ids(client: BrokerClient, group: str) -> tuple[str, ...]:
    request = GetConsumerList(consumer_group=group)
    answer = await client.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, request)
    return ConsumerList.decode(answer.body).consumer_id_list if answer.code == 0 else ()


def test_a_first_heartbeat_makes_group_and_retry_topic_and_is_answered_as_recorded(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            broker.groups.put(GroupConfig("audit", retry_queues=3))
            client = BrokerClient(broker)
            for group in ("billing", "audit"):
                answer = await client.consume(group, "orders")
                assert answer.code == ResponseCode.SUCCESS
                assert answer.fields == {
                    "IS_SUPPORT_HEART_BEAT_V2": "true",
                    "IS_SUB_CHANGE": "true",
                }
            assert broker.store.groups.get("billing") == GroupConfig("billing")
            made = (
                broker.store.topics.get("%RETRY%billing"),
                broker.store.topics.get("%RETRY%audit"),
            )
            assert [topic and topic.write_queues for topic in made] == [1, 3]
            (told,) = [
                each for each in await client.told(CHANGED, 2) if "billing" in str(each.fields)
            ]
            assert told.is_oneway
            assert told.fields == {"consumerGroup": "billing"}
            assert await _ids(client, "billing") == ("c1",)

    asyncio.run(run())


def test_members_are_told_who_joins_who_leaves_and_whose_connection_breaks(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            a, b, c = (BrokerClient(broker, name) for name in "abc")
            for client in (a, b, c):
                await client.consume("billing", "orders")
            await a.told(CHANGED, 3)
            header = UnregisterClient(client_id="b", consumer_group="billing")
            assert (await b.ask(RequestCode.UNREGISTER_CLIENT, header)).code == 0
            await a.told(CHANGED, 4)
            assert await _ids(a, "billing") == ("a", "c")
            c.close()
            await a.told(CHANGED, 5)
            assert await _ids(a, "billing") == ("a",)
            assert len(await b.told(CHANGED)) == 2

    asyncio.run(run())


def test_a_group_may_be_set_not_to_be_told_of_changes(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            quiet = GroupConfig("quiet", notify_consumer_ids_changed_enabled=False)
            broker.groups.put(quiet)
            client = BrokerClient(broker)
            await client.consume("quiet", "orders")
            await client.consume("spread", "orders", message_model=BROADCASTING)
            await client.consume("billing", "orders")
            told = await client.told(CHANGED)
            assert [each.fields["consumerGroup"] for each in told] == ["billing"]

    asyncio.run(run())


def test_a_group_that_may_not_be_made_is_registered_and_has_no_retry_topic(tmp_path: Path) -> None:
    async def run() -> None:
        properties = {"autoCreateSubscriptionGroup": "false"}
        async with running(tmp_path, properties=properties) as broker:
            client = BrokerClient(broker)
            assert (await client.consume("billing", "orders")).code == 0
            assert broker.store.groups.get("billing") is None
            assert broker.store.topics.get("%RETRY%billing") is None
            assert await _ids(client, "billing") == ("c1",)

    asyncio.run(run())


def test_a_bad_group_name_is_no_reason_to_fail(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            assert (await client.consume("a/../b", "orders")).code == 0
            assert broker.store.groups.get("a/../b") is None

    asyncio.run(run())


def test_a_heartbeat_without_subscriptions_keeps_those_of_the_last_full_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            wanted = (SubscriptionData(topic="orders", sub_string="paid", sub_version=7),)
            full = HeartbeatData(
                client_id="c1",
                consumers=(ConsumerData(group_name="billing", subscriptions=wanted),),
                heartbeat_fingerprint=99,
            )
            bare = (ConsumerData(group_name="billing"),)
            short = replace(full, consumers=bare, without_sub=True)
            changes = [
                (await client.beat(data)).fields["IS_SUB_CHANGE"]
                for data in (short, full, short, replace(short, heartbeat_fingerprint=5))
            ]
            assert changes == ["true", "false", "false", "true"]
            group = broker.clients.consumers("billing")
            assert group is not None
            assert group.subscription("orders") == wanted[0]

    asyncio.run(run())


def test_tools_see_consumers_and_producers(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, clock=ManualClock()) as broker:
            client, sender = BrokerClient(broker, "c1"), BrokerClient(broker, "p1", language="CPP")
            await client.consume("billing", "orders")
            await sender.produce("till")
            header = GetConsumerConnections(consumer_group="billing")
            answer = await client.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
            found = ConsumerConnection.decode(answer.body)
            (connection,) = found.connections
            assert (connection.client_id, connection.language) == ("c1", "JAVA")
            assert connection.client_addr.startswith("127.0.0.1:")
            assert found.subscription_table["orders"].sub_version == 1
            assert found.consume_type == "CONSUME_PASSIVELY"
            assert found.message_model == "CLUSTERING"
            senders = GetProducerConnections(producer_group="till")
            answer = await client.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, senders)
            (connection,) = ProducerConnection.decode(answer.body).connections
            assert (connection.client_id, connection.language) == ("p1", "CPP")
            answer = await client.ask(RequestCode.GET_ALL_PRODUCER_INFO, GetAllProducers())
            (info,) = ProducerTable.decode(answer.body).data["till"]
            assert (info.client_id, info.last_update_timestamp) == ("p1", broker.clock.now_ms())

    asyncio.run(run())


def test_groups_that_nobody_is_in_are_refused_as_recorded(tmp_path: Path) -> None:
    async def run() -> list[RemotingCommand]:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            asked = [
                (RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerList(consumer_group="g")),
                (
                    RequestCode.GET_CONSUMER_CONNECTION_LIST,
                    GetConsumerConnections(consumer_group="g"),
                ),
                (
                    RequestCode.GET_PRODUCER_CONNECTION_LIST,
                    GetProducerConnections(producer_group="g"),
                ),
            ]
            return [await client.ask(code, header) for code, header in asked]

    assert [(answer.code, answer.remark) for answer in asyncio.run(run())] == [
        (1, "no consumer for this group, g"),
        (206, "the consumer group[g] not online"),
        (1, "the producer group[g] not exist"),
    ]


@pytest.mark.parametrize(
    ("kind", "expression", "code"),
    [
        ("TAG", "a || b", ResponseCode.SUCCESS),
        (SQL92, "price > 5 AND kind IN ('a')", ResponseCode.SUCCESS),
        (SQL92, "price >", ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ("XPATH", "//a", ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_filter_is_checked_before_it_is_used(
    tmp_path: Path, kind: str, expression: str, code: int
) -> None:
    async def run() -> int:
        async with running(tmp_path) as broker:
            wanted = SubscriptionData(topic="orders", sub_string=expression, expression_type=kind)
            body = CheckedSubscription(client_id="c1", group="g", subscription_data=wanted)
            client = BrokerClient(broker)
            return (await client.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body.encode())).code

    assert asyncio.run(run()) == code


def test_a_queue_is_locked_for_one_client_until_it_expires(tmp_path: Path) -> None:
    async def run() -> None:
        clock = ManualClock()
        async with running(tmp_path, clock=clock) as broker:
            client = BrokerClient(broker)
            queue = MessageQueue("orders", "shop", 0)

            async def lock(client_id: str) -> tuple[MessageQueue, ...]:
                wanted = LockBatchRequest(
                    consumer_group="billing", client_id=client_id, queues=(queue,)
                )
                answer = await client.ask(RequestCode.LOCK_BATCH_MQ, body=wanted.encode())
                return LockBatchResponse.decode(answer.body).queues

            assert await lock("a") == (queue,)
            assert await lock("b") == ()
            clock.advance(60_001)
            assert await lock("b") == (queue,)
            left = UnlockBatchRequest(consumer_group="billing", client_id="b", queues=(queue,))
            answer = await client.ask(RequestCode.UNLOCK_BATCH_MQ, body=left.encode())
            assert answer.code == 0
            assert await lock("a") == (queue,)

    asyncio.run(run())
