"""Consistent hash: a member that joins or leaves moves few queues.

Equal to Apache's AllocateMessageQueueConsistentHash (5.5.0) with its own hash: each member has
places on a ring, and a queue belongs to the member at the next place after its own.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.strategy import Assignment, Queues

PLACES = 10  # of each member, as Apache has them by default


@dataclass(frozen=True, slots=True)
class ConsistentHash:
    """Members and queues on a ring of 32-bit hashes."""

    places: int = PLACES

    def assign(self, queues: Queues, members: Sequence[str]) -> Assignment:
        """Return the share of each member."""
        if not members:
            return {}
        ring = _ring(tuple(members), self.places)
        points = sorted(ring)
        shares: dict[str, list[MessageQueue]] = {member: [] for member in members}
        for queue in queues:
            index = bisect_left(points, _queue_hash(queue))
            shares[ring[points[index % len(points)]]].append(queue)
        return {member: tuple(share) for member, share in shares.items()}


@lru_cache(maxsize=64)
def _ring(members: tuple[str, ...], places: int) -> dict[int, str]:
    """Return the members by their places. One that is named twice gets more, as in Apache's."""
    ring: dict[int, str] = {}
    seen = set[str]()
    for member in members:
        first = sum(other == member for other in ring.values()) if member in seen else 0
        seen.add(member)
        for number in range(first, first + places):
            ring[_hash(f"{member}-{number}")] = member
    return ring


@lru_cache(maxsize=1 << 16)
def _queue_hash(queue: MessageQueue) -> int:
    """Return the hash of the text that Apache's MessageQueue gives of itself."""
    topic, broker, queue_id = queue
    return _hash(f"MessageQueue [topic={topic}, brokerName={broker}, queueId={queue_id}]")


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:4], "big")
