"""Where records begin in the log, as the entries of queues tell.

To find that in the log itself, each record has to be looked at before the next one can be found. So
a walk takes what is told here, and makes sure that each record begins where the one before it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.parts import StoreParts

_MOST_QUEUES = 256  # with more of them, they cost more than they save
_WINDOW_BYTES = 64 << 20  # of the log, whose entries are in memory
_UNITS_AT_ONCE = 8_192
_NOTHING = np.zeros(0, np.int64)


class QueuedStarts:
    """Tells where the records of a store begin, to one walk from a physical offset on.

    It gives up for good once the walk has not gone the way that it told: then some records have no
    entry, or entries are wrong.
    """

    def __init__(self, parts: StoreParts) -> None:
        self._parts = parts
        self._queues: list[_Ahead] | None = None  # until it is asked for the first time
        self._starts = self._ends = _NOTHING
        self._window_end = 0
        self._told_end = -1  # where what was told last ends

    def following(self, position: int, end: int, most: int) -> Ints:
        """Return where up to `most` records begin, from `position` on and before `end`.

        Without an entry for the one at `position` there are none.
        """
        if self._told_end not in (-1, position):
            self._queues = []
        try:
            if self._queues is None:
                self._queues = [_Ahead(queue, position) for queue in self._few_queues()]
            if self._queues and position >= self._window_end:
                self._look_ahead(position)
        except OSError:  # the log can be read without them
            self._queues = []
        if not self._queues:
            return _NOTHING
        first, last = np.searchsorted(self._starts, [position, end]).tolist()
        told = self._starts[first : min(last, first + most)]
        if not told.size or told[0] != position:
            self._told_end = -1
            return _NOTHING
        self._told_end = int(self._ends[first + told.size - 1])
        return told

    def _few_queues(self) -> list[ConsumeQueue]:
        """Return all queues; none if there are many."""
        queues = self._parts.queues
        keys = ((topic, number) for topic in queues.topics() for number in queues.ids(topic))
        few = list(islice(keys, _MOST_QUEUES + 1))
        return [queues.get(*key) for key in few] if len(few) <= _MOST_QUEUES else []

    def _look_ahead(self, position: int) -> None:
        self._window_end = position + _WINDOW_BYTES
        pieces = [piece for queue in self._queues or () for piece in queue.upto(self._window_end)]
        starts = np.concatenate([_NOTHING, *(starts for starts, _ in pieces)])
        ends = np.concatenate([_NOTHING, *(ends for _, ends in pieces)])
        # Several queues may have the same record; sorted runs are merged fast.
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        is_new = np.diff(starts, prepend=-1) > 0
        self._starts, self._ends = starts[is_new], ends[is_new]


class _Ahead:
    """The entries of one queue, from those of a physical offset on."""

    def __init__(self, queue: ConsumeQueue, position: int) -> None:
        def is_before(offset: int) -> bool:
            unit = queue.unit(offset)
            return unit is not None and unit.physical_offset < position

        self._queue, self._end = queue, queue.end()
        self._next = first_false(is_before, queue.first_offset(), self._end)

    def upto(self, end: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield begin and end of the next records, those that begin before a physical offset."""
        while self._next < self._end:
            units = self._queue.units(self._next, min(self._next + _UNITS_AT_ONCE, self._end))
            starts = units["physical_offset"].astype(np.int64)
            count = int(np.searchsorted(starts, end))
            yield starts[:count], starts[:count] + units["size"][:count]
            self._next += count
            if count < _UNITS_AT_ONCE:
                return
