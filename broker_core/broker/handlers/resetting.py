"""Having groups read on from elsewhere: from a time, or from an offset of one queue."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.clients import ConsumerGroup
from rocketpy.broker_core.broker.queue_positions import offset_by_time, position
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.offsets import ResetOffsets, ResetOffsetsForC
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.offsets import ResetOffset

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)


async def reset_offsets(broker: Broker, request: ResetOffset, call: Call) -> Reply:
    """Answer INVOKE_BROKER_TO_RESET_OFFSET (222) with the offsets at which the group reads on.

    They are durable then. Consumers that are online are told, and take them up by themselves: until
    then, some ten seconds with Apache's client, they may still commit where they were.
    """
    topic = broker.topics.get(request.topic)
    if topic is None:
        remark = f"Topic {request.topic} does not exist"
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
    if broker.groups.get(request.group) is None:
        remark = f"Group {request.group} does not exist"
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    offsets = await broker.in_pool(_reset, broker, request, topic)
    log.info("group %s is reset in %s: %s", request.group, request.topic, offsets)
    name = broker.settings.broker_name
    table = {MessageQueue(topic.name, name, queue): at for queue, at in offsets.items()}
    group = broker.clients.consumers(request.group)
    if group is not None:
        _tell(group, request, table)
    return Reply(body=ResetOffsets(offset_table=table).encode())


def _reset(broker: Broker, request: ResetOffset, topic: TopicConfig) -> dict[int, int]:
    """Find the offsets by queue, and commit them."""
    if request.queue_id is not None and request.queue_id >= 0:
        wanted = {request.queue_id: _target(broker, request, request.queue_id)}
    else:
        queues = range(topic.read_queues)
        wanted = {queue_id: _by_time(broker, request, queue_id) for queue_id in queues}
    if not request.is_force:  # then a group only goes back
        for queue_id, at in broker.offsets.committed(request.group, topic.name).items():
            if queue_id in wanted:
                wanted[queue_id] = min(wanted[queue_id], at)
    if not wanted:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
    broker.offsets.set(request.group, topic.name, wanted)
    return wanted


def _target(broker: Broker, request: ResetOffset, queue_id: int) -> int:
    if request.offset is None or request.offset == -1:
        return _by_time(broker, request, queue_id)
    low, end = position(broker, request.topic, queue_id)
    if not low <= request.offset <= end:
        remark = f"Target offset {request.offset} not in consume queue range [{low}-{end}]"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    return request.offset


def _by_time(broker: Broker, request: ResetOffset, queue_id: int) -> int:
    if request.timestamp < 0:  # now: all that is there is skipped
        return position(broker, request.topic, queue_id).end
    return offset_by_time(broker, request.topic, queue_id, request.timestamp)


def _tell(group: ConsumerGroup, request: ResetOffset, table: dict[MessageQueue, int]) -> None:
    """Tell the members of a group; those in C++ read no objects as keys, and get a list."""
    header = ResetOffset(
        topic=request.topic,
        group=request.group,
        timestamp=request.timestamp,
        is_force=request.is_force,
    )
    plain, as_list = ResetOffsets(offset_table=table).encode(), ResetOffsetsForC.of(table).encode()
    for client in group.members.values():
        command = RemotingCommand(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, header.encode())
        client.connection.send(command, as_list if client.language == "CPP" else plain)
