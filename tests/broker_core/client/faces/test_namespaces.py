"""Namespaces from end to end: what programs see, and what brokers have."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.local import LocalBroker, local_broker

SETTINGS = {"transactionTimeOut": "100", "transactionCheckInterval": "100"}


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    with local_broker(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def shop(servers: LocalBroker) -> Iterator[rocketpy.BlockingClient]:
    servers.reset()
    with rocketpy.connect(servers.namesrv_addr, namespace="shop", timeout_s=20) as client:
        client.admin.topics.create("orders", queues=2)
        yield client


@pytest.fixture
def plain(servers: LocalBroker) -> Iterator[rocketpy.BlockingClient]:
    """A client that knows of no namespaces."""
    with rocketpy.connect(servers.namesrv_addr, timeout_s=20) as client:
        yield client


def test_a_message_goes_to_the_topic_of_its_namespace(
    shop: rocketpy.BlockingClient, plain: rocketpy.BlockingClient
) -> None:
    receipt = shop.send("orders", b"x", select=lambda queues: queues[1])
    assert str(receipt.queue) == "orders/broker-a:1"
    (queue_,) = (each for each in plain.queues("shop%orders") if each.queue_id == 1)
    (message,) = plain.pull(queue_, 0).messages
    assert (message.body, message.properties["INSTANCE_ID"]) == (b"x", "shop")
    (shown,) = shop.pull(receipt.queue, 0).messages
    assert (shown.topic, shown.queue) == ("orders", receipt.queue)
    many = shop.send_many("orders", ["1", {"body": "2", "sharding_key": "k"}])
    futures = [shop.send_async("orders", "3")]
    assert {each.queue.topic for each in (*many, futures[0].result(30))} == {"orders"}
    with pytest.raises(errors.TopicNotFoundError, match="shop%bills"):
        shop.send("bills", b"x")


def test_a_message_that_failed_comes_again_through_the_retries_of_the_namespace(
    shop: rocketpy.BlockingClient, plain: rocketpy.BlockingClient
) -> None:
    got: queue.Queue[ReceivedMessage] = queue.Queue()

    def handle(message: ReceivedMessage) -> rocketpy.Later | None:
        got.put(message)
        return None if message.reconsume_times else rocketpy.Later(delay_level=1)

    with shop.listen("billing", "orders", handle, start="earliest") as listener:
        shop.send("orders", b"x")
        tries = [got.get(timeout=30) for _ in range(2)]
        listener.commit()
        assert {each.topic for each in listener.queues} == {"orders", "%RETRY%billing"}
        assert [each.name for each in plain.admin.groups.all()] == ["shop%billing"]
    assert [each.topic for each in tries] == ["orders", "orders"]
    assert [each.queue.topic for each in tries] == ["orders", "%RETRY%billing"]
    assert "%RETRY%shop%billing" in {t.name for t in plain.admin.topics.all(everything=True)}
    assert shop.admin.offsets.lag("billing").messages == 0


def test_namespaces_do_not_see_each_other(
    servers: LocalBroker, shop: rocketpy.BlockingClient
) -> None:
    shop.send("orders", b"of the shop")
    shop.admin.groups.create("billing")
    with rocketpy.connect(servers.namesrv_addr, namespace="bank", timeout_s=20) as bank:
        assert bank.admin.topics.all() == []
        assert bank.admin.groups.all() == []
        bank.admin.topics.create("orders", queues=1)
        assert [each.messages for each in bank.admin.topics.queues("orders")] == [0]
        bank.admin.topics.delete("orders")
    assert [each.name for each in shop.admin.topics.all()] == ["orders"]


def test_a_pull_consumer_has_the_names_of_its_program(shop: rocketpy.BlockingClient) -> None:
    sent = shop.send("orders", b"x")
    with shop.consumer("readers", "orders", start="earliest") as consumer:
        got: list[ReceivedMessage] = []
        while not got:
            got = consumer.poll(20)
        assert (got[0].topic, got[0].queue) == ("orders", sent.queue)
        assert {each.topic for each in consumer.queues} == {"orders"}
        consumer.seek_to_first(sent.queue)
        assert consumer.poll(20)[0].body == b"x"
        consumer.pause([sent.queue])
        assert consumer.commit() == []
        assert consumer.positions()[sent.queue] == 1
    assert shop.committed("readers", sent.queue) == 1
    with shop.consumer("others", queues=[sent.queue], start="earliest") as consumer:
        assert consumer.poll(20)[0].queue == sent.queue


def test_transactions_and_requests_stay_in_the_namespace(
    servers: LocalBroker, shop: rocketpy.BlockingClient
) -> None:
    asked: queue.Queue[ReceivedMessage] = queue.Queue()
    got: queue.Queue[bytes] = queue.Queue()

    def check(message: ReceivedMessage) -> bool:
        asked.put(message)
        return True

    connecting: dict[str, Any] = {"namespace": "shop", "group": "tills", "checker": check}
    with rocketpy.connect(servers.namesrv_addr, timeout_s=20, **connecting) as tills:
        with tills.transaction("orders", "paid") as transaction:
            pass
        assert (transaction.is_settled, transaction.receipt.queue.topic) == (True, "orders")
        with tills.transaction("orders", "open") as transaction:
            transaction.leave_open()
        assert asked.get(timeout=30).topic == "orders"
        with shop.listen("billing", "orders", lambda m: got.put(m.body), start="earliest"):
            assert {got.get(timeout=30) for _ in range(2)} == {b"paid", b"open"}
    shop.admin.topics.create("prices", queues=1)

    def answer(message: ReceivedMessage) -> None:
        shop.reply(message, message.body.upper())

    with shop.listen("answers", "prices", answer):
        assert shop.request("prices", "how much?", timeout_s=30).body == b"HOW MUCH?"
