"""By backlog: members get about the same number of unread messages. Apache has no such strategy.

A queue weighs its backlog plus one. Each queue stays with its owner and those without one go, the
heaviest first, to the member with the least load. Only while the most loaded member has more than
a tenth above the average does it give queues to the least loaded one, each time the one nearest to
half of their difference, as long as that makes the larger of the two loads smaller.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.strategy import Assignment, Queues

TOLERANCE = 0.1  # above the average load: for less than that no queue is moved


@dataclass(frozen=True, slots=True)
class ByBacklog:
    """Divides by what waits in the queues (`lag`), and by who has them now (`owners`)."""

    lag: Mapping[MessageQueue, int] = field(default_factory=dict)
    owners: Mapping[MessageQueue, str] = field(default_factory=dict)

    def weight(self, queue: MessageQueue) -> int:
        """Return how much a queue adds to the load of its member."""
        return max(self.lag.get(queue, 0), 0) + 1

    def assign(self, queues: Queues, members: Sequence[str]) -> Assignment:
        """Return the share of each member; the same for any order of the same input."""
        names = sorted(set(members))
        shares: dict[str, set[MessageQueue]] = {member: set() for member in names}
        if not names:
            return {}
        homeless = []
        for queue in set(queues):
            owner = self.owners.get(queue)
            if owner in shares:
                shares[owner].add(queue)
            else:
                homeless.append(queue)
        loads = {name: sum(map(self.weight, share)) for name, share in shares.items()}
        self._house(homeless, shares, loads)
        self._level(shares, loads)
        return {name: tuple(sorted(share)) for name, share in shares.items()}

    def _house(
        self,
        homeless: list[MessageQueue],
        shares: dict[str, set[MessageQueue]],
        loads: dict[str, int],
    ) -> None:
        heap = [(load, name) for name, load in loads.items()]
        heapq.heapify(heap)
        for queue in sorted(homeless, key=lambda queue: (-self.weight(queue), queue)):
            load, name = heap[0]
            shares[name].add(queue)
            loads[name] = load + self.weight(queue)
            heapq.heapreplace(heap, (loads[name], name))

    def _level(self, shares: dict[str, set[MessageQueue]], loads: dict[str, int]) -> None:
        most_allowed = (1 + TOLERANCE) * sum(loads.values()) / len(loads)
        while True:
            most = min(loads, key=lambda name: (-loads[name], name))
            least = min(loads, key=lambda name: (loads[name], name))
            gap = loads[most] - loads[least]
            # A move of less than the gap makes the sum of squares smaller: this comes to an end.
            movable = [queue for queue in shares[most] if self.weight(queue) < gap]
            if loads[most] <= most_allowed or not movable:
                return
            queue = min(movable, key=lambda one: (abs(2 * self.weight(one) - gap), one))
            shares[most].remove(queue)
            shares[least].add(queue)
            loads[most] -= self.weight(queue)
            loads[least] += self.weight(queue)
