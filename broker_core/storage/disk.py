"""The only door to the file system: written with pwrite, read through mappings.

Writing to a sparse mapping on a full disk kills the process; pwrite reports an error that can be
handled with nothing lost. The exceptions, DiskFile.poke, write_on and scatter, write to blocks that
the file has, and only where the file system writes them in place. Reading a hole through a
mapping takes room in a file system in memory: code that maps files keeps to data_ranges(), or reads
with pread. Tests replace Disk by one that loses, tears and reorders unsynced writes.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.errors import DiskFullError
from rocketpy.broker_core.lazy import lazy_property
from rocketpy.broker_core.storage.file_system import begin_write_back, in_place_block

_FULL = (errno.ENOSPC, errno.EDQUOT)
_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
_CHUNK = 1 << 20
_ZEROS = bytes(_CHUNK)
_UNFINISHED = ".new"
_SYNCS_AT_ONCE = 32  # ten times as fast as one by one


class DiskFile:
    """An open file of fixed size.

    It closes itself when nobody holds it any more: a thread that still reads must not find its
    descriptor closed, or worse, reused. Mappings live as long as arrays over them do.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path, self._writable = path, writable
        self._fd = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size

    @lazy_property
    def _mapping(self) -> mmap.mmap:
        """One mapping for reads and writes: each page is faulted in once."""
        access = mmap.PROT_READ | (mmap.PROT_WRITE if self._writable else 0)
        return mmap.mmap(self._fd, self.size, prot=access)

    @lazy_property
    def _mapped(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self._mapping, np.uint8) if self.size else np.zeros(0, np.uint8)

    def let_go(self) -> None:
        """No longer count what was touched as memory of this process; the system's cache has it."""
        if "_mapping" in self.__dict__:  # nothing was touched before it was mapped
            self._mapping.madvise(mmap.MADV_DONTNEED)

    @lazy_property
    def view(self) -> npt.NDArray[np.uint8]:
        """The file's bytes, to be read; shows at once what any process writes."""
        view = self._mapped.view()
        view.flags.writeable = False
        return view

    @lazy_property
    def memory(self) -> memoryview:
        """The same, for reads too small for numpy."""
        return self.view.data

    @lazy_property
    def _bytes(self) -> memoryview:
        return self._mapped.data

    def read(self, at: int, size: int) -> bytes:
        """Return up to `size` bytes from `at` on."""
        return os.pread(self._fd, size, at)

    def read_into(self, buffer: memoryview[Any], at: int) -> None:
        """Fill a buffer with the bytes from `at` on; what the file does not have stays as it is."""
        os.preadv(self._fd, [buffer], at)

    def write(self, data: bytes | memoryview[Any], at: int) -> None:
        """Write all of `data`, or raise.

        Raises:
            DiskFullError: there is no room; a first part may have been written.
        """
        try:
            written = os.pwrite(self._fd, data, at)
            if written < len(data):
                rest = memoryview(data)
                while written < len(rest):
                    written += os.pwrite(self._fd, rest[written:], at + written)
        except OSError as cause:
            raise_if_full(cause, self.path, len(data))
            raise

    @lazy_property
    def _block(self) -> int:
        """The size of blocks that are written in place; 0 if they may not be."""
        return in_place_block(self._fd)

    @lazy_property
    def _shared_page(self) -> int:
        """The page size, if a page has its block as a whole as soon as one byte has; else 1."""
        return mmap.PAGESIZE if self._block >= mmap.PAGESIZE else 1

    def write_on(self, data: bytes | memoryview[Any], at: int) -> None:
        """Write what follows a byte that was written: write() without a system call, if it can.

        It can where all of it goes to the page of that byte.
        """
        page = self._shared_page
        if 0 < at % page <= page - len(data):
            self.poke(data, at)
        else:
            self.write(data, at)

    def read_on(self, at: int, size: int) -> bytes:
        """Return what follows a byte that was written: read() without a system call, if it can."""
        page = self._shared_page
        if 0 < at % page <= page - size:
            return bytes(self.memory[at : at + size])
        return self.read(at, size)

    def poke(self, data: bytes | memoryview[Any], at: int) -> None:
        """Write a few bytes to an allocated block: without a system call, where that can't fail."""
        if self._block:
            self._bytes[at : at + len(data)] = data
        else:
            self.write(data, at)

    def can_scatter(self, end: int) -> bool:
        """Whether scatter() may write to the bytes before `end`; sees to it that they have blocks.

        Where there is no room for these, writing with write() may still find some.
        """
        if not self._block:
            return False
        try:
            os.posix_fallocate(self._fd, 0, end)
        except OSError as cause:
            if cause.errno in _FULL:
                return False
            raise
        return True

    def scatter(self, positions: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
        """Write values to positions that are multiples of their size. First ask can_scatter()."""
        self._mapped.view(values.dtype)[positions // values.dtype.itemsize] = values

    def zero(self, start: int, end: int) -> None:
        """Make a range zero; holes stay holes."""
        for first, last in self.data_ranges(start, end):
            for at in range(first, last, _CHUNK):
                size = min(_CHUNK, last - at)
                if self.view[at : at + size].any():
                    self.write(memoryview(_ZEROS)[:size], at)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a range that are not holes."""
        at, end = start, min(end, self.size)
        while at < end:
            try:
                first = os.lseek(self._fd, at, os.SEEK_DATA)
                hole = os.lseek(self._fd, first, os.SEEK_HOLE)
            except OSError as cause:
                if cause.errno == errno.ENXIO:  # no data up to the end of the file
                    return
                first, hole = at, end  # a file system that does not know of holes
            if first >= end:
                return
            yield max(first, at), min(hole, end)
            at = hole

    def data_end(self, start: int) -> int:
        """Return where the hole at the end of the file begins; `start` if there is no data."""
        return max((last for _, last in self.data_ranges(start, self.size)), default=start)

    def sync(self) -> None:
        """Return when all that was written is durable."""
        _sync(self._fd)

    def write_back(self, start: int, end: int) -> None:
        """Begin to make a range durable, for a sync() that is to come: it then waits less."""
        begin_write_back(self._fd, start, end)

    @property
    def is_removed(self) -> bool:
        """Whether it was removed, or replaced, since it was opened."""
        return os.fstat(self._fd).st_nlink == 0

    def __del__(self) -> None:
        fd = getattr(self, "_fd", -1)
        if fd >= 0:
            os.close(fd)


class Disk:
    """Makes, opens, replaces and removes files; each is durable as its method says."""

    def create(self, path: Path, size: int, *, allocated: int = 0) -> DiskFile:
        """Make a file of zeros, sparse but for its first `allocated` bytes; the name is durable.

        The file appears under its name only when it has its size, so a crash leaves no short one.
        """
        return self.take(self.make_beside(path, size, allocated=allocated), path)

    def make_beside(self, path: Path, size: int, *, allocated: int = 0) -> Path:
        """Make what create() makes, but under another name, for take(); return that name."""
        temporary = _temporary(path)
        try:
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                os.ftruncate(fd, size)
                if allocated:
                    os.posix_fallocate(fd, 0, allocated)
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as cause:
            temporary.unlink(missing_ok=True)
            raise_if_full(cause, path, allocated)
            raise
        return temporary

    def take(self, made: Path, path: Path) -> DiskFile:
        """Give a file that was made beside its path its name; open it."""
        try:
            self.rename(made, path)
        except OSError as cause:
            made.unlink(missing_ok=True)
            raise_if_full(cause, path, 0)
            raise
        return self.open(path, writable=True)

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        """Open a file that exists."""
        return DiskFile(path, writable=writable)

    def replace(self, path: Path, data: bytes, *, modified_ns: int | None = None) -> None:
        """Replace a whole small file: after a crash it is the old one or the new one.

        `modified_ns` is the time of its last change, if that shall not be now.
        """
        temporary = _temporary(path)
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
                if modified_ns is not None:
                    os.utime(fd, ns=(modified_ns, modified_ns))
                os.fsync(fd)
            finally:
                os.close(fd)
            self.rename(temporary, path)
        except OSError as cause:
            temporary.unlink(missing_ok=True)
            raise_if_full(cause, path, len(data))
            raise

    def stage(self, path: Path, data: bytes, token: str) -> Path:
        """Write what shall replace a file, under a name that nobody else uses; not durable yet."""
        temporary = path.with_name(f".{path.name}.{token}{_UNFINISHED}")
        try:
            temporary.write_bytes(data)
        except OSError as cause:
            temporary.unlink(missing_ok=True)
            raise_if_full(cause, path, len(data))
            raise
        return temporary

    def sync_many(self, paths: Iterable[Path]) -> None:
        """Return when many small files are durable; those that wait together share the disk."""
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
            for _ in pool.map(_sync_path, paths):
                pass

    def rename(self, old: Path, new: Path) -> None:
        """Rename durably, over what is there."""
        old.replace(new)
        self.sync_folder(new.parent)

    def remove(self, path: Path) -> None:
        """Remove a file if it is there, durably."""
        path.unlink(missing_ok=True)
        self.sync_folder(path.parent)

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder if it is there, durably."""
        with suppress(FileNotFoundError):
            path.rmdir()
        self.sync_folder(path.parent)

    def make_folder(self, path: Path) -> None:
        """Make a folder and the missing ones above it, durably."""
        if path.is_dir():
            return
        self.make_folder(path.parent)
        try:
            path.mkdir(exist_ok=True)
        except OSError as cause:
            raise_if_full(cause, path, 4096)
            raise
        self.sync_folder(path.parent)

    def sync_folder(self, path: Path) -> None:
        """Return when the names in a folder are durable."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _temporary(path: Path) -> Path:
    """Return a name beside a path that no other thread or process uses."""
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}{_UNFINISHED}")


def _sync_path(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_unfinished(root: Path) -> None:
    """Remove what create() and replace() leave when they die. Call when nobody else writes."""
    for parent, _, names in os.walk(root):
        for name in names:
            if name.startswith(".") and name.endswith(_UNFINISHED):
                (Path(parent) / name).unlink(missing_ok=True)


def raise_if_full(cause: OSError, path: Path, needed: int) -> None:
    """Turn an error that says the disk is full into ours."""
    if cause.errno in _FULL:
        raise DiskFullError(path, needed, os.strerror(cause.errno or 0)) from cause
