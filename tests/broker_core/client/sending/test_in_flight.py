from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from rocketpy.broker_core.client.sending.in_flight import InFlight
from rocketpy.broker_core.errors import MessageRefusedError


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_who_finds_no_room_waits_until_somebody_leaves() -> None:
    async def work() -> None:
        limit = InFlight(2, 100)
        await limit.enter(1, 10)
        await limit.enter(1, 10)
        third = asyncio.ensure_future(limit.enter(1, 10))
        await turn()
        assert not third.done()
        limit.leave(1, 10)
        await third
        assert (limit.messages, limit.bytes) == (2, 20)

    run(work())


def test_bytes_are_limited_as_well() -> None:
    async def work() -> None:
        limit = InFlight(100, 100)
        await limit.enter(1, 60)
        second = asyncio.ensure_future(limit.enter(1, 60))
        await turn()
        assert not second.done()
        limit.leave(1, 60)
        await second

    run(work())


def test_a_large_one_is_not_overtaken_by_small_ones() -> None:
    async def work() -> None:
        limit = InFlight(100, 100)
        await limit.enter(1, 60)
        large = asyncio.ensure_future(limit.enter(1, 90))
        small = asyncio.ensure_future(limit.enter(1, 1))
        await turn()
        assert not small.done()
        limit.leave(1, 60)
        await asyncio.gather(large, small)

    run(work())


def test_what_is_larger_than_the_limit_goes_alone() -> None:
    async def work() -> None:
        limit = InFlight(100, 100)
        await limit.enter(1, 1000)
        other = asyncio.ensure_future(limit.enter(1, 1))
        await turn()
        assert not other.done()
        limit.leave(1, 1000)
        await other

    run(work())


def test_who_gives_up_waiting_takes_no_room() -> None:
    async def work() -> None:
        limit = InFlight(1, 100)
        await limit.enter(1, 1)
        given_up = asyncio.ensure_future(limit.enter(1, 1))
        waiting = asyncio.ensure_future(limit.enter(1, 1))
        await turn()
        given_up.cancel()
        await turn()
        limit.leave(1, 1)
        await waiting
        limit.leave(1, 1)
        assert (limit.messages, limit.bytes, limit.waiting) == (0, 0, 0)

    run(work())


def test_who_is_cancelled_when_room_was_just_given_gives_it_back() -> None:
    async def work() -> None:
        limit = InFlight(1, 100)
        await limit.enter(1, 1)
        given_up = asyncio.ensure_future(limit.enter(1, 1))
        await turn()
        limit.leave(1, 1)  # gives the room
        given_up.cancel()  # before its task runs
        await turn()
        assert (limit.messages, limit.waiting) == (0, 0)

    run(work())


def test_a_limit_without_room_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match="most_in_flight"):
        InFlight(0, 100)
