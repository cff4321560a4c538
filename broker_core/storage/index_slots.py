"""Some slots of an index file, to be read and written.

A mapping takes a twentieth of the time. But where a block has to be found first, in a file system
that copies on write or on a full disk, writing to a mapping would kill the process. There slots are
read and written in runs of neighbours, by calls that say what is wrong.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage.disk import DiskFile
from rocketpy.broker_core.storage.layout import INDEX_HEADER_SIZE, INDEX_SLOT

_NEAR = 8192  # slots further apart than that are cheaper to read and write one by one
_MOST = 1 << 18  # slots of one run

_Slots = TypeVar("_Slots", int, Ints)


def slot_order(slots: Ints) -> Ints:
    """Return which entry comes when, slot by slot: those of one slot in their own order."""
    # numpy sorts 16 bits by radix: twice that takes less time than one sort of all bits.
    by_low = np.argsort((slots & 0xFFFF).astype(np.uint16), kind="stable")
    by_high = np.argsort((slots >> 16).astype(np.uint16)[by_low], kind="stable")
    return by_low[by_high]


def is_slot_order(order: Ints, slots: Ints) -> bool:
    """Whether an order is the one that slot_order() gives."""
    if len(order) != len(slots):
        return False
    by_slot = slots[order]
    ascends = (by_slot[1:] > by_slot[:-1]) | (order[1:] > order[:-1])
    return bool(ascends.all()) and bool((by_slot[1:] >= by_slot[:-1]).all())


class ChosenSlots(Protocol):
    """Slots of an index file with some numbers, ascending."""

    def values(self) -> Ints:
        """Return the entry that each of them names."""

    def write(self, values: Ints) -> None:
        """Make each of them name another entry.

        Raises:
            DiskFullError: there is no room; some of them may have been written.
        """


class MappedSlots:
    """Slots in blocks that are there and stay where they are: see DiskFile.can_scatter."""

    def __init__(self, file: DiskFile, numbers: Ints) -> None:
        self._file, self._at = file, _at(numbers)

    def values(self) -> Ints:
        """Return the entry that each of them names."""
        slots = self._file.view[: self._file.size // INDEX_SLOT.itemsize * INDEX_SLOT.itemsize]
        return slots.view(INDEX_SLOT)[self._at // INDEX_SLOT.itemsize].astype(np.int64)

    def write(self, values: Ints) -> None:
        """Make each of them name another entry."""
        self._file.scatter(self._at, values.astype(INDEX_SLOT))


class SlotRuns:
    """Slots that are read with what lies between near ones.

    Only the holder of the store's lock writes slots: those between are written as they were read.
    """

    def __init__(self, file: DiskFile, numbers: Ints) -> None:
        self._file = file
        ends = np.flatnonzero((np.diff(numbers) > _NEAR) | np.diff(numbers // _MOST)) + 1
        self._chosen = np.split(numbers, ends) if numbers.size else []
        self._runs = [self._read(int(part[0]), int(part[-1]) + 1) for part in self._chosen]

    def _read(self, first: int, end: int) -> npt.NDArray[Any]:
        run = np.zeros(end - first, INDEX_SLOT)
        self._file.read_into(run.view(np.uint8).data, _at(first))
        return run

    def values(self) -> Ints:
        """Return the entry that each of them names."""
        found = [run[part - part[0]] for part, run in zip(self._chosen, self._runs, strict=True)]
        return np.concatenate([np.zeros(0, INDEX_SLOT), *found]).astype(np.int64)

    def write(self, values: Ints) -> None:
        """Make each of them name another entry.

        Raises:
            DiskFullError: there is no room; some of them may have been written.
        """
        done = 0
        for part, run in zip(self._chosen, self._runs, strict=True):
            run[part - part[0]] = values[done : done + len(part)]
            self._file.write(run.view(np.uint8).data, _at(int(part[0])))
            done += len(part)


def _at(slot: _Slots) -> _Slots:
    return INDEX_HEADER_SIZE + slot * INDEX_SLOT.itemsize
