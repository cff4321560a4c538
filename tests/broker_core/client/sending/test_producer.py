"""The producer against two brokers: where messages go, what becomes of them when brokers fail."""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.broker_core.client.sending.stored import bodies, stored

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.client.sending.hooks import SendTry
from rocketpy.broker_core.client.sending.in_flight import InFlight
from rocketpy.broker_core.intake.destination import queue_of
from rocketpy.broker_core.local import LocalBroker

SENDS = ("SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE")


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


# --- what is stored -------------------------------------------------------------------------------


def test_a_message_is_stored_as_it_was_sent(
    fresh: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    receipt = mq.send(
        "t", b"body", tags="paid", keys=["k1", "k2"], properties={"region": "eu"}, flag=7
    )
    (row,) = stored(fresh, "t")
    assert (row["body"], row["tags"], row["keys"]) == (b"body", "paid", "k1 k2")
    assert dict(row["properties"])["region"] == "eu"
    assert dict(row["properties"])["UNIQ_KEY"] == receipt.uniq_key
    assert (row["broker"], row["queue_id"], row["queue_offset"]) == (
        *(receipt.broker, receipt.queue_id, receipt.queue_offset),
    )
    assert receipt.status == "SEND_OK"


def test_a_large_body_travels_compressed_and_is_read_as_sent(
    fresh: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    body = b"much of the same " * 1000
    mq.send("t", body)
    mq.send("t", body * 20)  # compressed in a thread
    with fresh.store(0) as a, fresh.store(1) as b:
        sizes = [
            size
            for store in (a, b)
            for size in store.read("t", columns=["store_size"]).read_all()["store_size"].to_pylist()
        ]
    assert max(sizes) < len(zlib.compress(body * 20)) + 400
    assert bodies(fresh, "t") == sorted([body, body * 20])


def test_a_text_is_sent_as_utf8(fresh: LocalBroker, mq: rocketpy.BlockingClient) -> None:
    mq.send("t", "schön")
    assert bodies(fresh, "t") == ["schön".encode()]


def test_messages_in_turn_go_to_all_queues(mq: rocketpy.BlockingClient) -> None:
    receipts = [mq.send("t", b"x") for _ in range(4)]
    assert {str(receipt.queue) for receipt in receipts} == {
        *("t/broker-a:0", "t/broker-a:1", "t/broker-b:0", "t/broker-b:1"),
    }


def test_a_sharding_key_has_one_queue(mq: rocketpy.BlockingClient) -> None:
    receipts = [mq.send("t", b"x", sharding_key="customer-7") for _ in range(4)]
    expected = ["broker-a:0", "broker-a:1", "broker-b:0", "broker-b:1"][queue_of("customer-7", 4)]
    assert {receipt.queue.key for receipt in receipts} == {expected}
    assert [receipt.queue_offset for receipt in receipts] == [0, 1, 2, 3]


def test_a_selector_chooses_among_the_queues(mq: rocketpy.BlockingClient) -> None:
    receipt = mq.send("t", b"x", select=lambda queues: queues[-1])
    assert str(receipt.queue) == "t/broker-b:1"


def test_a_selector_that_invents_a_queue_is_refused(mq: rocketpy.BlockingClient) -> None:
    with pytest.raises(errors.MessageRefusedError, match="one of the queues"):
        mq.send("t", b"x", select=lambda queues: queues[0]._replace(queue_id=99))


def test_a_queue_that_is_not_there_is_refused(mq: rocketpy.BlockingClient) -> None:
    with pytest.raises(errors.QueueNotFoundError, match="2"):
        mq.send("t", b"x", queue_id=2)


def test_receipts_of_many_are_in_the_order_of_the_messages(
    fresh: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    messages = [
        {"body": str(n), "sharding_key": f"s{n % 3}"} if n % 2 else str(n) for n in range(50)
    ]
    receipts = mq.send_many("t", messages)
    rows = {
        (row["broker"], row["queue_id"], row["queue_offset"]): row for row in stored(fresh, "t")
    }
    found = [rows[each.broker, each.queue_id, each.queue_offset]["body"] for each in receipts]
    assert found == [str(n).encode() for n in range(50)]


def test_many_messages_of_a_key_are_in_order_over_batches(
    fresh: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    messages = [{"body": b"%04d" % n + bytes(100_000), "sharding_key": "k"} for n in range(30)]
    mq.send_many("t", messages)  # three batches: one takes 1 MiB
    rows = sorted(stored(fresh, "t"), key=lambda row: int(row["queue_offset"]))
    assert [int(row["body"][:4]) for row in rows] == [*range(30)]


def test_delayed_and_empty_messages_may_be_among_many(
    fresh: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    receipts = mq.send_many("t", [{"body": b"later", "delay_level": 3}, b"", b"now"])
    assert len(receipts) == 3
    with pytest.raises(errors.MessageRefusedError, match="body: is empty"):
        mq.send("t", b"", delay_s=3600)  # one that is both
    assert bodies(fresh, "t") == [b"", b"now"]


@pytest.mark.parametrize("when", [{"delay_level": 1}, {"delay_s": 0.5}, {"deliver_at": 1}])
def test_a_message_waits_for_its_time(
    fresh: LocalBroker, mq: rocketpy.BlockingClient, when: dict[str, Any]
) -> None:
    mq.send("t", b"later", **when)
    while not bodies(fresh, "t"):  # the time limit of a test ends it
        time.sleep(0.02)
    assert bodies(fresh, "t") == [b"later"]


def test_two_times_to_wait_for_are_refused(mq: rocketpy.BlockingClient) -> None:
    with pytest.raises(errors.MessageRefusedError, match="give one of them"):
        mq.send("t", b"x", delay_level=1, delay_s=1)


def test_oneway_is_stored_though_nobody_says_so(
    fresh: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    mq.send_oneway("t", b"x", tags="a")
    while not stored(fresh, "t"):
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"body": 1}, "bytes or str"),
        ({"body": b"", "tags": 1}, "tags=1"),
        ({"body": b"", "properties": {"a": 1}}, "a str is wanted"),
        ({"body": b"", "queue_id": "0"}, "whole number"),
        ({"body": b"", "delay_s": "1"}, "seconds"),
        ({"body": b"", "keys": ["a b"]}, "blank"),
        ({"body": b"", "delay_level": -1}, "levels begin with 1"),
        ({"body": b"", "delay_s": -1}, "over already"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named(
    mq: rocketpy.BlockingClient, arguments: dict[str, Any], word: str
) -> None:
    with pytest.raises(errors.MessageRefusedError, match=word):
        mq.send("t", **arguments)


def test_a_misspelt_name_in_a_dict_is_refused_with_a_hint(mq: rocketpy.BlockingClient) -> None:
    with pytest.raises(errors.MessageRefusedError, match=r"message 1: .*is tags meant"):
        mq.send_many("t", [b"x", {"body": b"x", "tag": "a"}])


def test_a_body_over_the_limit_is_refused_before_it_leaves(mq: rocketpy.BlockingClient) -> None:
    with pytest.raises(errors.MessageRefusedError, match="4194304"):
        mq.send("t", bytes((4 << 20) + 1))


def test_a_topic_of_rocketmq_itself_is_refused(mq: rocketpy.BlockingClient) -> None:
    with pytest.raises(errors.MessageRefusedError, match="RocketMQ's own"):
        mq.send("SCHEDULE_TOPIC_XXXX", b"x")


# --- when brokers fail ----------------------------------------------------------------------------


def test_a_busy_broker_is_left_for_another(fresh: LocalBroker, mq: rocketpy.BlockingClient) -> None:
    with fresh.faults.be_busy(times=None):
        receipts = [mq.send("t", b"x") for _ in range(6)]
    assert {receipt.broker for receipt in receipts} == {"broker-b"}


def test_a_broker_that_failed_is_avoided(fresh: LocalBroker, mq: rocketpy.BlockingClient) -> None:
    with fresh.faults.be_busy(times=None) as busy:
        for _ in range(10):
            mq.send("t", b"x")
        assert busy.happened == 1


@pytest.mark.parametrize("answer", ["SYSTEM_ERROR", "TOPIC_NOT_EXIST", "NO_PERMISSION"])
def test_a_refusal_of_one_broker_is_tried_at_another(
    fresh: LocalBroker, mq: rocketpy.BlockingClient, answer: str
) -> None:
    with fresh.faults.refuse(SENDS, times=None, answer=answer):
        assert {mq.send("t", b"x").broker for _ in range(4)} == {"broker-b"}


@pytest.mark.parametrize(
    ("answer", "remark"),
    [
        ("NO_PERMISSION", "User:reader has no permission to access Topic:t from 1.2.3.4, deny"),
        ("SYSTEM_ERROR", "org.apache.rocketmq.acl.common.AclException: No acl config for reader"),
    ],
)
def test_a_denied_send_is_raised_at_once_and_its_broker_is_not_avoided(
    fresh: LocalBroker, mq: rocketpy.BlockingClient, answer: str, remark: str
) -> None:
    on_a, on_b = (each.refuse(SENDS, times=None, answer=answer, remark=remark)
                  for each in (fresh.brokers[0].faults, fresh.brokers[1].faults))  # fmt: skip
    with on_a, on_b:
        with pytest.raises(errors.AccessRefusedError, match="reader"):
            mq.send("t", b"x")
        assert on_a.happened + on_b.happened == 1
    assert {mq.send("t", b"x").broker for _ in range(4)} == {"broker-a", "broker-b"}


def test_a_refusal_that_no_broker_would_take_back_is_raised_at_once(
    fresh: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    with fresh.faults.refuse(SENDS, times=None, answer="MESSAGE_ILLEGAL") as refused:
        with pytest.raises(errors.ServerRefusedError, match=r"broker-a.*MESSAGE_ILLEGAL.*smaller"):
            mq.send("t", b"x", select=lambda queues: queues[0])
        assert refused.happened == 1


def test_a_fixed_queue_is_tried_again_where_it_is(
    fresh: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    with fresh.faults.be_busy(times=2):
        receipt = mq.send("t", b"x", select=lambda queues: queues[0])
    assert receipt.broker == "broker-a"


def test_a_dropped_connection_costs_no_message(
    fresh: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    with fresh.faults.drop_connection(SENDS, times=3):
        for number in range(20):
            mq.send("t", b"%02d" % number)
    assert bodies(fresh, "t") == [b"%02d" % number for number in range(20)]


def test_copies_of_a_lost_answer_have_the_same_unique_key(fresh: LocalBroker) -> None:
    with (
        rocketpy.connect(fresh.namesrv_addr, timeout_s=0.3) as mq,
        fresh.faults.lose_answer(SENDS, times=1),
    ):
        receipt = mq.send("t", b"x", select=lambda queues: queues[0])
    keys = [dict(row["properties"])["UNIQ_KEY"] for row in stored(fresh, "t")]
    assert keys == [receipt.uniq_key] * 2


def test_a_broker_that_dies_and_comes_back_is_used_again(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr) as mq:
        mq.send("t", b"x", select=lambda queues: queues[0])
        fresh.kill_broker(0)
        assert {mq.send("t", b"x").broker for _ in range(6)} == {"broker-b"}
        fresh.start_broker(0)
        mq.run(lambda client: client.session.route("t", fresh=True))
        assert mq.send("t", b"x", select=lambda queues: queues[0]).broker == "broker-a"


def test_the_only_broker_is_waited_for_while_it_restarts(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr, tries=100) as mq:
        mq.send("t", b"1")
        fresh.stop_broker(1)
        fresh.stop_broker(0)  # in order: name servers know no such topic for a while
        future = mq.send_async("t", b"2")
        fresh.start_broker(0)
        assert future.result(60).broker == "broker-a"


def test_a_message_that_nobody_takes_says_who_did_not(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr, tries=2) as mq:
        mq.send("t", b"1")
        fresh.kill_broker(0)
        fresh.kill_broker(1)
        with pytest.raises(errors.ServerUnreachableError, match=r"127\.0\.0\.1:\d+") as raised:
            mq.send("t", b"2")
        assert raised.value.address in {broker.address for broker in fresh.brokers}
        assert raised.value.retriable


def test_hooks_see_every_try(fresh: LocalBroker) -> None:
    seen: list[tuple[str, int, str, bool]] = []

    class Hook:
        def before(self, sending: SendTry) -> None:
            seen.append(("before", sending.number, sending.queue.broker, False))

        def after(self, sending: SendTry) -> None:
            seen.append(("after", sending.number, sending.queue.broker, bool(sending.receipts)))
            raise ValueError("a hook that fails changes nothing")

    with (
        rocketpy.connect(fresh.namesrv_addr, hooks=[Hook()]) as mq,
        fresh.faults.be_busy(times=1) as busy,
    ):
        while not busy.happened:
            seen.clear()
            mq.send("t", b"x")
    assert seen == [
        ("before", 1, "broker-a", False),
        ("after", 1, "broker-a", False),
        ("before", 2, "broker-b", False),
        ("after", 2, "broker-b", True),
    ]


# --- many at once ---------------------------------------------------------------------------------


def test_a_thousand_coroutines_send_at_once(fresh: LocalBroker) -> None:
    async def work() -> None:
        async with rocketpy.aio.connect(fresh.namesrv_addr, timeout_s=30) as mq:
            await asyncio.gather(*(mq.send("t", b"%04d" % n) for n in range(1000)))

    run(work())
    assert bodies(fresh, "t") == [b"%04d" % n for n in range(1000)]


def test_what_is_in_flight_never_passes_the_limit(fresh: LocalBroker) -> None:
    limits: list[InFlight] = []
    most: list[tuple[int, int]] = []

    class Watch:
        def before(self, sending: SendTry) -> None:
            del sending
            most.extend((limit.messages, limit.bytes) for limit in limits)

        def after(self, sending: SendTry) -> None:
            pass

    async def work() -> None:
        client = rocketpy.aio.connect(
            fresh.namesrv_addr,
            timeout_s=30,
            most_in_flight=5,
            most_in_flight_bytes=3000,
            hooks=[Watch()],
        )
        async with client as mq:
            limits.append(mq.producer.in_flight)
            with fresh.faults.delay(SENDS, 0.01, times=None):
                await asyncio.gather(*(mq.send("t", bytes(1 + n * 20)) for n in range(100)))
            assert (limits[0].messages, limits[0].bytes, limits[0].waiting) == (0, 0, 0)

    run(work())
    assert max(messages for messages, _ in most) == 5
    assert max(size for _, size in most) <= 3000
    assert len(stored(fresh, "t")) == 100


def test_a_cancelled_send_gives_its_room_back(fresh: LocalBroker) -> None:
    async def work() -> None:
        async with rocketpy.aio.connect(fresh.namesrv_addr, most_in_flight=1) as mq:
            await mq.send("t", b"1")
            with fresh.faults.delay(SENDS, 60), fresh.brokers[1].faults.delay(SENDS, 60):
                sending = asyncio.ensure_future(mq.send("t", b"2"))
                await asyncio.sleep(0.05)
                sending.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await sending
            assert mq.producer.in_flight.messages == 0
            await mq.send("t", b"3")

    run(work())


def test_oneway_waits_for_a_broker_that_does_not_read(fresh: LocalBroker) -> None:
    async def work() -> None:
        async with rocketpy.aio.connect(fresh.namesrv_addr, compress_over=None) as mq:
            body = os.urandom(1 << 20)
            await asyncio.gather(
                *(mq.send_oneway("t", body, select=lambda queues: queues[0]) for _ in range(64))
            )

    run(work())
    while len(stored(fresh, "t")) < 64:
        time.sleep(0.02)
