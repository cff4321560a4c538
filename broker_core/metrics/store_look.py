"""Looks at a store: the ends of its topics, and how far groups are behind, online or not.

S1  Files are read, and no lock is taken: any thread or process may look while others write.
S2  Ends are as they are now. When messages were stored is remembered from one look to the next, for
    the messages that the last one asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.metadata.consumer_offsets import CommittedOffset
from rocketpy.broker_core.metadata.names import is_notes_group
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.metrics.facts import QueuePlace, TopicLag
from rocketpy.broker_core.storage.reading import QueueReader
from rocketpy.broker_core.storage.store import MessageStore

Pulled = Callable[[str, str], Mapping[int, int]]  # of a group and a topic: by queue, up to where
_SOME = 20  # queues looked up at a stretch, before other threads may run
_QueueKey = tuple[str, int]
_Places = dict[tuple[str, int, int], int | None]  # when the message at an offset was stored


class StoredTimes:
    """When messages were stored, of those that one look or the one before asked for."""

    def __init__(self) -> None:
        self._before: _Places = {}
        self.now: _Places = {}
        self.ends: dict[_QueueKey, int] = {}

    def begin(self) -> None:
        """Begin a look: what the last one did not ask for is forgotten."""
        self._before, self.now = self.now, {}

    def note_end(self, queue: _QueueKey, end: int) -> None:
        """Note where a queue ends; one that ends earlier than before was deleted, and made anew."""
        if end < self.ends.get(queue, 0):
            self._before = {key: each for key, each in self._before.items() if key[:2] != queue}
        self.ends[queue] = end

    def get(self, key: tuple[str, int, int], look_up: Callable[[], int | None]) -> int | None:
        """Return the time of a message, looked up if it is not known."""
        if key not in self.now:
            known = self._before.get(key)
            self.now[key] = look_up() if known is None else known
        return self.now[key]


class StoreLook:
    """One look at a store. Used by one thread."""

    def __init__(
        self, store: MessageStore, times: StoredTimes, *, now_ms: int, is_served: bool
    ) -> None:
        """Begin a look; `is_served` says that a broker of ours has the store, in this process."""
        self._store, self._times, self.now_ms = store, times, now_ms
        self._is_served = is_served
        self.topics: Mapping[str, TopicConfig] = store.topics.all()
        self._ends: dict[str, list[int]] = {}
        self._looked_up = 0
        times.begin()

    def ends(self, topic: str) -> list[int]:
        """Return the end of each queue of a topic that there is."""
        known = self._ends.get(topic)
        if known is None:
            config = self.topics[topic]
            queues = max(config.read_queues, config.write_queues)
            known = self._ends[topic] = [self._end(topic, queue) for queue in range(queues)]
        return known

    def lags(
        self,
        rows: Iterable[CommittedOffset],
        groups: Collection[str],
        *,
        read: Mapping[str, Collection[str]],
        pulled: Pulled | None = None,
    ) -> list[TopicLag]:
        """Return the lag of each group in each topic where it has committed something.

        As GET_CONSUME_STATS has it: a queue that was never committed counts from its first message
        on. `read` are the topics that groups which are online read now: what they committed
        elsewhere is left out.
        """
        committed: dict[tuple[str, str], dict[int, int]] = {}
        for group, topic, queue_id, queue_offset in rows:
            if group in groups and topic in self.topics and not is_notes_group(group):
                committed.setdefault((group, topic), {})[queue_id] = queue_offset
        return [
            self._lag(group, topic, offsets, pulled)
            for (group, topic), offsets in committed.items()
            if not read.get(group) or topic in read[group]
        ]

    def _lag(
        self, group: str, topic: str, committed: Mapping[int, int], pulled: Pulled | None
    ) -> TopicLag:
        ends, places = self.ends(topic), []
        given_to = {} if pulled is None else pulled(group, topic)
        in_flight, oldest_ms = 0, 0
        for queue_id in range(self.topics[topic].read_queues):
            offset, end = committed.get(queue_id, 0), ends[queue_id]
            age_ms = self._age_ms(topic, queue_id, offset) if offset < end else 0
            places.append(QueuePlace(queue_id, offset, end, age_ms))
            given = min(max(offset, given_to.get(queue_id, 0)), max(offset, end))
            in_flight += given - offset
            if given < end and pulled is not None:
                age_ms = age_ms if given == offset else self._age_ms(topic, queue_id, given)
                oldest_ms = max(oldest_ms, age_ms or 0)
        if pulled is None:
            return TopicLag(group, topic, tuple(places), None, None)
        return TopicLag(group, topic, tuple(places), in_flight, oldest_ms)

    def _end(self, topic: str, queue_id: int) -> int:
        self._let_others_run()
        end = int(self._range(self._store.queue(topic, queue_id))[1])
        self._times.note_end((topic, queue_id), end)
        return end

    def _range(self, queue: QueueReader) -> tuple[int, int]:
        # Apache's broker appends to a folder without a sign that others could note.
        return queue.noted_range() if self._is_served else queue.recent_range()

    def _age_ms(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Return the age of a message, or of the first after it that is still there."""
        key = topic, queue_id, queue_offset
        stored_ms = self._times.get(key, lambda: self._stored_ms(*key))
        return None if stored_ms is None else max(self.now_ms - stored_ms, 0)

    def _stored_ms(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        self._let_others_run()
        queue = self._store.queue(topic, queue_id)
        try:
            return queue.timestamp(max(queue_offset, self._range(queue)[0]))
        except CorruptStoreError:
            pass  # retention took it meanwhile
        try:
            return queue.timestamp(max(queue_offset, queue.range()[0]))
        except CorruptStoreError:
            return None

    def _let_others_run(self) -> None:
        # A thread that computes keeps the interpreter for 5 ms at a time, which a loop would feel.
        self._looked_up += 1
        if self._looked_up % _SOME == 0:
            time.sleep(0)
