"""What is written at once is what prometheus_client writes."""

from __future__ import annotations

from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from rocketpy.broker_core.metrics.collecting import families
from rocketpy.broker_core.metrics.facts import (
    BrokerFacts,
    ClientKind,
    Facts,
    NameServerFacts,
    OnlineMember,
    QueuePlace,
    Rate,
    ScrapeOptions,
    TopicLag,
    Traffic,
)
from rocketpy.broker_core.metrics.text import text_of

HOSTILE = 'a"b\\c\nd} 1'
FACTS = Facts(
    [
        BrokerFacts(
            cluster=HOSTILE,
            name="ö",
            address="",
            is_up=True,
            errors={"GET_BROKER_CONFIG": 2},
            figures={
                "earliestMessageTimeStamp": "1794984523152",
                "putTps": "0.1 123456.789 1e-9",
                "remainHowManyDataToFlush": "1.5 KiB",
                "putMessageDistributeTime": "[<=0ms]:7 ",
            },
            now_ms=1794984523153,
            ends={"orders": 2147483648, "%DLQ%billing": 1},
            sent=[Traffic("orders", "", 1 << 60, 10**7)],
            lags=[
                TopicLag("billing", "orders", (QueuePlace(0, 1, 1_000_001, None),), 3, 0),
                TopicLag(HOSTILE, "%RETRY%x", (QueuePlace(0, 1, 1, 0),), None, None),
            ],
            consumers=[ClientKind("billing", "java", "v5_5_0", "push", 1)],
            members=[OnlineMember("billing", "id", "127.0.0.1:1")],
            rates=[Rate("TOPIC_PUT_NUMS", "orders", "", 1 / 3)],
        ),
        BrokerFacts(cluster="c", name="down", address="127.0.0.1:1", is_up=False),
    ],
    [NameServerFacts(address="127.0.0.1:2", is_up=True, brokers={"c": 2}, topics=7)],
)


class Given(Collector):
    def __init__(self, wanted: ScrapeOptions) -> None:
        self._wanted = wanted

    def collect(self) -> list[Metric]:
        return [*families(FACTS, self._wanted)]


def test_it_is_byte_for_byte_what_prometheus_client_writes() -> None:
    for wanted in (ScrapeOptions(), ScrapeOptions(by_queue=True, exporter_names=True)):
        written = text_of(FACTS, wanted, 0.5)
        took = b"# HELP rocketpy_scrape_seconds How long looking took.\n"
        took += b"# TYPE rocketpy_scrape_seconds gauge\nrocketpy_scrape_seconds 0.5\n"
        assert written == generate_latest(Given(wanted)) + took
