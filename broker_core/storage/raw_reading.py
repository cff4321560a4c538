"""Bytes as they lie in the log, for those who hand them on and need not look into them.

They are given as views of mapped files: nothing is decoded, and no byte is copied, unless they lie
in many places. A view stays good as long as it is used, even if its file is deleted meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.dtypes import HEAD
from rocketpy.broker_core.codec.gather import Ints, joined, rows_at
from rocketpy.broker_core.codec.layout import HEAD_STRUCT, SIZE_AND_MAGIC, WHERE_STRUCT
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.storage.layout import QUEUE_UNIT_SIZE, QUEUE_UNIT_STRUCT, file_name
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.reading import BATCH_ROWS, QueueReader

_FEW = 64  # messages: columns are faster for more
_MANY = 200  # views: one copy is faster than making so many, and joining them to be sent

Units = npt.NDArray[np.void]


class RawRecords(NamedTuple):
    """Records of a queue, in order; those that lie side by side, or were copied, are one view."""

    views: list[memoryview]
    messages: int
    next_offset: int  # where to read on: after them, and after what the tags left out


class RawReader(QueueReader):
    """Reads the records of one queue without decoding them."""

    def raw(
        self,
        start: int,
        end: int,
        *,
        most_bytes: int,
        most_messages: int,
        tag_codes: Ints | None = None,
    ) -> RawRecords:
        """Return records from `start` up to `end`, both of range(): one at least, if there is one.

        With tag codes only messages that have one of them are given.

        Raises:
            CorruptStoreError: a record is not the one that the queue means.
        """
        if most_messages <= _FEW and tag_codes is None:
            few = self._few(start, min(end, start + most_messages), most_bytes)
            if few is not None:
                return few
        views, count, size = list[memoryview](), 0, 0
        for units, offsets, following in self._windows(start, end, tag_codes, most_messages):
            ends = size + np.cumsum(units["size"], dtype=np.int64)
            fitting = int(np.searchsorted(ends, most_bytes, side="right"))
            taken = min(max(fitting, 0 if count else 1), most_messages - count, len(units))
            views.extend(self._views(units[:taken], offsets[:taken]))
            count += taken
            if taken < len(units):
                return RawRecords(views, count, int(offsets[taken]))
            start, size = following, int(ends[-1]) if len(ends) else size
            if count == most_messages:
                break
        return RawRecords(views, count, start)

    def raw_passing(
        self, start: int, end: int, sql: SqlFilter, *, most_bytes: int, most_messages: int
    ) -> RawRecords:
        """Return records as raw() does, those that pass a filter over their properties."""
        views, count, size, rows = list[memoryview](), 0, 0, most_messages
        while start < end and count < most_messages:
            rows = min(rows * 4, BATCH_ROWS)
            window_end = min(end, start + rows)
            for block in self._all_blocks(start, window_end, {"properties"}):
                passing = sql.passing(block)
                for at, length, offset in zip(
                    passing.starts.tolist(),
                    passing.sizes.tolist(),
                    passing.head["queue_offset"].tolist(),
                    strict=True,
                ):
                    size += length
                    if count == most_messages or (count and size > most_bytes):
                        return RawRecords(views, count, offset)
                    views.append(passing.data.data[at : at + length])
                    count += 1
            start = window_end
        return RawRecords(views, count, start)

    def _few(self, start: int, end: int, most_bytes: int) -> RawRecords | None:
        """Return a few records one by one: columns would take longer.

        None if the entries, or the records, are in several files, or not as they should be.
        """
        count = end - start
        queue, log = self.queue, self._parts.log
        data = queue.few_units(start, end)
        if count <= 0 or len(data) < count * QUEUE_UNIT_SIZE:
            return None
        first, _, _ = QUEUE_UNIT_STRUCT.unpack_from(data)
        file_start = log.files.start_of(first)
        file = log.files.file(file_start)
        if file is None:
            return None
        views, memory, offset = list[memoryview](), file.memory, start
        queue_id, room = queue.queue_id, min(file.size, log.file_size)
        begin = stop = first - file_start
        head_at = WHERE_STRUCT.unpack_from
        for physical_offset, size, _ in QUEUE_UNIT_STRUCT.iter_unpack(data):
            at = physical_offset - file_start
            if at < 0 or size < HEAD_STRUCT.size or at + size > room:
                return None
            if head_at(memory, at) != (size, queue_id, offset, physical_offset):
                return None
            most_bytes -= size
            if most_bytes < 0 and offset > start:
                break
            if at != stop:
                views.append(memory[begin:stop])
                begin = at
            stop = at + size
            offset += 1
        views.append(memory[begin:stop])
        return RawRecords(views, offset - start, offset)

    def _windows(
        self, start: int, end: int, tag_codes: Ints | None, most_messages: int
    ) -> Iterator[tuple[Units, Ints, int]]:
        """Yield entries that are wanted, with their offsets and where the next ones begin.

        A pull of a few messages looks at a few entries, and at more where tags leave out many.
        """
        rows = most_messages
        while start < end:
            rows = min(rows, BATCH_ROWS)
            units = self.queue.units(start, min(end, start + rows))
            rows *= 4
            if not len(units):
                reason = "the queue has no such entry"
                raise CorruptStoreError(self.queue.files.folder, start, reason)
            wanted, offsets = self.wanted(units, tag_codes), np.arange(start, start + len(units))
            start += len(units)
            yield units[wanted], offsets[wanted], start

    def _views(self, units: Units, offsets: Ints) -> Iterator[memoryview]:
        physical, sizes = units["physical_offset"].astype(np.int64), units["size"].astype(np.int64)
        files = physical // self._parts.log.file_size
        for rows in np.split(np.arange(len(units)), np.flatnonzero(np.diff(files)) + 1):
            if rows.size:
                yield from self._views_of_file(physical[rows], sizes[rows], offsets[rows])

    def _views_of_file(self, physical: Ints, sizes: Ints, offsets: Ints) -> list[memoryview]:
        file_start = self._parts.log.files.start_of(int(physical[0]))
        data = self._parts.log.data_at(file_start)
        path = self._parts.log.files.folder / file_name(file_start)
        if data is None:
            raise CorruptStoreError(path, int(physical[0]), "the file of the log is missing")
        starts = physical - file_start
        is_inside = starts + np.maximum(sizes, HEAD.itemsize) <= data.size
        heads = rows_at(data, np.where(is_inside, starts, 0), HEAD)
        agrees = (
            is_inside
            & (heads["total_size"] == sizes)
            & (heads["physical_offset"] == physical)
            & (heads["queue_offset"] == offsets)
            & (heads["queue_id"] == self.queue.queue_id)
        )
        if not agrees.all():
            reason = "the record is not the one that the queue means"
            raise CorruptStoreError(path, int(physical[int(np.argmin(agrees))]), reason)
        ends = starts + sizes
        first_rows = np.flatnonzero(np.append(True, starts[1:] != ends[:-1]))
        if len(first_rows) > _MANY:
            return [joined(data, starts, sizes)]
        last_rows = np.append(first_rows[1:], len(starts)) - 1
        spans = zip(starts[first_rows].tolist(), ends[last_rows].tolist(), strict=True)
        memory = data.data
        return [memory[first:last] for first, last in spans]


def record_at(parts: StoreParts, physical_offset: int) -> memoryview:
    """Return the published record that begins at a physical offset.

    Raises:
        CorruptStoreError: no sound record begins there, or none that is published.
    """
    path = parts.log.files.folder / file_name(parts.log.files.start_of(max(physical_offset, 0)))
    state = parts.tail.glimpse()
    if physical_offset < 0 or (state is not None and physical_offset >= state.end):
        raise CorruptStoreError(path, physical_offset, "the log does not go there")
    parts.log.read(physical_offset)
    file_start = parts.log.files.start_of(physical_offset)
    data = parts.log.data_at(file_start)
    if data is None:
        raise CorruptStoreError(path, physical_offset, "the file of the log is missing")
    at = physical_offset - file_start
    size, _ = SIZE_AND_MAGIC.unpack_from(data.data, at)
    return data.data[at : at + size]


def log_bytes(parts: StoreParts, start: int, most: int) -> memoryview:
    """Return the bytes of the log from `start` on, as far as they are published: for a copy of it.

    They end with a file at the latest; there are none at the end of the log.

    Raises:
        CorruptStoreError: the file is missing; it may have been deleted by retention.
    """
    state = parts.tail.glimpse()
    if state is None or start >= state.end:
        return memoryview(b"")
    file_start = parts.log.files.start_of(start)
    data = parts.log.data_at(file_start)
    if data is None:
        path = parts.log.files.folder / file_name(file_start)
        raise CorruptStoreError(path, start, "the file of the log is missing")
    at = start - file_start
    return data.data[at : min(at + most, state.end - file_start)]
