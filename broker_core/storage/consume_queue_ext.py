"""The extended consume queue: tag code, store time and filter bit map of each message.

Where a queue has one, the tag code of its entries is an address in here. Units follow each other;
one that does not fit into the rest of a file goes to the next, and size -1 ends the units before.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints, rows_at
from rocketpy.broker_core.filters.bloom import RegisteredBits
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.file_sequence import FileSequence
from rocketpy.broker_core.storage.layout import (
    EXT_END,
    EXT_END_ROOM,
    EXT_FIRST_ADDRESS,
    EXT_LAST_ADDRESS,
    EXT_UNIT_SIZE,
    EXT_UNIT_STRUCT,
)

_AT_ONCE = 1 << 20  # bytes that are read to find the end
_UNIT = np.dtype([("size", ">i2"), ("tag_code", ">i8"), ("stored_ms", ">i8"), ("map_size", ">i2")])


class ExtUnit(NamedTuple):
    """One unit; `bit_map` is empty where no SQL filter was set on the topic."""

    tag_code: int
    stored_ms: int
    bit_map: bytes


class ConsumeQueueExt:
    """The extension of one queue. Only the lock holder writes."""

    def __init__(self, folder: Path, file_size: int, disk: Disk, *, writable: bool) -> None:
        self.files = FileSequence(folder, file_size, disk, writable=writable, keep_open=2)
        self._end: int | None = None

    def get(self, address: int) -> ExtUnit | None:
        """Return the unit at an address; None if there is no whole one."""
        offset = address - EXT_FIRST_ADDRESS
        head = self.files.read(offset, EXT_UNIT_SIZE)
        if len(head) < EXT_UNIT_SIZE:
            return None
        size, tag_code, stored_ms, map_size = EXT_UNIT_STRUCT.unpack(head)
        if size < EXT_UNIT_SIZE or map_size != size - EXT_UNIT_SIZE:
            return None
        return ExtUnit(tag_code, stored_ms, self.files.read(offset + EXT_UNIT_SIZE, map_size))

    def tag_codes(self, addresses: Ints) -> Ints:
        """Return the real tag codes at addresses; 0 where there is no unit."""
        offsets = addresses - EXT_FIRST_ADDRESS
        codes = np.zeros(len(offsets), np.int64)
        for start in np.unique(offsets - offsets % self.files.file_size).tolist():
            file = self.files.file(start)
            if file is None:
                continue
            inside = (offsets >= start) & (offsets <= start + file.data_end(0) - EXT_UNIT_SIZE)
            units = rows_at(file.view, offsets[inside] - start, _UNIT)
            codes[inside] = np.where(units["size"] >= EXT_UNIT_SIZE, units["tag_code"], 0)
        return codes

    def bit_maps(
        self, addresses: Ints, size_bytes: int
    ) -> tuple[Ints, Ints, npt.NDArray[np.uint8]]:
        """Return which addresses have a bit map of a size, the store times, and the maps."""
        layout = np.dtype([*_UNIT.descr, ("bit_map", "u1", size_bytes)])
        offsets = addresses - EXT_FIRST_ADDRESS
        rows, times, maps = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
        for start in np.unique(offsets - offsets % self.files.file_size).tolist():
            file = self.files.file(start)
            if file is None:
                continue
            inside = (offsets >= start) & (offsets <= start + file.data_end(0) - layout.itemsize)
            units = rows_at(file.view, offsets[inside] - start, layout)
            has_map = (units["size"] == layout.itemsize) & (units["map_size"] == size_bytes)
            rows.append(np.flatnonzero(inside)[has_map])
            times.append(units["stored_ms"][has_map].astype(np.int64))
            maps.append(units["bit_map"][has_map])
        empty = np.zeros((0, size_bytes), np.uint8)
        return np.concatenate(rows), np.concatenate(times), np.concatenate([empty, *maps])

    def put(self, tag_codes: Ints, timestamps: Ints) -> Ints:
        """Append a unit per message; return their addresses."""
        units = np.zeros(len(tag_codes), _UNIT)
        units["size"], units["tag_code"], units["stored_ms"] = EXT_UNIT_SIZE, tag_codes, timestamps
        addresses = np.empty(len(units), np.int64)
        first, offset = 0, self.end()
        while first < len(units):
            start = self.files.start_of(offset)
            room = start + self.files.file_size - offset - EXT_END_ROOM
            last = min(first + max(room, 0) // EXT_UNIT_SIZE, len(units))
            addresses[first:last] = offset + np.arange(last - first) * EXT_UNIT_SIZE
            self.files.write(offset, units[first:last].view(np.uint8).data)
            offset += (last - first) * EXT_UNIT_SIZE
            if last < len(units):
                self.files.write(offset, EXT_END)
                offset = start + self.files.file_size
            first = last
        self._end = offset
        return addresses + EXT_FIRST_ADDRESS

    def end(self) -> int:
        """Return the byte after the last unit; the search begins where the last one ended."""
        offset = self._begin() if self._end is None else self._end
        while True:
            start = self.files.start_of(offset)
            data = self.files.read(offset, min(_AT_ONCE, start + self.files.file_size - offset))
            passed = _units_size(data)
            offset += passed
            if data[passed : passed + 2] == EXT_END:
                offset = start + self.files.file_size
            elif not passed:
                self._end = offset
                return offset

    def _begin(self) -> int:
        """Return where the last file begins that has units: those before it are full."""
        starts = self.files.starts()
        begun = (start for start in reversed(starts) if any(self.files.read(start, 2)))
        return next(begun, starts[0] if starts else 0)

    def cut_after(self, address: int | None) -> None:
        """Remove all units after the one at an address; all, if it is None."""
        self._end = None
        unit = None if address is None else self.get(address)
        if unit is None or address is None:
            self.files.zero_from(0)
        else:
            end = address - EXT_FIRST_ADDRESS + EXT_UNIT_SIZE + len(unit.bit_map)
            self.files.zero_from(end)


def _units_size(data: bytes) -> int:
    """Return how many bytes whole units take from the beginning on; 0 if none begins there."""
    rows = np.frombuffer(data[: len(data) // EXT_UNIT_SIZE * EXT_UNIT_SIZE], _UNIT)
    # Units without a bit map, as we write them, have one size.
    at = int(np.argmin(np.append(rows["size"] == EXT_UNIT_SIZE, False))) * EXT_UNIT_SIZE
    while at + EXT_UNIT_SIZE <= len(data):
        size = int.from_bytes(data[at : at + 2], "big", signed=True)
        if size < EXT_UNIT_SIZE or at + size > len(data):
            break
        at += size
    return at


def excluded(
    tag_codes: npt.NDArray[np.int64], ext: ConsumeQueueExt, registered: RegisteredBits
) -> npt.NDArray[np.bool_]:
    """Return which entries surely do not pass a group's filter; one without a map may pass."""
    found = np.zeros(len(tag_codes), bool)
    addressed = np.flatnonzero(tag_codes <= EXT_LAST_ADDRESS)
    if addressed.size:
        size_bytes = registered.bits.map_bits // 8
        rows, stored_ms, maps = ext.bit_maps(tag_codes[addressed], size_bytes)
        found[addressed[rows]] = registered.exclude(stored_ms, maps)
    return found


def resolve(tag_codes: npt.NDArray[np.int64], ext: ConsumeQueueExt) -> npt.NDArray[np.int64]:
    """Return tag codes with addresses replaced by what they point at."""
    addressed = tag_codes <= EXT_LAST_ADDRESS
    if not addressed.any():
        return tag_codes
    codes = tag_codes.copy()
    codes[addressed] = ext.tag_codes(tag_codes[addressed])
    return codes
