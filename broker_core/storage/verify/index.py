"""I7, I8, I9: index files held against themselves and against the records.

Files are gone through in parts of a million entries; of a whole file only its slots are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage.index_file import IndexFile, IndexHeader
from rocketpy.broker_core.storage.layout import (
    INDEX_ENTRY,
    INDEX_HEADER_SIZE,
    INDEX_HEADER_STRUCT,
    INDEX_SLOT,
)
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.verify.log import LogEnd, path_of
from rocketpy.broker_core.storage.verify.problems import Advance, Problem, first_nonzero, runs
from rocketpy.broker_core.storage.verify.records import NO_ROW, RecordTable

_PART = 1 << 20
_MOST_LEFT = 1 << 20  # entries of one append that died
_MOST_SECONDS = 0x7FFFFFFF
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
        self, parts: StoreParts, table: RecordTable, log_end: LogEnd, *, is_clean: bool
    ) -> None:
        self._parts, self._table, self._log_end = parts, table, log_end
        self._is_clean = is_clean  # stopped cleanly: no insert is under way, none died
        self._before: IndexHeader | None = None  # of the file before
        self._oldest = 0  # the first place that any file speaks of
        self._seen = np.zeros(len(table["keys"]), bool)

    def check(self, name: str, advance: Advance) -> Iterator[Problem]:
        """Report what is wrong with one file."""
        file = self._parts.index.file(name)
        size = _entry_at(file, file.entries)
        if file.file.size != size:
            text = f"has {file.file.size} bytes, an index file of this store has {size}"
            yield Problem("I7", file.path, min(file.file.size, size), text)
        data = file.file.read(0, INDEX_HEADER_SIZE).ljust(INDEX_HEADER_SIZE, b"\0")
        header = IndexHeader(*INDEX_HEADER_STRUCT.unpack(data))
        if not 0 <= header.count <= file.entries:
            text = f"counts {header.count} entries, there is room for {file.entries}"
            yield Problem("I7", file.path, _FIELD_AT["count"], text)
        entries = file.entry_view[: min(max(header.count, 1), file.entries)]
        newest = np.zeros(file.slots, np.int32)
        for first in range(1, len(entries), _PART):
            part = entries[first : first + _PART]
            is_chained = part["previous"] == _chain(part["key_hash"], first, newest)
            yield from _told(file, first, self._judge(part, first, is_chained, header))
        yield from self._slots(file, entries, newest)
        yield from self._header(file, entries, header, int(np.count_nonzero(newest)))
        yield from self._uncounted(file, max(len(entries), 1))
        self._before = header
        advance(size)

    def _judge(
        self,
        part: npt.NDArray[Any],
        first: int,
        is_chained: npt.NDArray[np.bool_],
        header: IndexHeader,
    ) -> npt.NDArray[np.intp]:
        """Return what is wrong with each entry as 1 + number of the reason; note the keys met."""
        table = self._table
        places = part["physical_offset"].astype(np.int64)
        if self._before is None and first == 1:
            self._oldest = int(places[0])
        rows = table.rows_of(places)
        has_row = rows != NO_ROW
        is_gone = (places >= 0) & (places < table.log_start)
        is_new = (places >= table.end) & (places < self._log_end.now())
        has_key = np.zeros(len(part), bool)
        has_key[has_row] = self._note(rows[has_row] << 32 | part["key_hash"][has_row])
        elapsed = table.values("timestamps", rows) - header.begin_timestamp
        in_time = part["seconds"] == np.clip(elapsed // 1000, 0, _MOST_SECONDS)
        if first == 1 and has_row[0]:
            in_time[0] |= self._is_relative_to_file_before(int(part["seconds"][0]), int(rows[0]))
        faults = [
            ~is_chained,
            ~(has_row | is_gone | is_new),
            has_row & ~has_key,
            has_row & ~in_time,
        ]
        return np.select(faults, np.arange(1, len(faults) + 1))

    def _is_relative_to_file_before(self, seconds: int, row: int) -> bool:
        """Apache's first entry is computed before the header's begin is set (IndexFile#putKey)."""
        if self._before is None:
            return self._table.log_start > 0  # the file before was deleted with old messages
        elapsed = int(self._table["timestamps"][row]) - self._before.end_timestamp
        return seconds == min(max(elapsed // 1000, 0), _MOST_SECONDS)

    def _note(self, wanted: Ints) -> npt.NDArray[np.bool_]:
        keys = self._table["keys"]
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        found: npt.NDArray[np.bool_] = keys[at] == wanted if keys.size else np.zeros(len(at), bool)
        self._seen[at[found]] = True
        return found

    def _slots(
        self, file: IndexFile, entries: npt.NDArray[Any], newest: npt.NDArray[np.int32]
    ) -> Iterator[Problem]:
        """I7: each slot names its newest entry; after a crash perhaps through uncounted ones."""
        slots = file.slot_view
        wrong = np.flatnonzero(slots != newest[: len(slots)])
        if not self._is_clean and len(entries):
            settled = [_settled(file, int(slots[at]), len(entries)) for at in wrong]
            wrong = wrong[np.array(settled, np.int32) != newest[wrong]]
        for first, last in runs(wrong):
            which = f"slot {first}" if first == last else f"slots {first} to {last}, the first"
            text = f"{which} names entry {slots[first]}, its newest is {newest[first]}"
            yield Problem("I7", file.path, INDEX_HEADER_SIZE + first * INDEX_SLOT.itemsize, text)

    def _header(
        self, file: IndexFile, entries: npt.NDArray[Any], header: IndexHeader, used: int
    ) -> Iterator[Problem]:
        """I7: the header says what the entries say; an empty file's, where the last file ended."""
        allowed: dict[str, set[int]] = {"used_slots": {used}}
        if len(entries) > 1:
            for name, number in (("begin", 1), ("end", -1)):
                place = entries["physical_offset"][number : number + 1 or None].astype(np.int64)
                allowed[f"{name}_physical_offset"] = {int(place[0])}
                row = int(self._table.rows_of(place)[0])
                if row != NO_ROW:
                    time_ms = int(self._table["timestamps"][row])
                    allowed[f"{name}_timestamp"] = {time_ms}
                    if name == "end" and header.end_timestamp > time_ms:
                        # Entries were cut off: it is the newest time then, of any message.
                        later = self._table["timestamps"] == header.end_timestamp
                        allowed["end_timestamp"] |= {header.end_timestamp} if later.any() else set()
        elif self._before is not None or not self._table.log_start:
            before = self._before or IndexHeader(0, 0, 0, 0, 0, 0)
            for name in ("begin", "end"):
                allowed[f"{name}_timestamp"] = {0, before.end_timestamp}
                allowed[f"{name}_physical_offset"] = {0, before.end_physical_offset}
        for field, values in allowed.items():
            said = getattr(header, field)
            if said not in values:
                text = f"{field} is {said}, by the entries it is {max(values)}"
                yield Problem("I7", file.path, _FIELD_AT[field], text)

    def _uncounted(self, file: IndexFile, count: int) -> Iterator[Problem]:
        """I8: entry 0 is never used; behind what inserts that died may have left, all is zero."""
        left = file.entry_view[count : count + _MOST_LEFT]
        numbers = np.arange(count, count + len(left))
        may_be = (left["key_hash"] >= 0) & (left["physical_offset"] >= 0) & (left["seconds"] >= 0)
        may_be &= (left["previous"] >= 0) & (left["previous"] < numbers) & (left["key_hash"] != 0)
        behind = count + int(np.argmin(np.append(may_be, False)))
        spans = [(0, 1), (behind, file.entries)] if self._is_clean else [(0, 1)]
        for first, last in spans:
            found = first_nonzero(file.file, _entry_at(file, first), _entry_at(file, last))
            if found is not None:
                text = f"not zero, in entries {first} to {last - 1}, which do not count"
                yield Problem("I8", file.path, found, text)

    def lacking(self) -> Iterator[Problem]:
        """I9: report records whose keys no file has, once all files were checked.

        Tags need only be there from the first on that is: brokers before 5.4 do not index them.
        """
        if not self._parts.config.message_index:
            return
        table, keys = self._table, self._table["keys"]
        rows = keys >> 32
        is_tag = np.isin(keys, table["tag_keys"], assume_unique=True)
        first_tag = int(rows[self._seen & is_tag].min(initial=len(table)))
        is_needed = ~is_tag | (rows >= first_tag)
        is_needed &= table.values("physical_offsets", rows) < table.indexed_end
        if not self._parts.index.names():
            if is_needed.any():
                text = "there are messages with keys, but no index file"
                yield Problem("I9", self._parts.index.folder, -1, text)
            return
        if table.log_start:  # files about messages that are gone may be gone
            is_needed &= table.values("physical_offsets", rows) >= self._oldest
        for first, last in runs(np.unique(rows[is_needed & ~self._seen])):
            place = int(table["physical_offsets"][first])
            whose = "the record" if first == last else f"{last - first + 1} records"
            text = f"the keys of {whose} are not all in the index"
            yield Problem("I9", path_of(self._parts, place), place, text)


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


def _settled(file: IndexFile, number: int, count: int) -> int:
    """Follow a slot that an insert changed before it died to the newest entry that counts."""
    entries = file.entry_view
    while number >= count:
        before = int(entries["previous"][number]) if number < len(entries) else 0
        number = before if before < number else 0
    return number


def _told(file: IndexFile, first: int, reasons: npt.NDArray[np.intp]) -> Iterator[Problem]:
    for number, (invariant, reason) in enumerate(_REASONS, start=1):
        for low, high in runs(np.flatnonzero(reasons == number)):
            name = f"entry {first + low}"
            which = name if low == high else f"{name} to {first + high}, each"
            yield Problem(invariant, file.path, _entry_at(file, first + low), f"{which}: {reason}")
