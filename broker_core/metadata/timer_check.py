"""How far Apache's timer wheel has come: `config/timercheck`.

All timer messages before `queue_offset` are in the wheel, and those of seconds before `read_time`
are delivered. The wheel itself (`timerwheel`, `timerlog`) is made from the queue again if it is
missing. All integers are big-endian.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import ClassVar, NamedTuple

from rocketpy.broker_core.metadata.config_file import Replaces

# Last read time, flushed bytes of the timer log, queue offset, the master's; data version: state,
# timestamp, counter.
STRUCT = struct.Struct(">7q")
SIZE = 4096


class TimerCheckpoint(NamedTuple):
    """What is of use without the wheel."""

    read_time_ms: int = 0
    queue_offset: int = 0


class TimerCheck:
    """The file. `put` takes no lock: call it while holding the store lock."""

    FILE_NAME: ClassVar[str] = "timercheck"

    def __init__(self, path: Path, disk: Replaces) -> None:
        self._path, self._disk = path, disk

    def get(self) -> TimerCheckpoint:
        """Return what it says; zeros if it is missing or cut short."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return TimerCheckpoint()
        if len(data) < STRUCT.size:
            return TimerCheckpoint()
        read_time_ms, _, queue_offset, *_ = STRUCT.unpack_from(data)
        return TimerCheckpoint(read_time_ms, queue_offset)

    def put(self, checkpoint: TimerCheckpoint, *, now_ms: int) -> None:
        """Replace it durably: the wheel is to be made from the queue offset on."""
        at = checkpoint.queue_offset
        data = STRUCT.pack(checkpoint.read_time_ms, 0, at, at, 0, now_ms, 1)
        self._disk.replace(self._path, data.ljust(SIZE, b"\0"))
