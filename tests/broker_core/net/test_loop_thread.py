"""Threads that wait for what runs in the loop of another one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from rocketpy.broker_core.net.loop_thread import LoopThread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    running = LoopThread("test")
    yield running
    running.stop()


def test_what_a_coroutine_returns_or_raises_comes_to_who_waits(loop: LoopThread) -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number if number else 1 // number

    with ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda each: loop.run(double(each), timeout_s=10), range(1, 200))
        assert [*found] == [*range(2, 400, 2)]
    with pytest.raises(ZeroDivisionError):
        loop.run(double(0), timeout_s=None)


def test_what_takes_too_long_is_cancelled(loop: LoopThread) -> None:
    was_cancelled = threading.Event()

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled.set()
            raise

    with pytest.raises(TimeoutError):
        loop.run(for_ever(), timeout_s=0.01)
    assert was_cancelled.wait(10)


def test_who_waits_when_the_loop_ends_is_told(loop: LoopThread) -> None:
    began = threading.Event()

    async def for_ever() -> None:
        began.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(loop.run, for_ever(), timeout_s=None)
        assert began.wait(10)
        loop.stop()
        with pytest.raises(CancelledError):
            waiting.result(10)
