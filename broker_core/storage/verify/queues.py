"""I4, I5: each entry of a queue compared with its record, and each record with its queue.

The walk through the log looks up each record in its queue. Stretches of entries that all were right
are not looked at again; any other entry is compared with the record that it points at.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.sys_flags import queued
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.disk import DiskFile
from rocketpy.broker_core.storage.dispatch import Dispatch, stable_order
from rocketpy.broker_core.storage.layout import (
    EXT_LAST_ADDRESS,
    FILLER_SIZE,
    QUEUE_UNIT,
    QUEUE_UNIT_SIZE,
)
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.verify.calm import Calm
from rocketpy.broker_core.storage.verify.ext_units import ExtUnits
from rocketpy.broker_core.storage.verify.lacking import LackingMessages
from rocketpy.broker_core.storage.verify.log import LogEnd
from rocketpy.broker_core.storage.verify.outline import LogOutline
from rocketpy.broker_core.storage.verify.problems import (
    Advance,
    Problem,
    check_files,
    last_nonzero,
    runs,
)
from rocketpy.broker_core.storage.verify.records import (
    NO_ROW,
    RecordTable,
    SoundRecords,
    at_rows,
    records_at,
)
from rocketpy.broker_core.storage.verify.spans import Spans

_PART = 1 << 15  # entries that are read at once
# What may be wrong with an entry, the gravest first; the first that holds is reported.
_REASONS: tuple[tuple[str, str], ...] = (
    ("I4", "not written, but there are bytes behind"),
    ("I4", "a filler with a tag code"),
    ("I4", "older than the log, but behind an entry whose record the log has"),
    ("I5", "points where no sound record begins"),
    ("I5", "points at a record of another queue"),
    ("I4", "points at a record of another queue offset"),
    ("I5", "gives another size than its record has"),
    ("I5", "gives another tag code than its record has (in its extension, if the queue has one)"),
)


class QueueCheck:
    """Takes up records in log order, then checks one queue after the other."""

    def __init__(self, parts: StoreParts, outline: LogOutline, calm: Calm) -> None:
        self._parts, self._outline, self._calm = parts, outline, calm
        self.ends: dict[tuple[str, int], int] = {}  # the number after the last entry met
        self._right: dict[tuple[str, int], Spans] = {}
        self._lacking = LackingMessages(parts, calm)

    def take(self, records: SoundRecords) -> None:
        """Look up each record in its queue."""
        known = 0
        for dispatch in records.dispatches:
            known += len(dispatch.sizes)
            rows = np.flatnonzero(queued(dispatch.sys_flags))
            order = rows[stable_order(dispatch.queue_ids[rows])]
            ends = np.flatnonzero(np.diff(dispatch.queue_ids[order])) + 1
            for part in np.split(order, ends):
                if part.size:
                    self._compare(dispatch, part)
        if known < len(records):
            self._lacking.take_nameless(records)

    def _compare(self, dispatch: Dispatch, rows: npt.NDArray[np.intp]) -> None:
        """Compare the entries of some messages of one queue with them."""
        name = (dispatch.topic, int(dispatch.queue_ids[rows[0]]))
        queue, ext = self._parts.queues.get(*name), ExtUnits(self._parts.queues.ext(*name))
        offsets, physical = dispatch.queue_offsets[rows], dispatch.physical_offsets[rows]
        ends = np.flatnonzero(np.diff(offsets) != 1) + 1  # one run, unless messages were lost
        for part in np.split(np.arange(len(rows)), ends):
            first = int(offsets[part[0]])
            entries = _entries(queue, first, first + len(part))
            is_entered = (entries["physical_offset"] == physical[part]) & (entries["size"] != 0)
            is_entered &= (entries["size"] != FILLER_SIZE) | (physical[part] != 0)
            is_right = is_entered & (entries["size"] == dispatch.sizes[rows[part]])
            codes = entries["tag_code"].astype(np.int64)
            wanted = dispatch.tag_codes[rows[part]], dispatch.timestamps[rows[part]]
            if (is_right & _has_tag_code(ext, codes, *wanted)).all():
                self._right.setdefault(name, Spans()).add(first, first + len(part))
            self._lacking.take(name, offsets[part], physical[part], is_entered)

    def check(self, queue: ConsumeQueue, log_end: LogEnd, advance: Advance) -> Iterator[Problem]:
        """Report what is wrong with one queue and its extension."""
        yield from check_files("I4", queue.files)
        yield from ExtUnits(self._parts.queues.ext(queue.topic, queue.queue_id)).check()
        next_number = int(queue.first_offset())  # the number after the last entry met
        is_begun = False  # whether an entry was met whose record the log has
        right = self._right.get((queue.topic, queue.queue_id), Spans())
        for start in queue.files.starts():
            file = queue.files.file(start)
            count = self._written(file) if file is not None else 0
            first = start // QUEUE_UNIT_SIZE
            if count and file is not None:
                yield from self._gap(file, next_number, first)
                for low, high, is_right in right.parts(first, first + count):
                    for at in range(low, high, _PART) if not is_right else ():
                        until = min(at + _PART, high)
                        part = _read(file, at - first, until - first)
                        reasons, has_row = self._judge(queue, part, at, log_end, is_begun=is_begun)
                        if reasons.any() and not self._calm.is_clean():
                            # An append that failed meanwhile has taken its entries back.
                            reasons[_read(file, at - first, until - first) != part] = 0
                        yield from _problems_at(file, at, first, reasons)
                        is_begun = is_begun or has_row
                    is_begun = is_begun or is_right
                next_number = first + count
            advance(queue.files.file_size)
        self.ends[queue.topic, queue.queue_id] = next_number

    def _gap(self, file: DiskFile, next_number: int, first: int) -> Iterator[Problem]:
        is_new = _read(file, 0, 1)["physical_offset"][0] >= self._outline.end
        if first > next_number and not is_new:
            text = f"entries {next_number} to {first - 1} before it are not written"
            yield Problem("I4", file.path, 0, text)

    def _written(self, file: DiskFile) -> int:
        """Return how many entries a file has up to the last that is not all zero."""
        last = last_nonzero(file)
        count = 0 if last is None else min(last, file.size - 1) // QUEUE_UNIT_SIZE + 1
        count = min(count, file.size // QUEUE_UNIT_SIZE)
        # The last one may be half written as yet.
        is_half = count and not _read(file, count - 1, count)["size"][0]
        return count - 1 if is_half and not self._calm.is_clean() else count

    def _judge(
        self,
        queue: ConsumeQueue,
        entries: npt.NDArray[Any],
        first: int,
        log_end: LogEnd,
        *,
        is_begun: bool,
    ) -> tuple[npt.NDArray[np.intp], bool]:
        """Return what is wrong with each as 1 + number of the reason, and if any has a record."""
        physical, sizes = entries["physical_offset"].astype(np.int64), entries["size"]
        table = records_at(self._parts, physical, self._outline.end)
        log_start = self._parts.log.min_offset()  # asked later: records may be deleted meanwhile
        is_filler = (sizes == FILLER_SIZE) & (physical == 0)
        is_gone = (physical >= 0) & (physical < log_start) & ~is_filler
        is_new = (physical >= self._outline.end) & (physical < log_end.now())
        rows = table.rows_of(physical)
        rows[is_filler | is_gone | (sizes == 0)] = NO_ROW
        has_row = rows != NO_ROW
        is_late = np.logical_or.accumulate(has_row) | is_begun
        number = table.queue_numbers.get((queue.topic, queue.queue_id), NO_ROW - 1)
        numbers = np.arange(first, first + len(entries))
        faults = [
            sizes == 0,
            is_filler & (entries["tag_code"] != 0),
            is_gone & is_late & (physical < self._outline.log_start),
            ~(is_filler | is_gone | is_new | has_row),
            has_row & (at_rows(table.queues, rows) != number),
            has_row & (at_rows(table.queue_offsets, rows) != numbers),
            has_row & (at_rows(table.sizes, rows) != sizes),
            has_row & ~self._has_tag_codes(queue, entries, table, rows),
        ]
        return np.select(faults, np.arange(1, len(faults) + 1)), bool(has_row.any())

    def _has_tag_codes(
        self, queue: ConsumeQueue, entries: npt.NDArray[Any], table: RecordTable, rows: Ints
    ) -> npt.NDArray[np.bool_]:
        ext = ExtUnits(self._parts.queues.ext(queue.topic, queue.queue_id))
        codes, times = at_rows(table.tag_codes, rows), at_rows(table.timestamps, rows)
        return _has_tag_code(ext, entries["tag_code"].astype(np.int64), codes, times)

    def lacking(self, known_topics: Container[str] | None) -> Iterator[Problem]:
        """Report records that no entry points at, once all queues were checked."""
        on_disk = {topic for topic, _ in self.ends}
        return self._lacking.problems(known_topics, on_disk)


def _has_tag_code(ext: ExtUnits, codes: Ints, wanted: Ints, times: Ints) -> npt.NDArray[np.bool_]:
    holds: npt.NDArray[np.bool_] = codes == wanted
    addressed = np.flatnonzero(codes <= EXT_LAST_ADDRESS)
    if addressed.size:
        real, stored_ms = ext.look_up(codes[addressed])
        holds[addressed] = (real == wanted[addressed]) & (stored_ms == times[addressed])
    return holds


def _entries(queue: ConsumeQueue, first: int, end: int) -> npt.NDArray[Any]:
    """Return entries of one queue; zeros where there is no file."""
    per_file = queue.files.file_size // QUEUE_UNIT_SIZE
    found = np.zeros(end - first, QUEUE_UNIT)
    at = first
    while 0 <= at < end:
        start = at - at % per_file
        until = min(end, start + per_file)
        file = queue.files.file(start * QUEUE_UNIT_SIZE)
        if file is not None:
            read = _read(file, at - start, until - start)
            found[at - first : at - first + len(read)] = read
        at = until
    return found


def _read(file: DiskFile, first: int, end: int) -> npt.NDArray[Any]:
    """Return entries of one file, read rather than mapped: holes must not be looked into."""
    data = file.read(first * QUEUE_UNIT_SIZE, (end - first) * QUEUE_UNIT_SIZE)
    return np.frombuffer(data[: len(data) // QUEUE_UNIT_SIZE * QUEUE_UNIT_SIZE], QUEUE_UNIT)


def _problems_at(
    file: DiskFile, first: int, file_first: int, reasons: npt.NDArray[np.intp]
) -> Iterator[Problem]:
    for number, (invariant, reason) in enumerate(_REASONS, start=1):
        for low, high in runs(np.flatnonzero(reasons == number)):
            name = f"entry {first + low}"
            which = name if low == high else f"{name} to {first + high}, each"
            at = (first + low - file_first) * QUEUE_UNIT_SIZE
            yield Problem(invariant, file.path, at, f"{which}: {reason}")
