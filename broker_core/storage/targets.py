"""What follows the log: the queues with their extensions, and the index.

A target keeps entries about records. It can be made again from the log, which alone decides what
is stored. A further one is a class here, and a line in StoreParts.targets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.dispatch import Dispatch, index_columns
from rocketpy.broker_core.storage.index import MessageIndex
from rocketpy.broker_core.storage.layout import QUEUE_UNIT_SIZE, file_name
from rocketpy.broker_core.storage.queue_ends import QueueKey
from rocketpy.broker_core.storage.queue_table import QueueTable


class Cut(NamedTuple):
    """Where the log is cut: all records from there on are gone."""

    end: int  # of the log, from now on
    stored_ms: int  # the newest store time before
    starts: Mapping[QueueKey, int]  # the queues that lose messages, and the first offset of these


class Target(Protocol):
    """What follows the log. All but sync() is called while holding the store's lock."""

    def put(self, found: Sequence[Dispatch]) -> None:
        """Write the entries of records that follow each other in the log."""

    def cut(self, cut: Cut) -> None:
        """Take out the entries of records that are cut off."""

    def sync(self, since_ns: int) -> None:
        """Make durable what any process has written since a time."""

    def expire(self, log_start: int) -> list[Path]:
        """Delete files that only point at records before `log_start`; return which."""


class QueueTarget:
    """The queues: for each message of a queue where its record is; extensions are theirs."""

    def __init__(self, queues: QueueTable, disk: Disk) -> None:
        self._queues, self._disk = queues, disk

    def put(self, found: Sequence[Dispatch]) -> None:
        """Write entries; those that are there are written over with the same bytes."""
        for dispatch in found:
            dispatch.put_units(self._queues)

    def cut(self, cut: Cut) -> None:
        """Take out the entries of records that are cut off."""
        for key, start in cut.starts.items():
            self._queues.cut(key, start)

    def sync(self, since_ns: int) -> None:
        """Make durable what any process has written since a time."""
        _sync_written(self._queues.folder, since_ns, self._disk)
        _sync_written(self._queues.ext_folder, since_ns, self._disk)

    def expire(self, log_start: int) -> list[Path]:
        """Delete files whose last entry points at a record that is gone; the last file stays."""
        deleted = []
        for queue in self._queues.all():
            for start, following in pairwise(queue.files.starts()):
                unit = queue.unit(following // QUEUE_UNIT_SIZE - 1)
                if unit is None or not (unit.is_filler or unit.physical_offset < log_start):
                    break
                queue.files.remove(start)
                deleted.append(queue.files.folder / file_name(start))
        return deleted


class IndexTarget:
    """The index: for each key, and each tag, which records have it."""

    def __init__(self, index: MessageIndex, disk: Disk, *, is_kept: bool) -> None:
        self._index, self._disk, self._is_kept = index, disk, is_kept

    def put(self, found: Sequence[Dispatch], *, since: int = 0) -> None:
        """Write the entries of records from `since` on: those before have theirs."""
        if self._is_kept and found:
            order = found[0].slot_by_slot if len(found) == 1 else None
            self._index.put(*index_columns(found, since), slot_by_slot=order)

    def cut(self, cut: Cut) -> None:
        """Take out the entries of records that are cut off."""
        self._index.cut(cut.end, cut.stored_ms)

    def sync(self, since_ns: int) -> None:
        """Make durable what any process has written since a time."""
        _sync_written(self._index.folder, since_ns, self._disk)

    def expire(self, log_start: int) -> list[Path]:
        """Delete files whose last entry points at a record that is gone; the last file stays."""
        deleted = []
        for name in self._index.names()[:-1]:
            if self._index.file(name).header().end_physical_offset >= log_start:
                break
            self._index.remove(name)
            deleted.append(self._index.folder / name)
        return deleted


def _sync_written(folder: Path, since_ns: int, disk: Disk) -> None:
    """Sync the files below a folder that were written since a time, as their own times tell.

    What is written through a mapping counts: the first write to a page that was synced sets the
    time of its file.
    """
    for path in _files_below(folder):
        with suppress(FileNotFoundError):  # retention, or somebody else, may remove it meanwhile
            if path.stat().st_mtime_ns >= since_ns:
                disk.open(path, writable=False).sync()


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent) / name for name in names if name.isdigit())
