"""What consumers trace: what handlers and polls get, and what becomes of it."""

from __future__ import annotations

import asyncio
import threading

from tests.broker_core.client.tracing.conftest import PATIENCE_S, Traced

import rocketpy
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.protocol.bodies.traces import ConsumeCode


def test_a_message_that_is_done_is_told_with_its_cost(
    mq: rocketpy.BlockingClient, traced: Traced
) -> None:
    def handler(_: ReceivedMessage) -> None:
        threading.Event().wait(0.05)

    receipt = mq.send("orders", b"x", keys="k")
    with mq.listen("readers", "orders", handler, start="earliest"):
        (found,) = traced(receipt.uniq_key, ends=1).deliveries
    assert (found.group, found.reconsume_times, found.is_success, found.code) == (
        *("readers", 0, True, ConsumeCode.SUCCESS),
    )
    assert found.cost_ms is not None
    assert found.cost_ms >= 50


def test_tries_that_fail_and_a_dead_letter_are_told(
    mq: rocketpy.BlockingClient, traced: Traced
) -> None:
    def handler(message: ReceivedMessage) -> rocketpy.Later:
        if message.reconsume_times:
            raise ValueError("never")
        return rocketpy.Later()

    receipt = mq.send("orders", b"x")
    with mq.listen("readers", "orders", handler, start="earliest", max_tries=1):
        found = traced(receipt.uniq_key, ends=2).deliveries
    assert [(each.reconsume_times, each.is_success, each.code) for each in found] == [
        (0, False, ConsumeCode.FAILED),
        (1, False, ConsumeCode.RAISED),
    ]


def test_a_batch_of_a_handler_is_told_message_by_message(
    mq: rocketpy.BlockingClient, traced: Traced
) -> None:
    async def handler(_: list[ReceivedMessage]) -> None:
        await asyncio.sleep(0)

    receipts = mq.send_many("orders", [b"a", b"b"])
    with mq.listen("readers", "orders", handler, start="earliest", batch=10):
        for receipt in receipts:
            (found,) = traced(receipt.uniq_key, ends=1).deliveries
            assert found.is_success


def test_in_order_each_try_is_told(mq: rocketpy.BlockingClient, traced: Traced) -> None:
    tries: list[int] = []

    def handler(_: ReceivedMessage) -> bool:
        tries.append(1)
        return len(tries) > 1

    receipt = mq.send("orders", b"x", queue_id=0)
    with mq.listen("readers", "orders", handler, ordered=True, start="earliest", suspend_s=0.01):
        found = traced(receipt.uniq_key, ends=2).deliveries
    assert [each.is_success for each in found] == [False, True]


def test_a_poll_is_told_and_its_end_when_the_message_is_done(
    mq: rocketpy.BlockingClient, traced: Traced
) -> None:
    receipt = mq.send("orders", b"x")
    with mq.consumer("readers", "orders", start="earliest") as consumer:
        while not consumer.poll(1):
            pass
        traced(receipt.uniq_key, sends=1)
        threading.Event().wait(0.5)  # longer than traces linger
        (open_one,) = traced(receipt.uniq_key).deliveries
        consumer.commit()
        (done,) = traced(receipt.uniq_key, ends=1).deliveries
    assert open_one.is_success is None
    assert (done.group, done.is_success) == ("readers", True)


def test_messages_that_are_iterated_over_are_done_one_by_one(
    mq: rocketpy.BlockingClient, traced: Traced
) -> None:
    receipts = mq.send_many("orders", [{"body": each, "queue_id": 0} for each in (b"a", b"b")])
    with mq.consumer("readers", "orders", start="earliest") as consumer:
        for message in consumer:
            if message.body == b"b":
                break
    (first,) = traced(receipts[0].uniq_key, ends=1).deliveries
    assert first.is_success


def test_groups_are_told_without_their_namespace(fresh: LocalBroker, traced: Traced) -> None:
    got = threading.Event()
    with rocketpy.connect(fresh.namesrv_addr, namespace="shop", trace=True) as mq:
        receipt = mq.send("orders", b"x")
        with mq.listen("readers", "orders", lambda _: got.set(), start="earliest"):
            assert got.wait(PATIENCE_S)
            (found,) = traced(receipt.uniq_key, ends=1).deliveries
    assert found.group == "readers"
