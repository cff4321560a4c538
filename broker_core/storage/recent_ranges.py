"""Ranges of queues that were looked up a moment ago, carried on by our own appends.

R1  A range is given only while the log ends where it was looked up, or where appends of this
    process, which say how far they moved each queue, have brought it since.
R2  What others do without moving the log's end (retention, say) is seen after a moment, or as late
    as the caller allows: it moves the beginning of a queue, never its end.
Threads share it without a lock, which a forked child could inherit taken: each entry says what it
was looked up under, and one that something overtook meanwhile does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rocketpy.broker_core.message import QueueOffset
from rocketpy.broker_core.storage.queue_ends import QueueEnd, QueueKey

Range = tuple[QueueOffset, QueueOffset]  # the first, and the one after the last

_RECENT_S = 0.2  # a look-up lists folders: it costs as much as a pull of a thousand


class _Known(NamedTuple):
    range: Range
    looked_up_s: float
    life: int
    append: int  # the number of the last of our appends before it was looked up


class RecentRanges:
    """The ranges of some queues; `mark` gives what stays the same while the log does not grow."""

    def __init__(self, mark: Callable[[], bytes]) -> None:
        self._mark = mark
        self._seen = b""  # the mark up to which ranges of this life are true
        self._life = 0  # ends when the log grows by others
        self._appends = 0
        self._moved: dict[QueueKey, int] = {}  # by which of our appends, last
        self._known: dict[QueueKey, _Known] = {}

    def get(
        self, queue: QueueKey, look_up: Callable[[], Range], *, within_s: float = _RECENT_S
    ) -> Range:
        """Return the range of a queue, looked up if it is not known, or not that recently."""
        mark = self._mark()
        if mark != self._seen:
            self.forget()
            self._seen = mark
        known, now_s = self._known.get(queue), time.monotonic()
        if (
            known is not None
            and known.life == self._life
            and known.append >= self._moved.get(queue, 0)
            and now_s < known.looked_up_s + within_s
        ):
            return known.range
        life, append = self._life, self._appends
        found = look_up()
        self._known[queue] = _Known(found, now_s, life, append)
        return found

    def carry_on(self, before: bytes, ends: Mapping[QueueKey, QueueEnd]) -> None:
        """Note an append of this process, published just now: where it left its queues.

        One thread at a time: the one that has the store's lock.
        """
        life = self._life
        self._appends = number = self._appends + 1
        for queue, end in ends.items():
            known, last = self._known.get(queue), self._moved.get(queue, 0)
            self._moved[queue] = number
            if known is not None and known.life == life and known.append >= last:
                range_ = known.range[0], QueueOffset(end.next_offset)
                self._known[queue] = _Known(range_, known.looked_up_s, life, number)
        if self._seen == before:
            self._seen = self._mark()

    def forget(self) -> None:
        """Look all ranges up again."""
        self._life += 1
