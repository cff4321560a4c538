"""The commit log: every message of every topic, in arrival order.

I1  A record lies in one file; the rest of a file that it does not fit into is a blank record.
I2  The record at byte p says p in its physical offset.
I3  Bytes behind the last record are zero.
Knows nothing of queues and topics: see dispatch.py. Appends are the lock holder's alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.gather import Bytes, Ints
from rocketpy.broker_core.codec.layout import (
    BLANK_SIZE,
    MAGIC_BLANK,
    MIN_RECORD_SIZE,
    SIZE_AND_MAGIC,
)
from rocketpy.broker_core.codec.record import blank_record, decode_record
from rocketpy.broker_core.errors import CorruptStoreError, RecordError
from rocketpy.broker_core.message import Message, PhysicalOffset
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.file_sequence import FileSequence
from rocketpy.broker_core.storage.layout import COMMIT_LOG, file_name

WALK_RECORDS = 16_384
WALK_BYTES = 64 << 20


class Segment(NamedTuple):
    """A step of a walk: some records of one file, or none where it passed a blank record."""

    file_start: int
    block: RecordBlock | None
    end: PhysicalOffset  # where the walk goes on

    def physical_offsets(self) -> Ints:
        """Return where the records lie in the log."""
        assert self.block is not None
        return self.block.starts + self.file_start


class CommitLog:
    """The log's files; reads need no lock."""

    def __init__(
        self, root: Path, file_size: int, disk: Disk, *, writable: bool, preallocate: bool = False
    ) -> None:
        self.files = FileSequence(root / COMMIT_LOG, file_size, disk, writable=writable, keep_open=8)
        self._preallocate = preallocate

    @property
    def file_size(self) -> int:
        """How many bytes each file has."""
        return self.files.file_size

    def min_offset(self) -> PhysicalOffset:
        """Return where the oldest file begins."""
        return PhysicalOffset(next(iter(self.files.starts()), 0))

    def place(self, sizes: Ints, end: int) -> tuple[Ints, list[tuple[int, int]]]:
        """Decide where records of these sizes go behind `end`, none across files.

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
        """Write records that share a file at `offset`; `end` is the log's end before.

        If that is in an earlier file, it is closed with a blank record and made durable first:
        a torn record can only ever be in the last file.
        """
        start = self.files.start_of(offset)
        if end < start:
            self._close_file(end)
        allocated = self.file_size if self._preallocate else 0
        file = self.files.file_for_writing(start, allocated=allocated)
        file.write(records, offset - start)

    def _close_file(self, end: int) -> None:
        start = self.files.start_of(end)
        file = self.files.file_for_writing(start)
        file.write(blank_record(start + self.file_size - end), end - start)
        file.sync()

    def is_free(self, end: int) -> bool:
        """Whether nothing was written at `end` yet."""
        return not any(self.files.read(end, SIZE_AND_MAGIC.size))

    def read(self, offset: int) -> Message:
        """Return the message at a physical offset.

        Raises:
            CorruptStoreError: there is none, or not a sound one.
        """
        start = self.files.start_of(offset)
        file = self.files.file(start)
        path = self.files.folder / file_name(start)
        if file is None or not 0 <= offset - start < file.size:
            raise CorruptStoreError(path, offset, "the log has no such place")
        try:
            message = decode_record(memoryview(file.view), offset - start)
        except RecordError as cause:
            raise CorruptStoreError(path, offset, cause.reason) from cause
        if message.physical_offset != offset:
            raise CorruptStoreError(path, offset, f"the record says {message.physical_offset}")
        return message

    def data_at(self, file_start: int) -> Bytes | None:
        """Return the mapped bytes of a file."""
        file = self.files.file(file_start)
        return file.view if file else None

    def walk(self, start: int, end: int | None = None) -> Iterator[Segment]:
        """Yield records from `start` on, in order, until there is none or `end` is reached.

        Only the records' structure leads the walk; whether they are sound is for the caller to ask.
        """
        position = start
        while end is None or position < end:
            file_start = self.files.start_of(position)
            data = self.data_at(file_start)
            if data is None:
                return
            segment = self._step(data, file_start, position, end)
            if segment.block is None and segment.end == position:
                return
            position = segment.end
            yield segment

    def _step(self, data: Bytes, file_start: int, position: int, end: int | None) -> Segment:
        limit = data.size if end is None else min(data.size, end - file_start)
        limit = min(limit, position - file_start + WALK_BYTES) if limit > WALK_BYTES else limit
        starts, stopped = record_starts(data, position - file_start, limit, WALK_RECORDS)
        if not starts and limit < data.size and (end is None or file_start + limit < end):
            starts, stopped = record_starts(data, position - file_start, data.size, 1)
        if starts:
            block = self._whole_records(data, np.array(starts, np.int64))
            if block is not None:
                last = int(block.starts[-1] + block.sizes[-1])
                return Segment(file_start, block, PhysicalOffset(file_start + last))
        if stopped + BLANK_SIZE <= data.size:
            size, magic = SIZE_AND_MAGIC.unpack_from(memoryview(data), stopped)
            if magic == MAGIC_BLANK and size == data.size - stopped:
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


def first_timestamp(log: CommitLog, file_start: int) -> int | None:
    """Return the store timestamp of a file's first record, if it begins with one."""
    data = log.data_at(file_start)
    if data is None or data.size < MIN_RECORD_SIZE:
        return None
    starts, _ = record_starts(data, 0, data.size, 1)
    if not starts:
        return None
    return int(RecordBlock(data, np.array(starts, np.int64)).store_timestamps[0])
