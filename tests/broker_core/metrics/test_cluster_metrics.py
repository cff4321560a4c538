"""Metrics of a cluster, asked from outside: brokers that are there, and some that are not."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from tests.broker_core.client.forwarder import Forwarder
from tests.broker_core.metrics.scraping import PROM, ClusterScraper, Scraped, scrape

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.delay.pending import Pending
from rocketpy.broker_core.local.handle import LocalBroker, local_broker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metrics.cluster_answers import Answers
from rocketpy.broker_core.metrics.cluster_delays import pending_of

A, B = "broker-a", "broker-b"


@pytest.fixture(scope="module")
def running() -> Iterator[LocalBroker]:
    with local_broker(brokers=2, settings=PROM, topics={"orders": 2}) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: LocalBroker) -> Iterator[LocalBroker]:
    running.start_broker(1)
    running.reset()
    with rocketpy.connect(running.namesrv_addr) as mq:
        for broker, count in ((A, 3), (B, 4)):
            for _ in range(count):
                mq.send("orders", "x", select=partial(one_of, broker))
        mq.admin.offsets.move("billing", {MessageQueue("orders", A, 0): 1})
        mq.admin.offsets.move("billing", {MessageQueue("orders", B, 0): 1})
    yield running
    for each in running.brokers:
        each.faults.clear()


def one_of(broker: str, queues: Sequence[MessageQueue]) -> MessageQueue:
    return next(each for each in queues if each.broker == broker and each.queue_id == 0)


@pytest.fixture
def scraper(cluster: LocalBroker) -> Iterator[ClusterScraper]:
    with ClusterScraper(cluster.namesrv_addr, timeout_s=1.0) as scraper:
        yield scraper


def up(found: Scraped) -> dict[str, float]:
    return {labels["node_id"]: value for labels, value in found.of("rocketpy_broker_up")}


def test_lag_is_told_by_broker_and_is_what_admin_tells(
    cluster: LocalBroker, scraper: ClusterScraper
) -> None:
    found = scraper.scrape(by_queue=True)
    with rocketpy.connect(cluster.namesrv_addr) as mq:
        told = mq.admin.offsets.lag("billing")
    assert found.lag("billing") == {(A, "orders"): 2, (B, "orders"): 3}
    by_queue = found.of("rocketpy_consumer_queue_lag_messages", consumer_group="billing")
    assert {
        (labels["topic"], labels["node_id"], int(labels["queue_id"])): lag
        for labels, lag in by_queue
    } == {tuple(each.queue): each.behind for each in told.queues}
    ages = found.of("rocketmq_consumer_lag_latency", consumer_group="billing", topic="orders")
    assert all(0 <= age < 60_000 for _, age in ages)
    assert len(ages) == 2
    assert found.value("rocketmq_messages_in_total", topic="orders", node_id=B) == 4
    assert up(found) == {A: 1, B: 1}
    assert found.of("rocketpy_scrape_errors") == []


def test_a_dead_broker_takes_its_own_series_along_and_no_others(
    cluster: LocalBroker, scraper: ClusterScraper
) -> None:
    assert up(scraper.scrape()) == {A: 1, B: 1}
    cluster.kill_broker(1)
    found = scraper.scrape()
    assert up(found) == {A: 1, B: 0}
    assert found.lag("billing") == {(A, "orders"): 2}
    assert {*found.labelled(node_id=B)} <= {"rocketpy_broker_up", "rocketpy_scrape_errors"}
    cluster.start_broker(1)
    assert up(scraper.scrape()) == {A: 1, B: 1}


def test_a_broker_that_hangs_is_down_and_the_other_is_told(
    cluster: LocalBroker, scraper: ClusterScraper
) -> None:
    with cluster.brokers[1].faults.lose_answer("GET_BROKER_CONSUME_STATS", times=None):
        found = scraper.scrape()
    assert up(found) == {A: 1, B: 0}
    assert found.value("rocketpy_scrape_errors", node_id=B, request="GET_BROKER_CONSUME_STATS") == 1
    assert found.lag("billing") == {(A, "orders"): 2}
    assert scraper.scrape().lag("billing") == {(A, "orders"): 2, (B, "orders"): 3}


def test_a_request_that_is_refused_costs_its_series_alone(
    cluster: LocalBroker, scraper: ClusterScraper
) -> None:
    code, answer = "GET_BROKER_CONSUME_STATS", "REQUEST_CODE_NOT_SUPPORTED"
    with cluster.brokers[1].faults.refuse(code, answer=answer, times=None):
        found = scraper.scrape()
    assert up(found) == {A: 1, B: 1}
    assert found.value("rocketpy_scrape_errors", node_id=B, request=code) == 1
    assert found.lag("billing") == {(A, "orders"): 2}
    assert found.value("rocketmq_messages_in_total", topic="orders", node_id=B) == 4


def test_ends_of_topics_are_told_whether_groups_read_them_or_not(
    cluster: LocalBroker, scraper: ClusterScraper
) -> None:
    with rocketpy.connect(cluster.namesrv_addr) as mq:
        for topic in ("alone", "narrowed"):
            mq.admin.topics.create(topic, 2)
            for _ in range(2):
                for queue_id in (0, 1):
                    mq.send(topic, "x", queue_id=queue_id)
        mq.admin.topics.update("narrowed", read_queues=1)  # of two that are written
        mq.admin.offsets.move("billing", {MessageQueue("narrowed", A, 0): 0})
        ends = {
            (each.queue.topic, each.queue.broker): 0
            for topic in ("alone", "narrowed", "orders")
            for each in mq.admin.topics.queues(topic)
        }
        for topic in ("alone", "narrowed", "orders"):
            for each in mq.admin.topics.queues(topic):
                ends[each.queue.topic, each.queue.broker] += each.end
    told = scraper.scrape().of("rocketmq_messages_in_total")
    found = {(labels["topic"], labels["node_id"]): end for labels, end in told}
    assert {key: end for key, end in found.items() if "%" not in key[0]} == ends
    assert sum(end for (topic, _), end in ends.items() if topic == "narrowed") == 4


def test_a_group_that_stands_still_is_not_asked_for_again(
    cluster: LocalBroker, scraper: ClusterScraper
) -> None:
    orders = {"consumer_group": "billing", "topic": "orders", "node_id": A}
    before_ms = scraper.scrape().value("rocketmq_consumer_lag_latency", **orders)
    time.sleep(0.01)
    with cluster.brokers[0].faults.refuse("QUERY_CONSUME_TIME_SPAN", times=None) as refused:
        found = scraper.scrape()
        assert refused.happened == 0
        assert found.value("rocketmq_consumer_lag_latency", **orders) > before_ms
        with rocketpy.connect(cluster.namesrv_addr) as mq:
            mq.admin.offsets.move("billing", {MessageQueue("orders", A, 0): 2})
        # It moved, and nobody says how old its next message is.
        assert scraper.scrape().of("rocketmq_consumer_lag_latency", **orders) == []
        assert refused.happened == 1


def test_what_waits_for_its_time_is_told_by_level_and_by_topic(
    cluster: LocalBroker, scraper: ClusterScraper
) -> None:
    with rocketpy.connect(cluster.namesrv_addr) as mq:
        for level in (17, 18, 18):
            mq.send("orders", "x", delay_level=level, select=partial(one_of, A))
        mq.send("orders", "x", deliver_at=int(time.time() + 3600) * 1000, select=partial(one_of, B))
    for found in (scraper.scrape(), scrape(cluster.brokers[0].metrics_address)):
        told = found.of("rocketpy_delayed_messages", node_id=A)
        assert {labels["delay_level"]: n for labels, n in told if n} == {"17": 1, "18": 2}
        assert found.value("rocketpy_overdue_messages", node_id=A) == 0
    assert scraper.scrape().value("rocketmq_timing_messages", node_id=B, topic="orders") == 1


def test_what_is_late_is_found_by_when_it_was_stored(cluster: LocalBroker) -> None:
    with rocketpy.connect(cluster.namesrv_addr) as mq:
        for level in (17, 18):  # one hour, two
            mq.send("orders", "x", delay_level=level, select=partial(one_of, A))
    with Cluster(cluster.namesrv_addr) as client:
        answers = Answers(client, {A: client.broker_address(A)})
        figures = {A: {"scheduleMessageOffset_17": "0,1", "scheduleMessageOffset_18": "0,1"}}
        for hours, late in ((0.5, 0), (1.5, 1), (2.5, 2)):
            now_ms = int((time.time() + hours * 3600) * 1000)
            found = pending_of(answers, figures, {}, {}, now_ms)
            assert found == {A: Pending({17: 1, 18: 1}, None, late)}


def test_without_name_servers_the_brokers_that_are_known_are_told(cluster: LocalBroker) -> None:
    with (
        Forwarder(cluster.namesrv_addr) as between,
        ClusterScraper(f"{between.address};127.0.0.1:1", timeout_s=1.0) as scraper,
    ):
        found = scraper.scrape()
        assert found.value("rocketpy_nameserver_up", node_id=between.address) == 1
        assert found.value("rocketpy_nameserver_up", node_id="127.0.0.1:1") == 0
        assert found.value("rocketpy_nameserver_brokers", cluster="DefaultCluster") == 2
        between.close()
        found = scraper.scrape()
        assert found.value("rocketpy_nameserver_up", node_id=between.address) == 0
        assert up(found) == {A: 1, B: 1}
        assert found.lag("billing") == {(A, "orders"): 2, (B, "orders"): 3}


def test_a_cluster_that_was_never_there_is_told_as_down() -> None:
    with ClusterScraper("127.0.0.1:1", timeout_s=1.0) as scraper:
        found = scraper.scrape()
    assert found.value("rocketpy_nameserver_up") == 0
    assert found.of("rocketpy_broker_up") == []


def test_what_was_deleted_is_gone_at_the_next_scrape(
    cluster: LocalBroker, scraper: ClusterScraper
) -> None:
    with rocketpy.connect(cluster.namesrv_addr) as mq:
        mq.admin.offsets.move("leaving", {MessageQueue("orders", A, 0): 1})
        assert scraper.scrape().labelled(consumer_group="leaving")
        mq.admin.groups.delete("leaving")
        assert scraper.scrape().labelled(consumer_group="leaving") == []
        mq.admin.topics.delete("orders")
        assert scraper.scrape(by_queue=True, exporter_names=True).labelled(topic="orders") == []


def test_the_exporter_adds_up_the_lag_over_brokers(
    cluster: LocalBroker, scraper: ClusterScraper
) -> None:
    found = scraper.scrape(exporter_names=True)
    nobody = {"countOfOnlineConsumers": "0", "msgModel": "1"}
    assert found.value("rocketmq_group_diff", group="billing", topic="orders", **nobody) == 5
    assert found.value("rocketmq_group_count", group="billing") == 0
    assert found.value("rocketmq_producer_offset", topic="orders", broker=B) == 4
    assert found.value("rocketmq_producer_tps", topic="orders", broker=B) > 0
    assert found.value("rocketmq_broker_tps", broker=A) > 0
    got = queue.Queue[bytes]()
    with (
        rocketpy.connect(cluster.namesrv_addr) as mq,
        mq.listen("billing", "orders", lambda message: got.put(message.body)),
    ):
        for _ in range(5):  # of both brokers: both have heard of it
            got.get(timeout=30)
        found = scraper.scrape(exporter_names=True)
    ((labels, count),) = found.of("rocketmq_group_count", group="billing")
    assert (count, labels["localaddr"].count(";")) == (1, 0)
    assert len(found.of("rocketmq_consumer_connections", consumer_group="billing")) == 2
