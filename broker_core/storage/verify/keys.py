"""Part of I9: every key of every record is in the index.

Index entries are written in log order, so those of some records that follow each other are mostly
found at once, in one stretch. Keys that are not there are looked for in all files, many together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.codec.decoder import topics
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.sys_flags import indexed
from rocketpy.broker_core.java_hash import index_key_hash
from rocketpy.broker_core.property_names import TAGS
from rocketpy.broker_core.storage.index_file import IndexFile, seconds_since
from rocketpy.broker_core.storage.layout import INDEX_ENTRY
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.verify.calm import Calm
from rocketpy.broker_core.storage.verify.log import path_of
from rocketpy.broker_core.storage.verify.problems import Problem
from rocketpy.broker_core.storage.verify.records import SoundRecords
from rocketpy.broker_core.storage.verify.spans import Spans

_MOST_PENDING = 1 << 18  # keys
_PART = 1 << 16  # entries that are read at once
_NO_TAG = (1 << 63) - 1


class IndexEntries:
    """The entries of all index files as one sequence, as many as there were when it was made."""

    def __init__(self, parts: StoreParts) -> None:
        self._files: list[IndexFile] = []
        self._begins: list[int] = []  # the begin timestamp of each file
        bounds = [0]
        for name in parts.index.names():
            with suppress(FileNotFoundError):  # removed meanwhile
                file = parts.index.file(name)
                header = file.header()
                self._files.append(file)
                self._begins.append(header.begin_timestamp)
                bounds.append(bounds[-1] + max(min(header.count, file.readable_entries) - 1, 0))
        self._bounds = np.array(bounds, np.int64)

    def __len__(self) -> int:
        return int(self._bounds[-1])

    def parts(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield the files that some entries lie in as (file, number of the first, end)."""
        while first < min(end, len(self)):
            at = int(np.searchsorted(self._bounds, first, side="right")) - 1
            start, stop = int(self._bounds[at]), min(int(self._bounds[at + 1]), end)
            yield at, first - start + 1, stop - start + 1
            first = stop

    def read(self, first: int, end: int) -> npt.NDArray[Any]:
        """Return entries; fewer where a file is shorter than it says."""
        found = [
            self._files[at].read_entries(low, high) for at, low, high in self.parts(first, end)
        ]
        return np.concatenate([np.zeros(0, INDEX_ENTRY), *found])

    def physical_offset(self, number: int) -> int:
        """Return the physical offset of one entry."""
        entry = self.read(number, number + 1)
        return int(entry["physical_offset"][0]) if len(entry) else 0

    def begins(self, first: int, end: int) -> Ints:
        """Return the begin timestamp of the file of each entry."""
        counts = [(self._begins[at], high - low) for at, low, high in self.parts(first, end)]
        return np.repeat(*np.array(counts, np.int64).reshape(-1, 2).T)

    def name(self, at: int) -> str:
        """Return the name of a file."""
        return self._files[at].path.name


class _Pending(NamedTuple):
    """Keys that are not where they should be."""

    rows: Ints  # of their records, counted from the oldest
    physical_offsets: Ints
    hashes: Ints
    is_tag: npt.NDArray[np.bool_]


class KeyCheck:
    """Takes up records in log order; then knows which entries are right, and which are missing."""

    def __init__(self, parts: StoreParts, calm: Calm) -> None:
        self._calm, self._entries = calm, IndexEntries(parts)
        self._is_wanted = parts.config.message_index
        self._next = 0  # where the entries of the next records are looked for
        self._right: dict[str, Spans] = {}
        self._first_tag = _NO_TAG  # physical offset of the first record whose tag is in the index
        self._pending: list[_Pending] = []
        oldest = self._entries.physical_offset(0) if parts.log.min_offset() else 0
        self._lacking = LackingKeys(parts, calm, oldest)

    def right(self, name: str) -> Spans:
        """Return which entries of a file were found to be right, by their numbers."""
        return self._right.get(name, Spans())

    def take(self, records: SoundRecords) -> None:
        """Look for the keys of records in the index."""
        rows, hashes = records.keys
        if not len(rows) or not (self._is_wanted or len(self._entries)):
            return
        end = self._next + len(rows)
        entries = self._entries.read(self._next, end)
        is_right = len(entries) == len(rows) and bool((entries["key_hash"] == hashes).all())
        if is_right and self._agree(records, rows, entries).all():
            self._mark(self._next, end)
            self._note_tags(records, _tag_keys(records, self._first_tag))
        else:
            self._match(records, rows << 32 | hashes)

    def _agree(
        self, records: SoundRecords, rows: Ints, entries: npt.NDArray[Any]
    ) -> npt.NDArray[np.bool_]:
        """Return which of the next entries give physical offset and time of their records."""
        begins = self._entries.begins(self._next, self._next + len(entries))
        seconds = seconds_since(begins, records.block.store_timestamps[rows])
        agree: npt.NDArray[np.bool_] = entries["physical_offset"] == records.physical_offsets[rows]
        agree &= entries["seconds"] == seconds
        return agree

    def _mark(self, first: int, end: int) -> None:
        for at, low, high in self._entries.parts(first, end):
            self._right.setdefault(self._entries.name(at), Spans()).add(low, high)
        self._next = end

    def _match(self, records: SoundRecords, keys: Ints) -> None:
        """Find the keys of records, as row << 32 | hash, in any order; note those not found."""
        low, high = int(records.physical_offsets[0]), int(records.physical_offsets[-1])
        offset_of = self._entries.physical_offset
        self._next = first_false(lambda at: offset_of(at) < low, 0, len(self._entries))
        entries = self._entries.read(self._next, self._next + 4 * len(keys) + _PART)
        physical = entries["physical_offset"].astype(np.int64)
        ours = int(np.argmax(np.append(physical > high, True)))
        entries, physical = entries[:ours], physical[:ours]
        rows = np.minimum(np.searchsorted(records.physical_offsets, physical), len(records) - 1)
        found = rows << 32 | entries["key_hash"]
        is_key = np.isin(found, keys) & self._agree(records, rows, entries)
        if is_key.all():
            self._mark(self._next, self._next + ours)
        wanted, tags = np.unique(keys), _tag_keys(records, _NO_TAG)
        is_found = np.isin(wanted, found[records.physical_offsets[rows] == physical])
        self._note_tags(records, wanted[is_found & np.isin(wanted, tags)])
        if self._is_wanted and not is_found.all():
            lacking = wanted[~is_found]
            rows = lacking >> 32
            is_tag = np.isin(lacking, tags)
            physical = records.physical_offsets[rows]
            numbers, hashes = rows + records.first_row, lacking & 0xFFFFFFFF
            self._put_off(_Pending(numbers, physical, hashes, is_tag))

    def _note_tags(self, records: SoundRecords, keys: Ints) -> None:
        """Note tags that are in the index: brokers before 5.4 do not put them there."""
        if keys.size:
            offset = int(records.physical_offsets[int(keys.min()) >> 32])
            self._first_tag = min(self._first_tag, offset)

    def _put_off(self, pending: _Pending) -> None:
        self._pending.append(pending)
        if sum(len(each.rows) for each in self._pending) > _MOST_PENDING:
            self._search_pending()

    def _search_pending(self) -> None:
        """Look for all pending keys in all entries; note those that are not there."""
        if not self._pending:
            return
        pending = _Pending(*(np.concatenate(column) for column in zip(*self._pending, strict=True)))
        self._pending = []
        known = np.unique(pending.physical_offsets)
        keys = np.searchsorted(known, pending.physical_offsets) << 32 | pending.hashes
        is_found = np.zeros(len(keys), bool)
        for first in range(0, len(self._entries), _PART):
            entries = self._entries.read(first, first + _PART)
            physical = entries["physical_offset"].astype(np.int64)
            at = np.minimum(np.searchsorted(known, physical), len(known) - 1)
            is_near = known[at] == physical
            if is_near.any():
                is_found |= np.isin(keys, (at << 32 | entries["key_hash"])[is_near])
        tags = pending.physical_offsets[is_found & pending.is_tag]
        self._first_tag = min(self._first_tag, int(tags.min(initial=_NO_TAG)))
        # Tags need only be there from the first on that is; those found later lie after it.
        is_lacking = ~is_found & (~pending.is_tag | (pending.physical_offsets >= self._first_tag))
        self._lacking.add(pending.rows[is_lacking], pending.physical_offsets[is_lacking])

    def lacking(self) -> Iterator[Problem]:
        """Report records whose keys no file has."""
        self._search_pending()
        return self._lacking.problems()


class LackingKeys:
    """Runs of records whose keys are not all in the index, from `oldest` on.

    That is the first physical offset in any index file, if the log has lost its oldest messages:
    index files about these may be gone as well.
    """

    def __init__(self, parts: StoreParts, calm: Calm, oldest: int) -> None:
        self._parts, self._calm, self._oldest = parts, calm, oldest
        self._runs: list[tuple[int, int, int]] = []  # first row, last row, physical offset

    def add(self, rows: Ints, physical: Ints) -> None:
        """Note some records; a record may come twice in turn."""
        rows, first = np.unique(rows[physical >= self._oldest], return_index=True)
        physical = physical[physical >= self._oldest][first]
        # What may just be being indexed is kept apart from what cannot be.
        is_new_run = (np.diff(rows) != 1) | np.diff(physical < self._calm.indexed_end)
        for part in np.split(np.arange(len(rows)), np.flatnonzero(is_new_run) + 1):
            if part.size:
                self._add(int(rows[part[0]]), int(rows[part[-1]]), int(physical[part[0]]))

    def _add(self, first: int, last: int, offset: int) -> None:
        end = self._calm.indexed_end
        before = self._runs[-1] if self._runs else None
        if before and before[1] + 1 >= first and (before[2] < end) == (offset < end):
            self._runs[-1] = (before[0], last, before[2])
        else:
            self._runs.append((first, last, offset))

    def problems(self) -> Iterator[Problem]:
        """Report them."""
        end, log_start = self._calm.keyed_end(), self._parts.log.min_offset()
        runs = [run for run in self._runs if run[2] < end]
        if not self._parts.index.names():
            if runs:
                text = "there are messages with keys, but no index file"
                yield Problem("I9", self._parts.index.folder, -1, text)
            return
        for first, last, offset in runs:
            if offset < log_start:
                continue  # deleted meanwhile
            whose = "the record" if first == last else f"{last - first + 1} records"
            text = f"the keys of {whose} are not all in the index"
            yield Problem("I9", path_of(self._parts, offset), offset, text)


def _tag_keys(records: SoundRecords, first_tag: int) -> Ints:
    """Return those keys, as row << 32 | hash, that stand for a tag; none if one was met already."""
    if first_tag != _NO_TAG or not any(each.tag_codes.any() for each in records.dispatches):
        return np.zeros(0, np.int64)
    block = records.block
    tags = pc.fill_null(block.properties.get(TAGS), "").dictionary_encode()
    names = topics(block).dictionary_encode()
    tag_list, name_list = tags.dictionary.to_pylist(), names.dictionary.to_pylist()
    pairs = names.indices.to_numpy().astype(np.int64) * len(tag_list) + tags.indices.to_numpy()
    distinct, inverse = np.unique(pairs, return_inverse=True)
    hashes = [
        index_key_hash(f"{name_list[pair // len(tag_list)]}#T#{tag_list[pair % len(tag_list)]}")
        for pair in distinct.tolist()
    ]
    has_tag = pc.not_equal(tags.cast("string"), "").to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(has_tag & indexed(block.sys_flags))
    keys: Ints = rows << 32 | np.array(hashes, np.int64)[inverse[rows]]
    return keys
