"""How far groups of a cluster are behind, from what its brokers answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.metrics.cluster_answers import Answers, Asked, Body
from rocketpy.broker_core.metrics.facts import QueuePlace, TopicLag
from rocketpy.broker_core.protocol.bodies.offsets import ConsumeTimeSpans
from rocketpy.broker_core.protocol.bodies.statistics import ConsumeStats, ConsumeStatsList
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.offsets import QueryConsumeTimeSpan

Lags = Mapping[str, list[TopicLag]]  # by broker
# A topic or a group went since the lags were told.
_GONE = frozenset({ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SYSTEM_ERROR})


def lags_of(body: Body) -> list[TopicLag]:
    """Return the lags that a broker tells of all its groups; ages of what is unread are missing."""
    return [
        lag
        for by_group in ConsumeStatsList.decode(body).stats
        for group, of_topics in by_group.items()
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


def ask_for_ages(answers: Answers, lags: Lags) -> dict[str, list[TopicLag]]:
    """Return the lags with the ages of what is unread, asked of brokers where something is."""
    found: dict[tuple[str, str, str], dict[int, int]] = {}

    def asked(broker: str, lag: TopicLag) -> Asked:
        key = broker, lag.group, lag.topic

        def take(body: Body) -> None:
            found[key] = {
                span.message_queue.queue_id: max(span.delay_time, 0)
                for span in ConsumeTimeSpans.decode(body).spans
            }

        command = command_of(QueryConsumeTimeSpan(topic=lag.topic, group=lag.group))
        return Asked(broker, command, take, _GONE)

    answers.ask(
        asked(broker, lag) for broker, of_broker in lags.items() for lag in of_broker if lag.lag
    )
    return {
        broker: [_aged(lag, found.get((broker, lag.group, lag.topic))) for lag in of_broker]
        for broker, of_broker in lags.items()
    }


def _aged(lag: TopicLag, ages: Mapping[int, int] | None) -> TopicLag:
    if ages is None:
        return lag
    places = (
        each._replace(age_ms=ages.get(each.queue_id)) if each.lag else each for each in lag.queues
    )
    return lag._replace(queues=tuple(places))
