"""What a producer traces: sends, batches, failures, transactions; and what it does not."""

from __future__ import annotations

import contextlib

import pytest
from tests.broker_core.client.tracing.conftest import Traced

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.metadata.names import TRACE_TOPIC
from rocketpy.broker_core.protocol.bodies.traces import MessageKind

SENDS = ("SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE")


def test_a_send_is_told_with_all_that_it_said(
    fresh: LocalBroker, mq: rocketpy.BlockingClient, traced: Traced
) -> None:
    receipt = mq.send("orders", b"hello", tags="paid", keys=["k1", "k2"])
    ((client, event),) = traced(receipt.uniq_key, sends=1).sends
    assert client.startswith("127.0.0.1:")
    assert (event.group, event.topic, event.tags, event.keys) == (
        *("billing", "orders", "paid", "k1 k2"),
    )
    assert (event.body_bytes, event.kind, event.is_success) == (5, MessageKind.NORMAL, True)
    assert (event.offset_msg_id, event.store_host) == (receipt.msg_id, fresh.address)
    assert event.region == "DefaultRegion"
    assert 0 <= event.cost_ms < 10_000


def test_each_message_of_a_batch_is_found_by_its_key(
    mq: rocketpy.BlockingClient, traced: Traced
) -> None:
    receipts = mq.send_many("orders", [b"a", b"b", b"c"])
    for receipt in receipts:
        ((_, event),) = traced(receipt.uniq_key, sends=1).sends
        assert (event.uniq_key, event.offset_msg_id) == (receipt.uniq_key, receipt.msg_id)


def test_traces_are_found_by_the_keys_of_messages(
    fresh: LocalBroker, mq: rocketpy.BlockingClient, traced: Traced
) -> None:
    receipt = mq.send("orders", b"x", keys="order-7")
    traced(receipt.uniq_key, sends=1)
    with fresh.store() as store:
        assert len(store.query(TRACE_TOPIC, key="order-7")) == 1


def test_a_try_that_failed_and_the_one_after_it_are_told(
    fresh: LocalBroker, mq: rocketpy.BlockingClient, traced: Traced
) -> None:
    mq.send("orders", b"first")
    with fresh.faults.refuse(SENDS[0], answer="SYSTEM_BUSY", times=1):
        receipt = mq.send("orders", b"x")
    sends = [event for _, event in traced(receipt.uniq_key, sends=2).sends]
    assert [each.is_success for each in sends] == [False, True]
    assert [each.offset_msg_id for each in sends] == [None, receipt.msg_id]


def test_a_message_that_waits_says_so(mq: rocketpy.BlockingClient, traced: Traced) -> None:
    receipt = mq.send("orders", b"x", delay_level=4)
    ((_, event),) = traced(receipt.uniq_key, sends=1).sends
    assert event.kind == MessageKind.WAITING


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_transaction_is_told_with_its_end(
    mq: rocketpy.BlockingClient, traced: Traced, is_kept: bool
) -> None:
    with contextlib.suppress(ValueError), mq.transaction("orders", b"x", keys="k") as transaction:
        if not is_kept:
            raise ValueError
    key = transaction.receipt.uniq_key
    found = traced(key, sends=1)
    assert found.sends[0].event.kind == MessageKind.HALF
    ((_, end),) = found.transactions
    assert (end.state, end.is_checked, end.group) == (
        *("COMMIT_MESSAGE" if is_kept else "ROLLBACK_MESSAGE", False, "billing"),
    )


def test_an_end_for_which_the_broker_asked_says_so() -> None:
    settings = {
        "traceTopicEnable": "true",
        "transactionCheckInterval": "100",
        "transactionTimeOut": "100",
    }

    def checker(_: ReceivedMessage) -> bool:
        return True

    with (
        local_broker(settings=settings, topics=["orders"]) as broker,
        rocketpy.connect(broker.namesrv_addr, trace=True, checker=checker) as mq,
    ):
        with mq.transaction("orders", b"x") as transaction:
            transaction.leave_open()
        with mq.consumer("readers", "orders", start="earliest") as consumer:
            while not consumer.poll(1):
                pass
        mq.close()
        with broker.store() as store:
            found = store.trace(transaction.receipt.uniq_key)
    states = [(each.event.state, each.event.is_checked) for each in found.transactions]
    assert states[0] == ("UNKNOW", False)
    assert ("COMMIT_MESSAGE", True) in states


def test_names_are_told_without_their_namespace(fresh: LocalBroker, traced: Traced) -> None:
    with rocketpy.connect(fresh.namesrv_addr, group="billing", namespace="shop", trace=True) as mq:
        receipt = mq.send("orders", b"x")
        ((_, event),) = traced(receipt.uniq_key, sends=1).sends
    assert (event.group, event.topic) == ("billing", "orders")


def test_another_topic_may_have_the_traces(fresh: LocalBroker, traced: Traced) -> None:
    with rocketpy.connect(fresh.namesrv_addr, namespace="shop", trace="traces") as mq:
        receipt = mq.send("orders", b"x")
        assert traced(receipt.uniq_key, sends=1, topic="traces")
    with fresh.store() as store:
        assert not store.trace(receipt.uniq_key)


def test_what_goes_to_the_trace_topic_itself_is_not_traced(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr, trace="traces") as mq:
        mq.send("traces", b"x")
        counts = mq.traced
    assert counts is not None
    assert sum(counts) == 0


def test_a_broker_that_wants_no_traces_gets_none() -> None:
    settings = {"traceTopicEnable": "true", "traceOn": "false"}
    with (
        local_broker(settings=settings, topics=["orders"]) as broker,
        rocketpy.connect(broker.namesrv_addr, trace=True) as mq,
    ):
        mq.send("orders", b"x")
        with mq.consumer("readers", "orders", start="earliest") as consumer:
            while not consumer.poll(1):
                pass
        counts = mq.traced
    assert counts is not None
    assert sum(counts) == 0


def test_without_the_option_nothing_is_traced(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr) as mq:
        mq.send("orders", b"x")
        assert mq.traced is None
    with fresh.store() as store:
        assert store.read(TRACE_TOPIC).read_all().num_rows == 0


def test_a_name_that_no_topic_can_have_is_refused() -> None:
    with pytest.raises(errors.TopicNameError):
        rocketpy.connect("127.0.0.1:1", trace="no topic")
