"""Offsets: where queues begin and end, what was stored when, and how far groups have read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.queue_positions import (
    begins_at_zero,
    offset_by_time,
    position,
    stored_ms,
)
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.offsets import ConsumerOffsetTable, CorrectionOffsets
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.offsets import (
    CloneGroupOffset,
    EarliestStoreTimeAnswer,
    GetEarliestStoreTime,
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    QueryCorrectionOffset,
    SearchOffset,
    UpdateConsumerOffset,
)
from rocketpy.broker_core.protocol.requests.request import OffsetAnswer

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_NONE = (1 << 63) - 1  # of correction offsets: Java's greatest long
_NOT_FOUND = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"


# --- of queues; by time: reads files -------------------------------------------------------------


def max_offset(broker: Broker, request: GetMaxOffset, call: Call) -> Reply:
    """Answer GET_MAX_OFFSET (30)."""
    return Reply.of(OffsetAnswer(offset=position(broker, request.topic, request.queue_id).end))


def min_offset(broker: Broker, request: GetMinOffset, call: Call) -> Reply:
    """Answer GET_MIN_OFFSET (31)."""
    return Reply.of(OffsetAnswer(offset=position(broker, request.topic, request.queue_id).low))


def search_offset(broker: Broker, request: SearchOffset, call: Call) -> Reply:
    """Answer SEARCH_OFFSET_BY_TIMESTAMP (29)."""
    is_upper = (request.boundary_type or "").upper() == "UPPER"
    queue = request.topic, request.queue_id
    found = offset_by_time(broker, *queue, request.timestamp, upper=is_upper)
    return Reply.of(OffsetAnswer(offset=found))


def earliest_store_time(broker: Broker, request: GetEarliestStoreTime, call: Call) -> Reply:
    """Answer GET_EARLIEST_MSG_STORETIME (32); -1 for an empty queue."""
    low, end = position(broker, request.topic, request.queue_id)
    found = stored_ms(broker, request.topic, request.queue_id, low) if low < end else None
    return Reply.of(EarliestStoreTimeAnswer(timestamp=-1 if found is None else found))


# --- of groups ------------------------------------------------------------------------------------


def consumer_offset(broker: Broker, request: QueryConsumerOffset, call: Call) -> Reply:
    """Answer QUERY_CONSUMER_OFFSET (14). Reads files.

    A group that never committed begins at 0 if the queue is empty, or its first message recent;
    otherwise its client decides.
    """
    topic, queue_id = request.topic, request.queue_id
    found = broker.offsets.get(request.consumer_group, topic, queue_id)
    if found is None and request.set_zero_if_not_found is not False:
        found = 0 if begins_at_zero(broker, topic, queue_id) else None
    if found is None:
        raise RefusedError(ResponseCode.QUERY_NOT_FOUND, _NOT_FOUND)
    return Reply.of(OffsetAnswer(offset=found))


def update_consumer_offset(broker: Broker, request: UpdateConsumerOffset, call: Call) -> Reply:
    """Answer UPDATE_CONSUMER_OFFSET (15), from memory."""
    group, topic = request.consumer_group, request.topic
    if broker.groups.get(group) is None:
        remark = f"Group {group} not exist!"
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if broker.topics.get(topic) is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
    try:
        broker.offsets.commit(group, topic, request.queue_id, request.commit_offset)
    except (ValueError, RocketPyError) as cause:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(cause)) from cause
    return Reply()


def all_consumer_offsets(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer GET_ALL_CONSUMER_OFFSET (43). Reads files."""
    table: dict[str, dict[int, int]] = {}
    for group, topic, queue_id, queue_offset in broker.offsets.all():
        table.setdefault(f"{topic}@{group}", {})[queue_id] = queue_offset
    return Reply(body=ConsumerOffsetTable(offset_table=table).encode())


async def clone_offsets(broker: Broker, request: CloneGroupOffset, call: Call) -> Reply:
    """Answer CLONE_GROUP_OFFSET (314): a group reads on where another one does."""
    online = None if request.offline else broker.clients.consumers(request.dest_group)
    wanted = frozenset(online.subscriptions) if online is not None else frozenset()

    def clone() -> None:
        given = request.topic or ""
        topics = [given] if given.strip() else broker.offsets.topics_of(request.src_group)
        for topic in topics:
            is_known = broker.topics.get(topic) is not None
            # Online it takes only what it reads now.
            is_read = not wanted or topic in wanted
            offsets = broker.offsets.committed(request.src_group, topic)
            if is_known and is_read and offsets:
                broker.offsets.set(request.dest_group, topic, offsets)

    await broker.in_pool(clone)
    return Reply()


def correction_offsets(broker: Broker, request: QueryCorrectionOffset, call: Call) -> Reply:
    """Answer QUERY_CORRECTION_OFFSET (308). Reads files.

    By queue the least offset of all groups but some, as far as the queue still has it; Java's
    greatest long where the group that is compared is not beyond it.
    """
    passed_over = {name for name in (request.filter_groups or "").split(",") if name}
    least: dict[int, int] = {}
    for group, topic, queue_id, queue_offset in broker.offsets.all():
        if topic != request.topic or group in passed_over:
            continue
        if queue_offset >= position(broker, topic, queue_id).low:
            least[queue_id] = min(queue_offset, least.get(queue_id, _NONE))
    compared = broker.offsets.committed(request.compare_group, request.topic)
    for queue_id, queue_offset in compared.items():
        found = least.get(queue_id, _NONE)
        least[queue_id] = _NONE if found > queue_offset else found
    return Reply(body=CorrectionOffsets(correction_offsets=least).encode())
