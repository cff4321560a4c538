"""A consume queue: for each message of one queue, in order, where its record lies.

I4  Entry n belongs to the record whose queue offset is n; entries are written in order, without
    gaps, and after the last one all bytes are zero.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.message import QueueOffset
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.file_sequence import FileSequence
from rocketpy.broker_core.storage.layout import (
    FILLER_SIZE,
    QUEUE_UNIT,
    QUEUE_UNIT_SIZE,
    QUEUE_UNIT_STRUCT,
)

_FILLERS_AT_ONCE = 4096


class QueueUnit(NamedTuple):
    """One entry."""

    physical_offset: int
    size: int
    tag_code: int

    @property
    def is_filler(self) -> bool:
        """Whether it only fills the room before the queue's first message."""
        return self.size == FILLER_SIZE and self.physical_offset == 0


class ConsumeQueue:
    """The entries of one queue; reads need no lock, only the lock holder writes."""

    def __init__(
        self,
        folder: Path,
        topic: str,
        queue_id: int,
        file_entries: int,
        disk: Disk,
        *,
        writable: bool,
    ) -> None:
        self.topic, self.queue_id = topic, queue_id
        size = file_entries * QUEUE_UNIT_SIZE
        self.files = FileSequence(folder, size, disk, writable=writable, keep_open=2)
        self._known_end = 0  # a hint: entries up to here are known to exist
        # What the last entries were written to, whatever other threads do with the open files.
        self._written_file: DiskFile | None = None
        self._written_from = self._written_end = 0
        self.first_checked = 0  # the log has no messages before the entries from here on

    def unit(self, offset: int) -> QueueUnit | None:
        """Return one entry; None if it is not written."""
        data = self.files.read(offset * QUEUE_UNIT_SIZE, QUEUE_UNIT_SIZE)
        if len(data) < QUEUE_UNIT_SIZE:
            return None
        unit = QueueUnit(*QUEUE_UNIT_STRUCT.unpack(data))
        return unit if unit.size else None

    def few_units(self, start: int, end: int) -> memoryview | bytes:
        """Return the bytes of a few entries; fewer or none where a file ends before `end`."""
        files = self.files
        first = files.start_of(start * QUEUE_UNIT_SIZE)
        file = files.file(first)
        if file is None:
            return b""
        at = start * QUEUE_UNIT_SIZE - first
        return file.memory[at : at + (end - start) * QUEUE_UNIT_SIZE]

    def units(self, start: int, end: int) -> npt.NDArray[Any]:
        """Return the entries from `start` up to `end` as a structured array (a view if it can)."""
        per_file = self.files.file_size // QUEUE_UNIT_SIZE
        parts = []
        while start < end:
            first = start - start % per_file
            file = self.files.file(first * QUEUE_UNIT_SIZE)
            stop = min(end, first + per_file)
            if file is None:
                break
            usable = file.size // QUEUE_UNIT_SIZE
            view = file.view[: usable * QUEUE_UNIT_SIZE].view(QUEUE_UNIT)
            parts.append(view[start - first : stop - first])
            start = stop
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros(0, QUEUE_UNIT)

    def first_offset(self) -> QueueOffset:
        """Return the first entry that its files have room for."""
        return QueueOffset(self.files.first_start() // QUEUE_UNIT_SIZE)

    def end(self) -> QueueOffset:
        """Return the number after the last entry; the search begins where the last one ended."""
        return self.last()[0]

    def last(self) -> tuple[QueueOffset, QueueUnit | None]:
        """Return the number after the last entry, and that entry."""
        # Threads share the hint, and each read lets the others run: it is read once.
        end = self._known_end
        unit, following = self._pair(end)
        if unit is None or following is not None:
            end = self._end_by_search(end if unit else self.first_offset())
            unit = self.unit(end - 1) if end else None
            self._known_end = end
        return QueueOffset(end), unit

    def _pair(self, offset: int) -> tuple[QueueUnit | None, QueueUnit | None]:
        """Return the entry before `offset` and the one there."""
        at = (offset - 1) * QUEUE_UNIT_SIZE
        data = self.files.read(at, 2 * QUEUE_UNIT_SIZE) if offset else b""
        if len(data) == 2 * QUEUE_UNIT_SIZE:  # both in one file, the usual case
            before = QueueUnit(*QUEUE_UNIT_STRUCT.unpack_from(data))
            there = QueueUnit(*QUEUE_UNIT_STRUCT.unpack_from(data, QUEUE_UNIT_SIZE))
            return before if before.size else None, there if there.size else None
        return self.unit(offset - 1) if offset else None, self.unit(offset)

    def _end_by_search(self, low: int) -> int:
        """Look ahead in growing steps, then bisect: what others append is mostly little."""

        def is_written(offset: int) -> bool:
            return self.unit(offset) is not None

        starts = self.files.starts()
        if not starts:
            return low
        highest = (starts[-1] + self.files.file_size) // QUEUE_UNIT_SIZE
        step = 1
        while low + step < highest and is_written(low + step - 1):
            low, step = low + step, step * 2
        return first_false(is_written, low, min(low + step, highest))

    def min_offset(self, log_start: int, end: int) -> QueueOffset:
        """Return the first entry whose record the log still has."""

        def is_gone(offset: int) -> bool:
            unit = self.unit(self.skip_fillers(offset, end))
            return unit is not None and unit.physical_offset < log_start

        found = first_false(is_gone, self.first_offset(), end)
        return QueueOffset(self.skip_fillers(found, end))

    def skip_fillers(self, offset: int, end: int) -> int:
        """Return the first entry from `offset` on that is no filler, or `end`.

        Fillers stand before the first message of a queue, and where repair found messages lost.
        """
        unit = self.unit(offset)
        while offset < end and unit is not None and unit.is_filler:
            sizes = self.units(offset, min(end, offset + _FILLERS_AT_ONCE))["size"]
            others = np.flatnonzero(sizes != FILLER_SIZE)
            offset += int(others[0]) if others.size else len(sizes)
            unit = self.unit(offset)
        return offset

    def put(self, offset: int, units: npt.NDArray[Any]) -> None:
        """Write entries from `offset` on."""
        self.put_packed(offset, units.view(np.uint8).data)

    def put_packed(self, offset: int, units: bytes | memoryview) -> None:
        """Write entries from `offset` on, given as their bytes."""
        file, at = self._written_file, offset * QUEUE_UNIT_SIZE % self.files.file_size
        if (
            file is not None
            and self._written_end == offset
            and 0 < at <= self.files.file_size - len(units)
        ):
            file.write_on(units, at)  # the usual case: on from what was written last
        else:
            file = self.files.write(offset * QUEUE_UNIT_SIZE, units)
            if file is not self._written_file:
                self._written_file, self._written_from = file, offset
        self._written_end = self._known_end = offset + len(units) // QUEUE_UNIT_SIZE

    def is_kept(self, start: int) -> bool:
        """Whether the entries from `start` on, just written, are in one file that is still there.

        False where they are in several files, as some of these may not be open any more. The first
        entries written to a file may be in one that was made anew, without the entries before.
        """
        file = self._written_file
        if file is None or self._written_from > start or file.is_removed:
            return False
        return self._written_from < start or not start or self.unit(start - 1) is not None

    def fill_before(self, offset: int) -> None:
        """Write fillers where a queue that begins at `offset` has room before it."""
        self.fill(self.files.start_of(offset * QUEUE_UNIT_SIZE) // QUEUE_UNIT_SIZE, offset)

    def fill(self, start: int, offset: int) -> None:
        """Write fillers from `start` up to `offset`, for messages that the log does not have."""
        for first in range(start, offset, _FILLERS_AT_ONCE):
            fillers = np.zeros(min(_FILLERS_AT_ONCE, offset - first), QUEUE_UNIT)
            fillers["size"] = FILLER_SIZE
            self.put(first, fillers)

    def cut(self, offset: int) -> None:
        """Make all entries from `offset` on unwritten."""
        self._written_end = self._known_end = 0
        self.files.zero_from(offset * QUEUE_UNIT_SIZE)
