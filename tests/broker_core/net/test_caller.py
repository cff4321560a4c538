"""Requests over one connection: their answers, their time, and the end of the connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rocketpy.broker_core.net.asking_connection import AskingConnection
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.command import RemotingCommand

SILENT, LATE, LEAVING = 1, 2, 3  # codes of requests that are not answered at once
LATE_S = 0.3


class Server:
    """Answers each request with its body, but for those of some codes."""

    def handle(self, connection: Connection, command: RemotingCommand) -> None:
        if command.code == LEAVING:
            connection.abort()
        elif command.code == LATE:
            loop = asyncio.get_running_loop()
            loop.call_later(LATE_S, connection.write, command.answer(0), b"late")
        elif command.code != SILENT:
            connection.write(command.answer(0), bytes(command.body))


@asynccontextmanager
async def asking() -> AsyncIterator[tuple[Caller, str]]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(Server()), "127.0.0.1", 0)
    caller = Caller()
    try:
        yield caller, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await caller.end(timeout_s=1)
        server.close()


def in_loop(test: Callable[[Caller, str], Awaitable[Any]]) -> None:
    async def run() -> None:
        async with asking() as (caller, address):
            await test(caller, address)

    asyncio.run(run())


def connection_of(caller: Caller) -> AskingConnection:
    (connection,) = caller._connections.values()
    return connection


def test_each_request_gets_its_own_answer() -> None:
    async def test(caller: Caller, address: str) -> None:
        bodies = [b"%d" % number for number in range(500)] + [b"x" * 100_000]
        asked = [caller.ask(address, RemotingCommand(7, body=body)) for body in bodies]
        assert [answer.body for answer in await asyncio.gather(*asked)] == bodies
        assert not connection_of(caller)._asked

    in_loop(test)


@pytest.mark.parametrize("timeout_s", [0.02, 0.1])
def test_a_request_without_an_answer_ends_when_its_time_is_over_and_not_before(
    timeout_s: float,
) -> None:
    async def test(caller: Caller, address: str) -> None:
        await caller.ask(address, RemotingCommand(7))
        began_s = time.monotonic()
        with pytest.raises(ServerUnreachableError, match=f"{address}.*no answer in {timeout_s} s"):
            await caller.ask(address, RemotingCommand(SILENT), timeout_s=timeout_s)
        assert timeout_s <= time.monotonic() - began_s
        assert (await caller.ask(address, RemotingCommand(7, body=b"on"))).body == b"on"

    in_loop(test)


def test_an_answer_that_is_late_is_passed_over() -> None:
    async def test(caller: Caller, address: str) -> None:
        with pytest.raises(ServerUnreachableError):
            await caller.ask(address, RemotingCommand(LATE), timeout_s=0.05)
        await asyncio.sleep(LATE_S)
        assert (await caller.ask(address, RemotingCommand(7, body=b"on"))).body == b"on"

    in_loop(test)


def test_many_requests_share_their_timers() -> None:
    async def test(caller: Caller, address: str) -> None:
        await caller.ask(address, RemotingCommand(7))
        asked = [
            asyncio.ensure_future(caller.begin(address, RemotingCommand(SILENT), 0.2))
            for _ in range(1_000)
        ]
        assert len(connection_of(caller)._due) < 100
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in ended} == {ServerUnreachableError}
        assert not connection_of(caller)._asked

    in_loop(test)


def test_a_request_that_is_cancelled_is_forgotten_with_its_time() -> None:
    async def test(caller: Caller, address: str) -> None:
        await caller.ask(address, RemotingCommand(7))
        task = asyncio.ensure_future(caller.ask(address, RemotingCommand(SILENT), timeout_s=0.1))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.2)
        assert not connection_of(caller)._asked

    in_loop(test)


def test_all_who_wait_hear_that_the_connection_is_lost() -> None:
    async def test(caller: Caller, address: str) -> None:
        await caller.ask(address, RemotingCommand(7))
        connection = connection_of(caller)
        asked = [caller.ask(address, RemotingCommand(code)) for code in (SILENT, SILENT, LEAVING)]
        for error in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(error, ServerUnreachableError)
            assert "closed the connection" in str(error)
        assert not connection._due
        with pytest.raises(ServerUnreachableError, match="is gone"):
            await connection.ask(RemotingCommand(7), 1)
        assert (await caller.ask(address, RemotingCommand(7, body=b"new"))).body == b"new"

    in_loop(test)
