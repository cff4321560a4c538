"""What a store knows of its groups: who lives, which queues their topics have, and the lag."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.assignment import Situation
from rocketpy.broker_core.rebalance.membership import Members

if TYPE_CHECKING:  # who only names records, as tasks of Spark do, does not wait for the store
    from rocketpy.broker_core.storage.store import MessageStore

Committed = Callable[[str, str], dict[int, int]]  # group, topic -> next offset by queue


class StoreSurvey:
    """Looks at a store once: queues and their ends are the same for all groups asked for."""

    def __init__(self, store: MessageStore, committed: Committed | None = None) -> None:
        self._store, self._broker = store, store.config.broker_name
        self._committed = committed or store.offsets.committed
        self._queues: dict[str, tuple[MessageQueue, ...]] = {}
        self._ranges: dict[MessageQueue, tuple[int, int]] = {}

    def situation(self, group: str, members: Members, *, with_lag: bool = False) -> Situation:
        """Return what a group is made of; `members` are those who live."""
        subscriptions = {name: each.topics for name, each in members.items()}
        topics = sorted({topic for each in subscriptions.values() for topic in each})
        queues = {topic: self.queues(topic) for topic in topics}
        lag = self.lag(group, topics) if with_lag else {}
        return Situation(subscriptions=subscriptions, queues=queues, lag=lag)

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the queues of a topic; none if there is no such topic (any more)."""
        if topic not in self._queues:
            # Not store.topic(), which may be a second old: all members must see the same.
            config = self._store.topics.get(topic)
            stored = self._store.stored_queue_ids(topic)
            ids = {*stored, *range(config.read_queues if config else 0)}
            self._queues[topic] = tuple(
                MessageQueue(topic, self._broker, id_) for id_ in sorted(ids)
            )
        return self._queues[topic]

    def lag(self, group: str, topics: Iterable[str]) -> dict[MessageQueue, int]:
        """Return how many messages of each queue the group has not read."""
        lag = {}
        for topic in topics:
            committed = self._committed(group, topic)
            for queue in self.queues(topic):
                low, high = self._range(queue)
                lag[queue] = max(high - max(committed.get(queue.queue_id, low), low), 0)
        return lag

    def _range(self, queue: MessageQueue) -> tuple[int, int]:
        if queue not in self._ranges:
            reader = self._store.queue(queue.topic, queue.queue_id)
            self._ranges[queue] = reader.range()
        return self._ranges[queue]
