"""`checkpoint`: up to which store time log, queues and index are durable.

It is made by syncing all that was written since the last one, and is then said so. After an unclean
stop, recovery begins in the file that is old enough by these times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.flush import Flusher
from rocketpy.broker_core.storage.layout import CHECKPOINT, CHECKPOINT_SIZE, CHECKPOINT_STRUCT
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_ends import NotedEnds
from rocketpy.broker_core.storage.tail import TailState

_CLOCK_SLACK_NS = 2_000_000_000  # file times are coarser than the writes they tell of


class Checkpoint(NamedTuple):
    """The fields in their order on disk; times in ms, 0 where nothing is known."""

    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_offset: int = 0
    logics_physical_offset: int = 0


def read_checkpoint(root: Path) -> Checkpoint:
    """Return the checkpoint; all zeros if there is none or it is cut short."""
    try:
        data = (root / CHECKPOINT).read_bytes()
    except FileNotFoundError:
        return Checkpoint()
    if len(data) < CHECKPOINT_STRUCT.size:
        return Checkpoint()
    return Checkpoint(*CHECKPOINT_STRUCT.unpack_from(data))


def write_checkpoint(
    root: Path, checkpoint: Checkpoint, disk: Disk, *, as_of_ns: int | None = None
) -> None:
    """Replace the checkpoint durably; `as_of_ns` becomes the time of the file."""
    data = CHECKPOINT_STRUCT.pack(*checkpoint).ljust(CHECKPOINT_SIZE, b"\0")
    disk.replace(root / CHECKPOINT, data, modified_ns=as_of_ns)


def make_checkpoint(parts: StoreParts, flusher: Flusher, state: TailState, ends: NotedEnds) -> None:
    """Make log, queues and index durable up to `state`, which was read under the store's lock.

    Which files were written since the last checkpoint began is told by their times, so that what
    other processes wrote, those that died included, is synced as well.
    """
    began_ns = time.time_ns()
    flusher.flush_to(state.end)
    parts.tail.sync()
    for path in _written_since_checkpoint(parts):
        with suppress(FileNotFoundError):  # retention, or somebody else, may remove it meanwhile
            parts.disk.open(path, writable=False).sync()
    if ends != parts.queue_ends.read():
        parts.queue_ends.write(ends)
    old = read_checkpoint(parts.root)
    write_checkpoint(
        parts.root,
        Checkpoint(
            physic_msg_timestamp=state.stored_ms,
            logics_msg_timestamp=state.stored_ms,
            index_msg_timestamp=state.stored_ms if parts.config.message_index else 0,
            master_flushed_offset=old.master_flushed_offset,
            confirm_offset=old.confirm_offset,
        ),
        parts.disk,
        as_of_ns=began_ns,
    )


def _written_since_checkpoint(parts: StoreParts) -> Iterator[Path]:
    try:
        since_ns = (parts.root / CHECKPOINT).stat().st_mtime_ns - _CLOCK_SLACK_NS
    except FileNotFoundError:
        since_ns = 0
    if since_ns > time.time_ns():  # the clock went back: times tell nothing
        since_ns = 0
    folders = [parts.index.folder, parts.queues.folder, parts.queues.ext_folder]
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = Path(parent) / name
                with suppress(FileNotFoundError):
                    if name.isdigit() and path.stat().st_mtime_ns >= since_ns:
                        yield path
