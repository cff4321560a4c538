"""Topics of a store: made, changed, opened and closed to producers and consumers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rocketpy.broker_core.embedded.boundary import guarded
from rocketpy.broker_core.embedded.handle import StoreHandle
from rocketpy.broker_core.errors import TopicNameError, TopicNotFoundError
from rocketpy.broker_core.metadata import TopicConfig, is_reserved_topic
from rocketpy.broker_core.storage.store import MOST_QUEUES

_MOST_PERM = 7


@guarded
class Topics(StoreHandle):
    """The side of a store that keeps its topics. Other processes follow within a second."""

    def create_topic(self, name: str, queues: int | None = None) -> TopicConfig:
        """Make a topic; one that exists keeps its queues, and gets more if more are asked for."""
        return self._store.create_topic(name, queues)

    def update_topic(
        self,
        name: str,
        *,
        write_queues: int | None = None,
        read_queues: int | None = None,
        perm: int | None = None,
    ) -> TopicConfig:
        """Change a topic: what is not given stays.

        `write_queues` is over how many queues messages are spread, `read_queues` how many are
        read; queues that hold messages are read in any case. `perm` is 4 to read and 2 to write,
        added up: 6 is both, 0 closes it.

        Raises:
            TopicNotFoundError: there is no such topic.
            TopicNameError: it is RocketMQ's own, or a number is wrong.
        """
        self._require_writable("change a topic")
        given = {"write_queues": write_queues, "read_queues": read_queues, "perm": perm}
        changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        for key, value in changes.items():
            low, high = (0, _MOST_PERM) if key == "perm" else (1, MOST_QUEUES)
            if not low <= value <= high:
                raise TopicNameError(name, f"{key} is {value}; give {low} to {high}")
        with self._store.locked():
            topic = replace(self._own_topic(name), **changes)
            self._store.put_topic(topic)
        return topic

    def delete_topic(self, name: str) -> None:
        """Delete a topic: its settings, the offsets of all groups in it, and its queues; durable.

        Its records stay in the log until retention takes them; scan() and query() still show them.
        One that is made again begins at offset 0.

        Raises:
            TopicNotFoundError: there is no such topic.
            TopicNameError: it is RocketMQ's own.
        """
        self._require_writable("delete a topic")
        self._own_topic(name)
        self._store.delete_topic(name)

    def topics(self) -> dict[str, TopicConfig]:
        """Return all topics by name, system topics included."""
        return self._store.topics.all()

    def _own_topic(self, name: str) -> TopicConfig:
        if is_reserved_topic(name):
            raise TopicNameError(name, "it is RocketMQ's own, and stays as it is")
        config = self._store.topics.get(name)
        if config is None:
            raise TopicNotFoundError(name, self._store.topics.all())
        return config
