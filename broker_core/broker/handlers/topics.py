"""Topics of a broker: made, changed, listed, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.registrant import topic_settings
from rocketpy.broker_core.errors import TopicNameError
from rocketpy.broker_core.metadata.names import check_topic_name, is_reserved_topic
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.topics import CreateTopic, GetTopic

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


def create_topic(broker: Broker, request: CreateTopic, call: Call) -> Reply:
    """Answer UPDATE_AND_CREATE_TOPIC (17)."""
    del call
    try:
        check_topic_name(request.topic)
    except TopicNameError as cause:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, str(cause)) from cause
    if is_reserved_topic(request.topic):
        remark = f"The topic[{request.topic}] is conflict with system topic."
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark)
    config = TopicConfig(
        request.topic,
        read_queues=request.read_queue_nums,
        write_queues=request.write_queue_nums,
        perm=request.perm,
        order=request.order,
        topic_filter_type=request.topic_filter_type,
        sys_flag=request.topic_sys_flag or 0,
    )
    with broker.store.locked():
        broker.store.put_topics([config])
    broker.topics.tell_changed()
    return Reply()


def get_topic(broker: Broker, request: GetTopic, call: Call) -> Reply:
    """Answer GET_TOPIC_CONFIG (351)."""
    del call
    config = broker.topics.get(request.topic)
    if config is None:
        remark = f"No topic in this broker. topic: {request.topic}"
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
    return Reply(body=topic_settings(config).encode())
