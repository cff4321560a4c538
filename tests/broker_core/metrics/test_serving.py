"""The HTTP side of metrics: who may ask what, and what it costs who does not."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.broker_core.metrics.scraping import scrape

import rocketpy
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import StoreClosedError
from rocketpy.broker_core.metrics.folder_source import FolderSource
from rocketpy.broker_core.metrics.serving import MetricsServer
from rocketpy.broker_core.storage.store import MessageStore

SMALL = StoreConfig(commit_log_file_size=1 << 20, index_slots=100, index_entries=400)


@pytest.fixture
def store(tmp_path: Path) -> MessageStore:
    with rocketpy.open(tmp_path / "store", config=SMALL) as made:
        made.create_topic("orders", 2)
        made.send("orders", "x")
        made.commit("billing", "orders", {0: 0, 1: 0})
    return MessageStore(tmp_path / "store", StoreConfig(), clock=SystemClock(), read_only=True)


@pytest.fixture
def source(store: MessageStore) -> FolderSource:
    return FolderSource(store)


@pytest.fixture
def server(source: FolderSource) -> Iterator[MetricsServer]:
    server = MetricsServer(source, port=0)
    server.start()
    yield server
    server.stop()


def test_it_listens_on_loopback_and_answers_metrics_alone(server: MetricsServer) -> None:
    assert server.address.startswith("http://127.0.0.1:")
    found = scrape(f"{server.address}?queues")
    assert found.value("rocketpy_broker_up") == 1
    assert found.value("rocketmq_consumer_lag_messages", consumer_group="billing") == 1
    with pytest.raises(HTTPError, match="404"):
        urlopen(server.address.removesuffix("/metrics"))


def test_a_client_that_says_nothing_keeps_nobody_waiting(server: MetricsServer) -> None:
    host, port = server.address.removeprefix("http://").removesuffix("/metrics").split(":")
    with socket.create_connection((host, int(port))):
        assert scrape(server.address).value("rocketpy_broker_up") == 1


def test_a_look_that_fails_is_an_answer_and_the_next_one_works(
    server: MetricsServer, store: MessageStore
) -> None:
    topics = store.root / "config" / "topics.json"
    sound = topics.read_bytes()
    topics.write_bytes(b"{")
    with pytest.raises(HTTPError, match="500"):
        scrape(server.address)
    topics.write_bytes(sound)
    assert scrape(server.address).value("rocketpy_broker_up") == 1


def test_stopping_frees_the_port_and_closes_the_source(
    source: FolderSource, store: MessageStore
) -> None:
    server = MetricsServer(source, port=0)
    port = int(server.address.removesuffix("/metrics").rpartition(":")[2])
    server.start()
    server.stop()
    server.stop()
    with pytest.raises(StoreClosedError):
        store.require_open()
    MetricsServer(source, port=port).stop()  # never started


def test_a_port_that_is_taken_is_named(source: FolderSource) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"cannot listen on 127\.0\.0\.1:{port}: "):
            MetricsServer(source, port=port)
    with pytest.raises(OSError, match="there is no such port"):
        MetricsServer(source, port=70_000)
    source.close()


def test_a_broker_without_metrics_loads_no_prometheus_client() -> None:
    program = """
import sys
import rocketpy
with rocketpy.local_broker(topics=["orders"]) as broker:
    assert broker.brokers[0].metrics_address is None
assert not [name for name in sys.modules if name.startswith("prometheus")]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
