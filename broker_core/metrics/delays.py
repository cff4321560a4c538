"""What waits for its time, as families of series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocketpy.broker_core.metrics.facts import BrokerFacts
from rocketpy.broker_core.metrics.families import GAUGE, Family, Row, of_broker

_TIMER_LABELS = ("storage_type", "storage_medium", "topic")


def _timing(facts: BrokerFacts) -> Iterator[Row]:
    by_topic = facts.pending.by_topic if facts.pending is not None else None
    for topic, count in (by_topic or {}).items():
        yield ("local", "disk", topic), count


def _delayed(facts: BrokerFacts) -> Iterator[Row]:
    if facts.pending is not None:
        for level, count in sorted(facts.pending.by_level.items()):
            yield (str(level),), count


def _overdue(facts: BrokerFacts) -> Iterator[Row]:
    if facts.pending is not None:
        yield (), facts.pending.overdue


OF_DELAYS: Sequence[Family[BrokerFacts]] = (
    of_broker(
        *("rocketmq_timing_messages", GAUGE, "Messages that wait for a time of their own."),
        *(_TIMER_LABELS, _timing),
    ),
    of_broker(
        *("rocketpy_delayed_messages", GAUGE, "Messages that wait for a delay level."),
        *(("delay_level",), _delayed),
    ),
    of_broker(
        "rocketpy_overdue_messages",
        *(GAUGE, "Delayed messages whose time was over 15 seconds ago or more."),
        *((), _overdue),
    ),
)
