"""Streams that share a group on any place: plan a batch, read it, plan the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.connector.cluster.places import Place
from tests.connector.cluster.queries import Query, Rows, parsed, rows_of

from rocketpy.broker_core.clock import ManualClock, SystemClock
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.membership import Identity
from rocketpy.broker_core.rebalance.observer import Observer
from rocketpy.broker_core.rebalance.registry import Registry
from rocketpy.connector.backends import opened
from rocketpy.connector.cluster import group_records, members
from rocketpy.connector.consumer import MemberConsumer
from rocketpy.connector.offsets import SourceOffset

LONG_AFTER_MS = 3_600_000


def ask_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look see what others wrote a moment ago."""
    for module, name in (
        (group_records, "_KEPT_S"),
        (group_records, "_ROUTES_KEPT_S"),
        (members, "_KEPT_S"),
    ):
        monkeypatch.setattr(module, name, 0.0)


class MemberQuery(Query):
    """A stream that is a member of the group of its topic."""

    def __init__(self, place: Place, topic: str, member: str, **more: object) -> None:
        self.group = group_of(topic)
        named = {"topic": topic, "consumerGroup": self.group, "member": member}
        super().__init__({**place.options, **named, **more})
        self.planned: dict[str, Any] = self.at

    def plan(self) -> None:
        """Plan a batch, which is in hand from then on."""
        self.planned = self.next_end()

    def finish(self) -> Rows:
        """End the batch in hand; return what it read. Spark says so when it plans the next one."""
        found = self.in_hand()
        self.at = self.planned
        return found

    def in_hand(self) -> Rows:
        """Return what the batch in hand reads."""
        if self.planned == self.at:
            return []
        return rows_of(self.reader, self.reader.partitions(self.at, self.planned))

    def batch(self) -> Rows:
        """Run a batch to its end."""
        self.plan()
        return self.finish()

    def holds(self) -> list[MessageQueue]:
        """Return the queues that it reads."""
        return sorted(self._consumer._member.holds)

    def leave(self) -> None:
        """End as AvailableNow does."""
        self._consumer.finish(SourceOffset.from_json(self.at))

    def die(self) -> None:
        """Cease to renew the lease."""
        keeper = self._consumer._member._keeper
        if keeper is not None:  # else it has not joined yet
            keeper.stop()

    @property
    def _consumer(self) -> MemberConsumer:
        consumer = self.reader._consumer
        assert isinstance(consumer, MemberConsumer)
        return consumer


def group_of(topic: str) -> str:
    return f"g-{topic}"


@contextmanager
def registry_of(place: Place, observer: Observer | None = None) -> Iterator[Registry]:
    """Have the members and generations of the groups of a place."""
    with opened(parsed({**place.options, "topic": "any"})) as backend:
        yield backend.members().registry(observer)


def bury_the_dead(place: Place, topic: str) -> None:
    """Let the leases of all members be over."""
    later = Observer(ManualClock(SystemClock().now_ms() + LONG_AFTER_MS))
    gravedigger = Identity(group_of(topic), "gravedigger", "token")
    with registry_of(place, later) as registry:
        registry.join(gravedigger, (topic,), 1000)
        registry.leave(gravedigger)


def bury(place: Place, topic: str, name: str) -> bool:
    """Let the lease of one member be over; return whether it was a member."""
    with registry_of(place) as registry:
        member = registry.living(group_of(topic)).get(name)
        if member is not None:
            registry.leave(Identity(group_of(topic), name, member.token))
    return member is not None
