"""Messages of a cluster that wait for their time, from what its brokers answer.

Brokers tell how far each delay level is delivered among what they tell of themselves. What is late
is asked for: the first message of a level that is not due yet, by the time at which it was stored.
Messages with a time of their own are told by topic, by brokers with a timer wheel and by ours; how
many of those are late is told by none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.config import ConfigError, StoreConfig
from rocketpy.broker_core.delay.pending import OVERDUE_MS, Pending
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.metrics.cluster_answers import Answers, Body
from rocketpy.broker_core.protocol.bodies.statistics import TimedTopics
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.offsets import SearchOffset
from rocketpy.broker_core.protocol.requests.request import OffsetAnswer

# Not known to 4.x, and refused without a timer wheel.
NO_TIMERS = frozenset({ResponseCode.REQUEST_CODE_NOT_SUPPORTED, ResponseCode.SYSTEM_ERROR})
ASK_TIMERS = RemotingCommand(RequestCode.GET_TIMER_METRICS)
_FIGURE = "scheduleMessageOffset_"


class _Level(NamedTuple):
    broker: str
    level: int
    delivered: int
    end: int


def timed_of(body: Body) -> dict[str, int]:
    """Return how many messages with a time of their own wait, by topic."""
    told = TimedTopics.decode(body).timing_count
    return {topic: each.count for topic, each in told.items() if each.count > 0}


def pending_of(
    answers: Answers,
    figures: Mapping[str, Mapping[str, str]],
    timed: Mapping[str, Mapping[str, int] | None],
    delays: Mapping[str, str],
    now_ms: int,
) -> dict[str, Pending]:
    """Return what waits at each broker that tells its figures.

    `figures` are those of brokers, `timed` what they told of topics, `delays` their delay levels.
    """
    levels = [each for broker, told in figures.items() for each in _levels(broker, told)]
    behind = [each for each in levels if each.delivered < each.end]
    headers = answers.ask_headers(
        (
            each.broker,
            command_of(
                SearchOffset(
                    topic=SCHEDULE_TOPIC,
                    queue_id=each.level - 1,
                    timestamp=now_ms - OVERDUE_MS - delay_ms(delays.get(each.broker), each.level),
                    boundary_type="LOWER",
                )
            ),
        )
        for each in behind
    )
    overdue = dict.fromkeys(figures, 0)
    for each, fields in zip(behind, headers, strict=True):
        if fields is not None:
            not_due = min(OffsetAnswer.decode(fields).offset, each.end)
            overdue[each.broker] += max(not_due - each.delivered, 0)
    return {
        broker: Pending(
            {each.level: each.end - each.delivered for each in behind if each.broker == broker},
            timed.get(broker),
            overdue[broker],
        )
        for broker, told in figures.items()
        if told
    }


def delay_ms(levels: str | None, level: int) -> int:
    """Return the delay of a level at a broker that has these levels, or RocketMQ's own."""
    try:
        config = StoreConfig() if levels is None else StoreConfig(delay_levels=levels)
    except ConfigError:  # of a broker that says them in another way
        config = StoreConfig()
    return config.delay_ms(level)


def _levels(broker: str, figures: Mapping[str, str]) -> list[_Level]:
    found = []
    for name, text in figures.items():
        level, (delivered, _, end) = name.removeprefix(_FIGURE), text.partition(",")
        if name.startswith(_FIGURE) and all(each.isdigit() for each in (level, delivered, end)):
            found.append(_Level(broker, int(level), int(delivered), int(end)))
    return found
