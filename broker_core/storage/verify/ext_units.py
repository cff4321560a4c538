"""The extension of one queue, unit by unit: part of I5."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rocketpy.broker_core.codec.gather import Ints, rows_at
from rocketpy.broker_core.storage.consume_queue_ext import ConsumeQueueExt
from rocketpy.broker_core.storage.disk import DiskFile
from rocketpy.broker_core.storage.layout import EXT_FIRST_ADDRESS, EXT_UNIT_SIZE, EXT_UNIT_STRUCT
from rocketpy.broker_core.storage.verify.problems import Problem, check_files, first_nonzero

_FIELDS = np.dtype([("tag_code", ">i8"), ("stored_ms", ">i8")])
_FIELDS_AT = 2  # behind the unit's size
_END_MARK = -1


class ExtUnits:
    """Where the units of a queue's extension lie and what they say."""

    def __init__(self, ext: ConsumeQueueExt) -> None:
        self._ext = ext
        self._offsets: list[Ints] = [np.zeros(0, np.int64)]
        self._fields = [np.zeros(0, _FIELDS)]

    def check(self) -> Iterator[Problem]:
        """Walk all units, and report where they do not follow each other.

        A unit that no entry points at is no problem: an append that failed leaves it behind.
        """
        yield from check_files("I5", self._ext.files)
        is_over = False
        for start in self._ext.files.starts():
            file = self._ext.files.file(start)
            if file is None:
                continue
            places, stopped = ([], 0) if is_over else _walk(file)
            at = np.array(places, np.int64)
            self._offsets.append(at + start)
            self._fields.append(rows_at(file.view, at + _FIELDS_AT, _FIELDS)[: len(at)])
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
        known, fields = np.concatenate(self._offsets), np.concatenate(self._fields)
        offsets = addresses - EXT_FIRST_ADDRESS
        codes = np.zeros(len(offsets), np.int64)
        times = np.full(len(offsets), -1, np.int64)
        rows = np.searchsorted(known, offsets)
        there = rows < known.size
        there[there] = known[rows[there]] == offsets[there]
        codes[there] = fields["tag_code"][rows[there]]
        times[there] = fields["stored_ms"][rows[there]]
        return codes, times


def _size_at(file: DiskFile, at: int) -> int:
    return int.from_bytes(file.read(at, 2), "big", signed=True)


def _walk(file: DiskFile) -> tuple[list[int], int]:
    """Return where whole units begin, and where the first bytes lie that are none."""
    data = file.view.data
    places: list[int] = []
    at = 0
    while at + EXT_UNIT_SIZE <= len(data):
        size, _, _, map_size = EXT_UNIT_STRUCT.unpack_from(data, at)
        if size < EXT_UNIT_SIZE or map_size != size - EXT_UNIT_SIZE or at + size > len(data):
            break
        places.append(at)
        at += size
    return places, at
