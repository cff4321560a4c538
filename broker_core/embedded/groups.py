"""Consumer groups of a store: how far each has read."""

from __future__ import annotations

from collections.abc import Mapping

from rocketpy.broker_core.embedded.handle import StoreHandle
from rocketpy.broker_core.errors import OffsetOutOfRangeError, QueueNotFoundError
from rocketpy.broker_core.metadata import OffsetTable


class Groups(StoreHandle):
    """The side of a store that keeps the offsets of groups."""

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return the next offset to read of each queue that a group committed."""
        self._store.require_open()
        return self._store.offsets.committed(group, topic)

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Note the next offset to read of some queues, durably."""
        self._require_writable("commit")
        held = self.queues(topic)
        for queue_id, offset in offsets.items():
            if queue_id not in held:
                raise QueueNotFoundError(topic, queue_id, len(held))
            if not 0 <= offset <= held[queue_id][1]:
                raise OffsetOutOfRangeError(topic, queue_id, offset, held[queue_id])
        with self._store.locked():
            self._store.offsets.commit(group, topic, dict(offsets))

    @property
    def group_offsets(self) -> OffsetTable:
        """All committed offsets of all groups; to be read."""
        return self._store.offsets
