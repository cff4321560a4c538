"""What a broker says of its clients, and what they want."""

from __future__ import annotations

from collections.abc import Mapping

from rocketpy.broker_core.protocol.bodies.body import Body, choice, empty, member
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    CONSUME_TYPES,
    FROM_WHERE,
    MESSAGE_MODELS,
    SubscriptionData,
)


class ConsumerList(Body):
    """The clients of a group, by their ids."""

    JAVA = "GetConsumerListByGroupResponseBody"

    consumer_id_list: tuple[str, ...] = ()


class ClientConnection(Body):
    """A client that is connected."""

    JAVA = "Connection"

    client_id: str
    client_addr: str
    language: str = "JAVA"
    version: int = 0


class ConsumerConnection(Body):
    """The clients of a consumer group, and what they consume."""

    JAVA = "ConsumerConnection"

    connections: tuple[ClientConnection, ...] = member("connectionSet", default=())
    subscription_table: Mapping[str, SubscriptionData] = empty()
    consume_type: str | None = choice(None, CONSUME_TYPES)
    message_model: str | None = choice(None, MESSAGE_MODELS)
    consume_from_where: str | None = choice(None, FROM_WHERE)


class ProducerConnection(Body):
    """The clients of a producer group."""

    JAVA = "ProducerConnection"

    connections: tuple[ClientConnection, ...] = member("connectionSet", default=())


class ProducerInfo(Body):
    """A client that sends."""

    JAVA = "ProducerInfo"

    client_id: str
    remote_ip: str = member("remoteIP")
    language: str = "JAVA"
    version: int = 0
    last_update_timestamp: int = 0


class ProducerTable(Body):
    """All clients that send, by group."""

    JAVA = "ProducerTableInfo"

    data: Mapping[str, tuple[ProducerInfo, ...]] = empty()


class CheckedSubscription(Body):
    """A subscription that a client wants checked before it uses it."""

    JAVA = "CheckClientRequestBody"

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None


class GroupSubscription(Body):
    """The subscription of a group to a topic; without one where nobody has it."""

    JAVA = "QuerySubscriptionResponseBody"

    group: str
    topic: str
    subscription_data: SubscriptionData | None = None
