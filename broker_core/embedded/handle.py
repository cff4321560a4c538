"""What all sides of an open store have in common."""

from __future__ import annotations

from pathlib import Path

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.embedded.boundary import guarded
from rocketpy.broker_core.errors import ReadOnlyStoreError
from rocketpy.broker_core.intake.waiting import system_queues
from rocketpy.broker_core.storage.store import MessageStore


@guarded
class StoreHandle:
    """An open store's directory, settings and queues."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    @property
    def path(self) -> Path:
        """The store's directory."""
        return self._store.root

    @property
    def config(self) -> StoreConfig:
        """The settings in force: file sizes are those that the store has."""
        return self._store.config

    def queues(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return the range of offsets stored in each queue of a topic: first, and end."""
        return {
            queue_id: self._store.queue(topic, queue_id).range()
            for queue_id in self._queue_ids(topic)
        }

    def _queue_ids(self, topic: str) -> list[int]:
        self._store.require_open()
        return self._store.queue_ids(topic)

    def _require_writable(self, action: str) -> None:
        self._store.require_open()
        if self._store.read_only:
            raise ReadOnlyStoreError(self.path, action)

    def _make_system_topic(self, topic: str) -> None:
        known, queues = self._store.topic(topic), system_queues(topic, self.config)
        if known is None or known.write_queues < queues:
            self._store.create_topic(topic, queues)
