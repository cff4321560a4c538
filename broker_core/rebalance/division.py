"""Strategies that count: averagely, by circle, by config, by machine room.

Equal to the results of Apache's AllocateMessageQueueAveragely, ...AveragelyByCircle, ...ByConfig
and ...ByMachineRoom (5.5.0).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.strategy import Assignment, Queues, by_index

ROOM_MARK = "@"  # between the room and the rest of a name: `room@broker-a`


class Averagely:
    """Each member gets queues that follow each other; the first members may get one more."""

    def assign(self, queues: Queues, members: Sequence[str]) -> Assignment:
        """Return the share of each member."""
        if not members:
            return {}
        least, longer = divmod(len(queues), len(members))

        def share(index: int) -> tuple[MessageQueue, ...]:
            start = index * least + min(index, longer)
            return tuple(queues[start : start + least + (index < longer)])

        return by_index(members, share)


class ByCircle:
    """Queues are dealt out in turn, like cards."""

    def assign(self, queues: Queues, members: Sequence[str]) -> Assignment:
        """Return the share of each member."""
        return by_index(members, lambda index: tuple(queues[index :: len(members)]))


@dataclass(frozen=True, slots=True)
class ByConfig:
    """Each member gets what a table says, whatever there is; who is not in it gets nothing."""

    table: Mapping[str, Queues]

    def assign(self, queues: Queues, members: Sequence[str]) -> Assignment:  # noqa: ARG002
        """Return the share of each member."""
        return by_index(members, lambda index: tuple(self.table.get(members[index], ())))


@dataclass(frozen=True, slots=True)
class ByMachineRoom:
    """Queues of brokers in some rooms are divided averagely; the others are nobody's.

    What is left over by division goes to the first members, after their own.
    """

    rooms: Collection[str]

    def assign(self, queues: Queues, members: Sequence[str]) -> Assignment:
        """Return the share of each member."""
        if not members:
            return {}
        inside = [queue for queue in queues if self._is_inside(queue)]
        size, left_over = divmod(len(inside), len(members))

        def share(index: int) -> tuple[MessageQueue, ...]:
            own = inside[index * size : (index + 1) * size]
            last = size * len(members) + index
            return (*own, *inside[last : last + (index < left_over)])

        return by_index(members, share)

    def _is_inside(self, queue: MessageQueue) -> bool:
        parts = queue.broker.split(ROOM_MARK)
        while parts and not parts[-1]:  # as Java's split: what is empty at the end does not count
            parts.pop()
        return len(parts) == 2 and parts[0] in self.rooms
