"""Consumer groups of a store: their settings, and how far each has read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rocketpy.broker_core.embedded.boundary import guarded
from rocketpy.broker_core.embedded.handle import StoreHandle
from rocketpy.broker_core.errors import GroupNameError, OffsetOutOfRangeError, QueueNotFoundError
from rocketpy.broker_core.metadata import GroupConfig, OffsetTable


@guarded
class Groups(StoreHandle):
    """The side of a store that keeps groups and their offsets."""

    def create_group(
        self,
        name: str,
        *,
        retry_max_times: int | None = None,
        retry_queues: int | None = None,
        consume_enabled: bool | None = None,
    ) -> GroupConfig:
        """Make a group, or change one: what is not given stays, or is Apache's default.

        `retry_max_times` is how often a message is tried again before it is a dead letter (16),
        `retry_queues` how many queues its retry topic gets (1).

        Raises:
            GroupNameError: RocketMQ would not take the name, or a number is negative.
        """
        self._require_writable("create a group")
        given = {
            "retry_max_times": retry_max_times,
            "retry_queues": retry_queues,
            "consume_enabled": consume_enabled,
        }
        changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        for key, value in changes.items():
            if value < 0:
                raise GroupNameError(name, f"{key} is {value}; give 0 or more")
        with self._store.locked():
            group = replace(self._store.groups.get(name) or GroupConfig(name), **changes)
            self._store.groups.put(group, now_ms=self._store.clock.now_ms())
        return group

    def groups(self) -> dict[str, GroupConfig]:
        """Return the settings of all groups by name."""
        self._store.require_open()
        return self._store.groups.all()

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return the next offset to read of each queue that a group committed."""
        self._store.require_open()
        return self._store.offsets.committed(group, topic)

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Note the next offset to read of some queues, durably."""
        self._require_writable("commit")
        stored = self.queues(topic)
        for queue_id, offset in offsets.items():
            if queue_id not in stored:
                raise QueueNotFoundError(topic, queue_id, len(stored))
            if not 0 <= offset <= stored[queue_id][1]:
                raise OffsetOutOfRangeError(topic, queue_id, offset, stored[queue_id])
        with self._store.locked():
            self._store.offsets.commit(group, topic, dict(offsets))

    @property
    def group_offsets(self) -> OffsetTable:
        """All committed offsets of all groups; to be read."""
        return self._store.offsets
