"""Finding records again after damaged bytes.

A record is recognised by its magic number, its own physical offset and its check sums, so bytes of
a body that happen to look like a record are not taken for one.
"""

from __future__ import annotations

import numpy as np

from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.gather import Bytes
from rocketpy.broker_core.codec.layout import MAGIC_V1, MAGIC_V2
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.storage.commit_log import CommitLog

_MAGICS = tuple(magic.to_bytes(4, "big") for magic in (MAGIC_V1, MAGIC_V2))
_CHUNK = 1 << 20


def next_sound_record(log: CommitLog, offset: int) -> int | None:
    """Return the physical offset of the first sound record from `offset` on, in any file."""
    for start in log.files.starts():
        file = log.files.file(start)
        if file is None or start + file.size <= offset:
            continue
        for first, last in file.data_ranges(max(offset - start, 0), file.size):
            found = _in_range(file.view, start, first, last)
            if found is not None:
                return start + found
    return None


def _in_range(data: Bytes, file_start: int, first: int, last: int) -> int | None:
    for at in range(first, last, _CHUNK):
        # A magic number may straddle two chunks.
        chunk = data[at : min(at + _CHUNK + 3, last)].tobytes()
        positions = sorted(each for magic in _MAGICS for each in _positions_of(chunk, magic))
        for position in positions:
            start = at + position - 4
            if start >= first and is_sound_record(data, start, file_start + start):
                return start
    return None


def _positions_of(chunk: bytes, magic: bytes) -> list[int]:
    positions, at = [], chunk.find(magic)
    while at >= 0:
        positions.append(at)
        at = chunk.find(magic, at + 1)
    return positions


def is_sound_record(data: Bytes, position: int, physical_offset: int) -> bool:
    """Whether a whole, sound record of that physical offset begins at a position of a buffer."""
    starts, _ = record_starts(data, position, data.size, 1)
    if not starts:
        return False
    try:
        block = RecordBlock(data, np.array(starts, np.int64))
    except RecordError:
        return False
    return bool(block.head["physical_offset"][0] == physical_offset and block.sound()[0])
