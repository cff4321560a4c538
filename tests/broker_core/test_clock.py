"""The two clocks."""

from __future__ import annotations

import time

from rocketpy.broker_core.clock import ManualClock, SystemClock


def test_the_systems_clock_tells_milliseconds() -> None:
    before = time.time() * 1000
    assert before - 1 <= SystemClock().now_ms() <= before + 10_000


def test_a_manual_clock_stands_still_until_it_is_turned() -> None:
    clock = ManualClock(5)
    assert clock.now_ms() == clock.now_ms() == 5
    clock.advance(7)
    clock.advance(-2)
    assert clock.now_ms() == 10
