"""I1, I2, I3, I12: the commit log, walked from its oldest byte to its end, over all damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.storage.commit_log import Segment
from rocketpy.broker_core.storage.layout import file_name
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.salvage import next_sound_record
from rocketpy.broker_core.storage.verify.outline import LogOutline
from rocketpy.broker_core.storage.verify.problems import (
    Advance,
    Problem,
    check_files,
    first_nonzero,
    runs,
)
from rocketpy.broker_core.storage.verify.records import SoundRecords

_KEPT_BYTES = 64 << 20  # of the log that count as memory of this process


def check_log(
    parts: StoreParts, outline: LogOutline, take: Callable[[SoundRecords], None], advance: Advance
) -> Iterator[Problem]:
    """Report what is wrong in the log; outline and `take` get all that is sound, in order."""
    yield from check_files("I1", parts.log.files)
    position = reported = kept = outline.log_start
    limit = _limit(parts)
    while position < limit:
        for segment in parts.log.walk(position, limit):
            position = segment.end
            if segment.block is not None:
                yield from _take(parts, segment, segment.block, outline, take)
            advance(position - reported)
            reported = position
            if position - kept > _KEPT_BYTES:
                parts.log.files.let_go()
                kept = position
        # The walk ends where no record's structure holds: at the end, or at damage.
        following = next_sound_record(parts.log, position + 1) if position < limit else None
        if following is None or LogEnd(parts, position).now() > position:  # grown since
            break
        text = f"no record begins here; the next sound one is at {following}"
        yield Problem("I1", path_of(parts, position), position, text)
        position = following
    outline.finish(position)
    yield from _check_zeros_after(parts, LogEnd(parts, position))


class LogEnd:
    """Where the log ends by now: somebody may append while it is being verified."""

    def __init__(self, parts: StoreParts, end: int) -> None:
        self._parts, self._end = parts, end

    def now(self) -> int:
        """Return the end; every entry that was seen so far has its record before it."""
        for segment in self._parts.log.walk(self._end, _limit(self._parts)):
            self._end = segment.end
        return self._end


def _limit(parts: StoreParts) -> int:
    """Return the end of the last file that is there now, so as not to run after a writer.

    A batch that is being committed, or was when its committer died, is not there yet, even
    if some of its first eight bytes are written.
    """
    end = max(parts.log.files.starts(), default=0) + parts.log.file_size
    begin = parts.tail.intent()
    if begin is None or next(parts.log.walk(begin), None) is not None:
        return end
    return min(begin, end)


def path_of(parts: StoreParts, physical_offset: int) -> Path:
    """Return the log file that a byte of the log lies in."""
    return parts.log.files.folder / file_name(parts.log.files.start_of(physical_offset))


def _take(
    parts: StoreParts,
    segment: Segment,
    block: RecordBlock,
    outline: LogOutline,
    take: Callable[[SoundRecords], None],
) -> Iterator[Problem]:
    physical = segment.physical_offsets()
    said = block.head["physical_offset"]
    is_sound, is_here = block.sound(), said == physical
    for row in np.flatnonzero(~is_here).tolist():
        text = f"the record says that it lies at {said[row]}"
        yield Problem("I2", path_of(parts, int(physical[row])), int(physical[row]), text)
    for first, last in runs(np.flatnonzero(~is_sound)):
        what = "the record does" if first == last else f"{last - first + 1} records do"
        text = f"{what} not match the check sum"
        yield Problem("I12", path_of(parts, int(physical[first])), int(physical[first]), text)
    good = np.flatnonzero(is_sound & is_here)
    if good.size:
        block = block if len(good) == len(block) else block.take(good)
        take(SoundRecords(block, segment.file_start, parts.config, outline.records))
        outline.add(block, segment.file_start)


def _check_zeros_after(parts: StoreParts, log_end: LogEnd) -> Iterator[Problem]:
    """I3: nothing after the last record, in any file."""
    end = log_end.now()
    for start in parts.log.files.starts():
        file = parts.log.files.file(start)
        if file is None or start + file.size <= end:
            continue
        found = first_nonzero(file, max(end - start, 0))
        if found is not None and log_end.now() == end and parts.tail.intent() is None:
            text = f"a byte that is not zero, behind the end of the log at {end}"
            yield Problem("I3", parts.log.files.folder / file_name(start), start + found, text)
