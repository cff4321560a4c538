"""Which client has a queue of a group for itself, so that its messages stay in order.

L1  A queue of a group is of one client at a time.
L2  A lock lasts until its client gives it up, or has not asked for it again for some time; a
    client that is gone is not known to have stopped working, so its locks are not freed early.
The time is handed in, in steady milliseconds. Used by one thread. As Apache's RebalanceLockManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rocketpy.broker_core.message_queue import MessageQueue

LOCK_LIVE_MS = 60_000


class _Lock(NamedTuple):
    client_id: str
    until_ms: int


class QueueLocks:
    """The locks of all groups."""

    def __init__(self, live_ms: int = LOCK_LIVE_MS) -> None:
        self._live_ms = live_ms
        self._locks: dict[str, dict[MessageQueue, _Lock]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], *, now_ms: int
    ) -> list[MessageQueue]:
        """Lock what is free for a client, or its own already; return what it has of these."""
        locks = self._locks.setdefault(group, {})
        granted = []
        for queue in queues:
            known = locks.get(queue)
            if known is None or known.client_id == client_id or known.until_ms < now_ms:
                locks[queue] = _Lock(client_id, now_ms + self._live_ms)
                granted.append(queue)
        if not locks:
            del self._locks[group]
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Free those queues that the client has; those of others stay locked."""
        locks = self._locks.get(group, {})
        for queue in queues:
            known = locks.get(queue)
            if known is not None and known.client_id == client_id:
                del locks[queue]
        if not locks:
            self._locks.pop(group, None)

    def holder(self, group: str, queue: MessageQueue, *, now_ms: int) -> str | None:
        """Return the client that has a queue; None if it is free."""
        known = self._locks.get(group, {}).get(queue)
        return known.client_id if known is not None and known.until_ms >= now_ms else None

    def forget_expired(self, *, now_ms: int) -> None:
        """Let go of locks that nobody asked for in time, so that old groups cost nothing."""
        for group, locks in list(self._locks.items()):
            for queue, known in list(locks.items()):
                if known.until_ms < now_ms:
                    del locks[queue]
            if not locks:
                del self._locks[group]

    def __len__(self) -> int:
        return sum(map(len, self._locks.values()))
