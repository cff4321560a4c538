"""Appending: one call writes records to the log, their entries to queues and, for a batch, index.

I5  What a reader can find through a queue is whole: records are written before their entries.
I6  The log's end is published last. An append that dies, or fails, leaves nothing that counts: the
    next holder of the lock finishes whole records and cuts the rest.
    What is published has happened: nothing takes it back, not even an interrupt.
The lock is held for the length of one append; what others appended in between is seen.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import ClassVar

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.codec.layout import BLANK_SIZE
from rocketpy.broker_core.errors import CorruptStoreError, MessageRefusedError, StoreClosedError
from rocketpy.broker_core.storage.appends import Append, Records
from rocketpy.broker_core.storage.indexing import catch_up, mark_indexed
from rocketpy.broker_core.storage.layout import ABORT
from rocketpy.broker_core.storage.lock import Hold, StoreLock
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_ends import NotedEnds, QueueEnd, QueueKey
from rocketpy.broker_core.storage.queue_keeper import QueueKeeper
from rocketpy.broker_core.storage.recovery import settle
from rocketpy.broker_core.storage.tail import TailState
from rocketpy.broker_core.storage.targets import Cut
from rocketpy.broker_core.storage.unindexed import UnindexedBatches

log = logging.getLogger(__name__)

MOST_AHEAD_MS = 60_000  # how long store times may stand still until the clock catches up


class Writer:
    """Appends to a store, together with any number of other processes."""

    # How many messages it leaves without index entries for now; of batches four times as many, as
    # these need not be read again.
    most_unindexed: ClassVar[int] = 4_096

    def __init__(
        self,
        parts: StoreParts,
        lock: StoreLock,
        clock: Clock,
        is_deleted: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._parts, self._lock, self._clock = parts, lock, clock
        self.queues = QueueKeeper(parts, is_deleted)
        self.is_closed = False
        self._unindexed = 0
        self._unindexed_batches = UnindexedBatches()
        # Where queues end: true while the log ends where our last append left it.
        self._seen_end = -1
        self._queue_ends: dict[QueueKey, QueueEnd] = {}
        self._removed = parts.removed_topics.read()  # what is cached here is as of it

    @contextmanager
    def owned(self) -> Iterator[TailState]:
        """Hold the store's lock, with the end of the log settled."""
        with self._lock.held(self._parts.config.lock_timeout_s):
            yield self._settled()

    def _settled(self) -> TailState:
        if self.is_closed:  # by another thread, while this one waited for the lock
            raise StoreClosedError(self._parts.root)
        if self._parts.removed_topics.read() is not self._removed:
            self._take_up_removed()
        state, tail = self._parts.tail.read(), self._parts.tail
        if state is None or not self._parts.log.is_free(state.end) or tail.has_intent():
            self.mark_open()
            state = settle(self._parts, state)
        return state

    def _take_up_removed(self) -> None:
        """Finish what another left of a deletion; forget the queues of topics that are gone."""
        if self._parts.finish_removals is not None:
            self._parts.finish_removals()
        self._parts.drop_removed()
        self._queue_ends.clear()
        self._removed = self._parts.removed_topics.read()

    def catch_up(self) -> TailState:
        """Write the index entries that sends left for later; return the end they go up to."""
        with self.owned() as state:
            self._catch_up(state)
            return state

    def _catch_up(self, state: TailState) -> None:
        # As with the ends of queues: what is known here is true while nobody else appended.
        is_known = state.end == self._seen_end
        catch_up(self._parts, state, self._unindexed_batches if is_known else None)
        self._unindexed_batches.forget()
        self._unindexed = 0

    def checked_ends(self) -> NotedEnds:
        """Return where all queues end, restoring those that lost their files."""
        self.queues.read_ahead()
        with self.owned() as state:
            return self.queues.checked(state.end)

    def restore_queue(self, key: QueueKey) -> None:
        """Write the entries of a queue anew from the log."""
        with self.owned() as state:
            self.queues.restore(key, state.end)

    def has_written_last(self, state: TailState) -> bool:
        """Whether the newest append is of this process."""
        return state.end == self._seen_end

    def mark_open(self) -> None:
        """Leave the sign of an open store, which an unclean stop does not take away."""
        path = self._parts.root / ABORT
        if not path.exists():
            self._parts.disk.replace(path, str(os.getpid()).encode())

    def append(self, work: Append, lock_timeout_s: float | None = None) -> None:
        """Append messages; all of them, or nothing if it raises, unless by an interrupt."""
        if not work.count:
            raise MessageRefusedError("batch", "it has no messages")
        hold = Hold()
        if lock_timeout_s is None:
            lock_timeout_s = self._parts.config.lock_timeout_s
        try:
            try:
                self._lock.acquire(hold, lock_timeout_s)
                self._append(work, self._settled())
            finally:
                self._lock.release(hold)
        finally:
            if self._lock.is_mine():  # an interrupt came in between
                self._lock.release(hold)

    def _append(self, work: Append, state: TailState) -> None:
        parts, end = self._parts, state.end
        if work.puts_index or self._unindexed + work.count > self.most_unindexed:
            self._make_room_in_index(work, state)
        stored_ms = self._clock.now_ms()
        if stored_ms < state.stored_ms:
            stored_ms = store_time(stored_ms, state)
        records = work.place(partial(self.next_offset, state), end, stored_ms, parts.log)
        try:
            parts.tail.announce(end, work.end)
            self.write_records(records, end)
            work.put(parts)
            for queue, start in work.starts.items():
                self.queues.after_writing(queue, start, work.ends[queue])
        except BaseException:
            self._undo(state, work.starts)
            raise
        self.publish(state, TailState(work.end, stored_ms), work.ends)
        if work.puts_index:
            mark_indexed(parts, work.end)
        elif parts.config.message_index:
            self._note_unindexed(work, end)
        if parts.growth.listeners:
            parts.growth.tell(work.end)

    def _note_unindexed(self, work: Append, begin: int) -> None:
        texts = work.texts
        self._unindexed += work.count if texts is None else -(-work.count // 4)
        self._unindexed_batches.add(begin, work.end, texts)

    def _make_room_in_index(self, work: Append, state: TailState) -> None:
        """Have the index in the order of the log, and not too far from its end.

        This comes before the append: if it fails, nothing is stored.
        """
        if work.puts_index:
            self._catch_up(state)
        else:
            self.catch_up()

    def write_records(self, records: Records, end: int) -> int:
        """Write placed records to the log after `end`; return the new end."""
        for at, data in records:
            self._parts.log.write(at, data, end)
            end = at + len(data)
        return end

    def next_offset(self, state: TailState, queue: QueueKey) -> int:
        """Return the queue offset that the next message of a queue gets."""
        if state.end != self._seen_end:  # others appended since
            self._queue_ends.clear()
            self._seen_end = state.end
        known = self._queue_ends.get(queue)
        if known is not None:
            return known.next_offset
        end = self.queues.next_offset(queue, state.end)
        files = self._parts.queues.get(*queue)
        last = files.unit(end - 1) if end else None
        if last and not last.is_filler and last.physical_offset + last.size > state.end:
            reason = f"its last entry points behind the log's end {state.end}"
            raise CorruptStoreError(files.files.folder, end - 1, reason)
        return end

    def publish(self, old: TailState, new: TailState, ends: Mapping[QueueKey, QueueEnd]) -> None:
        """Let all processes see an append: the log's new end, and where it left its queues.

        What is remembered here counts only once all of it is, as an interrupt may come between.
        Hold the store's lock.
        """
        self._seen_end = -1
        before = self._parts.tail.end_bytes()
        self._parts.tail.write(new)
        self._parts.recent_ranges.carry_on(before, ends)
        self._queue_ends.update(ends)
        self.queues.ends.note(old.end, new.end, ends)
        self._seen_end = new.end

    def _undo(self, state: TailState, starts: Mapping[QueueKey, int]) -> None:
        """Take back what a failed append wrote.

        If that fails as well, the bytes at the log's end tell the next holder of the lock: they
        go last. Entries go first: an entry without a record must never be seen.
        """
        self._seen_end = -1
        for target in self._parts.targets:
            target.cut(Cut(state.end, state.stored_ms, starts))
        self._parts.log.files.zero_from(state.end + BLANK_SIZE)
        self._parts.log.cut(state.end)
        self._parts.tail.write_settled(state)


def store_time(now_ms: int, state: TailState) -> int:
    """Return the store time of an append: now, and not before the newest message.

    A clock that once was wrong by far must not decide for ever: then times go back, and that is
    told. Messages stay in the order of their offsets.
    """
    ahead_ms = state.stored_ms - now_ms
    if ahead_ms > MOST_AHEAD_MS:
        log.warning(
            "the newest message was stored %.0f s ahead of the clock, which was wrong then or is "
            "now; store times go back to the clock, and are not in order here",
            ahead_ms / 1000,
        )
        return now_ms
    return max(now_ms, state.stored_ms)
