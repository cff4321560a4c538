"""Offsets of queues and groups in a cluster, asked so that each broker may fail by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metrics.cluster_answers import Answers, Asked, Body
from rocketpy.broker_core.protocol.bodies.offsets import ConsumeTimeSpans
from rocketpy.broker_core.protocol.bodies.statistics import ConsumedOffset, ConsumeStats, TopicStats
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.groups import GetConsumeStats
from rocketpy.broker_core.protocol.requests.offsets import (
    EarliestStoreTimeAnswer,
    GetEarliestStoreTime,
    QueryConsumeTimeSpan,
    SearchOffset,
)
from rocketpy.broker_core.protocol.requests.request import OffsetAnswer
from rocketpy.broker_core.protocol.requests.topics import GetTopicStats
from rocketpy.console.answers import GroupQueueLine, QueueLine, TopicLine

_GONE = frozenset({ResponseCode.TOPIC_NOT_EXIST})
_NOTHING_YET = frozenset({ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SYSTEM_ERROR})
Spans = dict[str, list[QueueLine]]


def spans_of(answers: Answers, topics: Iterable[TopicLine]) -> Spans:
    """Return the queues of topics, by broker and number."""
    found: Spans = {}

    def taking(topic: str) -> Callable[[Body], None]:
        def take(body: Body) -> None:
            found[topic] += [
                QueueLine(
                    queue.broker,
                    queue.queue_id,
                    each.min_offset,
                    each.max_offset,
                    last_ms=each.last_update_timestamp or None,
                )
                for queue, each in sorted(TopicStats.decode(body).offset_table.items())
            ]

        return take

    asked = []
    for topic in topics:
        found[topic.name] = []
        command = command_of(GetTopicStats(topic=topic.name))
        asked += [
            Asked(broker, command, taking(topic.name), _GONE)
            for broker in topic.brokers
            if broker in answers.errors
        ]
    answers.ask(asked)
    return found


def earliest_times(answers: Answers, spans: Spans) -> Spans:
    """Return queues with the times at which their first messages were stored."""
    queues = [(topic, each) for topic, of_topic in spans.items() for each in of_topic]
    held = [(topic, each) for topic, each in queues if each.messages]
    headers = answers.ask_headers(
        (each.broker, command_of(GetEarliestStoreTime(topic=topic, queue_id=each.queue_id)))
        for topic, each in held
    )
    times = {
        (topic, each.broker, each.queue_id): EarliestStoreTimeAnswer.decode(fields).timestamp
        for (topic, each), fields in zip(held, headers, strict=True)
        if fields is not None
    }
    return {
        topic: [
            each._replace(first_ms=_known(times.get((topic, each.broker, each.queue_id))))
            for each in of_topic
        ]
        for topic, of_topic in spans.items()
    }


def _known(time_ms: int | None) -> int | None:
    """Return a time; brokers say -1 of what they do not know."""
    return time_ms if time_ms and time_ms > 0 else None


def ranges_of(
    answers: Answers,
    queues: Sequence[MessageQueue],
    since_ms: int | None,
    until_ms: int | None,
) -> dict[MessageQueue, tuple[int, int]]:
    """Return the offsets that queues of a topic hold, of messages stored between two times."""
    topic = queues[0].topic if queues else ""
    brokers = tuple(sorted({each.broker for each in queues}))
    spans = spans_of(answers, [TopicLine(topic, 0, 0, 0, brokers)])[topic]
    found = {
        MessageQueue(topic, each.broker, each.queue_id): (each.first, each.end) for each in spans
    }
    firsts, ends = _at(answers, found, since_ms), _at(answers, found, until_ms)
    ranges = {}
    for queue, (first, end) in found.items():
        start = max(first, firsts.get(queue, first))
        ranges[queue] = start, max(start, min(end, ends.get(queue, end)))
    return ranges


def _at(
    answers: Answers, queues: Iterable[MessageQueue], time_ms: int | None
) -> dict[MessageQueue, int]:
    """Return the first offset of each queue that was stored at a time or later."""
    if time_ms is None:
        return {}
    asked = [*queues]
    headers = answers.ask_headers(
        (
            queue.broker,
            command_of(
                SearchOffset(
                    topic=queue.topic,
                    queue_id=queue.queue_id,
                    timestamp=time_ms,
                    boundary_type="LOWER",
                )
            ),
        )
        for queue in asked
    )
    return {
        queue: OffsetAnswer.decode(fields).offset
        for queue, fields in zip(asked, headers, strict=True)
        if fields is not None
    }


def progress_of(answers: Answers, group: str) -> list[GroupQueueLine]:
    """Return how far a group is in each queue, with the ages of what it has not read."""
    consumed: dict[MessageQueue, ConsumedOffset] = {}
    ages: dict[MessageQueue, int] = {}

    def take(body: Body) -> None:
        consumed.update(ConsumeStats.decode(body).offset_table)

    def take_ages(body: Body) -> None:
        for span in ConsumeTimeSpans.decode(body).spans:
            ages[span.message_queue] = max(span.delay_time, 0)

    command = command_of(GetConsumeStats(consumer_group=group, topic=""))
    answers.ask(Asked(broker, command, take, _NOTHING_YET) for broker in sorted(answers.errors))
    behind = {
        (queue.broker, queue.topic)
        for queue, each in consumed.items()
        if each.consumer_offset < each.broker_offset
    }
    answers.ask(
        Asked(broker, command_of(QueryConsumeTimeSpan(topic=topic, group=group)), take_ages, _GONE)
        for broker, topic in sorted(behind)
    )
    return [_line(queue, each, ages) for queue, each in sorted(consumed.items())]


def _line(
    queue: MessageQueue, each: ConsumedOffset, ages: Mapping[MessageQueue, int]
) -> GroupQueueLine:
    has_all = each.consumer_offset >= each.broker_offset
    return GroupQueueLine(
        queue.topic,
        queue.broker,
        queue.queue_id,
        each.consumer_offset,
        each.broker_offset,
        0 if has_all else ages.get(queue),
    )
