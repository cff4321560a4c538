"""Appending: one call places records in the log, their entries in queues and, of a batch, index.

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
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.codec.encoder import RecordRun
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import BLANK_SIZE
from rocketpy.broker_core.codec.record import RecordDraft
from rocketpy.broker_core.codec.sys_flags import is_queued
from rocketpy.broker_core.errors import CorruptStoreError, MessageRefusedError, StoreClosedError
from rocketpy.broker_core.message import Message, PhysicalOffset, QueueOffset
from rocketpy.broker_core.storage.dispatch import (
    Dispatch,
    PlacedOne,
    dispatch_one,
    put_all,
    stable_order,
    stored_codes,
)
from rocketpy.broker_core.storage.indexing import catch_up, mark_indexed
from rocketpy.broker_core.storage.layout import ABORT
from rocketpy.broker_core.storage.lock import Hold, StoreLock
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_ends import NotedEnds, QueueEnd, QueueKey
from rocketpy.broker_core.storage.queue_keeper import QueueKeeper
from rocketpy.broker_core.storage.recovery import settle
from rocketpy.broker_core.storage.tail import TailState

log = logging.getLogger(__name__)

MOST_AHEAD_MS = 60_000  # of the clock: so long a store time may stand still until it catches up


class EncodedBatch(NamedTuple):
    """Records of one topic, encoded but not placed, with what queues and index keep of them."""

    topic: str
    run: RecordRun
    queue_ids: npt.NDArray[np.int32]
    tag_codes: Ints  # in the schedule topic: delays in ms, to which the store time is added
    index_rows: Ints
    index_hashes: Ints


class Placed(NamedTuple):
    """Where a batch went."""

    queue_offsets: Ints
    physical_offsets: Ints
    stored_ms: int
    end: PhysicalOffset  # of the log; durable once flushed up to here


class Writer:
    """Appends to a store, together with any number of other processes."""

    most_unindexed: ClassVar[int] = 1024  # messages whose index entries it leaves for later

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
        # Where queues end: holds while the log ends where our last append left it.
        self._seen_end = -1
        self._queue_ends: dict[QueueKey, QueueEnd] = {}

    @contextmanager
    def owned(self) -> Iterator[TailState]:
        """Hold the store's lock, with the end of the log settled."""
        with self._lock.held(self._parts.config.lock_timeout_s):
            yield self._settled()

    def _settled(self) -> TailState:
        if self.is_closed:  # by another thread, while this one waited for the lock
            raise StoreClosedError(self._parts.root)
        state, tail = self._parts.tail.read(), self._parts.tail
        if state is None or not self._parts.log.is_free(state.end) or tail.has_intent():
            self.mark_open()
            state = settle(self._parts, state)
        return state

    def catch_up(self) -> TailState:
        """Write the index entries that sends left for later; return the end they go up to."""
        with self.owned() as state:
            catch_up(self._parts, state)
            self._unindexed = 0
            return state

    def checked_ends(self) -> NotedEnds:
        """Return where all queues end, restoring those that lost their files."""
        self.queues.read_ahead()
        with self.owned() as state:
            return self.queues.checked(state.end)

    def restore_queue(self, key: QueueKey) -> None:
        """Write the entries of a queue anew from the log."""
        with self.owned() as state:
            self.queues.restore(key, state.end)

    def mark_open(self) -> None:
        """Leave the sign of an open store, which an unclean stop does not take away."""
        path = self._parts.root / ABORT
        if not path.exists():
            self._parts.disk.replace(path, str(os.getpid()).encode())

    def append(self, batch: EncodedBatch) -> Placed:
        """Append a batch; all of it, or nothing if it raises."""
        if not len(batch.run):
            raise MessageRefusedError("batch", "it has no messages")
        row = int(batch.run.sizes.argmax())
        self.refuse_larger_than_file(int(batch.run.sizes[row]), f"row {row}")
        with self.owned() as state:
            catch_up(self._parts, state)  # what is before this batch comes first
            stored_ms = store_time(self._clock, state)
            starts = {
                queue_id: self.next_offset(batch.topic, queue_id, state)
                for queue_id in np.unique(batch.queue_ids).tolist()
            }
            queue_offsets = number_rows(batch.queue_ids, starts)
            physical_offsets, runs = self._parts.log.place(batch.run.sizes, state.end)
            batch.run.place(queue_offsets, physical_offsets, stored_ms)
            ends = last_of_each(batch.topic, batch.queue_ids, queue_offsets, physical_offsets)
            dispatch = Dispatch(
                topic=batch.topic,
                queue_ids=batch.queue_ids,
                queue_offsets=queue_offsets,
                physical_offsets=physical_offsets,
                sizes=batch.run.sizes,
                tag_codes=stored_codes(batch.topic, batch.tag_codes, stored_ms),
                timestamps=np.full(len(batch.run), stored_ms, np.int64),
                sys_flags=np.zeros(len(batch.run), np.int32),
                index_rows=batch.index_rows,
                index_hashes=batch.index_hashes,
            )
            end = PhysicalOffset(int(physical_offsets[-1] + batch.run.sizes[-1]))
            try:
                self._parts.tail.announce(state.end, end)
                self.write_runs(batch.run, physical_offsets, runs, state.end)
                put_all([dispatch], self._parts)
                for key, queue_end in ends.items():
                    self.queues.after_writing(key, starts[key[1]], queue_end)
            except BaseException:
                self._undo(state, batch.topic, starts)
                raise
            self._publish(state, TailState(end, stored_ms), ends)
            mark_indexed(self._parts, end)
        return Placed(queue_offsets, physical_offsets, stored_ms, end)

    def write_runs(
        self, run: RecordRun, offsets: Ints, runs: list[tuple[int, int]], end: int
    ) -> PhysicalOffset:
        """Write placed records to the log behind `end`, a run per file; return the new end."""
        view = run.data.data
        for first, last in runs:
            start, stop = int(run.starts[first]), int(run.starts[last - 1] + run.sizes[last - 1])
            self._parts.log.write(int(offsets[first]), view[start:stop], end)
            end = int(offsets[first]) + stop - start
        return PhysicalOffset(end)

    def append_one(self, message: Message) -> PlacedOne:
        """Append one message; nothing is left of it if this raises, unless by an interrupt."""
        draft = RecordDraft(message)
        self.refuse_larger_than_file(draft.size, "the message")
        hold = Hold()
        try:
            try:
                self._lock.acquire(hold, self._parts.config.lock_timeout_s)
                return self._append_one(message, draft)
            finally:
                self._lock.release(hold)
        finally:
            self._lock.release(hold)

    def _append_one(self, message: Message, draft: RecordDraft) -> PlacedOne:
        state = self._settled()
        self._unindexed += 1
        if self._unindexed > self.most_unindexed:
            self.catch_up()  # before the message: if it fails, nothing is stored
        key = topic, queue_id = message.topic, message.queue_id
        has_entry = is_queued(message.sys_flag)
        queue_offset = self.next_offset(topic, queue_id, state) if has_entry else 0
        at = self._place_one(draft.size, state.end)
        end = PhysicalOffset(at + draft.size)
        stored_ms = store_time(self._clock, state)
        placed = PlacedOne(QueueOffset(queue_offset), PhysicalOffset(at), stored_ms, end)
        ends = {key: QueueEnd(queue_offset + 1, at)} if has_entry else {}
        try:
            self._parts.tail.announce(state.end, end)
            self._parts.log.write(at, draft.at(queue_offset, at, stored_ms), state.end)
            dispatch_one(message, placed, draft.size, self._parts)
            if has_entry:
                self.queues.after_writing(key, queue_offset, ends[key])
        except BaseException:
            self._undo(state, topic, {queue_id: queue_offset} if has_entry else {})
            raise
        self._publish(state, TailState(end, stored_ms), ends)
        return placed

    def refuse_larger_than_file(self, size: int, what: str) -> None:
        """Raise if a record does not fit into a file of this log."""
        limit = self._parts.log.file_size - BLANK_SIZE
        if size > limit:
            raise MessageRefusedError(
                what, f"a record of {size} bytes, a file of this commit log takes {limit}"
            )

    def _place_one(self, size: int, end: int) -> int:
        next_file = self._parts.log.files.start_of(end) + self._parts.log.file_size
        return end if end + size + BLANK_SIZE <= next_file else next_file

    def next_offset(self, topic: str, queue_id: int, state: TailState) -> int:
        """Return the queue offset that the next message of a queue gets."""
        if state.end != self._seen_end:  # others appended since
            self._queue_ends.clear()
            self._seen_end = state.end
        known = self._queue_ends.get((topic, queue_id))
        if known is not None:
            return known.next_offset
        end = self.queues.next_offset((topic, queue_id), state.end)
        queue = self._parts.queues.get(topic, queue_id)
        last = queue.unit(end - 1) if end else None
        if last and not last.is_filler and last.physical_offset + last.size > state.end:
            reason = f"its last entry points behind the log's end {state.end}"
            raise CorruptStoreError(queue.files.folder, end - 1, reason)
        return end

    def _publish(self, old: TailState, new: TailState, ends: Mapping[QueueKey, QueueEnd]) -> None:
        """Let all processes see an append: the log's new end, and where it left its queues.

        What is remembered here counts only once all of it is, as an interrupt may come between.
        """
        self._seen_end = -1
        self._parts.tail.write(new)
        self._queue_ends.update(ends)
        self.queues.note(old.end, new.end, ends)
        self._seen_end = new.end

    def _undo(self, state: TailState, topic: str, ends: dict[int, int]) -> None:
        """Take back what a failed append wrote.

        If that fails as well, the bytes at the log's end tell the next holder of the lock: they
        go last. Entries go first: an entry without a record must never be seen.
        """
        self._seen_end = -1
        for queue_id, end in ends.items():
            self._parts.queues.get(topic, queue_id).cut(end)
        self._parts.index.cut(state.end, state.stored_ms)
        self._parts.log.files.zero_from(state.end + BLANK_SIZE)
        self._parts.log.cut(state.end)
        self._parts.tail.write_settled(state)


def store_time(clock: Clock, state: TailState) -> int:
    """Return the store time of an append: now, and not before the newest message.

    A clock that once was wrong by far must not decide for ever: then times go back, and that is
    told. Messages stay in the order of their offsets.
    """
    now_ms = clock.now_ms()
    ahead_ms = state.stored_ms - now_ms
    if ahead_ms > MOST_AHEAD_MS:
        log.warning(
            "the newest message was stored %.0f s ahead of the clock, which was wrong then or is "
            "now; store times go back to the clock, and are not in order here",
            ahead_ms / 1000,
        )
        return now_ms
    return max(now_ms, state.stored_ms)


def last_of_each(
    topic: str, queue_ids: npt.NDArray[np.int32], queue_offsets: Ints, physical_offsets: Ints
) -> dict[QueueKey, QueueEnd]:
    """Return where rows leave each of their queues."""
    ids, last = np.unique(queue_ids[::-1], return_index=True)
    rows = len(queue_ids) - 1 - last
    return {
        (topic, int(queue_id)): QueueEnd(int(queue_offsets[row]) + 1, int(physical_offsets[row]))
        for queue_id, row in zip(ids, rows, strict=True)
    }


def number_rows(queue_ids: npt.NDArray[np.int32], ends: dict[int, int]) -> Ints:
    """Return the queue offset of each row: its queue's end, and on from there in row order."""
    order = stable_order(queue_ids)
    sorted_ids = queue_ids[order]
    firsts = np.flatnonzero(np.diff(sorted_ids, prepend=sorted_ids[:1] - 1))
    counts = np.diff(np.append(firsts, len(order)))
    bases = np.array([ends[int(sorted_ids[first])] for first in firsts], np.int64)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(firsts, counts) + np.repeat(bases, counts)
    return numbers
