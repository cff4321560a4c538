"""I7, I8, I9: index files compared with themselves and with the records.

Files are gone through part by part; of a whole file only its slots are kept. Entries that the walk
through the log found to be those of its records are not compared with them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage.index_file import (
    MOST_SECONDS,
    IndexFile,
    IndexHeader,
    seconds_since,
)
from rocketpy.broker_core.storage.layout import (
    INDEX_ENTRY,
    INDEX_HEADER_SIZE,
    INDEX_HEADER_STRUCT,
    INDEX_SLOT,
)
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.verify.calm import Calm
from rocketpy.broker_core.storage.verify.keys import KeyCheck
from rocketpy.broker_core.storage.verify.log import LogEnd
from rocketpy.broker_core.storage.verify.outline import LogOutline
from rocketpy.broker_core.storage.verify.problems import Advance, Problem, first_nonzero, runs
from rocketpy.broker_core.storage.verify.records import NO_ROW, at_rows, records_at

_PART = 1 << 16  # entries that are read at once
_GLIMPSES = 1000  # a write takes less time than one of them
_MOST_LEFT = 1 << 20  # entries of one append that died
_FIELD_AT = dict(zip(IndexHeader._fields, (0, 8, 16, 24, 32, 36), strict=True))
# What may be wrong with an entry, the gravest first; the first that holds is reported.
_REASONS = (
    ("I7", "does not name the entry before it in its slot"),
    ("I9", "points where no sound record begins"),
    ("I9", "points at a record without that key"),
    ("I9", "gives another time than its record has"),
)


class IndexCheck:
    """Checks one index file after the other, the oldest first."""

    def __init__(
        self, parts: StoreParts, outline: LogOutline, calm: Calm, keys: KeyCheck, log_end: LogEnd
    ) -> None:
        self._parts, self._outline, self._calm = parts, outline, calm
        self._keys, self._log_end = keys, log_end
        self._before: IndexHeader | None = None  # of the file before

    def check(self, name: str, advance: Advance) -> Iterator[Problem]:
        """Report what is wrong with one file; one that was removed meanwhile has nothing."""
        try:
            file = self._parts.index.file(name)
        except FileNotFoundError:
            return
        size = _entry_at(file, file.entries)
        if file.file.size != size:
            text = f"has {file.file.size} bytes, an index file of this store has {size}"
            yield Problem("I7", file.path, min(file.file.size, size), text)
        header = _steady_header(file)
        if not 0 <= header.count <= file.entries:
            text = f"counts {header.count} entries, there is room for {file.entries}"
            yield Problem("I7", file.path, _FIELD_AT["count"], text)
        count = min(max(header.count, 1), file.readable_entries)
        newest = np.zeros(file.slots, np.int32)
        right = self._keys.right(name)
        for first in range(1, count, _PART):
            part = file.read_entries(first, min(first + _PART, count))
            reasons = np.zeros(len(part), np.intp)
            for low, high, is_right in right.parts(first, first + len(part)):
                if not is_right:
                    some = slice(low - first, high - first)
                    reasons[some] = self._judge(part[some], low, header)
            # This is the gravest: chains lead from one entry to the other.
            reasons[part["previous"] != _chain(part["key_hash"], first, newest)] = 1
            yield from _problems_at(file, first, reasons)
        yield from self._slots(file, count, newest)
        yield from self._header(file, count, header, int(np.count_nonzero(newest)))
        yield from self._uncounted(file, max(count, 1))
        self._before = header
        advance(size)

    def _judge(
        self, part: npt.NDArray[Any], first: int, header: IndexHeader
    ) -> npt.NDArray[np.intp]:
        """Return what is wrong with each entry as 1 + number of the reason, chains apart."""
        physical = part["physical_offset"].astype(np.int64)
        table = records_at(self._parts, physical, self._outline.end)
        rows = table.rows_of(physical)
        has_row = rows != NO_ROW
        # Asked later: records may be deleted, or appended, meanwhile.
        is_gone = (physical >= 0) & (physical < self._parts.log.min_offset())
        is_new = (physical >= self._outline.end) & (physical < self._log_end.now())
        has_key = np.zeros(len(part), bool)
        has_key[has_row] = table.has_keys(rows[has_row] << 32 | part["key_hash"][has_row])
        times = at_rows(table.timestamps, rows)
        in_time = part["seconds"] == seconds_since(header.begin_timestamp, times)
        if first == 1 and has_row[0]:
            in_time[0] |= self._is_relative_to_file_before(int(part["seconds"][0]), int(times[0]))
        faults = [~(has_row | is_gone | is_new), has_row & ~has_key, has_row & ~in_time]
        return np.select(faults, np.arange(2, len(faults) + 2))

    def _is_relative_to_file_before(self, seconds: int, time_ms: int) -> bool:
        """Apache's first entry is computed before the header's begin is set (IndexFile#putKey)."""
        if self._before is None:
            return self._outline.log_start > 0  # the file before was deleted with old messages
        return seconds == min(max((time_ms - self._before.end_timestamp) // 1000, 0), MOST_SECONDS)

    def _slots(
        self, file: IndexFile, count: int, newest: npt.NDArray[np.int32]
    ) -> Iterator[Problem]:
        """I7: each slot names its newest entry; after a crash perhaps through uncounted ones."""
        slots = file.read_slots()
        wrong = np.flatnonzero(slots != newest[: len(slots)])
        if wrong.size and count and not self._calm.is_clean():
            counted = [_newest_counted(file, int(slots[at]), count) for at in wrong]
            wrong = wrong[np.array(counted, np.int32) != newest[wrong]]
        for first, last in runs(wrong):
            which = f"slot {first}" if first == last else f"slots {first} to {last}, the first"
            text = f"{which} names entry {slots[first]}, its newest is {newest[first]}"
            yield Problem("I7", file.path, INDEX_HEADER_SIZE + first * INDEX_SLOT.itemsize, text)

    def _header(
        self, file: IndexFile, count: int, header: IndexHeader, used: int
    ) -> Iterator[Problem]:
        """I7: the header says what the entries say; an empty file's, where the last file ended."""
        allowed: dict[str, set[int]] = {"used_slots": {used}}
        if count > 1:
            for name, number in (("begin", 1), ("end", count - 1)):
                entry = file.read_entries(number, number + 1)
                physical = entry["physical_offset"].astype(np.int64)
                allowed[f"{name}_physical_offset"] = {int(physical[0])}
                times = records_at(self._parts, physical, self._outline.end).timestamps
                if times.size:
                    time_ms = int(times[0])
                    allowed[f"{name}_timestamp"] = {time_ms}
                    if name == "end" and header.end_timestamp > time_ms:
                        # Entries were cut off: it is the newest time then, of any message.
                        is_known = self._outline.has_time(header.end_timestamp)
                        allowed["end_timestamp"] |= {header.end_timestamp} if is_known else set()
        elif self._before is not None or not self._outline.log_start:
            before = self._before or IndexHeader(0, 0, 0, 0, 0, 0)
            # An insert that died may have begun to write the header of its first entries.
            said = {header.begin_timestamp, header.end_timestamp} - {before.end_timestamp}
            is_known = not self._calm.is_clean() and all(map(self._outline.has_time, said))
            begun: set[int] = said if is_known else set()
            for name in ("begin", "end"):
                allowed[f"{name}_timestamp"] = {0, before.end_timestamp} | begun
                allowed[f"{name}_physical_offset"] = {0, before.end_physical_offset}
        for field, values in allowed.items():
            value = getattr(header, field)
            if value not in values:
                text = f"{field} is {value}, by the entries it is {max(values)}"
                yield Problem("I7", file.path, _FIELD_AT[field], text)

    def _uncounted(self, file: IndexFile, count: int) -> Iterator[Problem]:
        """I8: entry 0 is never used; after what inserts that died may have left, all is zero."""
        left = file.read_entries(count, count + _MOST_LEFT)
        numbers = np.arange(count, count + len(left))
        may_be = (left["key_hash"] >= 0) & (left["physical_offset"] >= 0) & (left["seconds"] >= 0)
        may_be &= (left["previous"] >= 0) & (left["previous"] < numbers) & (left["key_hash"] != 0)
        unused_from = count + int(np.argmin(np.append(may_be, False)))
        spans = [(0, 1), (unused_from, file.entries)] if self._calm.is_clean() else [(0, 1)]
        for first, last in spans:
            found = first_nonzero(file.file, _entry_at(file, first), _entry_at(file, last))
            if found is not None:
                text = f"not zero, in entries {first} to {last - 1}, which do not count"
                yield Problem("I8", file.path, found, text)


def _steady_header(file: IndexFile) -> IndexHeader:
    """Return the header as it is, damaged or not, but not one that is half written."""
    before = b""
    for _ in range(_GLIMPSES):
        data = file.file.read(0, INDEX_HEADER_SIZE).ljust(INDEX_HEADER_SIZE, b"\0")
        if data == before:
            break
        before = data
    return IndexHeader(*INDEX_HEADER_STRUCT.unpack(data))


def _entry_at(file: IndexFile, number: int) -> int:
    return INDEX_HEADER_SIZE + file.slots * INDEX_SLOT.itemsize + number * INDEX_ENTRY.itemsize


def _chain(hashes: npt.NDArray[Any], first: int, newest: npt.NDArray[np.int32]) -> Ints:
    """Return the entry before each in its slot, and move `newest`, the last of each slot, on."""
    slots = hashes.astype(np.int64) % len(newest)
    # Sorting (slot, row) as one number is several times faster than a stable argsort.
    sorted_rows = np.sort(slots << 32 | np.arange(len(slots)))
    order, by_slot = sorted_rows & 0xFFFFFFFF, sorted_rows >> 32
    is_first = np.ones(len(order), bool)
    is_first[1:] = by_slot[1:] != by_slot[:-1]
    chained = np.empty(len(order), np.int64)
    chained[1:] = order[:-1] + first
    chained[is_first] = newest[by_slot[is_first]]
    is_last = np.append(is_first[1:], True)
    newest[by_slot[is_last]] = order[is_last] + first
    previous = np.empty(len(order), np.int64)
    previous[order] = chained
    return previous


def _newest_counted(file: IndexFile, number: int, count: int) -> int:
    """Follow a slot that an insert changed before it died to the newest entry that counts."""
    while number >= count:
        entry = file.read_entries(number, number + 1)
        before = int(entry["previous"][0]) if len(entry) else 0
        number = before if before < number else 0
    return number


def _problems_at(file: IndexFile, first: int, reasons: npt.NDArray[np.intp]) -> Iterator[Problem]:
    for number, (invariant, reason) in enumerate(_REASONS, start=1):
        for low, high in runs(np.flatnonzero(reasons == number)):
            name = f"entry {first + low}"
            which = name if low == high else f"{name} to {first + high}, each"
            yield Problem(invariant, file.path, _entry_at(file, first + low), f"{which}: {reason}")
