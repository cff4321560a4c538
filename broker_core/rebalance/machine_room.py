"""Machine room nearby: members first read what lies in their own room.

Equal to Apache's AllocateMachineRoomNearby (5.5.0). A room is what stands before the `@` of a name,
of a broker as of a member; Apache leaves it to a class of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.division import ROOM_MARK, Averagely
from rocketpy.broker_core.rebalance.strategy import (
    AllocationStrategy,
    Assignment,
    Queues,
    by_index,
)

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class MachineRoomNearby:
    """Queues of a room are divided among its members; those of a room without any, among all."""

    inner: AllocationStrategy = field(default_factory=Averagely)

    def assign(self, queues: Queues, members: Sequence[str]) -> Assignment:
        """Return the share of each member.

        Raises:
            RebalanceError: the name of a broker or of a member tells no room.
        """
        queues_of = _by_room(queues, lambda queue: queue.broker)
        members_of = _by_room(members, lambda member: member)
        shares = [
            self.inner.assign(queues_of[room], inside)
            for room, inside in members_of.items()
            if room in queues_of
        ]
        deserted = sorted(queues_of.keys() - members_of.keys())
        shares += [self.inner.assign(queues_of[room], members) for room in deserted]

        def share(index: int) -> tuple[MessageQueue, ...]:
            return tuple(queue for each in shares for queue in each.get(members[index], ()))

        return by_index(members, share)


def _by_room(items: Iterable[_Item], name: Callable[[_Item], str]) -> dict[str, list[_Item]]:
    rooms: dict[str, list[_Item]] = {}
    for item in items:
        room, mark, _ = name(item).partition(ROOM_MARK)
        if not mark or not room:
            raise RebalanceError(
                f"the name {name(item)!r}", f"tells no machine room; call it room{ROOM_MARK}name"
            )
        rooms.setdefault(room, []).append(item)
    return rooms
