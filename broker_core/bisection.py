"""Bisection: a condition holds for the first numbers of a range, and not for the rest."""

from __future__ import annotations

from collections.abc import Callable


def first_false(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first number from `low` to `high` for which it does not hold, by bisection."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            low = middle + 1
        else:
            high = middle
    return low
