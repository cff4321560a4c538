"""What verify reports, and the questions that every check asks of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.storage.disk import DiskFile
from rocketpy.broker_core.storage.file_sequence import FileSequence
from rocketpy.broker_core.storage.layout import file_name

Advance = Callable[[int], None]  # told of each part of the work by its bytes
_CHUNK = 1 << 20


class Problem(NamedTuple):
    """One broken invariant; as text, one line."""

    invariant: str
    path: Path
    offset: int  # byte in the file, or in the log where it is about records; -1 if there is none
    text: str

    def __str__(self) -> str:
        where = f" at {self.offset}" if self.offset >= 0 else ""
        return f"{self.invariant} {self.path}{where}: {self.text}"


def runs(numbers: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of consecutive numbers: one problem, not a million."""
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
        if run.size:
            yield int(run[0]), int(run[-1])


def first_nonzero(file: DiskFile, start: int, end: int | None = None) -> int | None:
    """Return where the first byte from `start` on lies that is not zero; holes cost nothing."""
    for first, last in file.data_ranges(start, file.size if end is None else end):
        for at in range(first, last, _CHUNK):
            found = np.flatnonzero(np.frombuffer(file.read(at, min(_CHUNK, last - at)), np.uint8))
            if found.size:
                return at + int(found[0])
    return None


def last_nonzero(file: DiskFile) -> int | None:
    """Return where the last byte of a file lies that is not zero."""
    for first, last in reversed(list(file.data_ranges(0, file.size))):
        for end in range(last, first, -_CHUNK):
            at = max(end - _CHUNK, first)
            found = np.flatnonzero(np.frombuffer(file.read(at, end - at), np.uint8))
            if found.size:
                return at + int(found[-1])
    return None


def check_files(invariant: str, files: FileSequence) -> Iterator[Problem]:
    """Report files of another size than the others, and files that are missing between others."""
    expected: int | None = None
    for start in files.starts():
        path = files.folder / file_name(start)
        file = files.file(start)
        if file is not None and file.size != files.file_size:
            text = f"has {file.size} bytes, the files beside it have {files.file_size}"
            yield Problem(invariant, path, min(file.size, files.file_size), text)
        if start % files.file_size:
            text = f"its name is not a multiple of the file size {files.file_size}"
            yield Problem(invariant, path, -1, text)
        elif expected is not None and start != expected:
            text = f"the file {file_name(expected)} before it is missing"
            yield Problem(invariant, path, -1, text)
        expected = start - start % files.file_size + files.file_size
