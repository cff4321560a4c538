"""The page about metrics, the board and what is served tell the same."""

from __future__ import annotations

import json
import queue
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.broker_core.metrics.scraping import PROM, ClusterScraper, Scraped, scrape
from tests.project.docs_tables import names_in, tables
from tests.project.markdown_page import DOCS

import rocketpy
from rocketpy.broker_core.metrics.documented import DOCUMENTED, Told, table
from rocketpy.broker_core.metrics.exporter import OF_EXPORTER
from rocketpy.broker_core.metrics.families import Family
from rocketpy.broker_core.metrics.native import BY_QUEUE, OF_BROKERS, OF_NAME_SERVERS

PAGE = "metrics.md"
BOARD = json.loads((DOCS / "grafana-board.json").read_text("utf-8"))
FAMILIES: Sequence[Family[Any]] = (*OF_BROKERS, *BY_QUEUE, *OF_NAME_SERVERS)
EVERY: Sequence[Family[Any]] = (*FAMILIES, *OF_EXPORTER)
METRIC = re.compile(r"\b(?:rocketmq|rocketpy)_\w+")


@pytest.fixture(scope="module")
def scraped() -> Iterator[tuple[Scraped, Scraped]]:
    """What a broker tells itself, and what is told of its cluster, after some of everything."""
    with (
        rocketpy.local_broker(settings=PROM, topics={"orders": 2}) as broker,
        rocketpy.connect(broker.namesrv_addr) as mq,
        ClusterScraper(broker.namesrv_addr) as cluster,
    ):
        mq.send("orders", "poison")
        mq.send("orders", "tomorrow", delay_s=86_400)
        tried = queue.Queue[None]()

        def fail(_: object) -> None:
            tried.put(None)
            raise ValueError("cannot be billed")

        with mq.listen("billing", "orders", fail, start="earliest", max_tries=0) as listener:
            tried.get(timeout=30)
            listener.commit()
            address = f"{broker.brokers[0].metrics_address}?queues&exporter_names"
            while not (own := scrape(address)).of("rocketmq_send_to_dlq_messages_total"):
                pass
            with broker.faults.refuse("GET_BROKER_CONFIG"):  # so that an error is told
                yield own, cluster.scrape(by_queue=True, exporter_names=True)


def test_the_table_is_made_of_what_the_code_says() -> None:
    text = (DOCS / PAGE).read_text("utf-8")
    assert "\n".join(table()) in text, "see broker_core/metrics/documented.py"


def test_what_is_told_is_what_the_table_says(scraped: tuple[Scraped, Scraped]) -> None:
    units = ("_milliseconds", "_bytes")
    families = {each.name for each in OF_BROKERS if each.name.startswith("rocketmq_")}
    for found, at in zip(scraped, (1, 2), strict=True):
        told = {each.name for each in DOCUMENTED if isinstance(each[at], Told)}
        # Dispatch and flush have the unit in their plain names.
        plain = {
            name for name in found.names & families if name in told or not name.endswith(units)
        }
        missing = {"rocketmq_broker_permission"} if at == 2 else set()  # refused above
        assert plain == told - missing


def test_our_own_names_and_the_exporters_have_a_line_each() -> None:
    own = [each for each in FAMILIES if each.name.startswith("rocketpy_")]
    assert tables(PAGE)["Our own names"] == [[f"`{each.name}`", each.help] for each in own]
    rows = tables(PAGE)["The names of rocketmq-exporter"]
    others = [each for each in OF_EXPORTER if "_brokeruntime_" not in each.name]
    assert rows[:-1] == [[f"`{each.name}`", each.help] for each in others]


def test_the_page_names_no_metric_that_is_not_there() -> None:
    known = {each.name for each in EVERY}
    alarms = tables(PAGE)["A board"]
    named = {name for row in alarms for cell in names_in(row[0]) for name in METRIC.findall(cell)}
    assert named
    assert named <= known


def expressions() -> Iterator[str]:
    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


def test_each_metric_of_the_board_is_served(scraped: tuple[Scraped, Scraped]) -> None:
    used = {name for each in expressions() for name in METRIC.findall(each)}
    assert len(used) > 15
    own, of_cluster = scraped
    assert used <= own.names | of_cluster.names


def test_each_label_of_the_board_is_one_that_its_metric_has() -> None:
    families = {each.name: each for each in FAMILIES}
    for each in expressions():
        for name, selected in re.findall(r"(rocket\w+)\{([^}]*)\}", each):
            labels = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", selected))
            assert labels <= {*families[name].labels}, each
        for grouped in re.findall(r"by \(([^)]*)\)", each):
            (name,) = set(METRIC.findall(each))
            assert {*grouped.split(", ")} <= {*families[name].labels}, each
