"""Members that share the queues of a group, as their records say: values for pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.records import GroupRecord


class MemberQueues(NamedTuple):
    """Queues of a topic on a broker."""

    topic: str
    broker: str
    queue_ids: tuple[int, ...]


class SharingMember(NamedTuple):
    """A query of Spark, or a program, that is one of the members which share a group's queues."""

    name: str
    until_ms: int  # when its lease is over
    is_alive: bool  # by this machine's clock
    acknowledged: int  # the newest generation that it has followed
    holds: tuple[MemberQueues, ...]


class SharedGroup(NamedTuple):
    """Members that share the queues of a group, and the newest generation of who owns what."""

    members: tuple[SharingMember, ...]
    generation: int | None
    strategy: str
    made_ms: int | None
    made_by: str
    reason: str


def shared_of(record: GroupRecord, now_ms: int) -> SharedGroup | None:
    """Return what a record says; None if the group never had such members."""
    made = record.generation
    if not record.members and made is None:
        return None
    members = tuple(
        SharingMember(
            name, each.until_ms, each.is_alive(now_ms), each.acknowledged, _held(each.holds)
        )
        for name, each in sorted(record.members.items())
    )
    if made is None:
        return SharedGroup(members, None, "", None, "", "")
    return SharedGroup(members, made.number, made.strategy, made.made_ms, made.made_by, made.reason)


def _held(queues: Iterable[MessageQueue]) -> tuple[MemberQueues, ...]:
    found: dict[tuple[str, str], list[int]] = {}
    for queue in sorted(queues):
        found.setdefault((queue.topic, queue.broker), []).append(queue.queue_id)
    return tuple(MemberQueues(*key, tuple(numbers)) for key, numbers in found.items())
