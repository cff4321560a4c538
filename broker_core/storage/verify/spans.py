"""Which numbers of a sequence are known to be right, as few stretches rather than one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator


class Spans:
    """Stretches of numbers; those that touch become one."""

    def __init__(self) -> None:
        self._bounds: list[int] = []  # first, end, first, end, ...

    def add(self, first: int, end: int) -> None:
        """Take in the numbers from `first` up to `end`."""
        bounds = self._bounds
        if first >= end:
            return
        if bounds and bounds[-2] <= first <= bounds[-1]:  # they mostly come in order
            bounds[-1] = max(bounds[-1], end)
            return
        low, high = _before(bounds, first), bisect_right(bounds, end)
        low, high = low - low % 2, high + high % 2
        touched = [first, end, *bounds[low:high]]
        bounds[low:high] = [min(touched), max(touched)]

    def parts(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """Yield the numbers from `first` up to `end` as (first, end, whether they are in it)."""
        at = bisect_right(self._bounds, first)
        while first < end:
            until = min(self._bounds[at], end) if at < len(self._bounds) else end
            yield first, until, at % 2 == 1
            first, at = until, at + 1


def _before(bounds: list[int], first: int) -> int:
    """Return the index of the first bound that is not below a number."""
    return bisect_right(bounds, first - 1)
