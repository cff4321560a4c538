"""What clients say of their consuming: a broker asks them for a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.body import Body, empty, member
from rocketpy.broker_core.protocol.bodies.heartbeats import SubscriptionData


class DirectlyConsumed(Body):
    """What came of a message that a client was told to consume."""

    JAVA = "ConsumeMessageDirectlyResult"

    consume_result: str | None = None  # CR_SUCCESS, CR_LATER, CR_THROW_EXCEPTION, ...
    order: bool = False
    auto_commit: bool = True
    remark: str | None = None
    spent_time_mills: int = 0


class ConsumerRunningInfo(Body):
    """A client of a group: its settings, its queues, and how it goes; values as they came."""

    JAVA = "ConsumerRunningInfo"

    properties: Mapping[str, Any] = empty()
    subscriptions: tuple[SubscriptionData, ...] = member("subscriptionSet", default=())
    queues: Mapping[MessageQueue, Any] = member("mqTable", default_factory=dict)
    popped_queues: Mapping[MessageQueue, Any] | None = member("mqPopTable", default=None)
    status_table: Mapping[str, Any] = empty()
    user_consumer_info: Mapping[str, str] | None = None
    jstack: str | None = None
