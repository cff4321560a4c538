"""From offsets to tasks: how much a batch takes, and how it is cut. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rocketpy.connector.offsets import MessageQueue, Positions

FEW_ROWS = 2_000  # so many rows of a micro-batch are read by one task
TASK_ROWS = 8_192  # queues with fewer rows share tasks of so many: a task costs as much as these
MOST_TASK_ROWS = 65_536  # where there are few cores, queues share tasks of up to so many
ROW_BYTES = 1024  # of the log, on average, in a task that several queues share; else it has one
MOST_SIZES = 4 << 20  # sizes that a plan by bytes keeps, of all queues: 32 MiB
StoredRanges = Mapping[MessageQueue, tuple[int, int]]  # first offset and end of each queue
Place = tuple[int, int]  # physical offsets: before the first message, and of the last one
Places = Mapping[MessageQueue, Place]
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


def waiting_ranges(start: Positions, stored: StoredRanges, target: Positions | None) -> Ranges:
    """Return what waits in each queue: from `start` on, up to `target` if there is one.

    No queue goes back: one that was read further than the target, by another member or because the
    query began after it, stays where it is. Queues that are not in `start` were found meanwhile:
    they are read from offset 0. Those that are not in `target` came after it was fixed.
    """
    waiting = {}
    for queue, (low, high) in stored.items():
        first = start.get(queue, 0)
        assert first <= high, f"{queue} ends at {high}, before {first}"  # see fates.py
        if target is not None:
            if queue not in target and queue not in start:
                continue
            high = max(first, min(high, target.get(queue, first)))
        waiting[queue] = QueueRange(queue, min(max(first, low), high), high)
    return waiting


def total(ranges: Ranges) -> int:
    """Return how many offsets there are in all."""
    return sum(map(len, ranges.values()))


def at_most_rows(ranges: Ranges, rows: int) -> Ranges:
    """Return the first `rows` of the ranges, from each queue in proportion to what waits there.

    So all queues reach their end in the same batch. Each gets at least one row, if there are enough
    rows: a queue with few messages does not wait until the others are empty.
    """
    if total(ranges) <= rows:
        return dict(ranges)
    queues = _in_turn(ranges)
    ahead = 1 if rows >= len(queues) else 0
    rest, waiting = rows - ahead * len(queues), total(ranges) - ahead * len(queues)
    admitted = {queue: part.first(0) for queue, part in ranges.items()}
    taken = seen = 0
    for queue in queues:
        seen += len(ranges[queue]) - ahead
        upto = rest * seen // waiting  # rounding errors do not add up
        admitted[queue] = ranges[queue].first(ahead + upto - taken)
        taken = upto
    return admitted


def _in_turn(ranges: Ranges) -> list[MessageQueue]:
    """Return the queues where something waits, each batch with another one in front.

    Otherwise the remainder of a division would always go to the same queues. A batch that is
    planned again has the same order.
    """
    queues = sorted(queue for queue, part in ranges.items() if len(part))
    turn = hash(tuple(ranges[queue].start for queue in queues)) % max(len(queues), 1)
    return queues[turn:] + queues[:turn]


def at_most_bytes(ranges: Ranges, limit: int, sizes: Sizes) -> Ranges:
    """Return the first messages that have no more bytes than `limit` together, but at least one.

    The first message of each queue comes before the second of any. Queues share evenly; what one
    does not need goes to the others. A plan looks at `MOST_SIZES` messages at most, of all queues.
    """
    ranges = at_most_rows(ranges, MOST_SIZES)
    admitted = {queue: part.first(0) for queue, part in ranges.items()}
    rest = limit
    sums = dict[MessageQueue, npt.NDArray[np.int64]]()
    for queue in _in_turn(ranges):
        part = ranges[queue]
        bytes_ = np.maximum(sizes(queue, part.start, part.end), 0)
        # A message that is larger than the limit makes a batch of its own.
        if len(bytes_) and (bytes_[0] <= rest or rest == limit):
            admitted[queue] = part.first(1)
            rest -= int(bytes_[0])
            sums[queue] = np.cumsum(bytes_[1:])
    sums = {queue: ends for queue, ends in sums.items() if len(ends) and rest > 0}
    while sums:
        queue = min(sums, key=lambda one: (int(sums[one][-1]), one))
        share = rest // len(sums)
        ends = sums.pop(queue)
        count = int(np.searchsorted(ends, share, side="right"))
        admitted[queue] = ranges[queue].first(1 + count)
        rest -= int(ends[count - 1]) if count else 0
    return admitted


def split(
    ranges: Ranges,
    *,
    min_partitions: int | None = None,
    max_rows: int | None = None,
) -> list[QueueRange]:
    """Return one range per task: each queue's, or parts of it in the order of their offsets."""
    wanted = [ranges[queue] for queue in sorted(ranges) if len(ranges[queue])]
    pieces = [-(-len(part) // max_rows) if max_rows else 1 for part in wanted]
    least = min(min_partitions or 0, sum(map(len, wanted)))
    while sum(pieces) < least:
        longest = max(range(len(wanted)), key=lambda index: len(wanted[index]) / pieces[index])
        pieces[longest] += 1
    return [
        piece for part, count in zip(wanted, pieces, strict=True) for piece in _cut(part, count)
    ]


def tasks(parts: Sequence[QueueRange], places: Places, cores: int) -> list[tuple[QueueRange, ...]]:
    """Return the ranges of each task: one range, or several ones that are few messages.

    A task costs as much as reading some thousand messages, and a query that keeps up has few of
    them in each queue. More of them share a task if `cores` of them are busy all the same. `places`
    say between which bytes of its broker's log a range lies; where that is not known, a range may
    be large and has a task of its own.
    """
    rows = sum(map(len, parts))
    if rows <= FEW_ROWS:
        return [tuple(parts)] if parts else []
    even = rows // max(cores, 1)
    # An eighth more, as queues do not divide evenly.
    most = min(max(even + even // 8, TASK_ROWS), MOST_TASK_ROWS)
    shares = list[_Share]()
    for part in parts:
        if not shares or not shares[-1].take(part, places.get(part.queue), most):
            shares.append(_Share(part, places.get(part.queue)))
    return [tuple(share.ranges) for share in shares]


class _Share:
    """What one task reads."""

    def __init__(self, part: QueueRange, place: Place | None) -> None:
        self.ranges, self._rows = [part], len(part)
        self._places = {} if place is None else {part.queue.broker: place}
        self._is_open = place is not None

    def take(self, part: QueueRange, place: Place | None, most_rows: int) -> bool:
        """Read one more range, if that keeps it small; return whether it does."""
        if place is None or not self._is_open or self._rows + len(part) > most_rows:
            return False
        low, high = self._places.get(part.queue.broker, place)
        widened = {**self._places, part.queue.broker: (min(low, place[0]), max(high, place[1]))}
        if sum(end - start for start, end in widened.values()) > most_rows * ROW_BYTES:
            return False
        self.ranges.append(part)
        self._rows, self._places = self._rows + len(part), widened
        return True


def _cut(part: QueueRange, count: int) -> list[QueueRange]:
    bounds = [part.start + len(part) * index // count for index in range(count)] + [part.end]
    return [QueueRange(part.queue, start, end) for start, end in pairwise(bounds)]
