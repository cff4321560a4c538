"""`checkpoint`: up to which store time log, queues and index are durable.

A checkpoint syncs all that was written since the last one, and then replaces this file. After an
unclean stop, recovery begins in the log file that is old enough by these times.
"""

from __future__ import annotations

import time
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

    The times of files tell which were written since the last checkpoint began. So what other
    processes wrote is synced as well, even if they died.
    """
    began_ns = time.time_ns()
    flusher.flush_to(state.end)
    parts.tail.sync()
    since_ns = _last_checkpoint_ns(parts.root)
    for target in parts.targets:
        target.sync(since_ns)
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


def _last_checkpoint_ns(root: Path) -> int:
    """Return a time before which nothing was written that is not durable."""
    try:
        since_ns = (root / CHECKPOINT).stat().st_mtime_ns - _CLOCK_SLACK_NS
    except FileNotFoundError:
        return 0
    return 0 if since_ns > time.time_ns() else since_ns  # the clock went back: times tell nothing
