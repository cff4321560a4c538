"""How far groups are with their topics: offsets, lags and times.

These look at the store for many queues, in a thread; who is online is looked up before, in the
loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.queue_positions import noted_position, position, stored_ms
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.offsets import ConsumeTimeSpans, QueueTimeSpan
from rocketpy.broker_core.protocol.bodies.statistics import (
    ConsumedOffset,
    ConsumeStats,
    ConsumeStatsList,
)
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.groups import GetBrokerConsumeStats, GetConsumeStats
from rocketpy.broker_core.protocol.requests.offsets import QueryConsumeTimeSpan

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

# When messages were stored, by topic, queue and offset: many groups stand at the same one.
_Times = dict[tuple[str, int, int], int | None]
_Read = dict[str, frozenset[str]]  # the topics that groups which are online read now


async def consume_stats(broker: Broker, request: GetConsumeStats, call: Call) -> Reply:
    """Answer GET_CONSUME_STATS (208), for one topic, for some, or for all of the group."""
    group = request.consumer_group
    listed = [*(request.topic_list or "").split(";"), request.topic or ""]
    named = [topic for topic in listed if topic.strip()]
    read = _topics_read(broker)

    def find() -> ConsumeStats:
        topics = _topics(broker, group, read, named or broker.offsets.topics_of(group))
        found: dict[MessageQueue, ConsumedOffset] = {}
        for topic in topics:
            found |= _offsets(broker, group, topic, {})
        return ConsumeStats(offset_table=found, consume_tps=_tps(broker, group, topics))

    return Reply(body=(await broker.in_pool(find)).encode())


async def broker_consume_stats(broker: Broker, request: GetBrokerConsumeStats, call: Call) -> Reply:
    """Answer GET_BROKER_CONSUME_STATS (317): every group, with all its topics."""
    read = _topics_read(broker)

    def find() -> ConsumeStatsList:
        topics_of: dict[str, set[str]] = {group: set() for group in broker.groups.all()}
        for row in broker.offsets.all():
            if row.group in topics_of:
                topics_of[row.group].add(row.topic)
        times: _Times = {}
        stats = [
            {
                group: tuple(
                    ConsumeStats(
                        offset_table=_offsets(broker, group, topic, times),
                        consume_tps=_tps(broker, group, [topic]),
                    )
                    for topic in _topics(broker, group, read, sorted(topics))
                    if topic.order or not request.is_order
                )
            }
            for group, topics in topics_of.items()
        ]
        offsets = [
            offset
            for by_group in stats
            for all_of_group in by_group.values()
            for each in all_of_group
            for offset in each.offset_table.values()
        ]
        return ConsumeStatsList(
            stats=tuple(stats),
            broker_addr=str(broker.host),
            total_diff=sum(each.broker_offset - each.consumer_offset for each in offsets),
            total_inflight_diff=sum(
                (each.pull_offset or 0) - each.consumer_offset for each in offsets
            ),
        )

    return Reply(body=(await broker.in_pool(find)).encode())


def _topics_read(broker: Broker) -> _Read:
    groups = broker.clients.consumer_groups()
    return {group.name: frozenset(group.subscriptions) for group in groups}


def _topics(broker: Broker, group: str, read: _Read, names: Iterable[str]) -> list[TopicConfig]:
    """Return the topics that are there, without those that an online group reads no more."""
    now_read = read.get(group, frozenset())
    found = [broker.topics.get(name) for name in names if not now_read or name in now_read]
    return [topic for topic in found if topic is not None]


def _tps(broker: Broker, group: str, topics: Iterable[TopicConfig]) -> float:
    """Return how many messages a second a group got of some topics."""
    return sum((broker.stats.given_tps(group, topic.name) for topic in topics), 0.0)


def _offsets(
    broker: Broker, group: str, topic: TopicConfig, times: _Times
) -> dict[MessageQueue, ConsumedOffset]:
    committed = broker.offsets.committed(group, topic.name)
    pulled = broker.offsets.pulled(group, topic.name)
    found = {}
    for queue_id in range(topic.read_queues):
        consumed = committed.get(queue_id, 0)
        last = topic.name, queue_id, consumed - 1
        if last not in times:
            times[last] = stored_ms(broker, *last)
        queue = MessageQueue(topic.name, broker.settings.broker_name, queue_id)
        found[queue] = ConsumedOffset(
            broker_offset=noted_position(broker, topic.name, queue_id).end,
            consumer_offset=consumed,
            pull_offset=max(consumed, pulled.get(queue_id, 0)),
            last_timestamp=times[last] or 0,
        )
    return found


def consume_time_span(broker: Broker, request: QueryConsumeTimeSpan, call: Call) -> Reply:
    """Answer QUERY_CONSUME_TIME_SPAN (303). Reads files."""
    topic = broker.topics.get(request.topic)
    if topic is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{request.topic}] not exist")
    committed = broker.offsets.committed(request.group, topic.name)
    spans = [
        _span(broker, topic.name, queue_id, committed.get(queue_id, -1))
        for queue_id in range(topic.write_queues)
    ]
    return Reply(body=ConsumeTimeSpans(spans=tuple(spans)).encode())


def _span(broker: Broker, topic: str, queue_id: int, consumed: int) -> QueueTimeSpan:
    """Return the times of a queue; -1 where there is no message, as Apache's broker has it."""
    low, end = noted_position(broker, topic, queue_id)
    times: dict[int, int] = {}  # often they are the same few messages

    def at(queue_offset: int) -> int:
        if queue_offset not in times:
            found = stored_ms(broker, topic, queue_id, queue_offset) if queue_offset < end else None
            times[queue_offset] = -1 if found is None else found
        return times[queue_offset]

    first_ms = at(low)
    if first_ms < 0 and low < end:  # retention took it since it was noted
        low, end = position(broker, topic, queue_id)
        times.clear()
        first_ms = at(low)
    last_ms, next_ms = at(end - 1), at(max(consumed, low))
    return QueueTimeSpan(
        message_queue=MessageQueue(topic, broker.settings.broker_name, queue_id),
        min_time_stamp=first_ms,
        max_time_stamp=last_ms,
        consume_time_stamp=at(consumed - 1) if consumed > 0 else first_ms,
        delay_time=broker.clock.now_ms() - next_ms if next_ms > 0 else 0,
    )
