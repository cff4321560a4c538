"""`checkpoint`: up to which store time log, queues and index are durable.

After an unclean stop, recovery begins in the file that is old enough by these times.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import CHECKPOINT, CHECKPOINT_SIZE, CHECKPOINT_STRUCT


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
