"""Consumers of ours with Apache's broker, and with Apache's consumers in their group."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.interop.apache import ApacheBroker, Setting
from tests.interop.cluster_addresses import TESTED_VERSION, broker_under_test
from tests.interop.sharing_consumer import SharingConsumer

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.consuming.offset_keeping import RemoteOffsets
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.protocol.bodies.consuming import ConsumerRunningInfo
from rocketpy.broker_core.protocol.requests.groups import GetConsumerRunningInfo

QUEUES = 4
PATIENCE_S = 120.0
SETTINGS: dict[str, Setting] = {
    "enablePropertyFilter": True,
    "messageDelayLevel": "1s 1s 1s 1s 1s 1s",  # what fails comes again soon
}


class Received:
    """A handler that notes what it was given."""

    def __init__(self) -> None:
        self.messages: list[ReceivedMessage] = []

    def __call__(self, message: ReceivedMessage) -> None:
        self.messages.append(message)

    @property
    def bodies(self) -> list[str]:
        return [each.body.decode() for each in self.messages]


@pytest.fixture(scope="module", params=[TESTED_VERSION])
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheBroker]:
    store = tmp_path_factory.mktemp("consumers") / "store"
    with broker_under_test(store, settings=SETTINGS) as broker:
        yield broker


@pytest.fixture
def mq(apache: ApacheBroker) -> Iterator[rocketpy.BlockingClient]:
    with rocketpy.connect(apache.namesrv_addr) as client:
        yield client


@pytest.fixture
def topic(apache: ApacheBroker, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, which is the name of its group, too."""
    name = re.sub(r"\W", "_", request.node.name)[:80]
    with Cluster(apache.namesrv_addr) as cluster:
        ClusterTopics(cluster).create(name, queues=QUEUES)
    return name


def until(claim: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.02)


def numbers(count: int, *, first: int = 0) -> list[dict[str, object]]:
    return [
        {
            "body": str(number).encode(),
            "tags": "odd" if number % 2 else "even",
            "properties": {"number": str(number)},
        }
        for number in range(first, first + count)
    ]


def test_what_java_sends_comes_once_and_java_sees_it_committed(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str
) -> None:
    apache.tool.send(topic, numbers(50))
    apache.tool.send_batch(topic, numbers(50, first=50))
    apache.tool.send(topic, [{"body": b"x" * 50_000}])  # Java compresses it
    got = Received()
    with mq.listen(topic, topic, got, start="earliest"):
        until(lambda: len(got.messages) >= 101)
    assert sorted(got.bodies) == sorted([*map(str, range(100)), "x" * 50_000])
    assert sum(apache.tool.committed(topic, topic).values()) == 101
    odd = next(each for each in got.messages if each.body == b"1")
    assert (odd.tags, odd.properties["number"], odd.topic) == ("odd", "1", topic)


@pytest.mark.parametrize("wanted", ["odd", rocketpy.Sql("number > 50 AND TAGS = 'odd'")])
def test_filters_are_those_of_the_broker(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str, wanted: str | rocketpy.Sql
) -> None:
    apache.tool.send(topic, numbers(100))
    least = 0 if isinstance(wanted, str) else 51
    got = Received()
    with mq.listen(topic, {topic: wanted}, got, start="earliest"):
        until(lambda: len(got.messages) >= len(range(least, 100)) // 2)
    assert sorted(map(int, got.bodies)) == [each for each in range(least, 100) if each % 2]


def test_in_order_what_fails_comes_again_before_the_others(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str
) -> None:
    apache.tool.send(topic, numbers(80))
    got: dict[int, list[int]] = {}
    failed: set[tuple[int, int]] = set()

    def handler(message: ReceivedMessage) -> bool:
        place = message.queue_id, message.queue_offset
        if message.queue_offset % 5 == 0 and place not in failed:
            failed.add(place)
            return False
        got.setdefault(message.queue_id, []).append(message.queue_offset)
        return True

    with mq.listen(topic, topic, handler, ordered=True, start="earliest", suspend_s=0.01):
        until(lambda: sum(map(len, got.values())) >= 80)
    assert all(each == [*range(len(each))] for each in got.values())
    assert failed
    assert sum(apache.tool.committed(topic, topic).values()) == 80


def test_what_fails_comes_again_and_then_is_a_dead_letter(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str
) -> None:
    apache.tool.send(topic, [{"body": b"bad"}, {"body": b"good"}])
    tries: list[tuple[bytes, int, str]] = []

    def handler(message: ReceivedMessage) -> None:
        tries.append((message.body, message.reconsume_times, message.topic))
        if message.body == b"bad":
            raise ValueError("never")

    with mq.listen(topic, topic, handler, start="earliest", max_tries=2):
        until(lambda: len(tries) >= 4)
        dead = f"%DLQ%{topic}"
        with Cluster(apache.namesrv_addr) as cluster:
            until(lambda: dead in cluster.topics())
        until(lambda: apache.tool.pull([dead]))
    assert sorted(tries) == [
        *((b"bad", 0, topic), (b"bad", 1, topic), (b"bad", 2, topic), (b"good", 0, topic)),
    ]
    (letter,) = apache.tool.pull([dead])
    assert letter["body"] == b"bad"


def test_two_consumers_share_the_queues_and_one_that_leaves_gives_them_back(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str
) -> None:
    first, second = Received(), Received()
    with mq.listen(topic, topic, first, start="earliest") as one:
        with (
            rocketpy.connect(apache.namesrv_addr) as other,
            other.listen(topic, topic, second, start="earliest") as two,
        ):
            until(lambda: shares(topic, one, two) == [2, 2])
            apache.tool.send(topic, numbers(40))
            until(lambda: len(first.bodies + second.bodies) >= 40)
            assert first.bodies
            assert second.bodies
        until(lambda: shares(topic, one) == [4])
        apache.tool.send(topic, numbers(20, first=40))
        until(lambda: len(first.bodies + second.bodies) >= 60)
    assert sorted(map(int, first.bodies + second.bodies)) == [*range(60)]
    assert sum(apache.tool.committed(topic, topic).values()) == 60


def shares(topic: str, *listeners: object) -> list[int]:
    return [
        len([each for each in listener.queues if each.topic == topic])  # type: ignore[attr-defined]
        for listener in listeners
    ]


STUCK = """
import sys, threading, rocketpy
def handler(message):
    print(message.body.decode(), flush=True)
    threading.Event().wait()
mq = rocketpy.connect(sys.argv[1])
listener = mq.listen(sys.argv[2], sys.argv[2], handler, start="earliest")
threading.Event().wait()
"""


@pytest.mark.crash
def test_messages_of_a_consumer_that_is_killed_come_to_the_other(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str
) -> None:
    apache.tool.send(topic, numbers(40))
    command = [sys.executable, "-c", STUCK, apache.namesrv_addr, topic]
    got = Received()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline()
            with mq.listen(topic, topic, got, start="earliest") as listener:
                until(lambda: shares(topic, listener) == [2])
                child.kill()
                until(lambda: {*map(int, got.bodies)} == {*range(40)})
        finally:
            child.kill()
    assert sum(apache.tool.committed(topic, topic).values()) == 40


def test_a_java_consumer_and_one_of_ours_share_a_group(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str, tmp_path: Path
) -> None:
    ours = Received()
    with (
        mq.listen(topic, topic, ours, start="earliest") as listener,
        SharingConsumer(apache.namesrv_addr, topic, topic, home=tmp_path) as java,
    ):
        until(lambda: shares(topic, listener) == [2])
        sent = 0
        while not (java.got and ours.messages):  # Java counts shares by itself, a little later
            apache.tool.send(topic, numbers(20, first=sent))
            sent += 20
            until(lambda: len({*java.got, *ours.bodies}) >= sent)  # noqa: B023
    assert {*map(int, java.got + ours.bodies)} == {*range(sent)}
    assert sum(apache.tool.committed(topic, topic).values()) == sent


def test_java_goes_on_exactly_where_ours_stopped_and_ours_where_java_did(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str, tmp_path: Path
) -> None:
    ours = Received()
    apache.tool.send(topic, numbers(30))
    with mq.listen(topic, topic, ours, start="earliest"):
        until(lambda: len(ours.messages) >= 30)
    apache.tool.send(topic, numbers(30, first=30))
    with SharingConsumer(apache.namesrv_addr, topic, topic, home=tmp_path) as java:
        until(lambda: len(java.got) >= 30)
    apache.tool.send(topic, numbers(30, first=60))
    with mq.listen(topic, topic, ours, start="earliest"):
        until(lambda: len(ours.messages) >= 60)
    assert sorted(map(int, java.got)) == [*range(30, 60)]
    assert sorted(map(int, ours.bodies)) == [*range(30), *range(60, 90)]


def test_a_pull_consumer_polls_seeks_and_commits(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str
) -> None:
    apache.tool.send(topic, numbers(40))
    got: list[int] = []
    with mq.consumer(topic, topic, start="earliest") as consumer:
        while len(got) < 40:
            got += [int(each.body) for each in consumer.poll(30)]
        queue = consumer.queues[0]
        _, end = mq.queue_range(queue)
        consumer.seek(queue, end - 2)
        again: list[int] = []
        while len(again) < 2:
            again += [each.queue_offset for each in consumer.poll(30)]
    assert sorted(got) == [*range(40)]
    assert again == [end - 2, end - 1]
    assert sum(apache.tool.committed(topic, topic).values()) == 40


def test_tools_see_a_consumer_and_move_it(
    apache: ApacheBroker, mq: rocketpy.BlockingClient, topic: str
) -> None:
    apache.tool.send(topic, numbers(10))
    got = Received()
    with (
        mq.listen(topic, topic, got, start="earliest") as listener,
        Cluster(apache.namesrv_addr, timeout_s=30) as cluster,
    ):
        until(lambda: len(got.messages) >= 10)
        until(lambda: listener.buffered == 0)
        # Brokers of 4.x move no group that has not committed an offset of each queue.
        until(lambda: sum(apache.tool.committed(topic, topic).values()) == 10)
        groups = ClusterGroups(cluster)
        (client_id,) = groups.members([topic])[topic]
        request = GetConsumerRunningInfo(
            consumer_group=topic, client_id=client_id, jstack_enable=False
        )
        (broker,) = cluster.masters()
        answer = cluster.ask_broker(broker, command_of(request))
        info = ConsumerRunningInfo.decode(answer.body)
        assert sum(each["commitOffset"] for each in info.queues.values()) == 10
        groups.move_to_time(topic, topic, 0)
        apache.tool.send(topic, numbers(8, first=10))  # ends held pulls: brokers tell with the next
        until(lambda: {*got.bodies[10:]} == {*map(str, range(18))})


def test_the_first_commits_of_a_group_all_arrive(apache: ApacheBroker, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(30)]
    with Cluster(apache.namesrv_addr) as cluster:
        for name in names:
            ClusterGroups(cluster).create(name)

    async def scenario() -> None:
        async with Session(apache.namesrv_addr) as session:
            calls = QueueCalls(session)
            queues = (await session.route(topic)).readable()
            offsets = dict(zip(queues, (1, 2, 3, 4), strict=True))
            for name in names:
                assert await RemoteOffsets(name, calls).commit(offsets) == []
                assert [await calls.committed(name, each) for each in queues] == [1, 2, 3, 4]

    asyncio.run(scenario())
