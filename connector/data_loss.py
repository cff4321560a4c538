"""Messages that are gone before they were read: found when a batch is planned, and while reading.

They were deleted by retention, or the topic was deleted or made anew. A query stops and says
exactly which (`failOnDataLoss`), or goes on after them and logs the same words.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.connector.offsets import MessageQueue, Positions
from rocketpy.connector.planning import QueueRange, Ranges, StoredRanges

log = logging.getLogger(__name__)


class Loss(NamedTuple):
    """A range of offsets that cannot be read, and why."""

    queue: MessageQueue | str  # or what else lost some
    start: int
    end: int | None  # None: nobody knows how many
    reason: str

    def __str__(self) -> str:
        upto = "on" if self.end is None else f"up to {self.end}"
        return f"{self.queue} from offset {self.start} {upto} ({self.reason})"


class DataLossError(RocketPyError):
    """Is raised when messages are gone before they were read."""

    def __init__(self, losses: Sequence[Loss]) -> None:
        super().__init__(losses)
        self.losses = losses

    def __str__(self) -> str:
        return (
            f"messages are gone before they were read: {'; '.join(map(str, self.losses))}. They "
            "were deleted by retention, or the topic was deleted or made anew. To go on without "
            "them, set option 'failOnDataLoss' to false"
        )


def report(losses: Sequence[Loss], *, fail: bool) -> None:
    """Raise, or log, if anything was lost."""
    if losses and fail:
        raise DataLossError(tuple(losses))
    if losses:
        log.warning("%s", DataLossError(tuple(losses)))


def readable(start: Positions, end: Positions, stored: StoredRanges) -> tuple[Ranges, list[Loss]]:
    """Return what can be read between two points, and what was lost.

    A queue that is only in `end` was found meanwhile: it is read from offset 0. One whose end is
    before its start was made anew, in offsets of version 1: it is read from its first message.
    """
    ranges, losses = Ranges(), list[Loss]()
    for queue in sorted({*start, *end}):
        first, last = start.get(queue, 0), end.get(queue)
        if last is None or first == last:
            continue  # nothing of it is to be read
        if queue not in stored:
            losses.append(Loss(queue, first, last, "there is no such queue any more"))
            continue
        low, high = stored[queue]
        if last < first:
            losses.append(Loss(queue, last, first, "the queue was made anew, or its end was lost"))
            first = low
        elif first < low:
            reason = f"the oldest that is held is {low}"
            losses.append(Loss(queue, first, min(low, last), reason))
        if last > high:
            losses.append(Loss(queue, max(first, high), last, f"the queue ends at {high}"))
        begin, stop = max(first, low), min(last, high)
        ranges[queue] = QueueRange(queue, begin, max(begin, stop))
    return ranges, losses
