"""Reading without locks: entries of a queue to batches of columns, records of the log likewise.

queue_bounds.py says which offsets a queue holds. Every record that is handed out was checked: its
physical offset, queue, queue offset, topic and size, and the check sum of its other columns, if any
are handed out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.block import RecordBlock, side_by_side
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.codec.gather import Bytes, Ints, equal
from rocketpy.broker_core.errors import CorruptStoreError, OffsetOutOfRangeError, RecordError
from rocketpy.broker_core.filters import RegisteredBits, SqlFilter
from rocketpy.broker_core.storage.consume_queue_ext import excluded, resolve
from rocketpy.broker_core.storage.layout import FILLER_SIZE, QUEUE_UNIT_SIZE, file_name
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.published import is_appending_at, walk
from rocketpy.broker_core.storage.queue_bounds import QueueBounds
from rocketpy.broker_core.storage.queued_starts import QueuedStarts
from rocketpy.broker_core.storage.salvage import is_sound_record, next_sound_record

BATCH_ROWS = 8_192  # what fits the cache best when decoded
BATCH_BYTES = 32 << 20
_MOST_TOUCHED = 64 << 20  # bytes of the log, before their pages are let go
# Columns that are checked without a check sum: the record must be the one that its queue means.
_QUEUE_COLUMNS = {"topic", "broker", "queue_id", "queue_offset", "commit_log_offset", "store_size"}


class QueueReader(QueueBounds):
    """Reads one queue. Any thread or process may do so while others write."""

    def batches(
        self,
        start: int,
        end: int,
        schema: pa.Schema,
        *,
        tag_codes: Ints | None = None,
        sql: SqlFilter | None = None,
        registered: RegisteredBits | None = None,
        check: bool = True,
        decompress: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages from `start` up to `end` that have one of the codes and pass `sql`.

        `registered` says how to find in the queue what surely does not pass `sql`.
        """
        asked = {*schema.names, *(["properties"] if sql else [])}
        checked_columns = asked - _QUEUE_COLUMNS if check else set()
        for block in self._all_blocks(start, end, checked_columns, tag_codes, registered):
            passing = sql.passing(block) if sql else block
            if len(passing):
                yield self._decode(passing, schema, decompress)

    def records(self, start: int, end: int) -> Iterator[RecordBlock]:
        """Yield the records from `start` up to `end`, checked byte for byte."""
        return self._all_blocks(start, end, {"body", "properties"})

    def picked(self, offsets: Ints) -> Iterator[RecordBlock]:
        """Yield the records of some queue offsets, in the order given, checked byte for byte."""
        first, last = int(offsets.min()), int(offsets.max())
        units = self.queue.units(first, last + 1)[offsets - first]
        for start, count in _pieces(units):
            piece = slice(start, start + count)
            wanted = self.wanted(units[piece])
            picked = units[piece][wanted], offsets[piece][wanted]
            yield from self._blocks(*picked, {"body", "properties"})

    def due_times(self, start: int, end: int) -> Ints:
        """Return the tag codes from `start` up to `end`: in the schedule topic the due times."""
        return self.tag_codes(self.queue.units(start, end))

    def tag_codes(self, units: npt.NDArray[np.void]) -> Ints:
        """Return the tag codes of entries, those of extended ones too."""
        codes = units["tag_code"].astype(np.int64)
        return resolve(codes, self._parts.queues.ext(self.queue.topic, self.queue.queue_id))

    def _all_blocks(
        self,
        start: int,
        end: int,
        checked_columns: set[str],
        tag_codes: Ints | None = None,
        registered: RegisteredBits | None = None,
    ) -> Iterator[RecordBlock]:
        touched = 0
        while start < end:
            units = self.queue.units(start, min(end, start + BATCH_ROWS))
            if not len(units):
                raise CorruptStoreError(
                    self.queue.files.folder, start, "the queue has no such entry"
                )
            _, count = next(_pieces(units))
            offsets = np.arange(start, start + count)
            wanted = self.wanted(units[:count], tag_codes, registered)
            for block in self._blocks(units[:count][wanted], offsets[wanted], checked_columns):
                yield block
                physical = block.head["physical_offset"]
                touched += int(physical[-1]) - int(physical[0])
            if touched > _MOST_TOUCHED:
                self._parts.log.files.let_go()
                touched = 0
            start += count

    def blocks_at(self, offsets: Ints) -> Iterator[RecordBlock]:
        """Yield the records of some offsets, which ascend; every byte of them was checked.

        Raises:
            OffsetOutOfRangeError: an offset is not (any more) in the queue, or has no message.
        """
        low, high = self.range()
        outside = offsets[(offsets < low) | (offsets >= high)]
        if outside.size:
            raise self._out_of_range(int(outside[0]), low, high)
        per_file = self.queue.files.file_size // QUEUE_UNIT_SIZE
        for wanted in np.split(offsets, np.flatnonzero(np.diff(offsets // per_file)) + 1):
            if not wanted.size:
                continue
            units = self.queue.units(int(wanted[0]), int(wanted[-1]) + 1)[wanted - wanted[0]]
            fillers = wanted[units["size"] == FILLER_SIZE]
            if fillers.size:
                raise self._out_of_range(int(fillers[0]), low, high)
            yield from self.picked(wanted)

    def _out_of_range(self, offset: int, low: int, high: int) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(self.queue.topic, self.queue.queue_id, offset, (low, high))

    def _decode(self, block: RecordBlock, schema: pa.Schema, decompress: bool) -> pa.RecordBatch:
        try:
            return decode(
                block, schema, broker=self._parts.config.broker_name, decompress=decompress
            )
        except RecordError as cause:
            row = int(np.argmax(block.starts == cause.at))
            physical_offset = int(block.head["physical_offset"][row])
            folder = self.queue.files.folder
            raise CorruptStoreError(folder, physical_offset, cause.reason) from cause

    def wanted(
        self,
        units: npt.NDArray[np.void],
        tag_codes: Ints | None = None,
        registered: RegisteredBits | None = None,
    ) -> npt.NDArray[np.bool_] | slice:
        """Return which entries are worth a look at the log."""
        wanted: npt.NDArray[np.bool_] = units["size"] != FILLER_SIZE
        if tag_codes is not None or registered is not None:
            codes = units["tag_code"].astype(np.int64)
            ext = self._parts.queues.ext(self.queue.topic, self.queue.queue_id)
            if tag_codes is not None:
                wanted &= np.isin(resolve(codes, ext), tag_codes)
            if registered is not None:
                wanted &= ~excluded(codes, ext, registered)
        return slice(None) if wanted.all() else wanted

    def _blocks(
        self, units: npt.NDArray[np.void], offsets: Ints, checked_columns: set[str]
    ) -> Iterator[RecordBlock]:
        physical = units["physical_offset"].astype(np.int64)
        file_size = self._parts.log.file_size
        bounds = np.flatnonzero(np.diff(physical // file_size)) + 1
        for first, end in pairwise([0, *bounds.tolist(), len(units)]):
            rows = slice(first, end)
            if first < end:
                yield self._checked(
                    physical[rows], units["size"][rows], offsets[rows], checked_columns
                )

    def _checked(
        self, physical: Ints, sizes: npt.NDArray[np.int32], offsets: Ints, checked_columns: set[str]
    ) -> RecordBlock:
        """Return the records that entries point at, all found to be theirs."""
        start = self._parts.log.files.start_of(int(physical[0]))
        path = self._parts.log.files.folder / file_name(start)
        data = self._parts.log.data_at(start)
        if data is None:
            raise CorruptStoreError(path, int(physical[0]), "the file of the log is missing")
        is_whole = bool(checked_columns - {"body"})
        try:
            block = _block(data, physical - start, sizes, is_copied=is_whole)
        except RecordError as cause:
            raise CorruptStoreError(path, cause.at + start, cause.reason) from cause
        topic = self.queue.topic.encode()
        agrees = (
            (block.sizes == sizes)
            & (block.head["physical_offset"] == physical)
            & (block.head["queue_offset"] == offsets)
            & (block.head["queue_id"] == self.queue.queue_id)
            & (block.topic_lengths == len(topic))
        )
        if agrees.all():
            agrees &= equal(block.data, block.topic_at, topic)
        _require(agrees, path, physical, "the record is not the one that the queue means")
        block.common_topic = topic
        if checked_columns:
            sound = block.sound() if is_whole else block.sound_bodies()
            _require(sound, path, physical, "the record does not match its check sum")
        return block


def _block(
    data: Bytes, starts: Ints, sizes: npt.NDArray[np.int32], *, is_copied: bool
) -> RecordBlock:
    """Return the records at some positions; copies of them, if all bytes will be looked at.

    Raises:
        RecordError: a position does not hold a whole record.
    """
    copied = side_by_side(data, starts, sizes.astype(np.int64)) if is_copied else None
    return RecordBlock(data, starts) if copied is None else copied


def _pieces(units: npt.NDArray[np.void]) -> Iterator[tuple[int, int]]:
    """Yield (first, count) of entries whose records are read at once: their memory is bounded."""
    sizes = np.where(units["size"] == FILLER_SIZE, 0, units["size"]).astype(np.int64)
    ends, first = np.cumsum(sizes), 0
    while first < len(units):
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        count = min(max(1, last - first), BATCH_ROWS)
        yield first, count
        first += count


def _require(holds: npt.NDArray[np.bool_], path: object, physical: Ints, reason: str) -> None:
    if not holds.all():
        raise CorruptStoreError(str(path), int(physical[int(np.argmin(holds))]), reason)


def scan(
    parts: StoreParts,
    schema: pa.Schema,
    *,
    start: int | None = None,
    end: int | None = None,
    sql: SqlFilter | None = None,
    check: bool = True,
    decompress: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of the log between two physical offsets, in log order; needs no queue.

    Queues only make it faster.

    Raises:
        CorruptStoreError: a record is damaged and not the torn end of the log.
    """
    position = let_go_at = start if start is not None else int(parts.log.min_offset())
    for segment in walk(parts, position, end, most=BATCH_ROWS, told=QueuedStarts(parts).following):
        if segment.block is None:
            position = segment.end
            continue
        block = segment.sound_prefix() if check else segment.block
        passing = sql.passing(block) if sql else block
        if len(passing):
            yield decode(passing, schema, broker=parts.config.broker_name, decompress=decompress)
        if len(block):
            position = segment.file_start + int(block.starts[-1] + block.sizes[-1])
        if position - let_go_at > _MOST_TOUCHED:
            parts.log.files.let_go()
            let_go_at = position
        if len(block) < len(segment.block):
            break
    if check and (end is None or position < end):
        refuse_damage(parts, position)


def log_end(parts: StoreParts, *, skip_damage: bool = False) -> int:
    """Return where the log ends now.

    Raises:
        CorruptStoreError: records follow after the end, and damage is not to be skipped.
    """
    state = parts.tail.glimpse()
    # Apache's broker keeps no tail file: it may have written on after the end that ours says.
    if state is not None and is_boundary(parts, state.end):
        end = int(state.end)
    else:
        end = next(reversed(parts.log.files.starts()), 0)
    while True:
        for segment in walk(parts, end):
            end = segment.end
        following = next_sound_record(parts.log, end) if skip_damage else None
        if following is None or following == end:  # that came meanwhile
            break
        end = following
    if not skip_damage:
        refuse_damage(parts, end)
    return end


def is_boundary(parts: StoreParts, offset: int) -> bool:
    """Whether a record begins at a physical offset, or the log ends there."""
    if offset < parts.log.min_offset():
        return False
    is_end = _is_begun_at(parts, offset) or not parts.log.files.has_data_from(offset)
    return is_end or _is_written(parts, offset)


def _is_begun_at(parts: StoreParts, offset: int) -> bool:
    """Whether the log ends here, and a batch or an append is being written after its end."""
    return offset == parts.tail.intent() or is_appending_at(parts, offset)


def refuse_damage(parts: StoreParts, position: int) -> None:
    """Raise unless the log ends here, perhaps with a torn record.

    If sound records follow, bytes here are damaged, or a file is missing or was cut short. If the
    log was durable further on, that is where it ended.
    """
    flushed = parts.tail.flushed()
    if position >= flushed and not parts.log.files.has_data_from(position):
        return
    # What is being written is not there yet; or this or another record has come meanwhile.
    if _is_begun_at(parts, position) or _is_written(parts, position):
        return
    path = parts.log.files.folder / file_name(parts.log.files.start_of(position))
    if position < flushed:
        reason = f"no sound record, but the log was durable up to {flushed}"
        raise CorruptStoreError(path, position, reason)
    found = next_sound_record(parts.log, position)
    if found is not None and found != position:
        raise CorruptStoreError(path, position, f"no sound record, but one follows at {found}")


def _is_written(parts: StoreParts, position: int) -> bool:
    """Whether a sound record or a blank one begins at a physical offset."""
    segment = next(parts.log.walk(position), None)
    if segment is None or segment.block is None:
        return segment is not None
    at = position - segment.file_start
    return is_sound_record(segment.block.data, at, position)
