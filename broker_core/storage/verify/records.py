"""Records as columns: those of one step through the log, or those that some entries point at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.gather import Bytes, Ints, rows_at
from rocketpy.broker_core.codec.layout import MAGIC_V1, MAGIC_V2, MIN_RECORD_SIZE
from rocketpy.broker_core.codec.sys_flags import indexed
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.lazy import lazy_property
from rocketpy.broker_core.storage.commit_log import WALK_BYTES
from rocketpy.broker_core.storage.disk import DiskFile
from rocketpy.broker_core.storage.dispatch import Dispatch, dispatches
from rocketpy.broker_core.storage.parts import StoreParts

NO_ROW = -1
NO_QUEUE = -1  # of a record whose topic cannot be one
_SIZE_AND_MAGIC = np.dtype([("size", ">i4"), ("magic", ">u4")])


class SoundRecords:
    """Sound records of one file, in log order, with all that queues and index keep of them."""

    def __init__(
        self, block: RecordBlock, file_start: int, config: StoreConfig, first_row: int = 0
    ) -> None:
        self.block, self.first_row = block, first_row  # counted from the oldest record on
        self.physical_offsets = block.starts + file_start
        self.dispatches = list(dispatches(block, file_start, config))

    def __len__(self) -> int:
        return len(self.block)

    def rows(self, dispatch: Dispatch) -> Ints | slice:
        """Return which of the records are the messages of a dispatch."""
        if len(dispatch.sizes) == len(self):
            return slice(None)
        return np.searchsorted(self.physical_offsets, dispatch.physical_offsets)

    @lazy_property
    def keys(self) -> tuple[Ints, Ints]:
        """The index entries due, as (row, hash), in the order in which they are written."""
        rows, hashes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        numbers = np.arange(len(self))
        for dispatch in self.dispatches:
            of_entries = numbers[self.rows(dispatch)][dispatch.index_rows]
            wanted = indexed(self.block.sys_flags)[of_entries]
            rows.append(of_entries[wanted])
            hashes.append(dispatch.index_hashes[wanted])
        row, key_hash = np.concatenate(rows), np.concatenate(hashes)
        if len(self.dispatches) > 1:
            order = np.argsort(row, kind="stable")
            row, key_hash = row[order], key_hash[order]
        return row, key_hash


@dataclass(slots=True)
class RecordTable:
    """Some records: what a part of a queue or of an index file is compared with."""

    queue_numbers: dict[tuple[str, int], int]
    physical_offsets: Ints
    sizes: Ints
    queue_offsets: Ints
    tag_codes: Ints
    timestamps: Ints
    queues: Ints  # by their numbers
    keys: Ints  # of all records: row << 32 | hash, ascending

    def rows_of(self, physical_offsets: Ints) -> Ints:
        """Return the row of the record at each offset, NO_ROW where no sound record begins."""
        known = self.physical_offsets
        if not known.size:
            return np.full(len(physical_offsets), NO_ROW, np.int64)
        rows = np.minimum(np.searchsorted(known, physical_offsets), known.size - 1)
        return np.where(known[rows] == physical_offsets, rows, NO_ROW)

    def has_keys(self, wanted: Ints) -> npt.NDArray[np.bool_]:
        """Return which of some keys, as row << 32 | hash, the records have."""
        if not self.keys.size:
            return np.zeros(len(wanted), bool)
        at = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
        found: npt.NDArray[np.bool_] = self.keys[at] == wanted
        return found


def at_rows(values: npt.NDArray[Any], rows: Ints) -> npt.NDArray[Any]:
    """Return values at rows; where there is NO_ROW, the value means nothing."""
    return values[rows] if values.size else np.zeros(len(rows), values.dtype)


def records_at(parts: StoreParts, physical_offsets: Ints, end: int) -> RecordTable:
    """Return the sound records that begin at some physical offsets before `end`."""
    wanted = np.unique(physical_offsets[(physical_offsets >= 0) & (physical_offsets < end)])
    file_starts = wanted - wanted % parts.log.file_size
    numbers: dict[tuple[str, int], int] = {}
    columns: list[tuple[Ints, ...]] = [tuple(np.zeros(0, np.int64) for _ in range(7))]
    count = 0
    for start in np.unique(file_starts).tolist():
        file = parts.log.files.file(start)
        if file is None:
            continue
        inside = wanted[file_starts == start] - start
        data = file.view[: parts.log.file_size]
        for block in (each for few in _in_data(file, inside) for each in _blocks(data, few)):
            is_good = block.sound() & (block.head["physical_offset"] == block.starts + start)
            good = np.flatnonzero(is_good)
            if good.size:
                block = block if len(good) == len(block) else block.take(good)
                columns.append(_columns(SoundRecords(block, start, parts.config), numbers, count))
                count += len(block)
    whole = [np.concatenate(column) for column in zip(*columns, strict=True)]
    return RecordTable(numbers, *whole)


def _columns(
    records: SoundRecords, numbers: dict[tuple[str, int], int], first_row: int
) -> tuple[Ints, ...]:
    """Return the columns of a table in the order of its fields."""
    block = records.block
    queues = np.full(len(block), NO_QUEUE, np.int64)
    codes = np.zeros(len(block), np.int64)
    for dispatch in records.dispatches:
        rows = records.rows(dispatch)
        ids, inverse = np.unique(dispatch.queue_ids, return_inverse=True)
        names = [(dispatch.topic, queue_id) for queue_id in ids.tolist()]
        known = [numbers.setdefault(name, len(numbers)) for name in names]
        queues[rows] = np.array(known, np.int64)[inverse]
        codes[rows] = dispatch.tag_codes
    key_rows, hashes = records.keys
    return (
        records.physical_offsets,
        block.sizes,
        block.head["queue_offset"].astype(np.int64),
        codes,
        block.store_timestamps,
        queues,
        np.sort((key_rows + first_row) << 32 | hashes),
    )


def _in_data(file: DiskFile, starts: Ints) -> Iterator[Ints]:
    """Yield those starts where a record may lie, none of it in a hole: some megabytes at a time.

    A hole is not looked into through a mapping: in a file system in memory that would take room.
    """
    for first, last in file.data_ranges(0, file.size):
        inside = starts[(starts >= first) & (starts <= last - MIN_RECORD_SIZE)]
        head = rows_at(file.view, inside, _SIZE_AND_MAGIC)[: len(inside)]
        is_record = (head["magic"] == MAGIC_V1) | (head["magic"] == MAGIC_V2)
        is_record &= (head["size"] >= MIN_RECORD_SIZE) & (inside + head["size"] <= last)
        megabytes = np.cumsum(head["size"][is_record].astype(np.int64)) // WALK_BYTES
        yield from np.split(inside[is_record], np.flatnonzero(np.diff(megabytes)) + 1)


def _blocks(data: Bytes, starts: Ints) -> Iterator[RecordBlock]:
    """Yield blocks of the records whose structure holds; what is broken is looked for in halves."""
    if not starts.size:
        return
    try:
        yield RecordBlock(data, starts)
    except RecordError:
        if starts.size > 1:
            middle = starts.size // 2
            yield from _blocks(data, starts[:middle])
            yield from _blocks(data, starts[middle:])
