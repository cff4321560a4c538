"""The records of a group's members in a cluster, read from the queue that keeps them.

record_log.py says which of them count. Nothing is written here: who joins and leaves does that.
"""

from __future__ import annotations

from typing import NamedTuple

from rocketpy.broker_core.client.pulling import Puller, record_batches
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.record_log import LoggedRecord, decode_record, last_counting

_COLUMNS = select(["queue_offset", "body"])
_FIRST_LOOK, _MORE = 16, 8  # records at the end of the queue; how many times as many then


class LoggedRecords(NamedTuple):
    """Records of a part of the queue: where they end, and whether the part is not there."""

    found: list[LoggedRecord]
    next_offset: int
    is_moved: bool


def records_from(puller: Puller, home: MessageQueue, start: int) -> LoggedRecords:
    """Return all records from an offset on.

    Raises:
        ServerUnreachableError, ServerRefusedError
    """
    found: list[LoggedRecord] = []
    at, is_moved = start, False
    while True:
        pulled = puller.pull(home, at)
        is_moved |= pulled.is_moved
        for rows in record_batches([pulled], _COLUMNS):
            for row in rows.to_pylist():
                if (record := decode_record(row["queue_offset"], row["body"])) is not None:
                    found.append(record)
        if pulled.next_offset <= at or not pulled.records:
            return LoggedRecords(found, at, is_moved)
        at = pulled.next_offset


def newest_records(puller: Puller, home: MessageQueue) -> tuple[list[LoggedRecord], int]:
    """Return the last records that count, the newest last, and where the queue ends.

    Raises:
        ServerUnreachableError, ServerRefusedError
    """
    pulled = puller.pull(home, 0, most=1)
    count = _FIRST_LOOK
    while True:
        start = max(pulled.end - count, pulled.first)
        found, end, _ = records_from(puller, home, start)
        counting = last_counting(found, has_all=start == pulled.first)
        if counting or start == pulled.first:
            return counting, end
        count *= _MORE
