"""Measuring in CPU-seconds of this process: other load on the machine disturbs them least."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import NamedTuple


class Figure(NamedTuple):
    """One row of the table that `make bench` prints."""

    what: str
    value: float
    unit: str
    target: str = ""


def cpu_seconds(work: Callable[[], object], *, repeat: int = 3) -> float:
    """Return the least CPU-seconds, user and system, of a few runs."""
    best = float("inf")
    for _ in range(repeat):
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best
