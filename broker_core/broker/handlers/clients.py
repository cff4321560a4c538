"""Clients come, live and go; and who they are."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.clients import Client, ConsumerGroup
from rocketpy.broker_core.clock import steady_ms
from rocketpy.broker_core.errors import FilterSyntaxError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.metadata.names import retry_topic
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.connections import (
    CheckedSubscription,
    ClientConnection,
    ConsumerConnection,
    ConsumerList,
    ProducerConnection,
    ProducerInfo,
    ProducerTable,
)
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    SQL92,
    TAG,
    HeartbeatData,
)
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.clients import Heartbeat, UnregisterClient
from rocketpy.broker_core.protocol.requests.groups import (
    GetAllProducers,
    GetConsumerConnections,
    GetConsumerList,
    GetProducerConnections,
)
from rocketpy.broker_core.protocol.requests.request import Request

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_UNIT_SUBSCRIBED = 2  # a flag of topics (TopicSysFlag)


def heartbeat(broker: Broker, request: Heartbeat, call: Call) -> Reply | Awaitable[Reply]:
    """Answer HEART_BEAT (34). A group's settings and its topic of retries are made on first use."""
    data = HeartbeatData.decode(call.command.body)
    if all(_is_ready(broker, consumer.group_name) for consumer in data.consumers):
        return _register(broker, data, call)
    return _prepare_and_register(broker, data, call)


def _is_ready(broker: Broker, group: str) -> bool:
    return (
        broker.groups.get(group) is not None and broker.topics.get(retry_topic(group)) is not None
    )


async def _prepare_and_register(broker: Broker, data: HeartbeatData, call: Call) -> Reply:
    for consumer in data.consumers:
        settings = await broker.groups.made(consumer.group_name)
        name = retry_topic(consumer.group_name)
        if settings is None or broker.topics.get(name) is not None:
            continue  # without settings it may not consume: its pulls are told so
        wanted = TopicConfig(
            name,
            read_queues=settings.retry_queues,
            write_queues=settings.retry_queues,
            sys_flag=_UNIT_SUBSCRIBED if consumer.unit_mode else 0,
        )
        await broker.in_pool(broker.topics.make, wanted)
    return _register(broker, data, call)


def _register(broker: Broker, data: HeartbeatData, call: Call) -> Reply:
    """Register all groups of a client; it may have gone while they were prepared."""
    needs_subscriptions = not data.heartbeat_fingerprint
    if not call.connection.is_closed:
        for consumer in data.consumers:
            client = _client(broker, data.client_id, call)
            broker.clients.register_consumer(
                consumer, client, with_subscriptions=not data.without_sub
            )
            if data.heartbeat_fingerprint:
                needs_subscriptions |= broker.clients.note_fingerprint(
                    consumer.group_name,
                    data.heartbeat_fingerprint,
                    without_sub=data.without_sub,
                )
        for producer in data.producers:
            client = _client(broker, data.client_id, call)
            broker.clients.register_producer(producer.group_name, client)
    is_changed = "true" if needs_subscriptions else "false"
    return Reply(fields={"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": is_changed})


def _client(broker: Broker, client_id: str, call: Call) -> Client:
    command = call.command
    times = steady_ms(broker.clock), broker.clock.now_ms()
    return Client(client_id, call.connection, command.language, command.version, *times)


def unregister(broker: Broker, request: UnregisterClient, call: Call) -> Reply:
    """Answer UNREGISTER_CLIENT (35)."""
    if request.producer_group is not None:
        broker.clients.unregister(request.producer_group, call.connection, is_consumer=False)
    if request.consumer_group is not None:
        broker.clients.unregister(request.consumer_group, call.connection, is_consumer=True)
    return Reply()


def check_subscription(broker: Broker, request: Request, call: Call) -> Reply:
    """Answer CHECK_CLIENT_CONFIG (46): whether a filter is one that we understand."""
    body = CheckedSubscription.decode(call.command.body)
    subscription = body.subscription_data
    kind = subscription.expression_type or TAG
    if kind == TAG:
        return Reply()
    if not broker.settings.enable_property_filter or kind != SQL92:
        remark = f"The broker does not support consumer to filter message by {kind}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    try:
        SqlFilter(subscription.sub_string)
    except FilterSyntaxError as cause:
        raise RefusedError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(cause)) from cause
    return Reply()


# --- who is there ---------------------------------------------------------------------------------


def consumer_list(broker: Broker, request: GetConsumerList, call: Call) -> Reply:
    """Answer GET_CONSUMER_LIST_BY_GROUP (38)."""
    found = broker.clients.consumer_ids(request.consumer_group)
    if not found:
        remark = f"no consumer for this group, {request.consumer_group}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    return Reply(body=ConsumerList(consumer_id_list=tuple(found)).encode())


def consumer_connections(broker: Broker, request: GetConsumerConnections, call: Call) -> Reply:
    """Answer GET_CONSUMER_CONNECTION_LIST (203)."""
    group = online_group(broker, request.consumer_group)
    return Reply(
        body=ConsumerConnection(
            connections=_connections(group.members.values()),
            subscription_table=group.subscriptions,
            consume_type=group.consume_type,
            message_model=group.message_model,
            consume_from_where=group.consume_from_where,
        ).encode()
    )


def online_group(broker: Broker, name: str) -> ConsumerGroup:
    """Return a group that has consumers.

    Raises:
        RefusedError: it has none.
    """
    group = broker.clients.consumers(name)
    if group is None:
        remark = f"the consumer group[{name}] not online"
        raise RefusedError(ResponseCode.CONSUMER_NOT_ONLINE, remark)
    return group


def producer_connections(broker: Broker, request: GetProducerConnections, call: Call) -> Reply:
    """Answer GET_PRODUCER_CONNECTION_LIST (204)."""
    found = broker.clients.producers(request.producer_group)
    if not found:
        remark = f"the producer group[{request.producer_group}] not exist"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    return Reply(body=ProducerConnection(connections=_connections(found)).encode())


def all_producers(broker: Broker, request: GetAllProducers, call: Call) -> Reply:
    """Answer GET_ALL_PRODUCER_INFO (328)."""
    table = {
        group: tuple(
            ProducerInfo(
                client_id=client.client_id,
                remote_ip=str(client.connection.peer),
                language=client.language,
                version=client.version,
                last_update_timestamp=client.heard_at_ms,
            )
            for client in members
        )
        for group, members in broker.clients.producer_groups().items()
    }
    return Reply(body=ProducerTable(data=table).encode())


def _connections(clients: Iterable[Client]) -> tuple[ClientConnection, ...]:
    return tuple(
        ClientConnection(
            client_id=client.client_id,
            client_addr=str(client.connection.peer),
            language=client.language,
            version=client.version,
        )
        for client in clients
    )
