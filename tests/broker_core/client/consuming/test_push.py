from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter

import pytest
from tests.broker_core.client.consuming.consumers import (
    TOPIC,
    committed,
    listening,
    make_topic,
    send,
    until,
)

from rocketpy.broker_core.client.consuming.opening import listen
from rocketpy.broker_core.client.consuming.process_queue import BufferLimits
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.consuming.verdicts import Later
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.net.errors import ServerUnreachableError


class Received(list[str]):
    """A handler that notes the bodies of messages."""

    async def __call__(self, message: ReceivedMessage) -> None:
        self.append(message.body.decode())


def test_a_coroutine_gets_every_message_once_and_all_are_committed(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(500)))
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got) as consumer:
            assert len([each for each in consumer.queues if each.topic == TOPIC]) == 4
            await until(lambda: len(got) >= 500)
            send(servers, map(str, range(500, 510)))  # while pulls are held
            await until(lambda: len(got) >= 510)

    asyncio.run(scenario())
    assert sorted(map(int, got)) == [*range(510)]
    assert committed(servers) == 510


def test_a_plain_function_runs_in_as_many_threads_as_asked_for(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(60)))
    names = Counter[str]()

    def handler(_: ReceivedMessage) -> None:
        time.sleep(0.005)
        names[threading.current_thread().name] += 1

    async def scenario() -> None:
        async with listening(servers, handler, threads=3):
            await until(lambda: names.total() >= 60)

    asyncio.run(scenario())
    assert {*names} == {"rocketpy-shop-1", "rocketpy-shop-2", "rocketpy-shop-3"}
    assert committed(servers) == 60


def test_the_next_consumer_of_the_group_goes_on_where_the_last_one_stopped(
    servers: LocalBroker,
) -> None:
    make_topic(servers)
    got = Received()

    async def scenario(upto: int) -> None:
        async with listening(servers, got):
            await until(lambda: len(got) >= upto)

    send(servers, map(str, range(50)))
    asyncio.run(scenario(50))
    send(servers, map(str, range(50, 80)))
    asyncio.run(scenario(80))
    assert sorted(map(int, got)) == [*range(80)]


def test_messages_come_in_lists_of_up_to_as_many_as_asked_for(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    send(servers, map(str, range(100)))
    sizes: list[int] = []

    async def handler(messages: list[ReceivedMessage]) -> None:
        sizes.append(len(messages))

    async def scenario() -> None:
        async with listening(servers, handler, batch=10):
            await until(lambda: sum(sizes) >= 100)

    asyncio.run(scenario())
    assert sum(sizes) == 100
    assert 1 < max(sizes) <= 10


def test_only_messages_with_the_tags_asked_for_come_and_the_others_are_passed(
    servers: LocalBroker,
) -> None:
    make_topic(servers)
    send(servers, ["1", "2"], tags="Aa")
    send(servers, ["3", "4"], tags="BB")  # has the same hash
    send(servers, ["5", "6"], tags="C")
    send(servers, ["7", "8"])
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got, {TOPIC: "Aa || C"}) as consumer:
            await until(lambda: len(got) >= 4)
            await until(lambda: consumer.buffered == 0)
            await until(lambda: sum(consumer.positions().values()) >= 8)

    asyncio.run(scenario())
    assert sorted(got) == ["1", "2", "5", "6"]
    assert committed(servers) == 8


def test_a_message_that_fails_comes_again_with_its_first_topic_until_it_is_done(
    servers: LocalBroker,
) -> None:
    make_topic(servers)
    send(servers, ["bad", "good"])
    tries: list[tuple[str, str, int]] = []

    async def handler(message: ReceivedMessage) -> Later | None:
        tries.append((message.body.decode(), message.topic, message.reconsume_times))
        if message.body == b"bad" and message.reconsume_times == 0:
            raise ValueError("not yet")
        return Later(1) if message.body == b"bad" and message.reconsume_times == 1 else None

    async def scenario() -> None:
        async with listening(servers, handler):
            await until(lambda: len(tries) >= 4)

    asyncio.run(scenario())
    assert sorted(tries) == [
        *(("bad", TOPIC, 0), ("bad", TOPIC, 1), ("bad", TOPIC, 2), ("good", TOPIC, 0)),
    ]
    assert committed(servers) == 2


def test_after_its_tries_a_message_is_a_dead_letter(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, ["bad"])
    tries: list[int] = []

    async def handler(message: ReceivedMessage) -> Later:
        tries.append(message.reconsume_times)
        return Later(1)

    async def scenario() -> None:
        async with listening(servers, handler, max_tries=2):
            await until(lambda: len(tries) >= 3)
            await until(lambda: dead_letters(servers) == [b"bad"])

    asyncio.run(scenario())
    assert tries == [0, 1, 2]


def test_a_negative_level_makes_a_dead_letter_at_once(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, ["bad"])

    async def handler(_: ReceivedMessage) -> Later:
        return Later(-1)

    async def scenario() -> None:
        async with listening(servers, handler):
            await until(lambda: dead_letters(servers) == [b"bad"])

    asyncio.run(scenario())


def dead_letters(servers: LocalBroker, group: str = "shop") -> list[bytes]:
    found: list[bytes] = []
    for number in range(len(servers.brokers)):
        with servers.store(number) as store:
            if f"%DLQ%{group}" in store.topics():
                found += store.read(f"%DLQ%{group}").read_all()["body"].to_pylist()
    return found


def test_what_cannot_be_sent_back_is_tried_again_here(
    servers: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocketpy.broker_core.client.consuming.push._LOCAL_RETRY_S", 0.05)
    make_topic(servers)
    send(servers, ["bad"])
    tries: list[tuple[int, str]] = []

    async def handler(message: ReceivedMessage) -> Later | None:
        tries.append((message.reconsume_times, message.queue.topic))
        return Later() if len(tries) < 3 else None

    async def scenario() -> None:
        faults = [
            each.faults.refuse("CONSUMER_SEND_MSG_BACK", times=None) for each in servers.brokers
        ]
        async with listening(servers, handler) as consumer:
            await until(lambda: len(tries) >= 3)
            await until(lambda: consumer.buffered == 0)
        for fault in faults:
            fault.end()

    asyncio.run(scenario())
    assert tries == [(0, TOPIC), (1, TOPIC), (2, TOPIC)]
    assert committed(servers) == 1


def test_a_slow_handler_stops_the_pulls_at_the_limit(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    send(servers, map(str, range(400)))
    gate = asyncio.Event()
    got: list[str] = []
    most = 0

    async def handler(message: ReceivedMessage) -> None:
        await gate.wait()
        got.append(message.body.decode())

    async def scenario() -> None:
        nonlocal most
        limits = BufferLimits(messages=50)
        async with listening(servers, handler, limits=limits, threads=2) as consumer:
            await until(lambda: consumer.buffered >= 100)  # 50 of each broker's queue
            for _ in range(20):
                most = max(most, consumer.buffered)
                await asyncio.sleep(0.01)
            gate.set()
            while len(got) < 400:
                most = max(most, consumer.buffered)
                await asyncio.sleep(0)

    asyncio.run(scenario())
    assert most == 100
    assert len(got) == 400


def test_a_new_group_begins_at_a_time_if_told_so(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    with servers.store(0) as store:
        store.send(TOPIC, "before")
        time.sleep(0.01)
        between_ms = time.time_ns() // 1_000_000
        store.send(TOPIC, "after")
    # For a young queue brokers say 0 to a group that never read it, as Apache's do; not for one
    # whose first messages are gone.
    looked: list[str] = []

    async def scenario() -> None:
        faults = [
            each.faults.refuse("QUERY_CONSUMER_OFFSET", times=None, answer="QUERY_NOT_FOUND")
            for each in servers.brokers
        ]
        for start in ("earliest", between_ms, "latest"):
            got = Received()
            async with listening(servers, got, start=start, group=f"group-{start}") as consumer:
                await until(lambda: sum(consumer.positions().values()) >= 2)
            looked.append(" ".join(got))
        for fault in faults:
            fault.end()

    asyncio.run(scenario())
    assert looked == ["before after", "after", ""]


def test_a_coroutine_that_cancels_itself_has_its_message_again(
    servers: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocketpy.broker_core.client.consuming.push._LOCAL_RETRY_S", 0.05)
    make_topic(servers)
    send(servers, ["1"])
    tries: list[int] = []

    async def handler(message: ReceivedMessage) -> None:
        tries.append(message.reconsume_times)
        if len(tries) == 1:
            raise asyncio.CancelledError

    async def scenario() -> None:
        async with listening(servers, handler) as consumer:
            await until(lambda: len(tries) >= 2)
            await until(lambda: consumer.buffered == 0)

    asyncio.run(scenario())
    assert tries == [0, 1]
    assert committed(servers) == 1


def test_a_handler_that_does_not_end_holds_up_nothing_for_ever(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    send(servers, ["stuck", "good"])
    got: list[tuple[str, int]] = []

    async def handler(message: ReceivedMessage) -> None:
        got.append((message.body.decode(), message.reconsume_times))
        if got[-1] == ("stuck", 0):
            await asyncio.sleep(3600)

    async def scenario() -> None:
        async with listening(servers, handler, handler_timeout_s=0.2, close_s=0.1) as consumer:
            await until(lambda: ("stuck", 1) in got)
            await until(lambda: consumer.buffered == 0)

    asyncio.run(scenario())
    assert sorted(got) == [("good", 0), ("stuck", 0), ("stuck", 1)]
    assert committed(servers) == 2


def test_close_waits_for_handlers_that_run_and_starts_no_others(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(100)))
    started: list[str] = []
    done: list[str] = []

    def handler(message: ReceivedMessage) -> None:
        started.append(message.body.decode())
        time.sleep(0.2)
        done.append(message.body.decode())

    async def scenario() -> None:
        async with listening(servers, handler, threads=4):
            await until(lambda: len(started) >= 4)

    asyncio.run(scenario())
    assert len(started) == len(done) < 100
    assert committed(servers) <= len(done)


def test_close_ends_though_a_handler_does_not_and_its_message_comes_again(
    servers: LocalBroker,
) -> None:
    make_topic(servers)
    send(servers, ["stuck"])
    release = threading.Event()
    got: list[str] = []

    def handler(message: ReceivedMessage) -> None:
        got.append(message.body.decode())
        release.wait()

    async def scenario(times: int) -> None:
        async with listening(servers, handler, close_s=0.1):
            await until(lambda: len(got) >= times)

    asyncio.run(scenario(1))
    assert committed(servers) == 0
    release.set()
    asyncio.run(scenario(2))
    assert got == ["stuck", "stuck"]


def test_a_broker_that_dies_and_comes_back_is_read_on(servers: LocalBroker) -> None:
    make_topic(servers)
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got):
            send(servers, ["1", "2"])
            await until(lambda: len(got) >= 2)
            await asyncio.to_thread(servers.kill_broker, 1)
            with servers.store(0) as store:
                store.send(TOPIC, "3")
            await until(lambda: "3" in got)
            await asyncio.to_thread(servers.start_broker, 1)
            with servers.store(1) as store:
                store.send(TOPIC, "4")
            await until(lambda: "4" in got)

    asyncio.run(scenario())
    assert {*got} == {"1", "2", "3", "4"}


def test_without_a_name_server_nothing_starts() -> None:
    async def scenario() -> None:
        async with Session("127.0.0.1:1") as session:
            with pytest.raises(ServerUnreachableError):
                await listen(session, "g", "t", print)

    asyncio.run(scenario())
