"""Appending: one call places records in the log and their entries in queues and index.

I5  What a reader can find through a queue is whole: records are written before their entries.
I6  The log's end is published last. An append that dies, or fails, leaves nothing that counts: the
    next holder of the lock finishes whole records and cuts the rest.
The lock is held for the length of one append; what others appended in between is seen.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.codec.encoder import RecordRun
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import BLANK_SIZE
from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message import Message, PhysicalOffset, QueueOffset
from rocketpy.broker_core.storage.dispatch import Dispatch, dispatch_one
from rocketpy.broker_core.storage.layout import ABORT
from rocketpy.broker_core.storage.lock import StoreLock
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.recovery import settle
from rocketpy.broker_core.storage.tail import TailState

log = logging.getLogger(__name__)


class EncodedBatch(NamedTuple):
    """Records of one topic, encoded but not placed, with what queues and index keep of them."""

    topic: str
    run: RecordRun
    queue_ids: npt.NDArray[np.int32]
    tag_codes: Ints
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

    def __init__(self, parts: StoreParts, lock: StoreLock, clock: Clock) -> None:
        self._parts, self._lock, self._clock = parts, lock, clock

    @contextmanager
    def owned(self) -> Iterator[TailState]:
        """Hold the store's lock, with the end of the log settled."""
        with self._lock.held(self._parts.config.lock_timeout_s):
            state = self._parts.tail.read()
            if state is None or state.appending or not self._parts.log.is_free(state.end):
                self.mark_open()
                state = settle(self._parts, state)
            yield state

    def mark_open(self) -> None:
        """Leave the sign of an open store, which an unclean stop does not take away."""
        path = self._parts.root / ABORT
        if not path.exists():
            self._parts.disk.replace(path, str(os.getpid()).encode())

    def append(self, batch: EncodedBatch) -> Placed:
        """Append a batch; all of it, or nothing if it raises."""
        with self.owned() as state:
            stored_ms = max(self._clock.now_ms(), state.stored_ms)
            ends = {int(queue_id): self._next_offset(batch.topic, int(queue_id), state)
                    for queue_id in np.unique(batch.queue_ids)}  # fmt: skip
            queue_offsets = _number(batch.queue_ids, ends)
            physical_offsets, runs = self._parts.log.place(batch.run.sizes, state.end)
            batch.run.place(queue_offsets, physical_offsets, stored_ms)
            dispatch = Dispatch(
                topic=batch.topic,
                queue_ids=batch.queue_ids,
                queue_offsets=queue_offsets,
                physical_offsets=physical_offsets,
                sizes=batch.run.sizes,
                tag_codes=batch.tag_codes,
                timestamps=np.full(len(batch.run), stored_ms, np.int64),
                sys_flags=np.zeros(len(batch.run), np.int32),
                index_rows=batch.index_rows,
                index_hashes=batch.index_hashes,
            )
            with self._undone_on_error(state, batch.topic, ends):
                end = self._write_runs(batch.run, physical_offsets, runs, state.end)
                dispatch.put(self._parts)
            self._parts.tail.write(TailState(end, stored_ms, False))
        return Placed(queue_offsets, physical_offsets, stored_ms, end)

    def _write_runs(
        self, run: RecordRun, offsets: Ints, runs: list[tuple[int, int]], end: int
    ) -> PhysicalOffset:
        view = memoryview(run.data)
        for first, last in runs:
            start, stop = int(run.starts[first]), int(run.starts[last - 1] + run.sizes[last - 1])
            self._parts.log.write(int(offsets[first]), view[start:stop], end)
            end = int(offsets[first]) + stop - start
        return PhysicalOffset(end)

    def append_one(self, message: Message) -> tuple[Message, PhysicalOffset]:
        """Append one message; return it as stored, and the log's end behind it."""
        record = encode_record(message)  # as large as it will be once placed
        with self.owned() as state:
            stored_ms = max(self._clock.now_ms(), state.stored_ms)
            queue_offset = self._next_offset(message.topic, message.queue_id, state)
            at = self._place_one(len(record), state.end)
            placed = replace(
                message,
                queue_offset=QueueOffset(queue_offset),
                physical_offset=PhysicalOffset(at),
                store_timestamp_ms=stored_ms,
            )
            with self._undone_on_error(state, message.topic, {message.queue_id: queue_offset}):
                self._parts.log.write(at, encode_record(placed), state.end)
                dispatch_one(placed, len(record), self._parts)
            end = PhysicalOffset(at + len(record))
            self._parts.tail.write(TailState(end, stored_ms, False))
        return placed, end

    def _place_one(self, size: int, end: int) -> int:
        next_file = self._parts.log.files.start_of(end) + self._parts.log.file_size
        return end if end + size + BLANK_SIZE <= next_file else next_file

    def _next_offset(self, topic: str, queue_id: int, state: TailState) -> int:
        queue = self._parts.queues.get(topic, queue_id)
        end, last = queue.last()
        if last is not None and not last.is_filler and (
            last.physical_offset + last.size > state.end
        ):
            raise CorruptStoreError(
                queue.files.folder, end - 1, f"its last entry points behind the log's end {state.end}"
            )
        return end

    @contextmanager
    def _undone_on_error(
        self, state: TailState, topic: str, ends: dict[int, int]
    ) -> Iterator[None]:
        """Mark the append as under way; if it fails, take back what it wrote.

        If that fails as well the mark stays, and the next holder of the lock does it. Entries go
        before records: an entry without a record must never be seen.
        """
        self._parts.tail.write(state._replace(appending=True))
        try:
            yield
        except BaseException:
            for queue_id, end in ends.items():
                self._parts.queues.get(topic, queue_id).cut(end)
            self._parts.log.files.zero_from(state.end)
            self._parts.tail.write(state)
            raise


def _number(queue_ids: npt.NDArray[np.int32], ends: dict[int, int]) -> Ints:
    """Return the queue offset of each row: its queue's end, and on from there in row order."""
    order = np.argsort(queue_ids, kind="stable")
    sorted_ids = queue_ids[order]
    firsts = np.flatnonzero(np.diff(sorted_ids, prepend=sorted_ids[:1] - 1))
    counts = np.diff(np.append(firsts, len(order)))
    bases = np.array([ends[int(sorted_ids[first])] for first in firsts], np.int64)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(firsts, counts) + np.repeat(bases, counts)
    return numbers
