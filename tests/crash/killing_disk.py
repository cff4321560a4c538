"""A disk on which the process dies at a chosen operation."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.storage.disk import Disk, DiskFile


class KillingDisk(Disk):
    """Counts writes, syncs, renames and removals; at the n-th the process kills itself.

    Every other death is in the middle of a write, of which the first half is done. `arm` starts
    the count; before that nothing is counted.
    """

    def __init__(self, kill_at: int) -> None:
        self._left = kill_at
        self._is_armed = False

    def arm(self) -> None:
        self._is_armed = True

    def is_last(self) -> bool:
        """Count an operation; return whether the process must die now."""
        self._left -= self._is_armed
        return self._is_armed and self._left <= 0

    def step(self) -> None:
        if self.is_last():
            die()

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        return _KillingFile(path, self, writable=writable)

    def rename(self, old: Path, new: Path) -> None:
        self.step()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self.step()
        super().remove(path)

    def make_folder(self, path: Path) -> None:
        if not path.is_dir():
            self.step()
        super().make_folder(path)

    def sync_folder(self, path: Path) -> None:
        self.step()
        super().sync_folder(path)


class _KillingFile(DiskFile):
    def __init__(self, path: Path, disk: KillingDisk, *, writable: bool) -> None:
        super().__init__(path, writable=writable)
        self._disk = disk

    def write(self, data: bytes | memoryview[Any], at: int) -> None:
        if self._disk.is_last():
            super().write(memoryview(data)[: len(data) // 2], at)
            die()
        super().write(data, at)

    def write_on(self, data: bytes | memoryview[Any], at: int) -> None:
        self.write(data, at)  # which may be torn, wherever it goes

    def scatter(self, positions: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
        if self._disk.is_last():
            half = len(positions) // 2
            super().scatter(positions[:half], values[:half])
            die()
        super().scatter(positions, values)

    def poke(self, data: bytes | memoryview[Any], at: int) -> None:
        self._disk.step()
        super().poke(data, at)

    def sync(self) -> None:
        self._disk.step()
        super().sync()


def die() -> None:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
