"""`rocketpy/tail`: where the log ends, for all processes that have the store open.

`end` and `stored_ms` are written by the holder of the store's lock alone, as the last step of an
append. One that died leaves bytes after `end`, and so does Apache's broker, which does not know of
this file; the next holder finishes or cuts what they left. `flushed` is written by whoever synced
the log; it may lag, it never runs ahead of what is durable, so damage below it cannot be the trace
of a crash. Only the lock holder writes `indexed`: single sends leave their index entries to be
written later, many at once (indexing.py). An append announces itself before its first byte, so that
readers leave out what it may still take back (published.py).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.layout import (
    APPEND_AT,
    APPEND_STRUCT,
    FLUSHED_AT,
    INDEXED_AT,
    INTENT_AT,
    INTENT_MAGIC,
    INTENT_STRUCT,
    MARK_STRUCT,
    REMOVALS_AT,
    TAIL_FILE,
    TAIL_FILE_SIZE,
    TAIL_MAGIC,
    TAIL_STRUCT,
)

_NO_INTENT = bytes(INTENT_STRUCT.size)
_GLIMPSES = 1000  # a write takes less time than one of them


def check_of(end: int, stored_ms: int) -> int:
    """Return what stands after the state, so that a flipped bit is not believed."""
    return ~(end ^ stored_ms)


class TailState(NamedTuple):
    """What the tail file says."""

    end: int
    stored_ms: int  # the newest store timestamp: none may be older


class Announced(NamedTuple):
    """An append that was begun. It is over as soon as the log's end is not its begin."""

    begin: int
    end: int  # where the log will end
    number: int  # no other append has it, not even one that begins at the same byte


_NOTHING = Announced(-1, -1, 0)


class TailFile:
    """The shared end of the log."""

    def __init__(self, root: Path, disk: Disk, *, writable: bool) -> None:
        self._path, self._disk = root / TAIL_FILE, disk
        self._file: DiskFile | None = None
        # What this process wrote last: one tuple, as threads share it.
        self._written: tuple[bytes, TailState | None] = b"", None
        is_whole = self._path.exists() and self._path.stat().st_size == TAIL_FILE_SIZE
        if writable and not is_whole:
            # Allocated, so that a full disk cannot keep an append from being marked.
            self._file = disk.create(self._path, TAIL_FILE_SIZE, allocated=TAIL_FILE_SIZE)
        elif writable:
            self._file = disk.open(self._path, writable=True)

    def forget(self) -> None:
        """Let go of the file; from now on it is only read."""
        self._file = None

    def _found(self) -> DiskFile | None:
        """Return the file; to a reader it may be missing until somebody writes to the store."""
        if self._file is None and self._path.exists():
            self._file = self._disk.open(self._path, writable=False)
        return self._file

    def read(self) -> TailState | None:
        """Return the state; None if it was never written, or does not match its check."""
        file = self._file or self._found()
        if file is None or file.size < TAIL_STRUCT.size:
            return None
        written, state = self._written
        if file.memory[: TAIL_STRUCT.size] == written:  # nobody else has written since
            return state
        magic, end, stored_ms, check = TAIL_STRUCT.unpack_from(file.memory)
        is_sound = magic == TAIL_MAGIC and check == ~(end ^ stored_ms)
        return TailState(end, stored_ms) if is_sound else None

    def end_bytes(self) -> bytes:
        """Return bytes that stay the same as long as nobody moves the end."""
        file = self._file or self._found()
        return bytes(file.memory[: TAIL_STRUCT.size]) if file is not None else b""

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
        end, stored_ms = state
        data = TAIL_STRUCT.pack(TAIL_MAGIC, end, stored_ms, ~(end ^ stored_ms))
        self._file.poke(data, 0)
        self._written = data, state

    def write_settled(self, state: TailState) -> None:
        """Publish a state in which nothing is after the log's end. Hold the store's lock."""
        self.write(state)
        self.announce(-1, -1)

    def announce(self, begin: int, end: int) -> None:
        """Say what an append is about to write. Call while holding the store's lock."""
        assert self._file is not None
        number = time.monotonic_ns()  # the same in all processes, and always another one
        self._file.poke(APPEND_STRUCT.pack(begin, end, number, ~(begin ^ end ^ number)), APPEND_AT)

    def announced(self) -> Announced:
        """Return the last append that was announced; one that begins at -1 if there is none."""
        file = self._file or self._found()
        if file is None or file.size < TAIL_FILE_SIZE:
            return _NOTHING
        for _ in range(_GLIMPSES):
            begin, end, number, check = APPEND_STRUCT.unpack_from(file.memory, APPEND_AT)
            if check == ~(begin ^ end ^ number):
                return Announced(begin, end, number)
            if not (begin or end or number):  # never written
                break
        return _NOTHING

    def sync(self) -> None:
        """Make the state durable.

        Needed where an end may have gone back: an older, higher one must not return with a crash.
        """
        assert self._file is not None
        self._file.sync()

    def flushed(self) -> int:
        """Return an end up to which the log is durable: a lower bound."""
        return self._mark(FLUSHED_AT) or 0

    def write_flushed(self, end: int) -> None:
        """Say that the log is durable up to `end`. Needs no lock."""
        file = self._file  # another thread may be closing the store
        if file is not None and end > self.flushed():
            file.write(MARK_STRUCT.pack(end, ~end), FLUSHED_AT)

    def indexed(self) -> int | None:
        """Return the end up to which the log is in the index; None if that is not known."""
        return self._mark(INDEXED_AT)

    def write_indexed(self, end: int) -> None:
        """Say that the log is in the index up to `end`. Call while holding the store's lock."""
        assert self._file is not None
        self._file.poke(MARK_STRUCT.pack(end, ~end), INDEXED_AT)

    def removals(self) -> int | None:
        """Return a number that moves whenever deleted topics are noted; None if it is damaged."""
        file = self._file or self._found()
        if file is None or file.size < TAIL_FILE_SIZE:
            return None
        number, complement = MARK_STRUCT.unpack_from(file.memory, REMOVALS_AT)
        if not number and not complement:  # never written
            return 0
        return int(number) if number == ~complement else None

    def write_removals(self, number: int) -> None:
        """Move that number. Call while holding the store's lock."""
        assert self._file is not None
        self._file.poke(MARK_STRUCT.pack(number, ~number), REMOVALS_AT)

    def _mark(self, at: int) -> int | None:
        """Return a mark; None if it was never written, or does not match its check."""
        file = self._found()
        data = file.read(at, MARK_STRUCT.size) if file else b""
        if len(data) < MARK_STRUCT.size:
            return None
        number, complement = MARK_STRUCT.unpack(data)
        return int(number) if number == ~complement else None

    def has_intent(self) -> bool:
        """Whether a batch is being committed, or was when its committer died (see intent.py)."""
        file = self._file or self._found()
        if file is None or file.size < TAIL_FILE_SIZE:
            return False
        return file.memory[INTENT_AT : INTENT_AT + INTENT_STRUCT.size] != _NO_INTENT

    def intent(self) -> int | None:
        """Return where the batch begins that is being committed; None without one."""
        if not self.has_intent() or self._file is None:
            return None
        magic, begin, complement = INTENT_STRUCT.unpack_from(self._file.memory, INTENT_AT)
        return int(begin) if magic == INTENT_MAGIC and begin == ~complement else None

    def write_intent(self, begin: int | None) -> None:
        """Say where a batch begins, durably; None when it is done. Call while holding the lock."""
        assert self._file is not None
        if begin is None:
            self._file.poke(_NO_INTENT, INTENT_AT)
        else:
            self._file.poke(INTENT_STRUCT.pack(INTENT_MAGIC, begin, ~begin), INTENT_AT)
            self._file.sync()
