"""A disk that remembers, and what a power loss can make of its memory.

RecordingDisk does everything for real and writes down each operation. PowerLoss goes through these
operations again and keeps apart what is durable and what is not; at any moment it can tell what
might be found after the power is back:

- a write that was not synced is there, is not, or is there in some sectors only, each sector with
  any of the contents that it had since the last sync, or torn between two of them;
- a name that was not synced is there or is not, one by one;
- whatever was synced is there.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.storage.disk import Disk, DiskFile

SECTOR = 512


class Write(NamedTuple):
    file: int
    at: int
    data: bytes


class Sync(NamedTuple):
    file: int


class Link(NamedTuple):
    """A file whose content is durable gets a name, in the place of what had it."""

    path: Path
    file: int
    content: bytes


class Unlink(NamedTuple):
    path: Path


class MakeFolder(NamedTuple):
    path: Path


class RemoveFolder(NamedTuple):
    path: Path


class SyncFolder(NamedTuple):
    path: Path


class Note(NamedTuple):
    """What the test did between two operations."""

    what: str
    value: Any


Operation = Write | Sync | Link | Unlink | MakeFolder | RemoveFolder | SyncFolder | Note
NameChange = Link | Unlink | MakeFolder | RemoveFolder


@dataclass(frozen=True)
class Tree:
    """The durable content of a folder: its files, and the folders in it."""

    files: dict[Path, bytes]
    folders: frozenset[Path]

    def write_to(self, root: Path) -> None:
        """Make a folder look so; its lock file stays, whose lock this process may remember."""
        for path in root.iterdir() if root.exists() else ():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()
        for folder in sorted(self.folders):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for path, content in self.files.items():
            (root / path).write_bytes(content)


class RecordingDisk(Disk):
    """Performs everything below `root` for real, and records it. For one thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.operations: list[Operation] = []
        self._files = 0
        self._names: dict[Path, int] = {}
        root.mkdir(parents=True, exist_ok=True)
        for parent, folders, names in os.walk(root):
            here = Path(parent).relative_to(root)
            for name in folders:
                self.operations.append(MakeFolder(here / name))
            for name in names:
                self._link(here / name, (root / here / name).read_bytes())
            self.operations.append(SyncFolder(here))

    def _link(self, path: Path, content: bytes) -> None:
        self._files += 1
        self._names[path] = self._files
        self.operations.append(Link(path, self._files, content))

    def note(self, what: str, value: Any = None) -> None:
        self.operations.append(Note(what, value))

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        file = _RecordingFile(path, writable=writable)
        file.number, file.operations = self._names[path.relative_to(self._root)], self.operations
        return file

    def rename(self, old: Path, new: Path) -> None:
        self._link(new.relative_to(self._root), old.read_bytes())
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._names.pop(path.relative_to(self._root), None)
        self.operations.append(Unlink(path.relative_to(self._root)))
        super().remove(path)

    def make_folder(self, path: Path) -> None:
        if not path.is_dir():
            self.make_folder(path.parent)
            self.operations.append(MakeFolder(path.relative_to(self._root)))
        super().make_folder(path)

    def remove_folder(self, path: Path) -> None:
        self.operations.append(RemoveFolder(path.relative_to(self._root)))
        super().remove_folder(path)

    def sync_folder(self, path: Path) -> None:
        if path.is_relative_to(self._root):
            self.operations.append(SyncFolder(path.relative_to(self._root)))
        super().sync_folder(path)


class _RecordingFile(DiskFile):
    number: int
    operations: list[Operation]

    def write(self, data: bytes | memoryview[Any], at: int) -> None:
        self.operations.append(Write(self.number, at, bytes(data)))
        super().write(data, at)

    def poke(self, data: bytes | memoryview[Any], at: int) -> None:
        self.operations.append(Write(self.number, at, bytes(data)))
        super().poke(data, at)

    def scatter(self, positions: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
        data, size = values.tobytes(), values.dtype.itemsize
        for row, at in enumerate(positions.tolist()):
            self.operations.append(Write(self.number, at, data[row * size : (row + 1) * size]))
        super().scatter(positions, values)

    def sync(self) -> None:
        super().sync()
        self.operations.append(Sync(self.number))


class Style(Enum):
    """What becomes of that which was not synced."""

    LOST = "all of it is lost"
    KEPT = "all of it is there"
    SECTORS = "each sector is of any age"
    TORN = "each sector is of any age, or between two"


class PowerLoss:
    """Takes operations one by one; knows what a power loss after the last one may leave."""

    def __init__(self) -> None:
        self._content: dict[int, bytearray] = {}
        self._pending: dict[int, list[Write]] = {}
        self._names: dict[Path, int] = {}
        self._folders: set[Path] = {Path()}
        self._pending_names: dict[Path, list[NameChange]] = {}

    def apply(self, operation: Operation) -> None:
        match operation:
            case Write(file):
                self._pending.setdefault(file, []).append(operation)
            case Sync(file):
                for write in self._pending.pop(file, []):
                    _put(self._content[file], write.at, write.data)
            case Link(path, file, content):
                self._content[file] = bytearray(content)
                self._pending_names.setdefault(path.parent, []).append(operation)
            case Unlink(path) | MakeFolder(path) | RemoveFolder(path):
                self._pending_names.setdefault(path.parent, []).append(operation)
            case SyncFolder(path):
                for change in self._pending_names.pop(path, []):
                    _rename(self._names, self._folders, change)

    def found(self, style: Style, rng: random.Random) -> Tree:
        """Return what may be found when the power is back."""
        names, folders = dict(self._names), set(self._folders)
        for change in self._survivors(style, rng):
            _rename(names, folders, change)
        kept = {path for path in folders if all(parent in folders for parent in path.parents)}
        files = {
            path: bytes(self._content_after(file, style, rng))
            for path, file in names.items()
            if path.parent in kept
        }
        return Tree(files, frozenset(kept))

    def _survivors(self, style: Style, rng: random.Random) -> Iterator[NameChange]:
        for changes in self._pending_names.values():
            for change in changes:
                if style is Style.KEPT or (style is not Style.LOST and rng.random() < 0.5):
                    yield change

    def _content_after(self, file: int, style: Style, rng: random.Random) -> bytearray:
        content = bytearray(self._content[file])
        if style is Style.LOST:
            return content
        sectors: dict[int, list[tuple[int, bytes]]] = {}
        for write in self._pending.get(file, []):
            for at, data in _split(write):
                sectors.setdefault(at // SECTOR, []).append((at, data))
        for versions in sectors.values():
            count = len(versions) if style is Style.KEPT else rng.randrange(len(versions) + 1)
            for at, data in versions[:count]:
                _put(content, at, data)
            if style is Style.TORN and count < len(versions) and rng.random() < 0.5:
                at, data = versions[count]
                cut = rng.randrange(len(data))
                if rng.random() < 0.5:
                    _put(content, at, data[:cut])
                else:
                    _put(content, at + cut, data[cut:])
        return content


def _split(write: Write) -> Iterator[tuple[int, bytes]]:
    """Yield a write sector by sector."""
    at, data = write.at, write.data
    while data:
        room = SECTOR - at % SECTOR
        yield at, data[:room]
        at, data = at + len(data[:room]), data[room:]


def _put(content: bytearray, at: int, data: bytes) -> None:
    assert at + len(data) <= len(content), "files have a fixed size"
    content[at : at + len(data)] = data


def _rename(names: dict[Path, int], folders: set[Path], change: NameChange) -> None:
    match change:
        case Link(path, file):
            names[path] = file
        case Unlink(path):
            names.pop(path, None)
        case MakeFolder(path):
            folders.add(path)
        case RemoveFolder(path):
            folders.discard(path)
