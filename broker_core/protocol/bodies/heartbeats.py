"""What a client says of itself in a heartbeat."""

from __future__ import annotations

from rocketpy.broker_core.protocol.bodies.body import Body, choice, member

TAG, SQL92 = "TAG", "SQL92"  # expression types
EVERYTHING = "*"  # a subscription to all messages of a topic
CONSUME_TYPES = CONSUME_ACTIVELY, CONSUME_PASSIVELY, CONSUME_POP = (
    *("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP"),
)
MESSAGE_MODELS = BROADCASTING, CLUSTERING, LITE_SELECTIVE = (
    *("BROADCASTING", "CLUSTERING", "LITE_SELECTIVE"),
)
CONSUME_FROM_FIRST_OFFSET, CONSUME_FROM_LAST_OFFSET, CONSUME_FROM_TIMESTAMP = (
    *("CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP"),
)
FROM_WHERE = (
    CONSUME_FROM_LAST_OFFSET,
    # Of old clients, and today the same as the last and the first offset.
    *("CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST", "CONSUME_FROM_MIN_OFFSET"),
    "CONSUME_FROM_MAX_OFFSET",
    CONSUME_FROM_FIRST_OFFSET,
    CONSUME_FROM_TIMESTAMP,
)


class SubscriptionData(Body):
    """Which messages of a topic a group wants."""

    JAVA = "SubscriptionData"

    topic: str
    sub_string: str = EVERYTHING
    tags: tuple[str, ...] = member("tagsSet", default=())
    codes: tuple[int, ...] = member("codeSet", default=())  # the tags' hash codes
    sub_version: int = 0  # when it was made, in ms
    expression_type: str = TAG
    class_filter_mode: bool = False


class ProducerData(Body):
    """A group that a client sends for."""

    JAVA = "ProducerData"

    group_name: str


class ConsumerData(Body):
    """A group that a client consumes for."""

    JAVA = "ConsumerData"

    group_name: str
    consume_type: str = choice(CONSUME_PASSIVELY, CONSUME_TYPES)
    message_model: str = choice(CLUSTERING, MESSAGE_MODELS)
    consume_from_where: str = choice(CONSUME_FROM_LAST_OFFSET, FROM_WHERE)
    subscriptions: tuple[SubscriptionData, ...] = member("subscriptionDataSet", default=())
    unit_mode: bool = False


class HeartbeatData(Body):
    """A client and its groups."""

    JAVA = "HeartbeatData"

    client_id: str = member("clientID")
    producers: tuple[ProducerData, ...] = member("producerDataSet", default=())
    consumers: tuple[ConsumerData, ...] = member("consumerDataSet", default=())
    # Of 5.x: what all subscriptions hash to, so that a heartbeat can be sent without them.
    heartbeat_fingerprint: int = 0
    without_sub: bool = False
