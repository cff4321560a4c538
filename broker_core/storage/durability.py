"""The checkpoint: everything up to a moment made durable, then said so."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from rocketpy.broker_core.storage.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from rocketpy.broker_core.storage.flush import Flusher
from rocketpy.broker_core.storage.layout import CHECKPOINT
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_ends import NotedEnds
from rocketpy.broker_core.storage.tail import TailState

_CLOCK_SLACK_NS = 2_000_000_000  # file times are coarser than the writes they tell of


def make_checkpoint(parts: StoreParts, flusher: Flusher, state: TailState, ends: NotedEnds) -> None:
    """Make log, queues and index durable up to `state`, which was read under the store's lock.

    Which files were written since the last checkpoint began is told by their times, so that what
    other processes wrote, those that died included, is synced as well.
    """
    began_ns = time.time_ns()
    flusher.flush_to(state.end)
    parts.tail.sync()
    for path in _written_since_checkpoint(parts):
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
                if name.isdigit() and path.stat().st_mtime_ns >= since_ns:
                    yield path
