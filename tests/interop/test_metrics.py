"""Metrics of Apache's brokers 5.5.0 and 4.9.7, asked from outside.

What we tell of them is what mqadmin prints; and of 5.5.0, what it tells itself by the same names.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.broker_core.metrics.scraping import ClusterScraper, Scraped, scrape
from tests.interop.apache import BROKER_NAME, Setting, free_ports
from tests.interop.cluster_addresses import TESTED_VERSION, broker_under_test
from tests.interop.installation import VERSION
from tests.interop.java_peer import JavaPeer
from tests.interop.mqadmin import MqAdmin, mqadmin

import rocketpy
from rocketpy.broker_core.errors import GroupNotFoundError
from rocketpy.broker_core.metrics.native import OF_BROKERS

pytestmark = [pytest.mark.interop, pytest.mark.further]

SETTINGS: Mapping[str, Setting] = {
    "timerWheelEnable": True,  # without it a topic cannot be deleted: a NullPointerException
    "mappedFileSizeCommitLog": 16 << 20,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
}
SENT, MORE = 7, 5
# Which of its labels Apache's have besides; the first is OpenTelemetry's.
ONLY_APACHES = {"otel_scope_name", "message_type"}


class Sides(NamedTuple):
    """A cluster of Apache's with a Java consumer group, and those who look at it."""

    namesrv_addr: str
    own_metrics: str
    tool: MqAdmin
    scraper: ClusterScraper

    def printed(self, group: str) -> dict[tuple[str, int], int]:
        """Return the lag by topic and queue, as mqadmin prints it."""
        lines = self.tool.run(("consumerProgress", "-g", group)).splitlines()
        head = next(at for at, line in enumerate(lines) if line.startswith("#"))
        ends = next(at for at, line in enumerate(lines) if at > head and not line.strip())
        rows = [line.split() for line in lines[head + 1 : ends]]
        return {(row[0], int(row[2])): int(row[5]) for row in rows}


@pytest.fixture(scope="module", params=[TESTED_VERSION])
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder: Path = tmp_path_factory.mktemp("apache")
    port = free_ports()[0]
    settings: dict[str, Setting] = {
        **SETTINGS,
        "metricsExporterType": "PROM",
        "metricsPromExporterPort": port,
        "metricsPromExporterHost": "127.0.0.1",
    }
    with (
        broker_under_test(folder / "store", settings=settings) as broker,
        mqadmin(broker.namesrv_addr) as tool,
        ClusterScraper(broker.namesrv_addr, timeout_s=30) as scraper,
    ):
        with rocketpy.connect(broker.namesrv_addr, timeout_s=30) as mq:
            mq.admin.topics.create("counted", queues=3)
            for number in range(SENT):
                mq.send("counted", f"{number}", queue_id=number % 3)
            with JavaPeer(broker.namesrv_addr, home=folder) as java:
                java.listen("counting", "counted")
                java.got("counting", SENT)
                until(lambda: mq.admin.offsets.lag("counting", "counted").messages == 0)
            for _ in range(MORE):
                mq.send("counted", "later", queue_id=1)
            until(lambda: mq.admin.offsets.lag("counting", "counted").messages == MORE)
        yield Sides(broker.namesrv_addr, f"http://127.0.0.1:{port}/metrics", tool, scraper)


def until(claim: Callable[[], object]) -> None:
    while True:  # pytest's time-out ends it
        with contextlib.suppress(GroupNotFoundError):  # before its first commit
            if claim():
                return
        time.sleep(0.1)


@pytest.mark.skipif(TESTED_VERSION != VERSION, reason="mqadmin 5.5.0 asks what 4.x does not know")
def test_the_lag_of_a_java_group_is_what_mqadmin_prints(sides: Sides) -> None:
    found, printed = sides.scraper.scrape(by_queue=True), sides.printed("counting")
    told = found.of("rocketpy_consumer_queue_lag_messages", consumer_group="counting")
    assert {(labels["topic"], int(labels["queue_id"])): lag for labels, lag in told} == printed
    assert found.lag("counting")[BROKER_NAME, "counted"] == sum(
        lag for (topic, _), lag in printed.items() if topic == "counted"
    )
    assert printed["counted", 1] == MORE
    labels = {"consumer_group": "counting", "topic": "counted"}
    assert found.value("rocketmq_consumer_lag_latency", **labels) > 0
    assert found.value("rocketmq_messages_in_total", topic="counted") == SENT + MORE
    assert found.value("rocketpy_broker_up") == 1
    assert found.of("rocketpy_scrape_errors") == []


@pytest.mark.skipif(TESTED_VERSION != VERSION, reason="brokers of 4.x have no metrics")
def test_names_labels_and_numbers_are_those_that_apaches_broker_tells(sides: Sides) -> None:
    def apaches() -> Scraped:
        return scrape(sides.own_metrics)

    until(lambda: apaches().of("rocketmq_broker_permission"))
    theirs, ours = apaches(), sides.scraper.scrape()
    shared = {family.name for family in OF_BROKERS} & theirs.names & ours.names
    assert {
        *("rocketmq_processor_watermark", "rocketmq_broker_permission", "rocketmq_topic_number"),
        *("rocketmq_consumer_group_number", "rocketmq_messages_in_total"),
        *("rocketmq_storage_flush_behind_bytes", "rocketmq_storage_dispatch_behind_bytes"),
        *("rocketmq_storage_message_reserve_time_milliseconds", "rocketmq_timer_enqueue_lag"),
        "rocketmq_timer_dequeue_latency_milliseconds",
    } <= shared
    for name in shared:
        (their_labels, _), (our_labels, _) = theirs.of(name)[0], ours.of(name)[0]
        assert {*our_labels} == {*their_labels} - ONLY_APACHES, name
    for name in ("broker_permission", "topic_number", "consumer_group_number"):
        metric = f"rocketmq_{name}"
        assert ours.value(metric) == theirs.value(metric)
    topic = {"topic": "counted"}
    assert ours.value("rocketmq_messages_in_total", **topic) == theirs.value(
        "rocketmq_messages_in_total", **topic
    )


def test_the_exporters_names_have_values_of_apaches_broker(sides: Sides) -> None:
    found = sides.scraper.scrape(exporter_names=True)
    assert found.value("rocketmq_group_diff", group="counting", topic="counted") == MORE
    assert found.value("rocketmq_consumer_offset", group="counting", topic="counted") == SENT
    assert found.value("rocketmq_producer_offset", topic="counted") == SENT + MORE
    assert found.value("rocketmq_brokeruntime_putmessage_times_total") >= SENT + MORE
    assert found.value("rocketmq_brokeruntime_commitlogdir_capacity_total") > 1 << 30
    assert found.of("rocketpy_scrape_errors") == []
