"""Appending a staged batch: whole or not at all, and never twice.

Under the store's lock: announce it (intent.py), write all of it but its first eight bytes, make
that durable, write these bytes and make them durable, note it in the ledger, dispatch, publish the
end. The staged files are read twice, for the records and for what queues and index keep of them,
so the memory this needs does not grow with the batch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.encoder import RecordRun
from rocketpy.broker_core.codec.layout import SIZE_AND_MAGIC
from rocketpy.broker_core.errors import StoreError
from rocketpy.broker_core.storage.appends import pieces_of
from rocketpy.broker_core.storage.batches.intent import announce, settle_batch, settle_intent
from rocketpy.broker_core.storage.batches.ledger import (
    Ledger,
    Note,
    PendingBatch,
    read_ledger,
    write_ledger,
)
from rocketpy.broker_core.storage.batches.placing import ChunkPlaces, Placing
from rocketpy.broker_core.storage.batches.staging import ChunkBuffer, StagedChunk, staged_chunks
from rocketpy.broker_core.storage.dispatch import Dispatch, merged
from rocketpy.broker_core.storage.indexing import catch_up, mark_indexed
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_ends import QueueKey
from rocketpy.broker_core.storage.tail import TailState
from rocketpy.broker_core.storage.writer import Writer, store_time

log = logging.getLogger(__name__)

_HEAD = SIZE_AND_MAGIC.size  # while these bytes of a record are zero, the log ends before it
_WRITE_BACK_BYTES = 8 << 20  # the disk gets so many while others are made, not all in the sync
_ENTRIES_AT_ONCE = 1 << 19  # of queues and index: how many are in memory, to be written together


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedBatch:
    """What is committed together; `writer` and `number` tell if it was committed before.

    `formerly` is what an earlier version called the writer. `note` is what the writer wants to be
    remembered with the batch: both are there, or neither.
    """

    files: Sequence[Path]
    writer: str | None = None
    number: int = 0
    formerly: str | None = None
    note: Note | None = None


@dataclass(slots=True)
class BatchCommit:
    """Commits one batch to a store."""

    batch: StagedBatch
    parts: StoreParts
    writer: Writer
    clock: Clock
    _stored_ms: int = 0
    _queue_starts: dict[QueueKey, int] = field(default_factory=dict)

    def run(self) -> bool:
        """Append the batch, durably; return False if it was in the log before.

        Raises:
            StaleBatchError: a later batch of its writer is in the log.
            CorruptStoreError: a staged file is damaged or gone; nothing was stored.
            DiskFullError: there is no room; nothing was stored.
        """
        with self.writer.owned() as state:
            ledger = read_ledger(self.parts.root)
            if ledger.pending is not None:  # announced in a tail that was lost since
                settle_batch(self.parts.log, self.parts.root, self.parts.disk, flushed=state.end)
                ledger = read_ledger(self.parts.root)
            batch = self.batch
            if ledger.is_replay(batch.writer, batch.number, batch.formerly):
                return False
            catch_up(self.parts, state)  # what is before this batch comes first in the index
            self._stored_ms = store_time(self.clock.now_ms(), state)
            try:
                end, ledger, head = self._write(state, ledger)
            except BaseException:
                if self.parts.tail.has_intent():
                    settle_intent(self.parts)
                raise
            self._make_visible(ledger, head)
            try:
                self._finish(ledger, end)
            except (OSError, StoreError):
                # This is no failure: a caller that stored the batch again would have it twice.
                log.exception(
                    "%s: a batch is in the log, but not wholly in ledger, queues and index; "
                    "the next to append, or to open the store, puts it there",
                    self.parts.root,
                )
        return True

    def _write(self, state: TailState, ledger: Ledger) -> tuple[int, Ledger, bytes]:
        """Write all but the first bytes; return the new end, the announcement, and those bytes."""
        head, end, placing = b"", state.end, None
        on_its_way = end  # to the disk
        for chunk in staged_chunks(self.batch.files, ChunkBuffer()):
            assert chunk.run is not None
            if placing is None:
                placing = self._placing(self._room_for(int(chunk.sizes[0]), state))
            places = placing.place(chunk)
            chunk.run.place(places.queue_offsets, places.physical_offsets, self._stored_ms)
            if not head:
                end = int(places.physical_offsets[0])
                ledger = replace(ledger, pending=self._pending(chunk.run, end))
                announce(self.parts, ledger)
                head, chunk.run.data[:_HEAD] = chunk.run.data[:_HEAD].tobytes(), 0
            records = pieces_of(chunk.run, places.physical_offsets, places.runs)
            end = self.writer.write_records(records, end)
            if end - on_its_way >= _WRITE_BACK_BYTES:
                self.parts.log.files.write_back(on_its_way, end)
                on_its_way = end
        assert ledger.pending is not None
        self.parts.log.files.sync(ledger.pending.begin, end)
        return end, ledger, head

    def _placing(self, state: TailState) -> Placing:
        return Placing(self.parts.log, state.end, partial(self._queue_start, state))

    def _room_for(self, size: int, state: TailState) -> TailState:
        """Have the batch begin with a record, not with the blank one that closes a file."""
        (begin,), _ = self.parts.log.place(np.array([size], np.int64), state.end)
        if begin == state.end:
            return state
        self.parts.log.close_file(state.end)
        rolled = state._replace(end=int(begin))
        self.parts.tail.write(rolled)
        return rolled

    def _pending(self, run: RecordRun, begin: int) -> PendingBatch:
        size = int(run.sizes[0])
        crc = crc32(run.data.data[:size])
        return PendingBatch(
            writer=self.batch.writer,
            number=self.batch.number,
            begin=begin,
            size=size,
            crc=crc,
            note=self.batch.note,
        )

    def _make_visible(self, ledger: Ledger, head: bytes) -> None:
        assert ledger.pending is not None
        begin = ledger.pending.begin
        self.parts.log.files.write(begin, head)
        self.parts.log.files.sync(begin, begin + len(head))

    def _finish(self, ledger: Ledger, end: int) -> None:
        """Note the batch, dispatch it and publish the end. If this fails, settle() does so."""
        assert ledger.pending is not None
        begin = ledger.pending.begin
        write_ledger(self.parts.root, ledger.without_pending(is_in_log=True), self.parts.disk)
        before = TailState(begin, self._stored_ms)
        placing, waiting, entries = self._placing(before), list[Dispatch](), 0
        for chunk in staged_chunks(self.batch.files):
            waiting.append(self._entries(chunk, placing.place(chunk)))
            entries += len(chunk.rows) + len(chunk.index)
            if entries >= _ENTRIES_AT_ONCE:
                self._put(waiting, placing)
                waiting, entries = [], 0
        self._put(waiting, placing)
        self.writer.publish(before, TailState(end, self._stored_ms), placing.ends)
        mark_indexed(self.parts, end)
        self.parts.tail.write_flushed(end)
        self.parts.tail.write_intent(None)
        self.parts.growth.tell(end)

    def _entries(self, chunk: StagedChunk, places: ChunkPlaces) -> Dispatch:
        """Return what queues and index keep of a chunk."""
        return Dispatch(
            topic=chunk.topic,
            queue_ids=chunk.rows["queue_id"],
            queue_offsets=places.queue_offsets,
            physical_offsets=places.physical_offsets,
            sizes=chunk.sizes,
            tag_codes=chunk.codes_at(self._stored_ms),
            timestamps=np.full(len(chunk), self._stored_ms, np.int64),
            sys_flags=np.zeros(len(chunk), np.int32),
            index_rows=chunk.index["row"].astype(np.int64),
            index_hashes=chunk.index["key_hash"].astype(np.int64),
            slot_by_slot=chunk.index["order"].astype(np.int64),
        )

    def _put(self, entries: list[Dispatch], placing: Placing) -> None:
        """Give queues and index the entries of some chunks."""
        self.parts.queue_target.put(merged(entries))
        for each in entries:  # a task has put those of its chunk in the order of slots
            self.parts.index_target.put([each])
        for queue, first in placing.take_firsts().items():
            self.writer.queues.after_writing(queue, first, placing.ends[queue])

    def _queue_start(self, state: TailState, queue: QueueKey) -> int:
        """Return the first offset of a queue that this batch takes."""
        if queue not in self._queue_starts:
            self._queue_starts[queue] = self.writer.next_offset(state, queue)
        return self._queue_starts[queue]
