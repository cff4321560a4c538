"""Repair: consume queues, their extensions and the index made anew from the commit log.

They are made in place or in a new store. A new store appears under its name only when it is whole,
and the old one is only read. In place nothing is destroyed: what is replaced moves to
`rocketpy/replaced-…`, and bytes of the log that are overwritten are copied there first. The order
makes an interruption harmless: the log is mended while the old queues still stand, and the
checkpoint is the first to move, so that from then on an opened store is recovered from its whole
log. Repair can be run again at any point.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rocketpy.broker_core.clock import Clock, SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import (
    CorruptStoreError,
    MetadataError,
    StoreError,
    StoreLockedError,
    StoreNotFoundError,
    UnsupportedStoreError,
)
from rocketpy.broker_core.message import PhysicalOffset
from rocketpy.broker_core.metadata import ConfigFile, TopicTable
from rocketpy.broker_core.storage.batches.intent import settle_batch
from rocketpy.broker_core.storage.checkpoint import (
    Checkpoint,
    make_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.existing import adapt, is_store, refuse_unsupported
from rocketpy.broker_core.storage.file_sequence import file_starts
from rocketpy.broker_core.storage.flush import Flusher
from rocketpy.broker_core.storage.indexing import mark_indexed
from rocketpy.broker_core.storage.layout import (
    ABORT,
    CHECKPOINT,
    COMMIT_LOG,
    CONFIG,
    CONSUME_QUEUE,
    CONSUME_QUEUE_EXT,
    INDEX,
    LOCK,
    OURS,
    QUEUE_ENDS,
    TAIL_FILE,
    file_name,
)
from rocketpy.broker_core.storage.lock import Openers, locked
from rocketpy.broker_core.storage.lost_queues import ends_by_entries
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_ends import NotedEnds
from rocketpy.broker_core.storage.queue_table import QueueTable
from rocketpy.broker_core.storage.repair.copying import copy_log, copy_other_files, keep_range
from rocketpy.broker_core.storage.repair.mend import KeepCopy, LogMender, SkippedRange
from rocketpy.broker_core.storage.repair.placeholders import Gap, LostOffsets, place
from rocketpy.broker_core.storage.repair.rebuild import Rebuild
from rocketpy.broker_core.storage.tail import TailFile, TailState

REPLACED = "replaced-"  # and a time: folders under rocketpy/
_MOVED = (
    CHECKPOINT,
    TAIL_FILE,
    QUEUE_ENDS,
    CONSUME_QUEUE,
    CONSUME_QUEUE_EXT,
    INDEX,
)  # in this order
_LOCK_TIMEOUT_S = 1.0

RepairProgress = Callable[[str, int, int], None]  # what is done, bytes done, bytes in all


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What a repair found and made."""

    path: Path  # of the repaired store
    replaced: Path | None  # where the old files are; None if the old store was only read
    log_start: int
    log_end: int
    records: int
    topics: dict[str, int]  # messages in the queues of each topic
    queues: int
    skipped: tuple[SkippedRange, ...]
    lost: tuple[LostOffsets, ...]
    placeholders: int  # how many of the lost messages have one
    repeated: int  # offsets taken by a later message: the topic was deleted and made anew
    unknown_topics: tuple[str, ...]  # in the log, not in config/topics.json: deleted, or forgotten

    @property
    def is_whole(self) -> bool:
        """Whether every message of the log is in its queue, and nothing else was damaged."""
        return not self.skipped and not self.lost and not self.repeated


class RepairTargetError(StoreError):
    """Is raised when the folder for a repaired store cannot be taken."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"cannot repair to {self.path}: {self.reason}; name a folder that does not exist yet"


def repair_to(
    source: Path,
    target: Path,
    *,
    config: StoreConfig | None = None,
    placeholders: bool = True,
    disk: Disk | None = None,
    progress: RepairProgress | None = None,
) -> RepairReport:
    """Make a sound copy of a store, which may be damaged, in use, or on a read-only disk.

    Without `placeholders`, queues have fillers where messages are lost: readers see nothing there,
    but Apache's broker does not get over fillers in front of messages of the log's first file.

    Raises:
        StoreNotFoundError, UnsupportedStoreError: the source is no store that we can read whole.
        RepairTargetError: the target is there already, or inside the source.
    """
    disk, report = disk or Disk(), progress or _no_progress
    target = target.resolve()
    config = _geometry(source, config or StoreConfig())
    _refuse_target(source, target)
    workshop = target.with_name(f".{target.name}.repairing")
    disk.make_folder(workshop)
    with locked(workshop, _LOCK_TIMEOUT_S):
        _clear(workshop)  # of what an interrupted repair left
        copy_log(source, workshop, config.commit_log_file_size, disk, partial(report, "copying"))
        copy_other_files(source, workshop, disk)
        disk.make_folder(workshop / OURS)
        work = _Repair(workshop, config, disk, report, placeholders)
        made = work.run(_nothing_to_keep, old=source, replaced=None, path=target)
        disk.rename(workshop, target)
    return made


def repair_in_place(
    root: Path,
    *,
    config: StoreConfig | None = None,
    placeholders: bool = True,
    clock: Clock | None = None,
    disk: Disk | None = None,
    progress: RepairProgress | None = None,
) -> RepairReport:
    """Repair a store where it is, keeping all that is replaced under `rocketpy/`.

    Raises:
        StoreLockedError: somebody has the store open.
        StoreNotFoundError, UnsupportedStoreError: it is no store that we can read whole.
    """
    disk = disk or Disk()
    _require_store(root)
    with _owned(root, disk):
        config = config or StoreConfig()
        for folder in sorted((root / OURS).glob(f"{REPLACED}*")):
            config = _geometry_of(folder, config)  # an interrupted repair moved the files there
        config = _geometry(root, config)
        replaced = _new_folder(root, clock or SystemClock(), disk)
        if not (root / ABORT).exists():
            disk.replace(root / ABORT, str(os.getpid()).encode())
        _level(root, config.commit_log_file_size)
        log = CommitLog(root, config.commit_log_file_size, disk, writable=False)
        keep = partial(keep_range, log, replaced / "damaged", disk)
        work = _Repair(root, config, disk, progress or _no_progress, placeholders)
        made = work.run(keep, old=root, replaced=replaced, path=root)
        disk.remove(root / ABORT)
    return made


@dataclass(frozen=True, slots=True)
class _Repair:
    """The part that both ways share: mend the log, set the old aside, build the new."""

    root: Path
    config: StoreConfig
    disk: Disk
    progress: RepairProgress
    placeholders: bool

    def run(
        self, keep_copy: KeepCopy, *, old: Path, replaced: Path | None, path: Path
    ) -> RepairReport:
        log = CommitLog(self.root, self.config.commit_log_file_size, self.disk, writable=True)
        with suppress(CorruptStoreError):  # a damaged ledger is no reason to leave the rest damaged
            flushed = TailFile(old, self.disk, writable=False).flushed()
            settle_batch(log, self.root, self.disk, flushed=flushed)
        mender = LogMender(log, self.config.store_host, keep_copy)
        end = mender.run(partial(self.progress, "checking"))
        log.files.sync(int(log.min_offset()), end)
        before = read_checkpoint(old)
        if replaced is not None:
            self._set_aside(replaced)
            old = replaced
        self._begin_checkpoint(before, end)
        rebuild = self._rebuild(mender, end)
        lost = [gap.lost for gap in rebuild.gaps]
        old_queues = QueueTable(old, self.config, self.disk, writable=False)
        gone = list(_lost_at_the_end(old_queues, rebuild))
        placed = self._place(mender, rebuild, gone) if self.placeholders else 0
        if placed:
            rebuild = self._rebuild(mender, end)
        state = TailState(PhysicalOffset(end), rebuild.stored_ms)
        rebuild.parts.tail.write_settled(state)
        mark_indexed(rebuild.parts, end)
        ends = NotedEnds(end, ends_by_entries(rebuild.parts))
        make_checkpoint(rebuild.parts, Flusher(rebuild.parts), state, ends)
        return RepairReport(
            path=path,
            replaced=replaced,
            log_start=int(log.min_offset()),
            log_end=end,
            records=rebuild.records - placed,
            topics=dict(sorted(rebuild.topics.items())),
            queues=len(rebuild.ends),
            skipped=tuple(sorted(mender.skipped)),
            lost=tuple(sorted([*lost, *(gap.lost for gap in gone)])),
            placeholders=placed,
            repeated=rebuild.repeated,
            unknown_topics=tuple(sorted(set(rebuild.topics) - self._known_topics())),
        )

    def _begin_checkpoint(self, before: Checkpoint, end: int) -> None:
        """Keep what only the checkpoint knows; its times are 0, as nothing is durable yet."""
        offsets = Checkpoint(
            master_flushed_offset=min(before.master_flushed_offset, end),
            confirm_offset=min(before.confirm_offset, end),
        )
        write_checkpoint(self.root, offsets, self.disk)

    def _rebuild(self, mender: LogMender, end: int) -> Rebuild:
        """Build all anew, from a log that may have been changed since it was done last."""
        for name in (CONSUME_QUEUE, CONSUME_QUEUE_EXT, INDEX):
            shutil.rmtree(self.root / name, ignore_errors=True)
        parts = StoreParts(self.root, self.config, self.disk, writable=True)
        parts.tail.write_flushed(end)  # should we die, recovery must not cut what we tore
        rebuild = Rebuild(parts, mender)
        rebuild.run(end, partial(self.progress, "rebuilding"))
        return rebuild

    def _place(self, mender: LogMender, rebuild: Rebuild, gone: list[Gap]) -> int:
        """Write placeholders for lost messages where the log has room for them."""
        placed = place([*rebuild.gaps, *gone], rebuild.rooms, self.config.store_host)
        for room in rebuild.rooms:
            if room.records:
                mender.write_over(room.start, room.end, b"".join(room.records), room.stored_ms)
        return placed

    def _known_topics(self) -> set[str]:
        config_file = ConfigFile(self.root / CONFIG / TopicTable.FILE_NAME, self.disk)
        try:
            return set(TopicTable(config_file).all())
        except MetadataError:
            return set()

    def _set_aside(self, replaced: Path) -> None:
        for name in _MOVED:
            if (self.root / name).exists():
                self.disk.make_folder((replaced / name).parent)
                self.disk.rename(self.root / name, replaced / name)
                self.disk.sync_folder((self.root / name).parent)


def _lost_at_the_end(old: QueueTable, rebuild: Rebuild) -> Iterator[Gap]:
    """Yield the last messages of queues that only the old queues tell of.

    An old queue may be damaged itself: it is believed where it points into a skipped range.
    """
    log_end = max((skipped.end for skipped in rebuild.mender.skipped), default=0)
    for queue in old.all():
        start = rebuild.ends.get((queue.topic, queue.queue_id), queue.first_offset())
        physical = queue.units(start, max(queue.end(), start))["physical_offset"].astype(np.int64)
        inside = np.zeros(len(physical), bool)
        for skipped in rebuild.mender.skipped:
            inside |= (physical >= skipped.start) & (physical < skipped.end)
        count = len(inside) if inside.all() else int(np.argmin(inside))
        if count:
            lost = LostOffsets(queue.topic, queue.queue_id, start, start + count)
            starts = [skipped.start for skipped in rebuild.mender.skipped]
            after = max(start for start in starts if start <= physical[0])
            yield Gap(lost, after, log_end, rebuild.stored_ms)


@contextmanager
def _owned(root: Path, disk: Disk) -> Iterator[None]:
    """Hold the store's lock, as the only one who has it open."""
    with locked(root, _LOCK_TIMEOUT_S):
        disk.make_folder(root / OURS)
        openers = Openers(root)
        try:
            if not openers.join():
                raise StoreLockedError(root, None, 0.0)
            yield
        finally:
            openers.leave()


def _new_folder(root: Path, clock: Clock, disk: Disk) -> Path:
    when = datetime.fromtimestamp(clock.now_ms() / 1000, timezone.utc)
    name = f"{REPLACED}{when:%Y%m%dT%H%M%SZ}"
    folder, number = root / OURS / name, 1
    while folder.exists():
        number += 1
        folder = root / OURS / f"{name}-{number}"
    disk.make_folder(folder)
    return folder


def _require_store(root: Path) -> None:
    if not is_store(root):
        raise StoreNotFoundError(root)
    refuse_unsupported(root)


def _refuse_target(source: Path, target: Path) -> None:
    if target.is_relative_to(source.resolve()):
        raise RepairTargetError(target, "it is inside the damaged store")
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise RepairTargetError(target, "there is something already")


def _geometry(root: Path, config: StoreConfig) -> StoreConfig:
    """Return the file sizes of a store, and check that its log's files fit to them."""
    _require_store(root)
    config = _geometry_of(root, config)
    for start in file_starts(root / COMMIT_LOG):
        if start % config.commit_log_file_size:
            path = root / COMMIT_LOG / file_name(start)
            reason = f"no file begins there: each has {config.commit_log_file_size} bytes"
            raise CorruptStoreError(path, start, reason)
    return config


def _geometry_of(root: Path, config: StoreConfig) -> StoreConfig:
    try:
        return adapt(root, config)
    except UnsupportedStoreError:
        # A damaged index does not tell its sizes. It is made anew: ask the others alone.
        with TemporaryDirectory() as folder:
            for name in (COMMIT_LOG, CONSUME_QUEUE, CONSUME_QUEUE_EXT):
                (Path(folder) / name).symlink_to((root / name).resolve())
            return adapt(Path(folder), config)


def _level(root: Path, size: int) -> None:
    """Give files of the log that were cut short their full size."""
    for start in file_starts(root / COMMIT_LOG):
        path = root / COMMIT_LOG / file_name(start)
        if path.stat().st_size < size:
            os.truncate(path, size)


def _clear(workshop: Path) -> None:
    for entry in workshop.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != LOCK:
            entry.unlink()


def _nothing_to_keep(_start: int, _end: int) -> None:
    """The old store still has the bytes."""


def _no_progress(_what: str, _done: int, _total: int) -> None:
    """Nobody watches."""
