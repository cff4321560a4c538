"""The disk of a test's broker: it can be full, let syncs wait, or take nothing more at all.

Everything else it does for real. Reads are never hindered. Files of a temporary folder are not
synced: they need not outlive the machine.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.storage.disk import Disk, DiskFile, raise_if_full
from rocketpy.broker_core.storage.layout import COMMIT_LOG


class LocalDisk(Disk):
    """A disk with faults. Any thread may set them."""

    def __init__(self, *, syncs: bool) -> None:
        self.syncs = syncs
        self.is_full = self.is_dead = False
        self.refused = 0  # writes, since it is full
        self.held_back = 0  # syncs that had to wait
        self._may_sync = threading.Event()
        self._may_sync.set()

    def hold_syncs(self) -> None:
        """Let syncs of the log wait until they are released."""
        self._may_sync.clear()

    def release_syncs(self) -> None:
        """Let them go on."""
        self._may_sync.set()

    def check_alive(self) -> None:
        """Raise if the disk takes nothing more: a process that was killed writes nothing."""
        if self.is_dead:
            raise OSError(errno.EIO, "the broker was killed")

    def check_room(self, path: Path, size: int) -> None:
        """Raise if the disk is full, or dead."""
        self.check_alive()
        if self.is_full:
            self.refused += 1
            raise_if_full(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), path, size)

    def wait_for_sync(self) -> None:
        """Return when syncs are not held back."""
        if not self._may_sync.is_set():
            self.held_back += 1
            self._may_sync.wait()

    # --- as Disk ----------------------------------------------------------------------------------

    def make_beside(self, path: Path, size: int, *, allocated: int = 0) -> Path:
        """Make a file, if there is room."""
        self.check_room(path, allocated)
        if self.syncs:
            return super().make_beside(path, size, allocated=allocated)
        temporary = _temporary(path)
        with temporary.open("wb") as file:
            file.truncate(size)
            if allocated:
                os.posix_fallocate(file.fileno(), 0, allocated)
        return temporary

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        """Open a file that exists."""
        file = _LocalFile(path, writable=writable)
        file.disk, file.is_log = self, path.parent.name == COMMIT_LOG
        return file

    def replace(self, path: Path, data: bytes, *, modified_ns: int | None = None) -> None:
        """Replace a whole small file."""
        self.check_alive()
        if self.syncs or modified_ns is not None:
            return super().replace(path, data, modified_ns=modified_ns)
        temporary = _temporary(path)
        temporary.write_bytes(data)
        return self.rename(temporary, path)

    def stage(self, path: Path, data: bytes, token: str) -> Path:
        """Write what shall replace a file."""
        self.check_alive()
        return super().stage(path, data, token)

    def rename(self, old: Path, new: Path) -> None:
        """Rename durably."""
        self.check_alive()
        super().rename(old, new)

    def sync_many(self, paths: Iterable[Path]) -> None:
        """Return when many small files are durable."""
        if self.syncs:
            super().sync_many(paths)

    def sync_folder(self, path: Path) -> None:
        """Return when the names in a folder are durable."""
        if self.syncs:
            super().sync_folder(path)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        self.check_alive()
        super().remove(path)


class _LocalFile(DiskFile):
    disk: LocalDisk
    is_log: bool  # its writes need room; those to queues follow a write to the log

    def write(self, data: bytes | memoryview[Any], at: int) -> None:
        self._check(len(data))
        super().write(data, at)

    def write_on(self, data: bytes | memoryview[Any], at: int) -> None:
        self._check(len(data))
        super().write_on(data, at)

    def poke(self, data: bytes | memoryview[Any], at: int) -> None:
        self.disk.check_alive()
        super().poke(data, at)

    def scatter(self, positions: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
        self.disk.check_alive()
        super().scatter(positions, values)

    def sync(self) -> None:
        self.disk.check_alive()
        if self.is_log:
            self.disk.wait_for_sync()
        if self.disk.syncs:
            super().sync()

    def _check(self, size: int) -> None:
        if self.is_log:
            self.disk.check_room(self.path, size)
        else:
            self.disk.check_alive()


def _temporary(path: Path) -> Path:
    """Return a name beside a path as Disk uses it, so that a recovery removes what is left."""
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.new")
