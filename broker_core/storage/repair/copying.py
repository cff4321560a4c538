"""Copies of a store's files, as sparse as they are, for repair and backups.

The log is copied from its end to its start. A writer that goes on meanwhile only adds after what
it wrote before, so the copy can have a torn end, but no hole in the middle.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.file_sequence import file_starts
from rocketpy.broker_core.storage.layout import (
    ABORT,
    CHECKPOINT,
    COMMIT_LOG,
    CONSUME_QUEUE,
    CONSUME_QUEUE_EXT,
    CUT,
    INDEX,
    LOCK,
    OPENERS,
    OURS,
    QUEUE_ENDS,
    STAGED,
    TAIL_FILE,
    file_name,
)
from rocketpy.broker_core.storage.recovery import Progress

_CHUNK = 4 << 20
# What is made anew, what belongs to those who have the store open, and what a repair replaced.
_LEFT_OUT = {
    *(CHECKPOINT, COMMIT_LOG, CONSUME_QUEUE, CONSUME_QUEUE_EXT, INDEX),
    *(ABORT, f"{ABORT}.bak", LOCK, TAIL_FILE, OPENERS, QUEUE_ENDS, CUT, STAGED),
}


def copy_log(
    source: Path, target: Path, file_size: int, disk: Disk, progress: Progress | None = None
) -> None:
    """Copy all files of the log; each gets the full size."""
    folder = source / COMMIT_LOG
    starts = file_starts(folder)
    total = sum(_bytes_on_disk(folder / file_name(start)) for start in starts)
    disk.make_folder(target / COMMIT_LOG)
    done = 0
    for start in reversed(starts):
        for size in _copy_file(
            folder / file_name(start), target / COMMIT_LOG / file_name(start), disk, file_size
        ):
            done += size
            if progress is not None:
                progress(done, max(total, done))
    if progress is not None:
        progress(done, done)


def copy_other_files(source: Path, target: Path, disk: Disk) -> None:
    """Copy configuration and the like: all but what is rebuilt from the log."""
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        if _is_left_out(name) or not path.is_file():
            continue
        disk.make_folder((target / name).parent)
        for _ in _copy_file(path, target / name, disk, path.stat().st_size):
            pass


def _is_left_out(name: Path) -> bool:
    within_ours = name.parts[0] == OURS
    head = "/".join(name.parts[: 2 if within_ours else 1])
    return head in _LEFT_OUT or (within_ours and head.startswith(f"{OURS}/replaced-"))


def _copy_file(source: Path, target: Path, disk: Disk, size: int) -> Iterator[int]:
    """Copy the data of a file from its end to its start; yield how much was done at a time."""
    try:
        old = disk.open(source, writable=False)
    except FileNotFoundError:  # expired, or replaced, while we copy
        return
    new = disk.create(target, size)
    for first, last in reversed([*old.data_ranges(0, size)]):
        for at in reversed(range(first, last, _CHUNK)):
            data = old.read(at, min(_CHUNK, last - at))
            if filled := data.rstrip(b"\0"):
                new.write(filled, at)
            yield len(data)
    new.sync()
    shutil.copymode(source, target)


def _bytes_on_disk(path: Path) -> int:
    status = path.stat()
    return min(status.st_blocks * 512, status.st_size)


def keep_range(log: CommitLog, folder: Path, disk: Disk, start: int, end: int) -> None:
    """Copy a range of the log to files named by their offset, durably; zeros are left out."""
    for file_start in log.files.starts():
        file = log.files.file(file_start)
        if file is not None and file_start < end and file_start + file.size > start:
            _keep(file, file_start, folder, disk, start, end)


def _keep(file: DiskFile, file_start: int, folder: Path, disk: Disk, start: int, end: int) -> None:
    first_byte, last_byte = max(start - file_start, 0), min(end - file_start, file.size)
    for first, last in file.data_ranges(first_byte, last_byte):
        for at in range(first, last, _CHUNK):
            data = file.read(at, min(_CHUNK, last - at))
            if data.count(0) < len(data):
                disk.make_folder(folder)
                disk.replace(folder / file_name(file_start + at), data)
