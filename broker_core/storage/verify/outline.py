"""The log in outline: where its parts begin and end, and between which times they were stored.

One line per some thousand records. What is asked of single records is answered by reading their
part of the log again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage.commit_log import Segment
from rocketpy.broker_core.storage.parts import StoreParts


class _Line(NamedTuple):
    start: int  # the physical offset of the first sound record
    end: int  # after the last
    oldest_ms: int
    newest_ms: int


class LogOutline:
    """Grows with the walk through the log."""

    def __init__(self, parts: StoreParts) -> None:
        self._parts = parts
        self.log_start = int(parts.log.min_offset())  # the oldest byte that the log has
        self.end = 0  # of the log
        self.is_whole = False  # whether the walk has come to the end
        self.records = 0  # sound ones
        self.newest_ms = 0
        self.last_ms = 0  # of the last record, which need not be the newest time
        self.oldest_ms = 1 << 62
        self._lines: list[_Line] = []

    def add(self, block: RecordBlock, file_start: int) -> None:
        """Take up sound records that lie after all others."""
        start = int(block.starts[0]) + file_start
        end = int(block.starts[-1] + block.sizes[-1]) + file_start
        times = block.store_timestamps
        line = _Line(start, end, int(times.min()), int(times.max()))
        self._lines.append(line)
        self.records += len(block)
        self.last_ms = int(times[-1])
        self.newest_ms = max(self.newest_ms, line.newest_ms)
        self.oldest_ms = min(self.oldest_ms, line.oldest_ms)

    def finish(self, end: int) -> None:
        """Say that the log ends there."""
        self.end, self.is_whole = end, True

    def has_time(self, time_ms: int) -> bool:
        """Whether a record was stored then."""
        return any(
            (times == time_ms).any()
            for line in self._lines
            if line.oldest_ms <= time_ms <= line.newest_ms
            for _, _, times in self._again(line)
        )

    def is_boundary(self, offset: int) -> bool:
        """Whether a record begins or ends there, or may have before it was deleted."""
        if 0 < offset < self.log_start:
            return True
        return any(
            ((starts == offset) | (ends == offset)).any()
            for line in self._lines
            if line.start <= offset <= line.end
            for starts, ends, _ in self._again(line)
        )

    def _again(self, line: _Line) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield first byte, end and time of the sound records of a part of the log."""
        for segment in self._parts.log.walk(line.start, line.end):
            if segment.block is not None:
                block = segment.block
                rows = np.flatnonzero(is_good(segment, block))
                starts = segment.physical_offsets()[rows]
                yield starts, starts + block.sizes[rows], block.store_timestamps[rows]


def is_good(segment: Segment, block: RecordBlock) -> npt.NDArray[np.bool_]:
    """Return which records are sound and lie where they say."""
    good: npt.NDArray[np.bool_] = block.head["physical_offset"] == segment.physical_offsets()
    return good & block.sound()
