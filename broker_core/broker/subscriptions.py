"""Who may read what, and what a consumer wants of a topic: by its request, or its heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.pulling import SQL92, WantedMessages, wanted_of
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.net.service import Call, RefusedError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.reading import SUBSCRIPTION, PullMessage

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_BROADCASTING = "BROADCASTING"


class Subscriptions:
    """Judges pulls on one broker. Used in the loop."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def check_topic(self, request: PullMessage, call: Call) -> None:
        """Refuse a pull from a topic or a queue that cannot be read."""
        topic = self._broker.topics.get(request.topic)
        if topic is None:
            remark = f"topic[{request.topic}] not exist, apply first please!"
            raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
        if not topic.is_readable:
            remark = f"the topic[{request.topic}] pulling message is forbidden"
            raise RefusedError(ResponseCode.NO_PERMISSION, remark)
        if not self._broker.settings.broker_permission & 4:
            remark = f"the broker[{self._broker.host}] pulling message is forbidden"
            raise RefusedError(ResponseCode.NO_PERMISSION, remark)
        if not 0 <= request.queue_id < max(topic.read_queues, topic.write_queues):
            remark = (
                f"queueId[{request.queue_id}] is illegal, topic:[{request.topic}] "
                f"topicConfig.readQueueNums:[{topic.read_queues}] consumer:[{call.connection.peer}]"
            )
            raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)

    def wanted(self, request: PullMessage, call: Call) -> WantedMessages:
        """Return what a pull asks for.

        Raises:
            RefusedError: the broker knows no subscription of the group, or an older one.
        """
        del call
        if request.sys_flag & SUBSCRIPTION:
            expression, kind = request.subscription or "*", request.expression_type
        else:
            expression, kind = self._by_heartbeat(request)
        if kind == SQL92 and not self._broker.settings.enable_property_filter:
            remark = f"The broker does not support consumer to filter message by {kind}"
            raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
        try:
            return wanted_of(expression, kind)
        except RocketPyError as cause:
            remark = f"parse the consumer's subscription failed: {cause}"
            raise RefusedError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark) from cause

    def _by_heartbeat(self, request: PullMessage) -> tuple[str, str | None]:
        group = self._broker.clients.consumers(request.consumer_group)
        if group is None:
            remark = "the consumer's group info not exist"
            raise RefusedError(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark)
        settings = self._broker.groups.get(request.consumer_group)
        may_broadcast = settings is None or settings.consume_broadcast_enabled
        if group.message_model == _BROADCASTING and not may_broadcast:
            remark = (
                f"the consumer group[{request.consumer_group}] can not consume by broadcast way"
            )
            raise RefusedError(ResponseCode.NO_PERMISSION, remark)
        known = group.subscription(request.topic)
        if known is None:
            remark = "the consumer's subscription not exist"
            raise RefusedError(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark)
        if known.sub_version < request.sub_version:
            remark = "the consumer's subscription not latest"
            raise RefusedError(ResponseCode.SUBSCRIPTION_NOT_LATEST, remark)
        return known.sub_string, known.expression_type
