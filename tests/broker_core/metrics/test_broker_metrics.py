"""`/metrics` of a broker, beside real clients."""

from __future__ import annotations

import queue
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from tests.broker_core.local.wire import Wire
from tests.broker_core.metrics.scraping import PROM, ClusterScraper, Scraped, scrape

import rocketpy
from rocketpy.broker_core.local.handle import LocalBroker, local_broker
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketpy.broker_core.protocol.codes import RequestCode

ORDERS = {"topic": "orders", "consumer_group": "billing"}


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with local_broker(settings=PROM, topics={"orders": 2}) as running:  # counts from 0 on
        yield running


@pytest.fixture
def mq(broker: LocalBroker) -> Iterator[rocketpy.BlockingClient]:
    with rocketpy.connect(broker.namesrv_addr) as client:
        yield client


def seen(broker: LocalBroker, query: str = "") -> Scraped:
    return scrape(f"{broker.brokers[0].metrics_address}{query}")


def until(claim: Callable[[], object]) -> None:
    while not claim():  # pytest's time-out ends it
        time.sleep(0.05)


def read_all(mq: rocketpy.BlockingClient, count: int, meanwhile: Callable[[], None]) -> None:
    """Have a consumer of billing read so many orders, and commit; then do something beside it."""
    got = queue.Queue[bytes]()
    with mq.listen("billing", "orders", lambda m: got.put(m.body), start="earliest") as listener:
        for _ in range(count):
            got.get(timeout=30)
        listener.commit()
        meanwhile()


def test_notes_of_a_sink_are_no_lag(broker: LocalBroker, mq: rocketpy.BlockingClient) -> None:
    for number in range(10):
        mq.send("orders", f"{number}")
    for group in ("rocketpy-sink-6ec98e99aa1f3fd0-next", "billing"):
        mq.admin.groups.create(group)
        mq.admin.offsets.move(group, dict.fromkeys(mq.queues("orders"), 1))
    with ClusterScraper(broker.namesrv_addr) as cluster:
        for found in (seen(broker), cluster.scrape()):
            lags = found.of("rocketmq_consumer_lag_messages")
            assert {labels["consumer_group"] for labels, _ in lags} == {"billing"}


def test_counts_and_clients_are_those_of_real_ones(
    broker: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    for number in range(10):
        mq.send("orders", f"{number}")

    def look() -> None:
        found = seen(broker)
        assert found.value("rocketmq_messages_in_total", topic="orders") == 10
        assert found.value("rocketmq_throughput_in_total", topic="orders") > 1000
        assert found.value("rocketmq_messages_out_total", **ORDERS) == 10
        assert found.value("rocketmq_throughput_out_total", **ORDERS) > 1000
        assert found.value("rocketmq_producer_connections", language="python") == 1
        kind = {"language": "python", "consume_mode": "push", "version": "v5_5_0"}
        assert found.value("rocketmq_consumer_connections", consumer_group="billing", **kind) == 1
        assert found.value("rocketmq_consumer_lag_messages", **ORDERS) == 0
        assert found.value("rocketmq_consumer_lag_latency", **ORDERS) == 0
        node = {"cluster": "DefaultCluster", "node_type": "broker", "node_id": "broker-a"}
        assert found.value("rocketpy_broker_up", **node) == 1
        assert found.value("rocketmq_broker_permission", **node) == 6

    read_all(mq, 10, look)
    until(lambda: not seen(broker).of("rocketmq_consumer_connections"))


def test_lag_of_a_group_that_is_offline_is_what_admin_tells(
    broker: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    mq.send("orders", "read")
    read_all(mq, 1, lambda: None)
    before_s = time.time()
    for _ in range(3):
        mq.send("orders", "unread", queue_id=1)
    found, told = seen(broker, "?queues"), mq.admin.offsets.lag("billing")
    assert found.lag("billing")["broker-a", "orders"] == told.messages == 3
    latency_ms = found.value("rocketmq_consumer_lag_latency", **ORDERS)
    assert 0 <= latency_ms <= (time.time() - before_s) * 1000 + 1
    assert found.value("rocketmq_consumer_lag_latency_milliseconds", **ORDERS) == latency_ms
    by_queue = found.of("rocketpy_consumer_queue_lag_messages", **ORDERS)
    assert {int(labels["queue_id"]): lag for labels, lag in by_queue} == {
        each.queue.queue_id: each.behind for each in told.queues if each.queue.topic == "orders"
    }


def test_single_queues_are_told_only_if_asked_for(
    broker: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    mq.admin.offsets.move("billing", {mq.admin.topics.route("orders").all()[0]: 0})
    assert not [name for name in seen(broker).names if "_queue_" in name]
    assert not [name for name in seen(broker, "?queues=false").names if "_queue_" in name]
    assert "rocketpy_consumer_queue_lag_latency" in seen(broker, "?queues=true").names


def test_messages_that_were_given_out_and_not_committed_are_in_flight(
    broker: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    mq.admin.offsets.move("billing", {each: 0 for each in mq.admin.topics.route("orders").all()})
    for _ in range(5):
        mq.send("orders", "x", queue_id=0)
    assert seen(broker).value("rocketmq_consumer_ready_messages", **ORDERS) == 5
    assert seen(broker).value("rocketmq_consumer_queueing_latency", **ORDERS) >= 0
    is_done = queue.Queue[None]()
    with mq.listen("billing", "orders", lambda _: is_done.get(timeout=30)):
        until(lambda: seen(broker).value("rocketmq_consumer_inflight_messages", **ORDERS) == 5)
        found = seen(broker)
        assert found.value("rocketmq_consumer_ready_messages", **ORDERS) == 0
        assert found.value("rocketmq_consumer_lag_messages", **ORDERS) == 5
        for _ in range(5):
            is_done.put(None)


def test_what_was_deleted_is_gone_at_the_next_scrape(
    broker: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    mq.admin.topics.create("gone", 1)
    mq.send("gone", "x")
    mq.send("orders", "x")
    for topic in ("gone", "orders"):
        queues = mq.admin.topics.route(topic).all()
        for group in ("billing", "leaving"):
            mq.admin.offsets.move(group, {queues[0]: 0})
    found = seen(broker)
    assert found.labelled(topic="gone")
    assert found.labelled(consumer_group="leaving")

    mq.admin.topics.delete("gone")
    mq.admin.groups.delete("leaving", with_offsets=False)
    found = seen(broker, "?queues&exporter_names")
    assert found.labelled(topic="gone") == []
    assert found.labelled(consumer_group="leaving") == []
    assert found.labelled(group="leaving") == []
    assert found.lag("billing").keys() == {("broker-a", "orders")}


def test_a_topic_that_is_made_anew_counts_from_zero(
    broker: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    for sent in (3, 1):
        mq.admin.topics.create("again", 1)
        for _ in range(sent):
            mq.send("again", "x")
        (queue_,) = mq.admin.topics.route("again").all()
        mq.admin.offsets.move("billing", {queue_: 0})
        for _ in range(2):
            found = seen(broker)
            assert found.lag("billing")["broker-a", "again"] == sent
            assert 0 <= found.value("rocketmq_consumer_lag_latency", topic="again") < 30_000
        mq.admin.topics.delete("again")


def test_what_others_append_by_path_is_seen_at_once(
    broker: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    mq.admin.offsets.move("billing", {each: 0 for each in mq.admin.topics.route("orders").all()})
    program = "import sys, rocketpy; rocketpy.open(sys.argv[1]).send('orders', 'x', queue_id=0)"
    for count in (1, 2):
        command = [sys.executable, "-c", program, str(broker.store_path)]
        subprocess.run(command, check=True, timeout=60)
        assert seen(broker).lag("billing")["broker-a", "orders"] == count
        assert seen(broker).value("rocketmq_consumer_ready_messages", **ORDERS) == count


def test_dead_letters_are_counted_by_group(
    broker: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    mq.send("orders", "poison")

    def fail(_: object) -> None:
        raise ValueError("cannot be billed")

    with mq.listen("billing", "orders", fail, start="earliest", max_tries=0):
        name = "rocketmq_send_to_dlq_messages_total"
        until(lambda: seen(broker).of(name, consumer_group="billing"))
    assert seen(broker).value(name, consumer_group="billing") == 1


def test_any_text_that_clients_send_is_escaped(broker: LocalBroker) -> None:
    hostile = 'a"b\\c\nd} 1'
    consumer = ConsumerData(
        group_name=hostile,
        subscriptions=(SubscriptionData(topic="orders", sub_string="*"),),
    )
    beat = HeartbeatData(client_id="evil", consumers=(consumer,))
    with Wire(broker.address) as wire:
        wire.answer(wire.ask(RequestCode.HEART_BEAT, {}, beat.encode()))
        found = seen(broker, "?exporter_names")
        assert found.value("rocketmq_consumer_connections", consumer_group=hostile) == 1
        assert found.value("rocketmq_group_count", group=hostile) == 1


def test_the_exporters_names_tell_the_same(
    broker: LocalBroker, mq: rocketpy.BlockingClient
) -> None:
    mq.send("orders", "read")
    read_all(mq, 1, lambda: None)
    mq.send("orders", "unread")
    assert "rocketmq_group_diff" not in seen(broker).names
    found = seen(broker, "?exporter_names=true")
    assert found.value("rocketmq_group_diff", group="billing", topic="orders") == 1
    assert found.value("rocketmq_consumer_offset", group="billing", topic="orders") == 1
    assert found.value("rocketmq_producer_offset", topic="orders") == 2
    assert found.value("rocketmq_producer_tps", topic="orders") > 0
    assert found.value("rocketmq_broker_tps", broker="broker-a") > 0
    assert found.value("rocketmq_consumer_tps", group="billing", topic="orders") > 0
    assert found.value("rocketmq_brokeruntime_msg_put_total_today_now") == 2
    assert found.value("rocketmq_brokeruntime_commitlogdir_capacity_total") > 1 << 20
    # What no broker of ours measures is not told as 0.
    assert "rocketmq_brokeruntime_put_latency_99" not in found.names
