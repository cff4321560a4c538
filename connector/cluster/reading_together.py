"""The messages of several small ranges, in a task: pulled at once and decoded as one batch.

A query that keeps up has little to read in each queue. One queue after the other would cost turns
to its broker for each, and decoding has a price for each batch, however small.

D1  A range is given as far as it came, whole and checked, or it is left to reading.py, which knows
    what to make of messages that are missing or damaged, and of brokers that do not answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.client.range_heads import RangeHead
from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.errors import RecordError
from rocketpy.connector.planning import QueueRange

_Rows = npt.NDArray[np.int64]


def joined(
    heads: Sequence[tuple[QueueRange, RangeHead]],
) -> tuple[RecordBlock | None, list[QueueRange]]:
    """Return the records of ranges of one broker, and what of the ranges is left to be read."""
    unread = [part for part, _ in heads]
    data = np.frombuffer(b"".join(p.records for _, head in heads for p in head.pulled), np.uint8)
    starts, end = record_starts(data, 0, data.size, data.size)
    if end != data.size or not starts:
        return None, unread
    try:
        block = RecordBlock(data, np.array(starts, np.int64))
    except RecordError:
        return None, unread
    rows: list[_Rows] = []
    rest: list[QueueRange] = []
    for (part, head), (first, last) in zip(heads, _bounds(heads, block), strict=True):
        offsets = block.head["queue_offset"][first:last].astype(np.int64)
        upto = min(head.at, part.end)
        kept = np.flatnonzero(new_rows(offsets, part.start, upto))
        if head.request.wanted.takes_all and kept.size != upto - part.start:
            rest.append(part)  # some are missing
            continue
        rows.append(kept + first)
        if upto < part.end:
            rest.append(QueueRange(part.queue, upto, part.end))
    wanted = np.concatenate(rows) if rows else np.array([], np.int64)
    if wanted.size < len(block):
        block = block.take(wanted)
    if not block.sound().all():
        return None, unread
    return block if len(block) else None, rest


def _bounds(
    heads: Sequence[tuple[QueueRange, RangeHead]], block: RecordBlock
) -> list[tuple[int, int]]:
    """Return the first row of each range, and its end."""
    sizes = [sum(len(pulled.records) for pulled in head.pulled) for _, head in heads]
    rows = np.searchsorted(block.starts, [*accumulate(sizes, initial=0)])
    return [*pairwise(rows.tolist())]


def new_rows(offsets: _Rows, first: int, end: int) -> npt.NDArray[np.bool_]:
    """Return which records of a range are new: neighbouring pulls may both give some."""
    kept: npt.NDArray[np.bool_] = (offsets >= first) & (offsets < end)
    if offsets.size:
        highest = np.maximum.accumulate(offsets)
        kept[1:] &= offsets[1:] > highest[:-1]
    return kept
