"""`rocketpy/tail`: where the log ends, for all processes that have the store open.

`end` and `stored_ms` are written by the holder of the store's lock alone, as the last step of an
append. One that died leaves bytes behind `end`, and the next holder finishes or cuts what it left;
so does Apache's broker, which does not know of this file. `flushed` is
written by whoever synced the log; it may lag, it never runs ahead of what is durable, so damage
below it cannot be the trace of a crash.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rocketpy.broker_core.message import PhysicalOffset
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.layout import (
    FLUSHED_AT,
    FLUSHED_STRUCT,
    TAIL,
    TAIL_FILE_SIZE,
    TAIL_MAGIC,
    TAIL_STRUCT,
)

_GLIMPSES = 1000  # a write takes less time than one of them


def check_of(end: int, stored_ms: int) -> int:
    """Return what stands behind the state, so that a flipped bit is not believed."""
    return ~(end ^ stored_ms)


class TailState(NamedTuple):
    """What the tail file says."""

    end: PhysicalOffset
    stored_ms: int  # the newest store timestamp: none may be older


class TailFile:
    """The shared end of the log."""

    def __init__(self, root: Path, disk: Disk, *, writable: bool) -> None:
        path = root / TAIL
        self._file: DiskFile | None
        is_whole = path.exists() and path.stat().st_size == TAIL_FILE_SIZE
        if writable and not is_whole:
            # Allocated, so that a full disk cannot keep an append from being marked.
            self._file = disk.create(path, TAIL_FILE_SIZE, allocated=TAIL_FILE_SIZE)
        else:
            self._file = disk.open(path, writable=writable) if path.exists() else None

    def read(self) -> TailState | None:
        """Return the state; None if it was never written, or does not match its check."""
        if self._file is None or self._file.size < TAIL_STRUCT.size:
            return None
        magic, end, stored_ms, check = TAIL_STRUCT.unpack_from(self._file.memory)
        is_sound = magic == TAIL_MAGIC and check == check_of(end, stored_ms)
        return TailState(end, stored_ms) if is_sound else None

    def glimpse(self) -> TailState | None:
        """Return the state without holding the store's lock: never one that is half written."""
        for _ in range(_GLIMPSES):
            state = self.read()
            if state is not None and state == self.read():
                return state
        return None

    def write(self, state: TailState) -> None:
        """Publish a state. Call while holding the store's lock."""
        assert self._file is not None
        self._file.poke(TAIL_STRUCT.pack(TAIL_MAGIC, *state, check_of(*state)), 0)

    def sync(self) -> None:
        """Make the state durable.

        Needed where an end may have gone back: an older, higher one must not return with a crash.
        """
        assert self._file is not None
        self._file.sync()

    def flushed(self) -> int:
        """Return an end up to which the log is durable: a lower bound."""
        data = self._file.read(FLUSHED_AT, FLUSHED_STRUCT.size) if self._file else b""
        if len(data) < FLUSHED_STRUCT.size:
            return 0
        end, complement = FLUSHED_STRUCT.unpack(data)
        return int(end) if end == ~complement else 0

    def write_flushed(self, end: int) -> None:
        """Say that the log is durable up to `end`. Needs no lock."""
        assert self._file is not None
        if end > self.flushed():
            self._file.write(FLUSHED_STRUCT.pack(end, ~end), FLUSHED_AT)
