"""I4, I5: each entry of a queue held against its record, and each record against its queue."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.disk import DiskFile
from rocketpy.broker_core.storage.layout import (
    EXT_LAST_ADDRESS,
    FILLER_SIZE,
    QUEUE_UNIT,
    QUEUE_UNIT_SIZE,
)
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.verify.ext_units import ExtUnits
from rocketpy.broker_core.storage.verify.log import LogEnd, path_of
from rocketpy.broker_core.storage.verify.problems import (
    Advance,
    Problem,
    check_files,
    last_nonzero,
    runs,
)
from rocketpy.broker_core.storage.verify.records import NO_QUEUE, NO_ROW, RecordTable

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
    """Checks one queue after the other; `ends` and `entered` grow with them."""

    def __init__(
        self, parts: StoreParts, table: RecordTable, log_end: LogEnd, *, is_clean: bool
    ) -> None:
        self._parts, self._table, self._log_end = parts, table, log_end
        self._is_clean = is_clean  # stopped cleanly: no entry is just being written
        self.ends: dict[tuple[str, int], int] = {}
        self._entered = np.zeros(len(table), bool)

    def check(self, queue: ConsumeQueue, advance: Advance) -> Iterator[Problem]:
        """Report what is wrong with one queue and its extension."""
        yield from check_files("I4", queue.files)
        units = ExtUnits(self._parts.queues.ext(queue.topic, queue.queue_id))
        yield from units.check()
        behind = queue.first_offset()  # the number behind the last entry met
        is_begun = False  # whether an entry was met whose record the log has
        for start in queue.files.starts():
            file = queue.files.file(start)
            entries = _written(file) if file is not None else np.zeros(0, QUEUE_UNIT)
            first = start // QUEUE_UNIT_SIZE
            if not self._is_clean and len(entries) and entries["size"][-1] == 0:
                entries = entries[:-1]
            if len(entries) and file is not None:
                is_new = entries["physical_offset"][0] >= self._table.end
                if first > behind and not is_new:
                    text = f"entries {behind} to {first - 1} before it are not written"
                    yield Problem("I4", file.path, 0, text)
                reasons, rows = self._judge(queue, units, entries, first, is_begun)
                yield from _told(file, first, reasons)
                is_begun = is_begun or bool((rows != NO_ROW).any())
                behind = type(behind)(first + len(entries))
            advance(queue.files.file_size)
        self.ends[queue.topic, queue.queue_id] = behind

    def _judge(
        self,
        queue: ConsumeQueue,
        units: ExtUnits,
        entries: npt.NDArray[Any],
        first: int,
        is_begun: bool,
    ) -> tuple[npt.NDArray[np.intp], Ints]:
        """Return what is wrong with each entry as 1 + number of the reason, and its record."""
        table = self._table
        places, sizes = entries["physical_offset"].astype(np.int64), entries["size"]
        numbers = np.arange(first, first + len(entries))
        is_filler = (sizes == FILLER_SIZE) & (places == 0)
        is_gone = (places >= 0) & (places < table.log_start) & ~is_filler
        is_new = (places >= table.end) & (places < self._log_end.now())
        rows = table.rows_of(places)
        rows[is_filler | is_gone | (sizes == 0)] = NO_ROW
        has_row = rows != NO_ROW
        is_late = np.logical_or.accumulate(has_row) | is_begun
        number = table.queue_numbers.get((queue.topic, queue.queue_id), -1)
        is_ours = table.values("queues", rows) == number
        in_order = table.values("queue_offsets", rows) == numbers
        self._entered[rows[has_row & is_ours & in_order]] = True
        faults = [
            sizes == 0,
            is_filler & (entries["tag_code"] != 0),
            is_gone & is_late,
            ~(is_filler | is_gone | is_new | has_row),
            has_row & ~is_ours,
            has_row & ~in_order,
            has_row & (table.values("sizes", rows) != sizes),
            has_row & ~self._has_tag_code(units, entries["tag_code"].astype(np.int64), rows),
        ]
        return np.select(faults, np.arange(1, len(faults) + 1)), rows

    def _has_tag_code(self, units: ExtUnits, codes: Ints, rows: Ints) -> npt.NDArray[np.bool_]:
        holds: npt.NDArray[np.bool_] = codes == self._table.values("tag_codes", rows)
        addressed = np.flatnonzero(codes <= EXT_LAST_ADDRESS)
        if addressed.size:
            real, times = units.look_up(codes[addressed])
            wanted = rows[addressed]
            holds[addressed] = real == self._table.values("tag_codes", wanted)
            holds[addressed] &= times == self._table.values("timestamps", wanted)
        return holds

    def lacking(self, known_topics: Container[str] | None) -> Iterator[Problem]:
        """Report records that no entry points at, once all queues were checked.

        The records of a topic that was deleted, queues and all, stay in the log; `known_topics` is
        None where it cannot be told which were.
        """
        table = self._table
        is_expected = table["is_queued"] & (table["physical_offsets"] < table.settled_end)
        lacking = np.flatnonzero(is_expected & ~self._entered & ~self._is_superseded())
        lacking = lacking[np.lexsort((table["queue_offsets"][lacking], table["queues"][lacking]))]
        numbers, offsets = table["queues"][lacking], table["queue_offsets"][lacking]
        names = list(table.queue_numbers)
        on_disk = {topic for topic, _ in self.ends}
        ends_run = (np.diff(numbers) != 0) | (np.diff(offsets) != 1)
        for run in np.split(np.arange(len(lacking)), np.flatnonzero(ends_run) + 1):
            if not run.size:
                continue
            place = int(table["physical_offsets"][lacking[run[0]]])
            if numbers[run[0]] == NO_QUEUE:
                text = "the record's topic cannot be one"
            else:
                topic, queue_id = names[numbers[run[0]]]
                if known_topics is not None and topic not in known_topics and topic not in on_disk:
                    continue
                low, high = int(offsets[run[0]]), int(offsets[run[-1]])
                what = f"message {low} has" if low == high else f"messages {low} to {high} have"
                text = f"{what} no entry in {topic}/{queue_id}"
            yield Problem("I5", path_of(self._parts, place), place, text)

    def _is_superseded(self) -> npt.NDArray[np.bool_]:
        """Return which records are of a queue that began anew: its topic was deleted and made."""
        table = self._table
        queues, starts = table["queues"], np.flatnonzero(table["queue_offsets"] == 0)
        newest_start = np.zeros(len(table.queue_numbers) + 1, np.int64)  # the last is NO_QUEUE's
        np.maximum.at(newest_start, queues[starts], starts)
        superseded: npt.NDArray[np.bool_] = np.arange(len(table)) < newest_start[queues]
        return superseded


def _written(file: DiskFile) -> npt.NDArray[Any]:
    """Return the entries of a file up to the last that is not all zero."""
    last = last_nonzero(file)
    count = 0 if last is None else min(last, file.size - 1) // QUEUE_UNIT_SIZE + 1
    usable = min(count, file.size // QUEUE_UNIT_SIZE)
    return file.view[: usable * QUEUE_UNIT_SIZE].copy().view(QUEUE_UNIT)  # it may grow meanwhile


def _told(file: DiskFile, first: int, reasons: npt.NDArray[np.intp]) -> Iterator[Problem]:
    for number, (invariant, reason) in enumerate(_REASONS, start=1):
        for low, high in runs(np.flatnonzero(reasons == number)):
            name = f"entry {first + low}"
            which = name if low == high else f"{name} to {first + high}, each"
            text = f"{which}: {reason}"
            yield Problem(invariant, file.path, low * QUEUE_UNIT_SIZE, text)
