"""Placeholders for lost messages: which go where, decided without touching a file.

If messages are missing between two of a queue that lie at p and q, they must have lain there too.
Free room there, padding or the blank rest of a file, takes as many placeholders as fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from rocketpy.broker_core.codec.layout import BLANK_SIZE
from rocketpy.broker_core.message import Host
from rocketpy.broker_core.metadata.names import is_reserved_topic
from rocketpy.broker_core.storage.repair.padding import MIN_PADDING, placeholder


class LostOffsets(NamedTuple):
    """Messages of a queue, `start` up to `end`, that are in no sound record."""

    topic: str
    queue_id: int
    start: int
    end: int


class Gap(NamedTuple):
    """Lost messages, and between which physical offsets they were."""

    lost: LostOffsets
    after: int
    before: int
    stored_ms: int  # of a message beside them


@dataclass(slots=True)
class Room:
    """Free bytes of one file, filled from their start on."""

    start: int
    end: int
    ends_file: bool  # then a blank record must follow, else padding or nothing
    records: list[bytes] = field(default_factory=list)
    used: int = 0
    stored_ms: int = 0

    def left(self, size: int) -> int:
        """Return how many bytes remain after a record; below 0 if it does not fit."""
        left = self.end - self.start - self.used - size
        return left - BLANK_SIZE if self.ends_file else left

    def put(self, record: bytes, stored_ms: int) -> None:
        """Take a record."""
        self.records.append(record)
        self.used += len(record)
        self.stored_ms = stored_ms


def place(gaps: Iterable[Gap], rooms: Sequence[Room], store_host: Host) -> int:
    """Fill the rooms; return how many placeholders found room.

    Topics of the system get none: their messages are orders to the broker, and an empty one is a
    wrong order.
    """
    placed = 0
    for gap in sorted(gaps, key=lambda gap: gap.before):
        if is_reserved_topic(gap.lost.topic):
            continue
        reachable = [room for room in rooms if gap.after <= room.start and room.end <= gap.before]
        placed += _fill(gap, sorted(reachable, key=lambda room: room.start), store_host)
    return placed


def _fill(gap: Gap, rooms: list[Room], store_host: Host) -> int:
    topic, queue_id, start, end = gap.lost
    offset = start
    for room in rooms:
        while offset < end:
            record = partial(
                placeholder,
                topic,
                queue_id,
                offset,
                at=room.start + room.used,
                stored_ms=gap.stored_ms,
                store_host=store_host,
            )
            data = record()
            left = room.left(len(data))
            if left < 0:
                break
            if left < MIN_PADDING and not room.ends_file:
                data = record(extra=left)  # too little for padding: the last one takes it all
            room.put(data, gap.stored_ms)
            offset += 1
    return offset - start
