"""One index file: a hash table on disk from message keys to physical offsets.

I7  Entries are numbered from 1; a slot holds its newest entry, an entry the one before it in its
    slot, always of a smaller number: chains end.
I8  What the header does not count does not exist. Entries are written first, then slots, then the
    header, so an insert that died is invisible; a slot that points at or beyond the count is
    followed to the entry before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.lazy import lazy_property
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.index_slots import (
    ChosenSlots,
    MappedSlots,
    SlotRuns,
    is_slot_order,
    slot_order,
)
from rocketpy.broker_core.storage.layout import (
    INDEX_ENTRY,
    INDEX_ENTRY_STRUCT,
    INDEX_HEADER_SIZE,
    INDEX_HEADER_STRUCT,
    INDEX_SLOT,
)

_ENTRY_SIZE = INDEX_ENTRY.itemsize
_SLOT_SIZE = INDEX_SLOT.itemsize
MOST_SECONDS = 0x7FFFFFFF


class IndexHeader(NamedTuple):
    """The first 40 bytes."""

    begin_timestamp: int
    end_timestamp: int
    begin_physical_offset: int
    end_physical_offset: int
    used_slots: int
    count: int  # type: ignore[assignment]  # the format's name for it


class IndexFile:
    """An index file with `slots` chains and room for `entries` - 1 entries."""

    def __init__(
        self,
        path: Path,
        slots: int,
        entries: int,
        disk: Disk,
        *,
        writable: bool,
        create: bool = False,
    ) -> None:
        self.path, self.slots, self.entries = path, slots, entries
        self._first_entry_at = INDEX_HEADER_SIZE + slots * _SLOT_SIZE
        size = self._first_entry_at + entries * _ENTRY_SIZE
        if writable and not create and path.stat().st_size != size:
            reason = f"an index file of {path.stat().st_size} bytes, {size} are due"
            raise CorruptStoreError(path, 0, reason)
        if create:
            disk.make_folder(path.parent)
            self.file = disk.create(path, size, allocated=self._first_entry_at)
        else:
            self.file = disk.open(path, writable=writable)

    def header(self) -> IndexHeader:
        """Return the header; the count of a fresh file is 1, as nothing uses entry 0."""
        if self.file.size < INDEX_HEADER_SIZE:
            return IndexHeader(0, 0, 0, 0, 0, 1)
        header = IndexHeader(*INDEX_HEADER_STRUCT.unpack(self.file.read(0, INDEX_HEADER_SIZE)))
        if not 1 <= header.count <= self.entries:
            header = header._replace(count=min(max(header.count, 1), self.entries))
        return header

    @property
    def is_full(self) -> bool:
        """Whether no entry fits any more."""
        return self.header().count >= self.entries

    @property
    def readable_entries(self) -> int:
        """How many entries the file has room for, number 0 included, damaged as it may be."""
        return min(max(self.file.size - self._first_entry_at, 0) // _ENTRY_SIZE, self.entries)

    def read_slots(self) -> npt.NDArray[Any]:
        """Return all slots.

        Here and below files are read, not mapped: to look into a hole takes room in a file system
        in memory, and kills the process if there is none.
        """
        data = self.file.read(INDEX_HEADER_SIZE, self.slots * _SLOT_SIZE)
        return np.frombuffer(data[: len(data) // _SLOT_SIZE * _SLOT_SIZE], INDEX_SLOT)

    def read_entries(self, first: int, end: int) -> npt.NDArray[Any]:
        """Return the entries from number `first` up to `end`, as many as there are."""
        size = max(min(end, self.entries) - first, 0) * _ENTRY_SIZE
        data = self.file.read(self._entry_at(first), size)
        return np.frombuffer(data[: len(data) // _ENTRY_SIZE * _ENTRY_SIZE], INDEX_ENTRY)

    def put(
        self,
        hashes: Ints,
        physical_offsets: Ints,
        timestamps: Ints,
        slot_by_slot: Ints | None = None,
    ) -> int:
        """Insert as many of the entries as fit, in order; return how many did.

        `slot_by_slot` is what slot_order() gives of them, if that is known.
        """
        header = self.header()
        fitting = min(len(hashes), self.entries - header.count)
        if fitting <= 0:
            return 0
        hashes, physical_offsets, timestamps = (
            column[:fitting] for column in (hashes, physical_offsets, timestamps)
        )
        if header.count == 1:
            header = header._replace(
                begin_timestamp=int(timestamps[0]), begin_physical_offset=int(physical_offsets[0])
            )
        slots = hashes % self.slots
        if slot_by_slot is None or not is_slot_order(slot_by_slot, slots):
            slot_by_slot = slot_order(slots)
        previous, changed, newest, used = self._chain(slots, slot_by_slot, header.count)
        rows = np.empty(fitting, INDEX_ENTRY)
        rows["key_hash"] = hashes
        rows["physical_offset"] = physical_offsets
        # Messages that were stored together have one time.
        times = timestamps[:1] if (timestamps == timestamps[0]).all() else timestamps
        rows["seconds"] = seconds_since(header.begin_timestamp, times)
        rows["previous"] = previous
        self.file.write(rows.view(np.uint8).data, self._entry_at(header.count))
        changed.write(newest)
        self._write_header(
            header._replace(
                end_timestamp=int(timestamps[-1]),
                end_physical_offset=int(physical_offsets[-1]),
                used_slots=header.used_slots + used,
                count=header.count + fitting,
            )
        )
        return fitting

    def _chain(self, slots: Ints, order: Ints, count: int) -> tuple[Ints, ChosenSlots, Ints, int]:
        """Link new entries, which are numbered from `count` on, into the chains of their slots.

        Returns:
            The previous entry of each; the slots that change; their newest entries; how many of
            these slots were empty.
        """
        by_slot, by_number = slots[order], order + count
        is_first = np.ones(len(order), bool)
        is_first[1:] = by_slot[1:] != by_slot[:-1]
        is_last = np.append(is_first[1:], True)
        changed = self._chosen(by_slot[is_first])
        found = changed.values()
        for at in np.flatnonzero(found >= count):  # left by an insert that died
            found[at] = self._newest_counted(int(found[at]), count)
        previous = np.empty(len(order), np.int64)
        chained = np.empty(len(order), np.int64)
        chained[1:] = by_number[:-1]
        chained[is_first] = found
        previous[order] = chained
        return previous, changed, by_number[is_last], int((found == 0).sum())

    def _chosen(self, slots: Ints) -> ChosenSlots:
        return MappedSlots(self.file, slots) if self._is_mapped else SlotRuns(self.file, slots)

    @lazy_property
    def _is_mapped(self) -> bool:
        return self.file.can_scatter(self._first_entry_at)

    def cut(self, physical_offset: int, end_ms: int) -> None:
        """Take out the entries of records from an offset on, and what inserts that died left.

        `end_ms` is the newest store time before that offset. The slots are mended too: a slot
        that still names an entry taken out would later name an entry of another slot.
        """
        header = self.header()
        count = first_false(
            lambda number: self._physical_offset_of(number) < physical_offset, 1, header.count
        )
        slots = self.read_slots()
        beyond = np.flatnonzero(slots >= count)
        if count < header.count:
            self._write_header(
                header._replace(
                    count=count,
                    end_timestamp=min(header.end_timestamp, end_ms),
                    end_physical_offset=self._physical_offset_of(count - 1),
                )
            )
        if beyond.size:
            counted = [self._newest_counted(int(number), count) for number in slots[beyond]]
            self._chosen(beyond).write(np.array(counted, np.int64))
            used = int(np.count_nonzero(self.read_slots()))
            self._write_header(self.header()._replace(used_slots=used))
        self.file.zero(self._entry_at(count), self._entry_at(self.entries))

    def _physical_offset_of(self, number: int) -> int:
        """Return the physical offset that an entry gives; 0 if there is none."""
        entries = self.read_entries(number, number + 1)
        return int(entries["physical_offset"][0]) if len(entries) else 0

    def _newest_counted(self, number: int, count: int) -> int:
        """Return the newest entry of a chain that the header counts."""
        while number >= count:
            entry = self.file.read(self._entry_at(number), _ENTRY_SIZE)
            before = INDEX_ENTRY_STRUCT.unpack(entry.ljust(_ENTRY_SIZE, b"\0"))[3]
            number = before if before < number else 0
        return max(number, 0)

    def find(self, key_hash: int) -> list[tuple[int, int]]:
        """Return (physical offset, store time in s) of a hash's entries, the newest first."""
        header = self.header()
        slot_at = INDEX_HEADER_SIZE + key_hash % self.slots * _SLOT_SIZE
        number = self._newest_counted(_int(self.file.read(slot_at, _SLOT_SIZE)), header.count)
        view, unpack = self.file.memory, INDEX_ENTRY_STRUCT.unpack_from
        last_at = self.file.data_end(self._first_entry_at) - _ENTRY_SIZE
        found = []
        while number > 0 and self._entry_at(number) <= last_at:
            entry_hash, offset, seconds, previous = unpack(view, self._entry_at(number))
            if entry_hash == key_hash:
                found.append((offset, header.begin_timestamp // 1000 + seconds))
            number = previous if previous < number else 0
        return found

    def write_empty_header(self, like: IndexHeader) -> None:
        """Begin a new file where the last one ended, as Apache's broker does."""
        self._write_header(
            IndexHeader(
                like.end_timestamp,
                like.end_timestamp,
                like.end_physical_offset,
                like.end_physical_offset,
                0,
                1,
            )
        )

    def _write_header(self, header: IndexHeader) -> None:
        self.file.write(INDEX_HEADER_STRUCT.pack(*header), 0)

    def _entry_at(self, number: int) -> int:
        return self._first_entry_at + number * _ENTRY_SIZE


def _int(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def seconds_since(begin_ms: int | Ints, timestamps: Ints) -> Ints:
    """Return what entries say of store times, in a file that began at `begin_ms`."""
    seconds: Ints = np.clip((timestamps - begin_ms) // 1000, 0, MOST_SECONDS)
    return seconds
