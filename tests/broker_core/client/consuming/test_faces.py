"""Consumers as programs use them: rocketpy.connect() and rocketpy.aio.connect()."""

from __future__ import annotations

import asyncio
import os
import queue
import threading

import pytest
from tests.broker_core.client.consuming.consumers import GROUP, TOPIC, committed, make_topic, send

import rocketpy
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.local import LocalBroker
from rocketpy.errors import ClientClosedError, ForeignConsumerError, GroupTakenError


def test_a_listener_hands_messages_to_a_function(servers: LocalBroker) -> None:
    make_topic(servers)
    got: queue.Queue[bytes] = queue.Queue()
    with rocketpy.connect(servers.namesrv_addr) as mq:
        with mq.listen(GROUP, TOPIC, lambda message: got.put(message.body)) as listener:
            assert len(listener.queues) >= 4
            mq.send(TOPIC, b"1 euro")
            assert got.get(timeout=30) == b"1 euro"
            with pytest.raises(GroupTakenError):
                mq.listen(GROUP, TOPIC, print)
        mq.listen(GROUP, TOPIC, print).close()
    assert committed(servers) == 1


def test_a_handler_may_send(servers: LocalBroker) -> None:
    make_topic(servers)
    make_topic(servers, "bills")
    got: queue.Queue[bytes] = queue.Queue()
    with rocketpy.connect(servers.namesrv_addr) as mq:

        def bill(message: ReceivedMessage) -> None:
            mq.send("bills", b"for " + message.body)

        with (
            mq.listen("billing", TOPIC, bill),
            mq.listen("post", "bills", lambda message: got.put(message.body)),
        ):
            mq.send(TOPIC, b"1 euro")
            assert got.get(timeout=30) == b"for 1 euro"


def test_a_handler_may_close_its_own_listener_and_its_message_is_done(servers: LocalBroker) -> None:
    make_topic(servers)
    ready, closed = threading.Event(), threading.Event()

    def stop(_: ReceivedMessage) -> None:
        ready.wait()
        listener.close()
        closed.set()

    with rocketpy.connect(servers.namesrv_addr) as mq:
        listener = mq.listen(GROUP, TOPIC, stop)
        mq.send(TOPIC, b"the last one")
        ready.set()
        assert closed.wait(10)  # far less than a close waits for handlers
        listener.close()  # waits for what the handler began
        assert committed(servers) == 1


def test_a_coroutine_may_close_its_own_consumer_and_its_message_is_done(
    servers: LocalBroker,
) -> None:
    make_topic(servers)

    async def scenario() -> None:
        closed = asyncio.Event()

        async def stop(_: ReceivedMessage) -> None:
            await consumer.close()
            closed.set()

        async with rocketpy.aio.connect(servers.namesrv_addr) as mq:
            consumer = await mq.listen(GROUP, TOPIC, stop)
            await mq.send(TOPIC, b"the last one")
            await asyncio.wait_for(closed.wait(), 10)  # far less than a close waits for handlers
            await consumer.close()  # waits for what the handler began
            assert consumer.is_closed

    asyncio.run(scenario())
    assert committed(servers) == 1


def test_a_handler_may_close_its_client(servers: LocalBroker) -> None:
    make_topic(servers)
    closed = threading.Event()
    mq = rocketpy.connect(servers.namesrv_addr)

    def stop(_: ReceivedMessage) -> None:
        mq.close()
        closed.set()

    listener = mq.listen(GROUP, TOPIC, stop)
    mq.send(TOPIC, b"the last one")
    assert closed.wait(10)  # far less than a close waits for handlers
    listener.close()
    assert committed(servers) == 0  # it had not returned, so its message comes again


def test_a_coroutine_is_a_handler_of_the_blocking_client_too(servers: LocalBroker) -> None:
    make_topic(servers)
    got: queue.Queue[str] = queue.Queue()

    async def handler(_: ReceivedMessage) -> None:
        await asyncio.sleep(0)
        got.put(threading.current_thread().name)

    with rocketpy.connect(servers.namesrv_addr) as mq, mq.listen(GROUP, TOPIC, handler):
        mq.send(TOPIC, b"x")
        assert got.get(timeout=30) == "rocketpy-client"


def test_closing_the_client_closes_its_consumers_in_order(servers: LocalBroker) -> None:
    make_topic(servers)
    got: queue.Queue[bytes] = queue.Queue()
    with rocketpy.connect(servers.namesrv_addr) as mq:
        mq.listen(GROUP, TOPIC, lambda message: got.put(message.body), start="earliest")
        consumer = mq.consumer("other", TOPIC, start="earliest")
        send(servers, ["1"])
        assert got.get(timeout=30) == b"1"
        assert [each.body for each in consumer.poll(30)] == [b"1"]
    assert committed(servers) == 1
    assert committed(servers, "other") == 0  # nobody said that it was done
    with pytest.raises(ClientClosedError):
        consumer.poll()


def test_a_consumer_is_polled_and_iterated(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(30)))
    with rocketpy.connect(servers.namesrv_addr) as mq:
        with mq.consumer(GROUP, TOPIC, start="earliest") as consumer:
            got = [each.body for each in consumer.poll(30, most=5)]
            for message in consumer:
                got.append(message.body)
                if len(got) == 20:
                    break
        assert committed(servers) == 20
        with mq.consumer(GROUP, TOPIC) as consumer:
            while len(got) < 30:
                got += [each.body for each in consumer.poll(30)]
    assert sorted(map(int, got)) == [*range(30)]
    assert committed(servers) == 30


def test_seek_pause_and_commit_of_the_blocking_consumer(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    with servers.store(0) as store:
        store.append(TOPIC, [{"body": str(each)} for each in range(3)])
    with (
        rocketpy.connect(servers.namesrv_addr) as mq,
        mq.consumer(GROUP, TOPIC, start="earliest", auto_commit=False) as consumer,
    ):
        first = consumer.queues[0]
        assert len(consumer.poll(30)) == 3
        consumer.seek(first, 1)
        assert [each.body for each in consumer.poll(30)] == [b"1", b"2"]
        consumer.seek_to_first(first)
        assert len(consumer.poll(30)) == 3
        consumer.seek_to_time(first, 0)
        assert len(consumer.poll(30)) == 3
        consumer.seek_to_end(first)
        consumer.pause([first])
        consumer.resume([first])
        assert consumer.poll(0.01) == []
        assert consumer.commit() == []
        assert consumer.positions()[first] == 3
    assert committed(servers) == 3


def test_queues_by_offset(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    with servers.store(0) as store:
        store.append(TOPIC, [{"body": str(each)} for each in range(3)])
    with rocketpy.connect(servers.namesrv_addr) as mq:
        first, second = mq.queues(TOPIC)
        assert (mq.queue_range(first), mq.queue_range(second)) == ((0, 3), (0, 0))
        pulled = mq.pull(first, 1, most=1)
        assert ([each.body for each in pulled.messages], pulled.next_offset) == ([b"1"], 2)
        assert mq.offset_at(first, 0) == 0
        assert mq.committed("nobody", second) in (None, 0)


def test_a_client_of_asyncio_listens_and_consumes(servers: LocalBroker) -> None:
    make_topic(servers)
    got: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        got.append(message.body)

    async def scenario() -> None:
        async with rocketpy.aio.connect(servers.namesrv_addr) as mq:
            await mq.listen(GROUP, TOPIC, handler)
            async with await mq.consumer("other", TOPIC) as consumer:
                await mq.send(TOPIC, b"x")
                async for message in consumer:
                    assert message.body == b"x"
                    break
            while not got:
                await asyncio.sleep(0.01)

    asyncio.run(scenario())
    assert committed(servers) == committed(servers, "other") == 1


def test_a_forked_child_cannot_use_a_consumer_and_can_make_its_own(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, ["1"])
    with (
        rocketpy.connect(servers.namesrv_addr) as mq,
        mq.consumer("parents", TOPIC, start="earliest") as consumer,
    ):
        assert len(consumer.poll(30)) == 1
        child = os.fork()
        if child == 0:
            code = 1
            try:
                try:
                    consumer.poll(0)
                except ForeignConsumerError:
                    with mq.consumer("childs", TOPIC, start="earliest") as own:
                        code = 0 if len(own.poll(30)) == 1 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        send(servers, ["2"])
        assert [each.body for each in consumer.poll(30)] == [b"2"]
    assert committed(servers, "childs") == 1
