from __future__ import annotations

import asyncio
import logging

import pytest

from rocketpy.broker_core.broker.services.periodic import Periodic


def test_work_that_fails_is_told_and_done_again(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        times, is_enough = 0, asyncio.Event()

        async def work() -> None:
            nonlocal times
            times += 1
            if times == 1:
                raise OSError("no room")
            is_enough.set()

        periodic = Periodic("counting", 0.001, work)
        periodic.start()
        await asyncio.wait_for(is_enough.wait(), 20)
        await periodic.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert "counting failed" in caplog.text
    assert "no room" in caplog.text


def test_stopping_waits_for_the_work_and_nothing_comes_after_it() -> None:
    async def run() -> list[str]:
        has_begun, may_end, done = asyncio.Event(), asyncio.Event(), list[str]()

        async def work() -> None:
            has_begun.set()
            await may_end.wait()
            done.append("work")

        periodic = Periodic("waiting", 0.001, work)
        periodic.start()
        await asyncio.wait_for(has_begun.wait(), 20)
        stopping = asyncio.ensure_future(periodic.stop())
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.wait_for(stopping, 20)
        await periodic.stop()
        before = list(done)
        await asyncio.sleep(0.01)
        assert done == before
        return done

    assert asyncio.run(run())[:1] == ["work"]
