"""Our Python client and brokers of Apache, 5.5.0 or 4.9.7: Java consumers get what Python sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.interop.cluster_addresses import TESTED_VERSION, broker_under_test
from tests.interop.installation import VERSION
from tests.interop.java_peer import JavaPeer

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.consuming.opening import listen
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.topics import ClusterTopics

pytestmark = [pytest.mark.interop, pytest.mark.further]

SETTINGS = {
    "enablePropertyFilter": True,
    "timerWheelEnable": True,
    "timerPrecisionMs": 100,
    "transactionCheckInterval": 500,
    # A check before the broker has noted the end would ask for what is ended already.
    "transactionTimeOut": 3000,
    "transactionOpBatchInterval": 100,
    "mappedFileSizeCommitLog": 16 << 20,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
}
TOPICS = ("plain", "filtered", "ordered", "held", "batched", "waiting", "ask-java", "ask-python")


class Sides(NamedTuple):
    """Where the cluster is, and the Java side."""

    namesrv_addr: str
    java: JavaPeer


@pytest.fixture(scope="module", params=[TESTED_VERSION])
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("apache")
    with broker_under_test(folder / "store", settings=SETTINGS) as broker:
        with Cluster(broker.namesrv_addr) as cluster:
            for topic in TOPICS:
                ClusterTopics(cluster).create(topic, queues=2)
        with JavaPeer(broker.namesrv_addr, home=folder) as java:
            yield Sides(broker.namesrv_addr, java)


@pytest.fixture(scope="module")
def mq(sides: Sides) -> Iterator[rocketpy.BlockingClient]:
    with rocketpy.connect(sides.namesrv_addr, timeout_s=30) as client:
        yield client


def test_a_java_consumer_gets_what_was_sent(sides: Sides, mq: rocketpy.BlockingClient) -> None:
    small = mq.send(
        "plain", "grüße", tags="paid", keys=["k1", "k2"], properties={"region": "eu"}, flag=7
    )
    large = mq.send("plain", "lang " * 10_000)  # compressed
    mq.send_oneway("plain", "oneway")
    sides.java.listen("plain-java", "plain")
    got = {message["msgId"]: message for message in sides.java.got("plain-java", 3)}
    first = got[small.uniq_key]
    assert (first["body"], first["tags"], first["keys"]) == ("grüße", "paid", "k1 k2")
    assert (first["properties"]["region"], first["flag"]) == ("eu", 7)
    assert (first["queueId"], first["queueOffset"]) == (small.queue_id, small.queue_offset)
    assert got[large.uniq_key]["body"] == "lang " * 10_000


def test_filters_of_java_consumers_see_tags_and_properties(
    sides: Sides, mq: rocketpy.BlockingClient
) -> None:
    for number in range(6):
        tag, amount = ("paid", "open")[number % 2], str(number)
        mq.send("filtered", str(number), tags=tag, properties={"amount": amount})
    sides.java.listen("tags-java", "filtered", tags="paid")
    sides.java.listen("sql-java", "filtered", sql="amount > 3")
    assert sorted(m["body"] for m in sides.java.got("tags-java", 3)) == ["0", "2", "4"]
    assert sorted(m["body"] for m in sides.java.got("sql-java", 2)) == ["4", "5"]


def test_an_orderly_java_consumer_gets_each_key_in_order(
    sides: Sides, mq: rocketpy.BlockingClient
) -> None:
    for number in range(40):
        mq.send("ordered", f"{number % 4}:{number}", sharding_key=f"customer-{number % 4}")
    mq.send_many(
        "ordered",
        [
            {"body": f"{number % 4}:{number}", "sharding_key": f"customer-{number % 4}"}
            for number in range(40, 80)
        ],
    )
    sides.java.listen("ordered-java", "ordered", orderly=True)
    got = [message["body"].split(":") for message in sides.java.got("ordered-java", 80)]
    for key in "0123":
        assert [int(n) for k, n in got if k == key] == [*range(int(key), 80, 4)]


def test_batches_arrive_whole(sides: Sides, mq: rocketpy.BlockingClient) -> None:
    messages = [
        {"body": f"{number:03d}", "tags": "b", "keys": f"k{number}"} for number in range(300)
    ]
    receipts = mq.send_many("batched", messages)
    sides.java.listen("batched-java", "batched")
    got = {message["msgId"]: message for message in sides.java.got("batched-java", 300)}
    for receipt, message in zip(receipts, messages, strict=True):
        arrived = got[receipt.uniq_key]
        assert (arrived["body"], arrived["keys"]) == (message["body"], message["keys"])
        assert (arrived["queueId"], arrived["queueOffset"]) == (
            *(receipt.queue_id, receipt.queue_offset),
        )


@pytest.mark.skipif(TESTED_VERSION != VERSION, reason="brokers of 4.x know no times")
def test_delayed_messages_arrive_not_before_their_time(
    sides: Sides, mq: rocketpy.BlockingClient
) -> None:
    sides.java.listen("waiting-java", "waiting")
    begin_ms = time.time_ns() // 1_000_000
    mq.send("waiting", "level", delay_level=1)
    mq.send("waiting", "after", delay_s=1.5)
    mq.send("waiting", "at", deliver_at=begin_ms + 1500)
    got = sides.java.got("waiting-java", 3)
    assert sorted(message["body"] for message in got) == ["after", "at", "level"]
    assert time.time_ns() // 1_000_000 >= begin_ms + 1000


def test_a_java_consumer_gets_committed_transactions_only(sides: Sides) -> None:
    asked: list[str] = []

    def check(message: ReceivedMessage) -> bool:
        asked.append(message.body.decode())
        return message.body != b"open, undone"

    sides.java.listen("held-java", "held")
    with rocketpy.connect(sides.namesrv_addr, group="shop", checker=check, timeout_s=30) as mq:
        with mq.transaction("held", "committed", keys="t-1") as transaction:
            pass
        assert transaction.is_settled
        with mq.transaction("held", "rolled back") as transaction:
            transaction.rollback()
        for body in ("open, undone", "open, done"):
            with mq.transaction("held", body) as transaction:
                transaction.leave_open()
        got = sides.java.got("held-java", 2)
        assert sorted(message["body"] for message in got) == ["committed", "open, done"]
        while len(asked) < 2:
            time.sleep(0.05)
    assert sorted(asked) == ["open, done", "open, undone"]


def test_java_replies_to_a_request_of_python(sides: Sides, mq: rocketpy.BlockingClient) -> None:
    sides.java.answer("answer-java", "ask-java")
    assert mq.request("ask-java", "hello", timeout_s=60).body == b"HELLO"


def test_python_replies_to_a_request_of_java(sides: Sides) -> None:
    async def work() -> str:
        async with rocketpy.aio.connect(sides.namesrv_addr, group="answer-py", timeout_s=30) as mq:

            async def answer(request: ReceivedMessage) -> None:
                await mq.reply(request, request.body.upper())

            consumer = await listen(mq.session, "answer-py", "ask-python", answer, start="earliest")
            try:
                return await asyncio.to_thread(sides.java.ask, "ask-python", "hello")
            finally:
                await consumer.close()

    assert asyncio.run(asyncio.wait_for(work(), 120)) == "HELLO"
