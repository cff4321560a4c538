"""How far groups of a cluster are behind, from what its brokers answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.metadata.names import is_notes_group
from rocketpy.broker_core.metrics.cluster_answers import Answers, Asked, Body
from rocketpy.broker_core.metrics.facts import QueuePlace, TopicLag
from rocketpy.broker_core.protocol.bodies.offsets import ConsumeTimeSpans
from rocketpy.broker_core.protocol.bodies.statistics import ConsumeStats, ConsumeStatsList
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.offsets import QueryConsumeTimeSpan

Lags = Mapping[str, list[TopicLag]]  # by broker
_Key = tuple[str, str, str]  # broker, group, topic
_REMEMBERED_S = 300.0
# A topic or a group went since the lags were told.
_GONE = frozenset({ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SYSTEM_ERROR})


def lags_of(body: Body) -> list[TopicLag]:
    """Return the lags that a broker tells of all its groups; ages of what is unread are missing."""
    return [
        lag
        for by_group in ConsumeStatsList.decode(body).stats
        for group, of_topics in by_group.items()
        if not is_notes_group(group)
        for stats in of_topics
        for lag in _lags(group, stats)
    ]


def _lags(group: str, stats: ConsumeStats) -> Iterable[TopicLag]:
    """Yield the lag in each topic: brokers have one topic in each of these."""
    rows = sorted(stats.offset_table.items())
    for topic, queues in groupby(rows, lambda row: row[0].topic):
        places, pulled, is_told = [], 0, True
        for queue, each in queues:
            age_ms = 0 if each.consumer_offset >= each.broker_offset else None
            places.append(
                QueuePlace(queue.queue_id, each.consumer_offset, each.broker_offset, age_ms)
            )
            if each.pull_offset is None:  # of 4.x
                is_told = False
            else:
                pulled += max(min(each.pull_offset, each.broker_offset) - each.consumer_offset, 0)
        yield TopicLag(group, topic, tuple(places), pulled if is_told else None, None)


class AgeMemory:
    """When the oldest unread messages were stored, of groups that stand where they stood last time.

    Groups that are offline, or stuck, cost no request then. It is asked again after some minutes:
    retention may have taken the message. Used by one thread.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._known: dict[_Key, _Remembered] = {}

    def filled(self, answers: Answers, lags: Lags, now_ms: int) -> dict[str, list[TopicLag]]:
        """Return lags with the ages of what is unread, asked of brokers where need be."""
        now_s = self._now_s()
        behind = {
            (broker, lag.group, lag.topic): lag
            for broker, of_broker in lags.items()
            for lag in of_broker
            if lag.lag
        }
        self._known = {
            key: known
            for key, known in self._known.items()
            if key in behind and known.places == _places(behind[key]) and now_s < known.until_s
        }
        answers.ask(
            self._asked(key, lag, now_ms, now_s + _REMEMBERED_S)
            for key, lag in behind.items()
            if key not in self._known
        )
        return {
            broker: [self._aged(broker, lag, now_ms) for lag in of_broker]
            for broker, of_broker in lags.items()
        }

    def _asked(self, key: _Key, lag: TopicLag, now_ms: int, until_s: float) -> Asked:
        def take(body: Body) -> None:
            stored = {
                span.message_queue.queue_id: now_ms - max(span.delay_time, 0)
                for span in ConsumeTimeSpans.decode(body).spans
            }
            self._known[key] = _Remembered(until_s, _places(lag), stored)

        command = command_of(QueryConsumeTimeSpan(topic=lag.topic, group=lag.group))
        return Asked(key[0], command, take, _GONE)

    def _aged(self, broker: str, lag: TopicLag, now_ms: int) -> TopicLag:
        known = self._known.get((broker, lag.group, lag.topic))
        if known is None:
            return lag
        return lag._replace(
            queues=tuple(_aged(each, known.stored_ms, now_ms) for each in lag.queues)
        )


class _Remembered(NamedTuple):
    until_s: float
    places: tuple[tuple[int, int], ...]
    stored_ms: Mapping[int, int]


def _places(lag: TopicLag) -> tuple[tuple[int, int], ...]:
    """Return where a group stands in the queues in which it is behind."""
    return tuple((each.queue_id, each.committed) for each in lag.queues if each.lag)


def _aged(each: QueuePlace, stored_ms: Mapping[int, int], now_ms: int) -> QueuePlace:
    found = stored_ms.get(each.queue_id)
    if not each.lag or found is None:
        return each
    return each._replace(age_ms=max(now_ms - found, 0))
