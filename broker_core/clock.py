"""Time is handed in: the system's clock, and one that tests turn by hand."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time in milliseconds since 1970, as RocketMQ stores it."""

    def now_ms(self) -> int:
        """Return the time now."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the time now."""
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that stands still until it is turned."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """Return the time it was turned to."""
        return self._now_ms

    def advance(self, by_ms: int) -> None:
        """Turn the clock forward, or back to try what a jump does."""
        self._now_ms += by_ms
