"""How many bytes of messages a queue of a folder holds: its entries have their sizes.

Up to a million are added up, of more some parts from the beginning to the end.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rocketpy.console.answers import QueueSize

_MOST_ENTRIES, _PARTS, _PART = 1_000_000, 64, 4096


class QueueEntries(Protocol):
    """A queue whose entries can be looked at."""

    def units(self, start: int, end: int) -> npt.NDArray[Any]:
        """Return the entries between two offsets, with `size` among their columns."""


def size_of_entries(queue: QueueEntries, first: int, end: int) -> QueueSize:
    """Return the size of a queue's messages between two offsets."""
    count = end - first
    if count <= _MOST_ENTRIES:
        return QueueSize(_added(queue, first, end), False)
    starts = np.linspace(first, end - _PART, _PARTS, dtype=np.int64).tolist()
    seen = sum(_added(queue, start, start + _PART) for start in starts)
    return QueueSize(seen * count // (_PARTS * _PART), True)


def _added(queue: QueueEntries, start: int, end: int) -> int:
    return int(queue.units(start, end)["size"].sum(dtype=np.int64))
