"""Files of one size, one after the other: each is named by the offset of its first byte.

The commit log and every consume queue is such a sequence. Files are looked up by name, so what
another process adds or removes is seen without being told.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.layout import FILE_NAME_DIGITS, file_name

_FEW = 64  # files that are looked for by name rather than listed


class FileSequence:
    """A folder of files of `file_size` bytes. Keeps the last few used ones open."""

    def __init__(
        self, folder: Path, file_size: int, disk: Disk, *, writable: bool, keep_open: int = 4
    ) -> None:
        self.folder, self.file_size = folder, file_size
        self._disk, self._writable, self._keep_open = disk, writable, keep_open
        self._open: dict[int, DiskFile] = {}
        self._ready: tuple[int, Path] | None = None  # start and path of a file made in advance

    def starts(self) -> list[int]:
        """Return the start offsets of the files that are there now, ascending."""
        return file_starts(self.folder)

    def first_start(self) -> int:
        """Return where the oldest file starts; 0 if there is none."""
        return int(min(_names(self.folder), default="0"))  # all names have the same length

    def start_of(self, offset: int) -> int:
        """Return the start of the file that an offset lies in."""
        return offset - offset % self.file_size

    def file(self, start: int) -> DiskFile | None:
        """Return the file that starts there, if there is one."""
        found = self._open.get(start)
        if found is not None:
            return found
        try:
            found = self._disk.open(self.folder / file_name(start), writable=self._writable)
        except FileNotFoundError:
            return None
        return self._remember(start, found)

    def let_go(self) -> None:
        """No longer count what was read as memory of this process: see DiskFile."""
        for file in list(self._open.values()):
            file.let_go()

    def file_for_writing(self, start: int, *, allocated: int = 0) -> DiskFile:
        """Return the file that starts there, made if it is missing."""
        found = self.file(start)
        if found is not None:
            return found
        self._disk.make_folder(self.folder)
        path, ready = self.folder / file_name(start), self._ready
        if ready is not None and ready[0] == start:
            self._ready = None
            with suppress(FileNotFoundError):  # somebody cleared it away
                return self._remember(start, self._disk.take(ready[1], path))
        return self._remember(start, self._disk.create(path, self.file_size, allocated=allocated))

    def make_ready(self, start: int, folder: Path, *, allocated: int = 0) -> None:
        """Make a file in advance; it moves here when it is first written to. Needs no lock.

        Until then it is in another folder of the same disk: should we die, Apache's broker would
        not start with a file of another name among these.
        """
        if (self._ready is None or self._ready[0] != start) and self.file(start) is None:
            self.discard_ready()
            path = folder / file_name(start)
            made = self._disk.make_beside(path, self.file_size, allocated=allocated)
            self._ready = start, made

    def discard_ready(self) -> None:
        """Remove a file that was made ready and is not needed."""
        ready, self._ready = self._ready, None
        if ready is not None:
            ready[1].unlink(missing_ok=True)

    def _remember(self, start: int, file: DiskFile) -> DiskFile:
        # Threads share this: each step is atomic, and who holds a file keeps it open.
        self._open[start] = file
        for oldest in list(self._open)[: -self._keep_open]:
            self._open.pop(oldest, None)
        return file

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of one file; fewer or none where there is no file."""
        start = self.start_of(offset)
        file = self.file(start)
        return file.read(offset - start, size) if file else b""

    def write(self, offset: int, data: bytes | memoryview) -> DiskFile | None:
        """Write bytes that may span files, making those that are missing.

        Returns:
            The file, if one took them all.
        """
        view = memoryview(data).cast("B")
        files: list[DiskFile] = []
        while view:
            start = self.start_of(offset)
            room = start + self.file_size - offset
            files.append(self.file_for_writing(start))
            files[-1].write(view[:room], offset - start)
            offset += len(view[:room])
            view = view[room:]
        return files[0] if len(files) == 1 else None

    def zero_from(self, offset: int) -> None:
        """Make all bytes from `offset` on zero, in every file. Files stay: others may map them."""
        for start in self.starts():
            file = self.file(start)
            if file is not None and start + self.file_size > offset:
                file.zero(max(offset - start, 0), file.size)

    def has_data_from(self, offset: int) -> bool:
        """Whether any byte from `offset` on is not zero."""
        for start in self.starts():
            file = self.file(start)
            if file is None or start + self.file_size <= offset:
                continue
            for first, last in file.data_ranges(max(offset - start, 0), file.size):
                if file.view[first:last].any():
                    return True
        return False

    def sync(self, first: int, last: int) -> None:
        """Make the files durable that hold the bytes from `first` up to `last`."""
        wanted = range(self.start_of(first), last, self.file_size)
        # A damaged tail may tell an end that is far away: then the folder tells what is there.
        is_far = len(wanted) > _FEW
        for start in [start for start in self.starts() if start in wanted] if is_far else wanted:
            file = self.file(start)
            if file is not None:
                file.sync()

    def write_back(self, first: int, last: int) -> None:
        """Begin to make the bytes from `first` up to `last` durable: see DiskFile."""
        for start in range(self.start_of(first), last, self.file_size):
            file = self.file(start)
            if file is not None:
                file.write_back(max(first - start, 0), min(last - start, self.file_size))

    def has_removed(self) -> bool:
        """Whether somebody removed a file that is open here: what is written to it is lost."""
        return any(file.is_removed for file in list(self._open.values()))

    def remove(self, start: int) -> None:
        """Remove one file; readers that have it mapped keep their mapping."""
        self._open.pop(start, None)
        self._disk.remove(self.folder / file_name(start))

    def close(self) -> None:
        """Let go of all files."""
        self._open.clear()


def file_starts(folder: Path) -> list[int]:
    """Return the start offsets that the file names of a folder tell, ascending."""
    return sorted(map(int, _names(folder)))


def _names(folder: Path) -> list[str]:
    try:
        names = os.listdir(folder)  # noqa: PTH208  (an object for each name takes far longer)
    except FileNotFoundError:
        return []
    return [name for name in names if len(name) == FILE_NAME_DIGITS and name.isdigit()]
