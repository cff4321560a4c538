"""What Prometheus is told by the console: what it saw last, of all its places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_core.metrics.scraping import Scraped
from tests.console.serving import ask, serving

import rocketpy
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web.serving import ConsoleServer


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[rocketpy.Store, rocketpy.Store]]:
    with rocketpy.open(tmp_path / "a") as first, rocketpy.open(tmp_path / "b") as second:
        for store, count in ((first, 3), (second, 5)):
            store.create_topic("orders", 2)
            store.append("orders", [{"body": "x"}] * count)
            store.commit("billing", "orders", {0: 0})
        yield first, second


def seen(store: rocketpy.Store) -> WatchedPlace:
    place = WatchedPlace(FolderReader(store.path))
    place.watch.look()
    return place


def scrape(server: ConsoleServer, query: str = "") -> Scraped:
    answer = ask(server, f"/metrics{query}")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return Scraped(answer.text)


def test_places_are_told_apart_though_their_brokers_have_one_name(
    stores: tuple[rocketpy.Store, rocketpy.Store],
) -> None:
    with serving(*map(seen, stores)) as server:
        found = scrape(server)
        for store, count in zip(stores, (3, 5), strict=True):
            of_store = {"place": str(store.path), "node_id": "rocketpy"}
            assert found.value("rocketmq_messages_in_total", topic="orders", **of_store) == count
            labels = {"consumer_group": "billing", "topic": "orders", **of_store}
            assert found.value("rocketmq_consumer_lag_messages", **labels) == count
            assert 0 <= found.value("rocketpy_look_age_seconds", place=str(store.path)) < 600
        assert not [name for name in found.names if "_queue_lag" in name]
        assert scrape(server, "?queues").of("rocketpy_consumer_queue_lag_messages")


def test_a_scrape_asks_nothing_of_the_places(
    stores: tuple[rocketpy.Store, rocketpy.Store],
) -> None:
    place = seen(stores[0])
    server = ConsoleServer([place], port=0)
    try:
        server._thread.start()  # pages alone: nobody looks again
        stores[0].append("orders", [{"body": "x"}])
        assert scrape(server).value("rocketmq_messages_in_total", topic="orders") == 3
        place.watch.look()
        assert scrape(server).value("rocketmq_messages_in_total", topic="orders") == 4
    finally:
        server.close()
