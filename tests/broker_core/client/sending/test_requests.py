"""Requests and replies between Python clients, through brokers of ours."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from typing import Any

import pytest

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.client.consuming.opening import listen
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.local import LocalBroker


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


@contextlib.asynccontextmanager
async def answering(servers: LocalBroker) -> AsyncIterator[None]:
    """Somebody who replies to each request what it says, in capitals."""
    async with rocketpy.aio.connect(servers.namesrv_addr, group="answers") as mq:

        async def answer(request: ReceivedMessage) -> None:
            await mq.reply(request, request.body.upper())

        consumer = await listen(mq.session, "answers", "t", answer, start="earliest")
        try:
            yield
        finally:
            await consumer.close()


def test_a_request_gets_its_reply(fresh: LocalBroker) -> None:
    async def work() -> None:
        async with answering(fresh), rocketpy.aio.connect(fresh.namesrv_addr) as mq:
            reply = await mq.request("t", b"hello", timeout_s=30)
            assert reply.body == b"HELLO"

    run(work())


def test_replies_go_to_who_asked_each_to_its_own(fresh: LocalBroker) -> None:
    async def work() -> None:
        async with (
            answering(fresh),
            rocketpy.aio.connect(fresh.namesrv_addr) as one,
            rocketpy.aio.connect(fresh.namesrv_addr) as two,
        ):
            asked = [
                mq.request("t", f"{n}-x", timeout_s=30) for n in range(20) for mq in (one, two)
            ]
            found = [reply.body for reply in await asyncio.gather(*asked)]
            assert found == [f"{n}-X".encode() for n in range(20) for _ in range(2)]

    run(work())


def test_a_large_reply_is_read_as_it_was_sent(fresh: LocalBroker) -> None:
    async def work() -> None:
        async with answering(fresh), rocketpy.aio.connect(fresh.namesrv_addr) as mq:
            reply = await mq.request("t", b"x" * 100_000, timeout_s=30)
            assert reply.body == b"X" * 100_000

    run(work())


def test_without_a_reply_the_error_says_so(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr) as mq:
        with pytest.raises(errors.NoReplyError, match=r"'t' in 0\.2 s"):
            mq.request("t", b"anybody?", timeout_s=0.2)
        mq.send("t", b"x")


def test_no_reply_is_sent_to_what_is_no_request_and_none_without_a_body(fresh: LocalBroker) -> None:
    async def work() -> None:
        async with rocketpy.aio.connect(fresh.namesrv_addr) as mq:
            message = ReceivedMessage(
                topic="t", body=b"x", queue=(await mq.send("t", b"x")).queue, queue_offset=0
            )
            with pytest.raises(errors.MessageRefusedError, match="no request"):
                await mq.reply(message, b"y")
            asked = {"CLUSTER": "c", "CORRELATION_ID": "1", "REPLY_TO_CLIENT": "me"}
            with pytest.raises(errors.MessageRefusedError, match="its body is empty"):
                await mq.reply(replace(message, properties=asked), b"")

    run(work())


def test_a_reply_to_a_client_that_is_gone_is_refused(fresh: LocalBroker) -> None:
    refused: list[errors.RocketPyError] = []

    async def work() -> None:
        came = asyncio.Event()

        async def answer(request: ReceivedMessage) -> None:
            try:
                await late.reply(request, b"late")
            except errors.RocketPyError as error:
                refused.append(error)
            came.set()

        async with rocketpy.aio.connect(fresh.namesrv_addr) as asking:
            with pytest.raises(errors.NoReplyError):
                await asking.request("t", b"x", timeout_s=0.1)
        async with rocketpy.aio.connect(fresh.namesrv_addr, group="answers", tries=1) as late:
            consumer = await listen(late.session, "answers", "t", answer, start="earliest")
            await came.wait()
            await consumer.close()

    run(work())
    assert [type(each) for each in refused] == [errors.ServerRefusedError]
    assert "not found" in str(refused[0])
