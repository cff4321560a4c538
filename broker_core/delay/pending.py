"""What waits in a store for its time, counted: for consoles and metrics, which deliver nothing.

P1  Files are read, and no lock is taken: any process may count while others deliver.
P2  Levels are counted by offsets. Of timer messages the second and the topic are kept, 20 bytes
    each, and a look reads some more of them at most: until all were seen they are not told, nor are
    they if there are a million and more.
P3  A message that is recalled counts until its second has come.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from rocketpy.broker_core.delay.levels import due_end
from rocketpy.broker_core.delay.progress import (
    TIMER,
    Mark,
    TimerMark,
    level_source,
    mark_of,
    read_marks,
)
from rocketpy.broker_core.delay.timers import timer_seconds
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.intake.waiting import TIMER_PRECISION_MS
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, TIMER_TOPIC
from rocketpy.broker_core.property_names import REAL_TOPIC, TIMER_DELETE_KEY
from rocketpy.broker_core.storage.store import MessageStore

# Whoever delivers has ten seconds to take over from another, and Apache's broker notes how far it
# has come as seldom: what is late by less may be on its way.
OVERDUE_MS = 15_000
_STEP, _MOST = 100_000, 1_000_000


class Pending(NamedTuple):
    """How many messages wait; None is what cannot be told."""

    by_level: Mapping[int, int]  # levels without any may be missing
    by_topic: Mapping[str, int] | None  # with a time of their own, by the topic that they are for
    overdue: int  # of all these: late by OVERDUE_MS or more

    @property
    def messages(self) -> int:
        """All that are known."""
        return sum(self.by_level.values()) + sum((self.by_topic or {}).values())


class PendingMessages:
    """Counts what waits in one store. Any thread may look; they take turns."""

    def __init__(self, store: MessageStore) -> None:
        self._store, self._timers, self._turn = store, _Timers(store), threading.Lock()

    def look(self, now_ms: int) -> Pending:
        """Return what waits now."""
        with self._turn:
            marks, due_ms = read_marks(self._store), now_ms - OVERDUE_MS
            by_level, overdue = self._levels(marks, due_ms)
            try:
                is_seen = self._timers.look(TimerMark(*mark_of(marks, TIMER)))
            except CorruptStoreError:  # which the doctor tells
                self._timers.forget()
                is_seen = False
            if not is_seen:
                return Pending(by_level, None, overdue)
            return Pending(by_level, self._timers.by_topic(), overdue + self._timers.due(due_ms))

    def _levels(self, marks: Mapping[str, Mark], due_ms: int) -> tuple[dict[int, int], int]:
        found, overdue = {}, 0
        for queue_id in self._store.stored_queue_ids(SCHEDULE_TOPIC):
            reader = self._store.queue(SCHEDULE_TOPIC, queue_id)
            first, end = reader.range()
            start = min(max(first, mark_of(marks, level_source(queue_id + 1))[0]), end)
            found[queue_id + 1] = end - start
            overdue += due_end(reader, start, end, due_ms) - start
        return found, overdue


class _Timers:
    """The timer messages that were seen and are not delivered."""

    def __init__(self, store: MessageStore) -> None:
        self._store, self._reader = store, store.queue(TIMER_TOPIC, 0)
        self._numbers: dict[str, int] = {}  # of topics
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._next = 0  # of the queue, to be looked at
        self._seconds = self._offsets = np.zeros(0, np.int64)
        self._topics = np.zeros(0, np.int32)

    def look(self, mark: TimerMark) -> bool:
        """Look at some more, and forget what was delivered; return whether all were seen."""
        if not self._store.stored_queue_ids(TIMER_TOPIC):
            return True
        first, end = self._reader.range()
        if self._next > end:  # the queue was made anew
            self.forget()
        start = max(self._next, mark.begin, first)
        if len(self._offsets) < _MOST:
            self._next = max(start, min(end, start + _STEP))
            self._add(start, self._next)
        seconds, offsets = self._seconds, self._offsets
        is_passed = (seconds < mark.out_ms) | (
            (seconds == mark.out_ms) & (offsets < mark.queue_offset)
        )
        is_done = (offsets < max(mark.begin, first)) | ((offsets < mark.end) & is_passed)
        if is_done.any():
            self._seconds, self._offsets = seconds[~is_done], offsets[~is_done]
            self._topics = self._topics[~is_done]
        return self._next >= end

    def by_topic(self) -> dict[str, int]:
        """Return how many wait for each topic."""
        counts = np.bincount(self._topics, minlength=len(self._numbers)).tolist()
        return {topic: counts[number] for topic, number in self._numbers.items() if counts[number]}

    def due(self, now_ms: int) -> int:
        """Return how many were due at a time."""
        return int((self._seconds <= now_ms - TIMER_PRECISION_MS).sum())

    def _add(self, start: int, end: int) -> None:
        seconds, offsets, topics = [self._seconds], [self._offsets], [self._topics]
        for block in self._reader.records(start, end) if start < end else ():
            found, rows = timer_seconds(block)
            is_kept = pc.is_null(block.properties.get(TIMER_DELETE_KEY))
            rows = rows[is_kept.to_numpy(zero_copy_only=False)[rows]]
            names = pc.fill_null(block.properties.get(REAL_TOPIC), "").dictionary_encode()
            numbers = [
                self._numbers.setdefault(name, len(self._numbers))
                for name in names.dictionary.to_pylist()
            ]
            seconds.append(found[rows])
            offsets.append(block.head["queue_offset"].astype(np.int64)[rows])
            topics.append(np.array(numbers, np.int32)[names.indices.to_numpy()][rows])
        self._seconds, self._offsets = np.concatenate(seconds), np.concatenate(offsets)
        self._topics = np.concatenate(topics)
