from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys

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

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.consuming.push import PushConsumer
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.consuming.subscriptions import Sql
from rocketpy.broker_core.client.errors import FilterRefusedError
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.local import LocalBroker


def queues(*consumers: PushConsumer) -> list[int]:
    return [len([each for each in one.queues if each.topic == TOPIC]) for one in consumers]


def test_queues_are_divided_when_a_consumer_joins_and_when_it_leaves(servers: LocalBroker) -> None:
    make_topic(servers)
    first, second = Received(), Received()

    async def scenario() -> None:
        async with listening(servers, first) as one:
            assert queues(one) == [4]
            async with listening(servers, second) as two:
                await until(lambda: queues(one, two) == [2, 2])
                await until(lambda: not {*one.queues} & {*two.queues})
                send(servers, map(str, range(40)))
                await until(lambda: len(first) + len(second) >= 40)
                assert first
                assert second
            await until(lambda: queues(one) == [4])
            send(servers, map(str, range(40, 60)))
            await until(lambda: len(first) + len(second) >= 60)

    asyncio.run(scenario())
    assert sorted(map(int, first + second)) == [*range(60)]
    assert committed(servers) == 60


STUCK = """
import asyncio, sys
from rocketpy.broker_core.client.consuming.opening import listen
from rocketpy.broker_core.client.session import Session

async def handler(message):
    print(message.body.decode(), flush=True)
    await asyncio.sleep(3600)

async def main():
    async with Session(sys.argv[1]) as session:
        await listen(session, "shop", "orders", handler, start="earliest")
        await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.crash
def test_messages_of_a_consumer_that_is_killed_come_to_the_other(servers: LocalBroker) -> None:
    make_topic(servers)
    got = Received()

    async def scenario() -> None:
        command = (sys.executable, "-c", STUCK, servers.namesrv_addr)
        child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        try:
            send(servers, map(str, range(20)))
            assert child.stdout is not None
            assert await child.stdout.readline()
            async with listening(servers, got) as consumer:
                await until(lambda: queues(consumer) == [2])
                child.kill()
                await until(lambda: len({*got}) >= 20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    asyncio.run(scenario())
    assert committed(servers) == 20


def test_in_order_each_queue_is_handed_out_one_by_one(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(200)))
    got: dict[str, list[int]] = {}
    running: set[str] = set()
    failed: set[tuple[str, int]] = set()
    overlaps: list[str] = []

    async def handler(message: ReceivedMessage) -> bool:
        key = message.queue.key
        overlaps.extend(running & {key})
        running.add(key)
        await asyncio.sleep(0)
        running.remove(key)
        if message.queue_offset % 10 == 3 and (key, message.queue_offset) not in failed:
            failed.add((key, message.queue_offset))
            return False  # comes again before those after it
        got.setdefault(key, []).append(message.queue_offset)
        return True

    async def scenario() -> None:
        async with listening(servers, handler, ordered=True, suspend_s=0.01):
            await until(lambda: sum(map(len, got.values())) >= 200)

    asyncio.run(scenario())
    assert all(each == sorted(each) for each in got.values())
    assert sum(map(len, got.values())) == 200
    assert len(failed) == 20
    assert not overlaps
    assert committed(servers) == 200


def test_in_order_no_two_consumers_have_a_queue_while_it_changes_hands(
    servers: LocalBroker,
) -> None:
    make_topic(servers)
    running: set[str] = set()
    overlaps: list[str] = []
    seen: dict[str, list[int]] = {}

    async def handler(message: ReceivedMessage) -> None:
        key = message.queue.key
        overlaps.extend(running & {key})
        running.add(key)
        await asyncio.sleep(0.01)
        running.remove(key)
        seen.setdefault(key, []).append(message.queue_offset)

    async def scenario() -> None:
        send(servers, map(str, range(400)))
        async with listening(servers, handler, ordered=True) as one:
            await until(lambda: sum(map(len, seen.values())) >= 20)
            async with listening(servers, handler, ordered=True) as two:
                await until(lambda: queues(one, two) == [2, 2])
                await until(lambda: sum(map(len, seen.values())) >= 200)
            await until(lambda: sum(map(len, seen.values())) >= 400)

    asyncio.run(scenario())
    assert all(each == [*range(len(each))] for each in seen.values())
    assert not overlaps
    assert committed(servers) == 400


def test_in_order_a_message_is_a_dead_letter_after_its_tries(servers: LocalBroker) -> None:
    make_topic(servers, queues=1)
    send(servers, ["bad", "-", "good"])
    got: list[tuple[str, int]] = []

    async def handler(message: ReceivedMessage) -> bool:
        got.append((message.body.decode(), message.reconsume_times))
        return message.body != b"bad"

    async def scenario() -> None:
        async with listening(servers, handler, ordered=True, max_tries=2, suspend_s=0.01):
            await until(lambda: ("good", 0) in got)

    asyncio.run(scenario())
    assert [each for each in got if each[0] != "-"] == [
        *(("bad", 0), ("bad", 1), ("bad", 2), ("good", 0)),
    ]
    with servers.store(0) as store:
        assert store.read("%DLQ%shop").read_all()["body"].to_pylist() == [b"bad"]


def test_sql_is_the_brokers_work(servers: LocalBroker) -> None:
    make_topic(servers)
    for amount in range(10):
        send(servers, [str(amount)], properties={"amount": str(amount)})
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got, {TOPIC: Sql("amount > 6")}) as consumer:
            await until(lambda: len(got) >= 3)
            await until(lambda: sum(consumer.positions().values()) >= 10)

    asyncio.run(scenario())
    assert sorted(got) == ["7", "8", "9"]
    assert committed(servers) == 10


def test_a_filter_that_a_broker_refuses_is_an_error_at_the_start(servers: LocalBroker) -> None:
    make_topic(servers)

    async def scenario() -> None:
        async with listening(servers, Received(), {TOPIC: Sql("amount > 6")}):
            pass

    answer = "SUBSCRIPTION_PARSE_FAILED"
    with (
        servers.faults.refuse("CHECK_CLIENT_CONFIG", answer=answer),
        pytest.raises(FilterRefusedError),
    ):
        asyncio.run(scenario())


def test_a_consumer_reads_on_from_where_a_tool_says(servers: LocalBroker) -> None:
    make_topic(servers)
    send(servers, map(str, range(10)))
    got = Received()

    async def scenario() -> None:
        async with listening(servers, got) as consumer:
            await until(lambda: len(got) >= 10)
            with Cluster(servers.namesrv_addr) as cluster:
                groups = ClusterGroups(cluster)
                await asyncio.to_thread(groups.move_to_time, GROUP, TOPIC, 0)
            await until(lambda: len(got) >= 20)
            await until(lambda: consumer.buffered == 0)

    asyncio.run(scenario())
    assert sorted(got) == sorted([str(each) for each in range(10)] * 2)
    assert committed(servers) == 10


def test_a_strategy_that_clients_cannot_go_by_is_refused(servers: LocalBroker) -> None:
    async def scenario() -> None:
        async with listening(servers, Received(), strategy="backlog"):
            pass

    with pytest.raises(RebalanceError):
        asyncio.run(scenario())


def test_by_circle_queues_are_dealt_out(servers: LocalBroker) -> None:
    make_topic(servers)

    async def scenario() -> None:
        async with (
            listening(servers, Received(), strategy="circle") as one,
            listening(servers, Received(), strategy="circle") as two,
        ):
            await until(lambda: queues(one, two) == [2, 2])
            brokers = {each.broker for each in one.queues if each.topic == TOPIC}
            assert brokers == {"broker-a", "broker-b"}

    asyncio.run(scenario())
