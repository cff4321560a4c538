from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.broker_core.client.consuming.consumers import (
    GROUP,
    TOPIC,
    committed,
    listening,
    make_topic,
    send,
    until,
)
from tests.broker_core.client.consuming.test_push import Received

from rocketpy.broker_core.client.consuming.errors import GroupTakenError, QueueNotHeldError
from rocketpy.broker_core.client.consuming.opening import consume, pull_at
from rocketpy.broker_core.client.consuming.process_queue import BufferLimits
from rocketpy.broker_core.client.consuming.pull import PullConsumer
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.subscriptions import Sql
from rocketpy.broker_core.client.errors import ClientClosedError
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.errors import MessageRefusedError, TopicNotFoundError
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.message_queue import MessageQueue

QUEUE = MessageQueue(TOPIC, "broker-a", 0)


@contextlib.asynccontextmanager
async def consuming(
    servers: LocalBroker, topics: Any = TOPIC, **more: Any
) -> AsyncIterator[PullConsumer]:
    async with Session(servers.namesrv_addr) as session:
        consumer = await consume(session, GROUP, topics, **{"start": "earliest"} | more)
        async with consumer:
            yield consumer


async def poll_all(consumer: PullConsumer, count: int) -> list[str]:
    got: list[str] = []
    while len(got) < count:
        got += [each.body.decode() for each in await consumer.poll(30)]
    return got


def test_poll_gives_all_messages_and_close_commits_them(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(200)))

    async def scenario() -> list[str]:
        async with consuming(servers) as consumer:
            got = await poll_all(consumer, 200)
            assert await consumer.poll(0.01) == []
            return got

    assert sorted(map(int, asyncio.run(scenario()))) == [*range(200)]
    assert committed(servers) == 200


def test_a_held_pull_brings_what_is_sent_while_poll_waits(servers: LocalBroker) -> None:
    make_topic(servers)

    async def scenario() -> None:
        async with consuming(servers) as consumer:
            polling = asyncio.ensure_future(consumer.poll(30))
            await asyncio.sleep(0.05)
            send(servers, ["late"])
            assert [each.body for each in await polling] == [b"late"]

    asyncio.run(scenario())


def test_what_the_last_poll_gave_comes_again_after_an_error(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    with servers.store(0) as store:
        store.append(TOPIC, [{"body": str(each)} for each in range(10)])

    async def scenario() -> None:
        async with consuming(servers) as consumer:
            await consumer.poll(30, most=4)
            await consumer.poll(30, most=4)
            raise OSError("no room for them")

    with pytest.raises(OSError, match="no room"):
        asyncio.run(scenario())
    assert committed(servers) == 4


def test_iterating_gives_message_by_message_and_commits_those_that_were_dealt_with(
    servers: LocalBroker,
) -> None:
    make_topic(servers, queues=1)
    with servers.store(0) as store:
        store.append(TOPIC, [{"body": str(each)} for each in range(10)])

    async def scenario(fails: bool) -> list[str]:
        got = []
        async with consuming(servers) as consumer:
            async for message in consumer:
                got.append(message.body.decode())
                if len(got) == 3:
                    break
            if fails:
                raise OSError
        return got

    with pytest.raises(OSError):  # noqa: PT011
        asyncio.run(scenario(fails=True))
    assert committed(servers) == 2
    assert asyncio.run(scenario(fails=False)) == ["2", "3", "4"]
    assert committed(servers) == 5


def test_without_auto_commit_only_commit_commits(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(20)))

    async def scenario(*, commits: bool) -> list[str]:
        async with consuming(servers, auto_commit=False) as consumer:
            got = await poll_all(consumer, 20)
            if commits:
                assert await consumer.commit() == []
                assert sum(consumer.positions().values()) == 20
            return got

    asyncio.run(scenario(commits=False))
    assert committed(servers) == 0
    assert len(asyncio.run(scenario(commits=True))) == 20
    assert committed(servers) == 20


def test_seek_goes_to_offsets_times_and_ends(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    with servers.store(0) as store:
        store.append(TOPIC, [{"body": str(each)} for each in range(5)])
        time.sleep(0.01)
        between_ms = time.time_ns() // 1_000_000
        store.append(TOPIC, [{"body": str(each)} for each in range(5, 8)])

    async def scenario() -> None:
        async with consuming(servers) as consumer:
            assert len(await poll_all(consumer, 8)) == 8
            await consumer.seek(QUEUE, 6)
            assert await poll_all(consumer, 2) == ["6", "7"]
            await consumer.seek_to_time(QUEUE, between_ms)
            assert await poll_all(consumer, 3) == ["5", "6", "7"]
            await consumer.seek_to_first(QUEUE)
            assert (await poll_all(consumer, 8))[0] == "0"
            await consumer.seek_to_first(QUEUE)
            await consumer.seek_to_end(QUEUE)
            assert await consumer.poll(0.05) == []
            with pytest.raises(QueueNotHeldError, match="broker-a:0"):
                await consumer.seek(MessageQueue(TOPIC, "broker-z", 0), 0)

    asyncio.run(scenario())


def test_a_paused_queue_gives_nothing_until_it_is_resumed(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)

    async def scenario() -> None:
        async with consuming(servers) as consumer:
            await consumer.pause([QUEUE])
            send(servers, ["a", "b"])  # to broker-a and broker-b
            assert [each.body for each in await consumer.poll(30)] == [b"b"]
            assert await consumer.poll(0.05) == []
            await consumer.resume([QUEUE])
            assert [each.body for each in await consumer.poll(30)] == [b"a"]

    asyncio.run(scenario())


def test_who_does_not_poll_buffers_no_more_than_the_limit(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    send(servers, map(str, range(400)))

    async def scenario() -> None:
        limits = BufferLimits(messages=40)
        async with consuming(servers, limits=limits) as consumer:
            await until(lambda: consumer.buffered == 80)
            got: list[str] = []
            while len(got) < 400:
                got += [each.body.decode() for each in await consumer.poll(30, most=7)]
                assert consumer.buffered <= 80
            assert sorted(map(int, got)) == [*range(400)]

    asyncio.run(scenario())


def test_queues_that_are_assigned_are_read_whoever_else_reads_them(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got), Session(servers.namesrv_addr) as session:
            consumer = await consume(session, "other", queues=[QUEUE], start="earliest")
            async with consumer:
                assert consumer.queues == (QUEUE,)
                send(servers, ["a", "b"])
                assert [each.body for each in await consumer.poll(30)] == [b"a"]
            await until(lambda: sorted(got) == ["a", "b"])

    asyncio.run(scenario())
    assert committed(servers, "other") == 1


def test_a_pull_consumer_shares_a_group_with_others_of_its_kind(servers: LocalBroker) -> None:
    make_topic(servers)

    async def scenario() -> None:
        async with consuming(servers) as one:
            assert len(one.queues) == 4
            async with consuming(servers) as two:
                await until(lambda: (len(one.queues), len(two.queues)) == (2, 2))
            await until(lambda: len(one.queues) == 4)

    asyncio.run(scenario())


def test_filters_by_tag_and_by_sql(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, ["1"], tags="a", properties={"size": "1"})
    send(servers, ["2"], tags="b", properties={"size": "2"})

    async def scenario(wanted: Any) -> list[str]:
        async with Session(servers.namesrv_addr) as session:
            topics = {TOPIC: wanted}
            async with await consume(session, f"g-{wanted!s:.1}", topics, start=0) as consumer:
                return await poll_all(consumer, 1)

    assert asyncio.run(scenario("b")) == ["2"]
    assert asyncio.run(scenario(Sql("size = 1"))) == ["1"]


def test_messages_by_offset(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    with servers.store(0) as store:
        store.append(TOPIC, [{"body": str(each)} for each in range(50)])

    async def scenario() -> None:
        async with Session(servers.namesrv_addr) as session:
            first = await pull_at(session, QUEUE, 40, most=4)
            assert [each.body for each in first.messages] == [b"40", b"41", b"42", b"43"]
            assert (first.next_offset, first.first, first.end) == (44, 0, 50)
            last = await pull_at(session, QUEUE, 50)
            assert (last.messages, last.next_offset) == ([], 50)
            gone = await pull_at(session, QUEUE, 99)
            assert (gone.is_moved, gone.next_offset) == (True, 50)
            calls = QueueCalls(session)
            assert (await calls.first(QUEUE), await calls.end(QUEUE)) == (0, 50)
            waiting = asyncio.ensure_future(pull_at(session, QUEUE, 50, wait_s=10))
            await asyncio.sleep(0.05)
            with servers.store(0) as store:
                store.send(TOPIC, "new")
            assert [each.body for each in (await waiting).messages] == [b"new"]

    asyncio.run(scenario())


def test_what_cannot_be_is_refused(servers: LocalBroker) -> None:
    make_topic(servers)

    async def scenario() -> None:
        async with Session(servers.namesrv_addr) as session:
            with pytest.raises(MessageRefusedError, match="topics or queues"):
                await consume(session, GROUP)
            with pytest.raises(TopicNotFoundError):
                await consume(session, GROUP, queues=[MessageQueue("none", "broker-a", 0)])
            consumer = await consume(session, GROUP, TOPIC)
            with pytest.raises(GroupTakenError, match="already"):
                await consume(session, GROUP, TOPIC)
            await consumer.close()
            with pytest.raises(ClientClosedError):
                await consumer.poll(1)
            await (await consume(session, GROUP, TOPIC)).close()

    asyncio.run(scenario())
