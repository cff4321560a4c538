"""Time is handed in: the system's clock, and one that tests turn by hand."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable


class Clock(Protocol):
    """Tells the time in milliseconds since 1970, as RocketMQ stores it."""

    def now_ms(self) -> int:
        """Return the time now."""


@runtime_checkable
class SteadyClock(Protocol):
    """Tells a time that only grows, whatever is done to the time of day: it measures durations."""

    def steady_ms(self) -> int:
        """Return the milliseconds since some moment."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the time now."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Return the milliseconds since some moment."""
        return time.monotonic_ns() // 1_000_000


class ManualClock:
    """A clock that stands still until it is turned."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms, self._steady_ms = start_ms, 0

    def now_ms(self) -> int:
        """Return the time it was turned to."""
        return self._now_ms

    def steady_ms(self) -> int:
        """Return how far it was turned forward."""
        return self._steady_ms

    def advance(self, by_ms: int) -> None:
        """Turn the clock forward, or back to try what a jump does."""
        self._now_ms += by_ms
        self._steady_ms += max(by_ms, 0)


def steady_ms(clock: Clock) -> int:
    """Return a clock's steady time; the machine's, if the clock knows only the time of day."""
    return (clock if isinstance(clock, SteadyClock) else SystemClock()).steady_ms()
