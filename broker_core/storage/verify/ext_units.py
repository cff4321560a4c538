"""The extension of one queue, unit by unit: part of I5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints, rows_at
from rocketpy.broker_core.storage.consume_queue_ext import ConsumeQueueExt
from rocketpy.broker_core.storage.disk import DiskFile
from rocketpy.broker_core.storage.layout import EXT_FIRST_ADDRESS, EXT_UNIT_SIZE, EXT_UNIT_STRUCT
from rocketpy.broker_core.storage.verify.problems import Problem, check_files, first_nonzero

_UNIT = np.dtype([("size", ">i2"), ("tag_code", ">i8"), ("stored_ms", ">i8"), ("map_size", ">i2")])
_END_MARK = -1
_AT_ONCE = 1 << 20  # bytes
_LARGEST = 1 << 15  # a unit's size takes two bytes


class ExtUnits:
    """What the units of a queue's extension say."""

    def __init__(self, ext: ConsumeQueueExt) -> None:
        self._ext = ext

    def check(self) -> Iterator[Problem]:
        """Walk all units, and report where they do not follow each other.

        A unit that no entry points at is no problem: a failed append leaves such units.
        """
        yield from check_files("I5", self._ext.files)
        is_over = False
        for start in self._ext.files.starts():
            file = self._ext.files.file(start)
            if file is None:
                continue
            stopped = 0 if is_over else _walk(file)
            mark = _size_at(file, stopped)
            is_over = is_over or mark != _END_MARK
            if mark not in (_END_MARK, 0):
                yield Problem("I5", file.path, stopped, f"no whole unit of {mark} bytes lies here")
                continue
            found = first_nonzero(file, stopped + (2 if mark == _END_MARK else 0))
            if found is not None:
                text = "a byte that is not zero, behind the last unit"
                yield Problem("I5", file.path, found, text)

    def look_up(self, addresses: Ints) -> tuple[Ints, Ints]:
        """Return tag codes and store times at addresses; the time is -1 where there is no unit."""
        offsets = addresses - EXT_FIRST_ADDRESS
        codes = np.zeros(len(offsets), np.int64)
        times = np.full(len(offsets), -1, np.int64)
        in_file = offsets % self._ext.files.file_size
        parts = offsets - in_file + in_file // _AT_ONCE
        for part in np.unique(parts[offsets >= 0]).tolist():
            rows = np.flatnonzero(parts == part)
            units = self._units(offsets[rows])
            is_whole = units["size"] >= EXT_UNIT_SIZE
            is_whole &= units["map_size"] == units["size"] - EXT_UNIT_SIZE
            codes[rows[is_whole]] = units["tag_code"][is_whole]
            times[rows[is_whole]] = units["stored_ms"][is_whole]
        return codes, times

    def _units(self, offsets: Ints) -> npt.NDArray[Any]:
        """Return the units at offsets near each other; zeros where there are none."""
        first = int(offsets.min())
        size = int(offsets.max()) - first + EXT_UNIT_SIZE
        data = np.frombuffer(self._ext.files.read(first, size).ljust(size, b"\0"), np.uint8)
        return rows_at(data, offsets - first, _UNIT)


def _size_at(file: DiskFile, at: int) -> int:
    return int.from_bytes(file.read(at, 2), "big", signed=True)


def _walk(file: DiskFile) -> int:
    """Return where the first bytes lie that are no whole unit."""
    at, end = 0, file.size
    while at + EXT_UNIT_SIZE <= end:
        data, first = file.read(at, _AT_ONCE + _LARGEST), at
        while at - first < _AT_ONCE and at + EXT_UNIT_SIZE <= end:
            size, _, _, map_size = EXT_UNIT_STRUCT.unpack_from(data, at - first)
            if size < EXT_UNIT_SIZE or map_size != size - EXT_UNIT_SIZE or at + size > end:
                return at
            at += size
    return at
