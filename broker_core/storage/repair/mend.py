"""Mending the commit log: damaged bytes give way to padding, what is torn off the end to zeros.

Afterwards the log is walked from end to end by its records' sizes, as Apache's broker and our
recovery walk it. Sound records stay where they are, byte for byte. A run that was interrupted is
simply done again: what it had mended is sound by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rocketpy.broker_core.codec.layout import BLANK_SIZE
from rocketpy.broker_core.codec.record import blank_record
from rocketpy.broker_core.message import Host
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.recovery import Progress
from rocketpy.broker_core.storage.repair.padding import MIN_PADDING, padding_records
from rocketpy.broker_core.storage.salvage import next_sound_record

_CHUNK = 1 << 20

KeepCopy = Callable[[int, int], None]  # is told of a range before its bytes are overwritten


class SkippedRange(NamedTuple):
    """Bytes of the log that hold no sound record and were replaced."""

    start: int
    end: int
    reason: str

    @property
    def size(self) -> int:
        """How many bytes."""
        return self.end - self.start


@dataclass(slots=True)
class LogMender:
    """Makes a log walkable. The caller owns the store."""

    log: CommitLog
    store_host: Host
    keep_copy: KeepCopy
    stored_ms: int = 0  # of the last sound record that was met
    skipped: list[SkippedRange] = field(default_factory=list)

    def run(self, progress: Progress | None = None) -> int:
        """Mend the whole log; return its end."""
        oldest = int(self.log.min_offset())
        total = data_end(self.log) - oldest

        def report(position: int) -> None:
            if progress is not None:
                progress(min(position - oldest, total), total)

        position = oldest
        while True:
            position = self._walk_sound(position, report)
            following = self._reachable_record(position)
            if following is None:
                break
            self.replace(position, following, "no sound record")
            position = following
        self._cut(position)
        report(oldest + total)
        return position

    def _walk_sound(self, start: int, report: Callable[[int], None]) -> int:
        """Return the first physical offset from `start` on that has no sound record."""
        position = start
        for segment in self.log.walk(start):
            if segment.block is None:
                position = segment.end
                continue
            block = segment.sound_prefix()
            if len(block):
                position = segment.file_start + int(block.starts[-1] + block.sizes[-1])
                self.stored_ms = int(block.store_timestamps[-1])
            if len(block) < len(segment.block):
                break
            report(position)
        return position

    def _reachable_record(self, damaged_at: int) -> int | None:
        """Return the next sound record that padding can lead to.

        A record too near for padding before it is given up: else all after it would be lost.
        """
        file_end = self.log.files.start_of(damaged_at) + self.log.file_size
        found = next_sound_record(self.log, min(damaged_at + MIN_PADDING, file_end))
        while found is not None:
            start = self.log.files.start_of(found)
            room = found - max(start, damaged_at)
            if room == 0 or room >= MIN_PADDING:
                break
            found = next_sound_record(self.log, start + MIN_PADDING)
        return found

    def replace(self, start: int, end: int, reason: str) -> None:
        """Replace a range by padding, durably; `end` is a record's or a file's start."""
        self.keep_copy(start, end)
        self.skipped.append(SkippedRange(start, end, reason))
        for first, last in self._parts_by_file(start, end):
            self.write_over(first, last, b"", self.stored_ms or self._timestamp(end))

    def write_over(self, start: int, end: int, records: bytes, stored_ms: int) -> None:
        """Replace a range of one file by records, then padding, durably."""
        file_start = self.log.files.start_of(start)
        file = self.log.files.file_for_writing(file_start)
        file.write(records, start - file_start)
        rest = start + len(records)
        if end == file_start + self.log.file_size:
            file.write(blank_record(end - rest), rest - file_start)
            file.zero(rest + BLANK_SIZE - file_start, self.log.file_size)
        elif rest < end:
            for at, record in padding_records(
                rest, end, stored_ms=stored_ms, store_host=self.store_host
            ):
                file.write(record, at - file_start)
        file.sync()

    def _parts_by_file(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        size = self.log.file_size
        for file_start in range(self.log.files.start_of(start), end, size):
            yield max(start, file_start), min(end, file_start + size)

    def _timestamp(self, offset: int) -> int:
        """Return the store time of the sound record at `offset`: none was met before it."""
        return self.log.read(offset).store_timestamp_ms

    def _cut(self, end: int) -> None:
        """Make all bytes after the last record zero, durably."""
        last = data_end(self.log, end)
        if last <= end:
            return
        self.keep_copy(end, last)
        self.skipped.append(SkippedRange(end, last, "torn off the end"))
        self.log.files.zero_from(end)
        self.log.files.sync(end, last)


def data_end(log: CommitLog, start: int = 0) -> int:
    """Return the byte after the last one from `start` on that is not zero; `start` if all are."""
    for file_start in reversed(log.files.starts()):
        file = log.files.file(file_start)
        if file is None or file_start + file.size <= start:
            continue
        for first, last in reversed([*file.data_ranges(max(start - file_start, 0), file.size)]):
            for at in reversed(range(first, last, _CHUNK)):
                found = np.flatnonzero(file.view[at : min(at + _CHUNK, last)])
                if found.size:
                    return file_start + at + int(found[-1]) + 1
    return start
