"""The commit log: every message of every topic, in arrival order.

I1  A record lies in one file; the rest of a file that it does not fit into is a blank record.
I2  The record at byte p says p in its physical offset.
I3  Bytes after the last record are zero.
The log knows nothing of queues and topics: see dispatch.py. Only the lock holder appends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.gather import Bytes, Ints
from rocketpy.broker_core.codec.layout import (
    BLANK_SIZE,
    MAGIC_BLANK,
    SIZE_AND_MAGIC,
)
from rocketpy.broker_core.codec.record import blank_record, decode_record
from rocketpy.broker_core.errors import CorruptStoreError, RecordError
from rocketpy.broker_core.message import Message, PhysicalOffset
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.file_sequence import FileSequence
from rocketpy.broker_core.storage.layout import COMMIT_LOG, OURS, file_name

WALK_RECORDS = 16_384
WALK_BYTES = 64 << 20

# Tells where up to so many records may begin, from a physical offset on and before another one.
ToldStarts = Callable[[int, int, int], Ints]


class Segment(NamedTuple):
    """A step of a walk: some records of one file, or none where it passed a blank record."""

    file_start: int
    block: RecordBlock | None
    end: PhysicalOffset  # where the walk goes on

    def physical_offsets(self) -> Ints:
        """Return where the records lie in the log."""
        assert self.block is not None
        return self.block.starts + self.file_start

    def sound_prefix(self) -> RecordBlock:
        """Return the records before the first that is not sound or not where it says."""
        assert self.block is not None
        block = self.block
        sound = block.sound() & (block.head["physical_offset"] == self.physical_offsets())
        return block if sound.all() else block.take(np.arange(int(np.argmin(sound))))


class CommitLog:
    """The log's files; reads need no lock."""

    def __init__(
        self, root: Path, file_size: int, disk: Disk, *, writable: bool, preallocate: bool = False
    ) -> None:
        self.files = FileSequence(
            root / COMMIT_LOG, file_size, disk, writable=writable, keep_open=8
        )
        self._preallocate, self._ours = preallocate, root / OURS

    @property
    def file_size(self) -> int:
        """How many bytes each file has."""
        return self.files.file_size

    @property
    def largest_record(self) -> int:
        """How many bytes a record may have."""
        return self.files.file_size - BLANK_SIZE

    def room_end(self, offset: int) -> int:
        """Return up to where records may reach in the file that an offset lies in."""
        size = self.files.file_size
        return offset - offset % size + size - BLANK_SIZE

    def min_offset(self) -> PhysicalOffset:
        """Return where the oldest file begins."""
        return PhysicalOffset(self.files.first_start())

    def place(self, sizes: Ints, end: int) -> tuple[Ints, list[tuple[int, int]]]:
        """Decide where records of these sizes go after `end`; none lies across two files.

        Returns:
            Their physical offsets, and the ranges of records (first, last) that share a file.
        """
        offsets = np.empty(len(sizes), np.int64)
        ends = np.cumsum(sizes)
        runs: list[tuple[int, int]] = []
        first, done, position = 0, 0, end
        while first < len(sizes):
            room = self.files.start_of(position) + self.file_size - position - BLANK_SIZE
            last = int(np.searchsorted(ends, done + room, side="right"))
            if last > first:
                offsets[first:last] = position + ends[first:last] - sizes[first:last] - done
                runs.append((first, last))
                position = int(offsets[last - 1] + sizes[last - 1])
                first, done = last, int(ends[last - 1])
            if first < len(sizes):
                position = self.files.start_of(position) + self.file_size
        return offsets, runs

    def write(self, offset: int, records: bytes | memoryview, end: int) -> None:
        """Write records that share a file at `offset`; `end` is where the log ends before them.

        If that is in an earlier file, that file is closed with a blank record and made durable
        first: a torn record can only ever be in the last file.
        """
        start = self.files.start_of(offset)
        if end < start:
            self.close_file(end)
        file = self.files.file(start)
        if file is None:
            allocated = self.file_size if self._preallocate else 0
            file = self.files.file_for_writing(start, allocated=allocated)
        file.write_on(records, offset - start)

    def make_next_ready(self, end: int) -> None:
        """Make the next file once the one that is being written is half full."""
        start = self.files.start_of(end)
        if end - start > self.file_size // 2:
            allocated = self.file_size if self._preallocate else 0
            self.files.make_ready(start + self.file_size, self._ours, allocated=allocated)

    def close_file(self, end: int) -> None:
        """Fill a file from the log's end on with a blank record, and make it durable."""
        start = self.files.start_of(end)
        file = self.files.file_for_writing(start)
        file.write(blank_record(start + self.file_size - end), end - start)
        file.sync()

    def cut(self, end: int) -> None:
        """Make all bytes after `end` zero, durably: they must not return with a crash.

        Zeros are synced as well: whoever wrote them may have died before they were durable.
        """
        self.files.zero_from(end)
        for start in self.files.starts():
            file = self.files.file(start)
            if file is not None and start + self.file_size > end:
                file.sync()

    def is_free(self, end: int) -> bool:
        """Whether nothing was written at the log's end yet."""
        start = end - end % self.files.file_size
        file = self.files.file(start)
        return file is None or not file.read_on(end - start, SIZE_AND_MAGIC.size).strip(b"\0")

    def read(self, offset: int) -> Message:
        """Return the message at a physical offset.

        Raises:
            CorruptStoreError: there is none, or not a sound one.
        """
        start = self.files.start_of(offset)
        file = self.files.file(start)
        path = self.files.folder / file_name(start)
        # This is not read through the mapping: see _step.
        if file is None or not any(file.read(offset - start, SIZE_AND_MAGIC.size)):
            raise CorruptStoreError(path, offset, "the log has no such place")
        try:
            message = decode_record(file.view.data, offset - start)
        except RecordError as cause:
            raise CorruptStoreError(path, offset, cause.reason) from cause
        if message.physical_offset != offset:
            raise CorruptStoreError(path, offset, f"the record says {message.physical_offset}")
        return message

    def data_at(self, file_start: int) -> Bytes | None:
        """Return the mapped bytes of a file; what was appended to it by mistake is not seen."""
        file = self.files.file(file_start)
        return file.view[: self.file_size] if file else None

    def walk(
        self,
        start: int,
        end: int | None = None,
        *,
        most: int = WALK_RECORDS,
        told: ToldStarts | None = None,
    ) -> Iterator[Segment]:
        """Yield records from `start` on, in order, until there is none or `end` is reached.

        Only the records' structure leads the walk; whether they are sound is for the caller to ask.
        `most` is how many records a step may have. What is `told` need not be right: it only saves
        time.
        """
        position = start
        while end is None or position < end:
            file_start = self.files.start_of(position)
            file = self.files.file(file_start)
            if file is None:
                return
            segment = self._step(file, file_start, position, end, most=most, told=told)
            if segment.block is None and segment.end == position:
                return
            position = segment.end
            yield segment

    def _step(
        self,
        file: DiskFile,
        file_start: int,
        position: int,
        end: int | None,
        *,
        most: int,
        told: ToldStarts | None,
    ) -> Segment:
        """Return the next records, a passed blank record, or a segment that ends where it began.

        The hole after the last record is not touched: in tmpfs that would need room.
        """
        at, data = position - file_start, file.view[: self.file_size]
        last = data_end = min(file.data_end(at), self.file_size)
        if end is not None:
            last = min(last, end - file_start)
        if told is not None:
            limit = file_start + min(last, at + WALK_BYTES)
            block = _adjoining(data, told(position, limit, most) - file_start, last)
            if block is not None:
                return _segment(file_start, block)
        starts, _ = record_starts(data, at, min(last, at + WALK_BYTES), most)
        if not starts and last > at + WALK_BYTES:  # one record larger than a step
            starts, _ = record_starts(data, at, last, 1)
        if starts:
            block = self._whole_records(data, np.array(starts, np.int64))
            if block is not None:
                return _segment(file_start, block)
        elif at + BLANK_SIZE <= data_end:
            size, magic = SIZE_AND_MAGIC.unpack_from(data.data, at)
            if magic == MAGIC_BLANK and size == self.file_size - at:
                return Segment(file_start, None, PhysicalOffset(file_start + self.file_size))
        return Segment(file_start, None, PhysicalOffset(position))

    def _whole_records(self, data: Bytes, starts: Ints) -> RecordBlock | None:
        """Return a block of the first records whose structure holds."""
        while starts.size:
            try:
                return RecordBlock(data, starts)
            except RecordError as broken:
                starts = starts[starts < broken.at]
        return None


def _segment(file_start: int, block: RecordBlock) -> Segment:
    stop = int(block.starts[-1] + block.sizes[-1])
    return Segment(file_start, block, PhysicalOffset(file_start + stop))


def _adjoining(data: Bytes, starts: Ints, last: int) -> RecordBlock | None:
    """Return the records that begin there, if each begins where the one before it ends."""
    if not starts.size:
        return None
    try:
        block = RecordBlock(data, starts)
    except RecordError:
        return None
    ends = starts + block.sizes
    return block if ends[-1] <= last and np.array_equal(ends[:-1], starts[1:]) else None
