"""The message index: index files in the order of their making, the last one open for entries."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.index_file import IndexFile
from rocketpy.broker_core.storage.layout import (
    INDEX,
    INDEX_ENTRY,
    INDEX_HEADER_SIZE,
    INDEX_SLOT,
)

_NAME_DIGITS = 17  # yyyyMMddHHmmssSSS, local time


class MessageIndex:
    """All index files of a store. Only the lock holder writes."""

    def __init__(self, root: Path, slots: int, entries: int, disk: Disk, *, writable: bool) -> None:
        self.folder = root / INDEX
        self._slots, self._entries, self._disk, self._writable = slots, entries, disk, writable
        self._last: IndexFile | None = None
        self._open: dict[str, IndexFile] = {}  # for look-ups

    def forget(self) -> None:
        """Let go of all open files."""
        self._last, self._open = None, {}

    def let_go(self) -> None:
        """No longer count what was touched as memory of this process: see DiskFile."""
        last = self._last
        for each in [*self._open.values(), *([last] if last else [])]:
            each.file.let_go()

    def names(self) -> list[str]:
        """Return the names of the index files, the oldest first."""
        try:
            names = [entry.name for entry in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if len(name) == _NAME_DIGITS and name.isdigit())

    def file(self, name: str, *, create: bool = False) -> IndexFile:
        """Open one file, or make it."""
        return IndexFile(
            self.folder / name,
            self._slots,
            self._entries,
            self._disk,
            writable=self._writable,
            create=create,
        )

    def files(self) -> list[IndexFile]:
        """Return all files, the oldest first; without those that are being removed meanwhile."""
        known, found = self._open, dict[str, IndexFile]()
        for name in self.names():
            with suppress(FileNotFoundError):
                file = known.get(name)
                # One that was cut off and removed may have come back under its name.
                found[name] = file if file and not file.file.is_removed else self.file(name)
        self._open = found  # at once: threads share this
        return list(found.values())

    def put(
        self,
        hashes: Ints,
        physical_offsets: Ints,
        timestamps: Ints,
        slot_by_slot: Ints | None = None,
    ) -> None:
        """Insert entries, in new files where they do not fit.

        `slot_by_slot` is the order of their slots, if somebody has found it: see IndexFile.
        """
        while len(hashes):
            file = self._open_file(int(timestamps[0]))
            done = file.put(hashes, physical_offsets, timestamps, slot_by_slot)
            hashes, physical_offsets, timestamps = (
                column[done:] for column in (hashes, physical_offsets, timestamps)
            )

    def _open_file(self, now_ms: int) -> IndexFile:
        last = self._last
        if last is not None and not last.is_full and not last.file.is_removed:  # by others
            return last
        names = self.names()
        if names:
            self._last = self.file(names[-1])
            if not self._last.is_full:
                return self._last
        previous = self._last.header() if names and self._last else None
        self._last = self.file(_new_name(now_ms, names), create=True)
        if previous is not None:
            self._last.write_empty_header(previous)
        return self._last

    def end_physical_offset(self) -> int:
        """Return the offset of the newest message that is in the index, -1 if there is none."""
        for name in reversed(self.names()):
            header = self.file(name).header()
            if header.count > 1:
                return header.end_physical_offset
        return -1

    def find(self, key_hash: int) -> list[tuple[int, int]]:
        """Return (physical offset, store time in s) for a hash, the newest file first."""
        return [hit for file in reversed(self.files()) for hit in file.find(key_hash)]

    def cut(self, physical_offset: int, end_ms: int) -> None:
        """Take out the entries of records from an offset on; `end_ms` is the newest time before."""
        self._last = None
        for name in reversed(self.names()):
            file = self.file(name)
            file.cut(physical_offset, end_ms)
            if file.header().count > 1:
                break
            self.remove(name)

    def remove(self, name: str) -> None:
        """Remove one file."""
        self._last = None
        self._disk.remove(self.folder / name)


def _new_name(now_ms: int, names: list[str]) -> str:
    """Return a name from the time, later than all names there are."""
    while True:
        when = datetime.fromtimestamp(now_ms / 1000)
        name = when.strftime("%Y%m%d%H%M%S") + f"{now_ms % 1000:03d}"
        if not names or name > names[-1]:
            return name
        newest = datetime.strptime(names[-1][:14], "%Y%m%d%H%M%S")
        now_ms = int(newest.timestamp() * 1000) + int(names[-1][14:]) + 1


def index_geometry(size: int) -> tuple[int, int] | None:
    """Return (slots, entries) of an index file of that size, if they are in Apache's ratio of 1:4.

    The file itself does not tell them.
    """
    per_slot = INDEX_SLOT.itemsize + 4 * INDEX_ENTRY.itemsize
    slots, rest = divmod(size - INDEX_HEADER_SIZE, per_slot)
    return (slots, 4 * slots) if slots > 0 and rest == 0 else None
