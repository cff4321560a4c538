"""A file system of a few megabytes, and how to fill it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = 4096


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[Path]:
    """A file system of so many bytes in memory."""
    options = ["-t", "tmpfs", "-o", f"size={size}", "rocketpy-test"]
    ran = subprocess.run(
        ["mount", *options, str(folder)], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        reason = f"mounting is not permitted here: {ran.stderr.strip()}"
        if "CI" in os.environ:
            pytest.fail(reason)
        pytest.skip(reason)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Filler:
    """Takes room away and gives it back."""

    def __init__(self, disk: Path) -> None:
        self._path = disk / "filler"

    def leave(self, room: int) -> None:
        """Fill the disk up to so many bytes."""
        self._path.touch()
        status = os.statvfs(self._path)
        free = status.f_bavail * status.f_frsize
        assert free >= room, f"{free} bytes are free, {room} are to be left"
        with self._path.open("ab") as file:
            file.write(bytes(free - room))

    def free(self) -> None:
        self._path.unlink()
