"""From offsets to tasks: how much a batch takes, and how it is cut. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rocketpy.connector.offsets import MessageQueue, Positions

FEW_ROWS = 2_000  # are read by one task, in micro-batches
Held = Mapping[MessageQueue, tuple[int, int]]  # first offset that is held, and the end
Sizes = Callable[[MessageQueue, int, int], npt.NDArray[np.int64]]  # of messages, in bytes


@dataclass(frozen=True, slots=True)
class QueueRange:
    """The offsets of one queue from `start` up to `end`."""

    queue: MessageQueue
    start: int
    end: int

    def __len__(self) -> int:
        return max(self.end - self.start, 0)

    def first(self, count: int) -> QueueRange:
        """Return its first offsets alone."""
        return QueueRange(self.queue, self.start, self.start + count)


Ranges = dict[MessageQueue, QueueRange]


def waiting_ranges(start: Positions, held: Held, target: Positions | None) -> Ranges:
    """Return what each queue holds behind `start`, up to `target` if there is one.

    Queues that are not in `start` were found meanwhile, and are read from offset 0; those that are
    not in `target` came after it was fixed. One that ends before its start was made anew.
    """
    waiting = {}
    for queue, (low, high) in held.items():
        first = start.get(queue, 0)
        begin = low if first > high else max(first, low)
        if target is not None:
            if queue not in target and queue not in start:
                continue
            high = min(high, target.get(queue, first))
        waiting[queue] = QueueRange(queue, min(begin, high), high)
    return waiting


def total(ranges: Ranges) -> int:
    """Return how many offsets there are in all."""
    return sum(map(len, ranges.values()))


def at_most_rows(ranges: Ranges, rows: int) -> Ranges:
    """Return the first `rows` of the ranges, from each queue in proportion to what waits there.

    So that no queue is left behind: all reach their end in the same batch.
    """
    waiting = total(ranges)
    if waiting <= rows:
        return dict(ranges)
    taken = 0
    admitted = {}
    seen = 0
    for queue in sorted(ranges):
        part = ranges[queue]
        seen += len(part)
        upto = rows * seen // waiting  # rounding errors do not add up
        admitted[queue] = part.first(upto - taken)
        taken = upto
    return admitted


def at_most_bytes(ranges: Ranges, limit: int, sizes: Sizes) -> Ranges:
    """Return the first messages that have no more bytes than `limit` together, but at least one.

    Queues share evenly; what one does not need goes to the others.
    """
    ends = {
        queue: np.cumsum(np.maximum(sizes(queue, part.start, part.end), 0))
        for queue, part in ranges.items()
        if len(part)
    }
    admitted = {queue: part.first(0) for queue, part in ranges.items()}
    rest = limit
    while ends:
        queue = min(ends, key=lambda one: (int(ends[one][-1]), one))
        share = rest // len(ends)
        cumulated = ends.pop(queue)
        count = int(np.searchsorted(cumulated, share, side="right"))
        admitted[queue] = ranges[queue].first(count)
        rest -= int(cumulated[count - 1]) if count else 0
    if not total(admitted):  # one message is larger than the limit: it has to pass some time
        queue = next(queue for queue in sorted(ranges) if len(ranges[queue]))
        admitted[queue] = ranges[queue].first(1)
    return admitted


def split(
    ranges: Ranges,
    *,
    min_partitions: int | None = None,
    max_rows: int | None = None,
) -> list[QueueRange]:
    """Return one range per task: each queue's, or parts of it in the order of their offsets."""
    wanted = [ranges[queue] for queue in sorted(ranges) if len(ranges[queue])]
    whole = sum(map(len, wanted))
    parts: list[QueueRange] = []
    for each in wanted:
        pieces = 1
        if max_rows:
            pieces = -(-len(each) // max_rows)
        if min_partitions and min_partitions > len(wanted):
            pieces = max(pieces, round(min_partitions * len(each) / whole))
        parts += _pieces(each, min(pieces, len(each)))
    while min_partitions and len(parts) < min(min_partitions, whole):  # rounded down above
        largest = max(range(len(parts)), key=lambda index: len(parts[index]))
        parts[largest : largest + 1] = _pieces(parts[largest], 2)
    return parts


def tasks(parts: list[QueueRange]) -> list[tuple[QueueRange, ...]]:
    """Return the ranges of each task: one range, or all of them if they are few messages.

    A task costs as much as reading some thousand messages, and a query that keeps up has few.
    """
    if sum(map(len, parts)) <= FEW_ROWS:
        return [tuple(parts)] if parts else []
    return [(part,) for part in parts]


def _pieces(part: QueueRange, count: int) -> list[QueueRange]:
    bounds = [part.start + len(part) * index // count for index in range(count)] + [part.end]
    return [QueueRange(part.queue, start, end) for start, end in pairwise(bounds) if end > start]
