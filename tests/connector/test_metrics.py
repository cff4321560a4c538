"""Figures of streaming queries, as a scraper gets them."""

from __future__ import annotations

import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession
from tests.connector.streams import AVAILABLE_NOW, Stream, send
from tests.console.serving import ask

import rocketpy
from rocketpy.broker_core.metrics.writing import block
from rocketpy.connector.lag import QueryReading
from rocketpy.connector.metrics import METRICS, _Query
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace
from rocketpy.console.spark import SparkWatch
from rocketpy.console.web.serving import ConsoleServer

MakeStream = Callable[..., Stream]
EVERYTHING = _Query(
    *('a "query"', "id", "run"),
    lag={"orders": 1},
    last_batch_s=1.0,
    reads=(QueryReading("shop-store", "orders", "billing", ""),),
)


@pytest.fixture
def metrics(spark: SparkSession) -> Iterator[rocketpy.Metrics]:
    listener = rocketpy.Metrics()
    spark.streams.addListener(listener)
    yield listener
    spark.streams.removeListener(listener)


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_a_query_is_told_by_its_figures_and_in_the_log(
    stream: MakeStream,
    store: rocketpy.Store,
    metrics: rocketpy.Metrics,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "rocketpy.connector.metrics")
    send(store, *"abcde")
    query = stream(topic="orders", startingOffsets="earliest", maxRowsPerTrigger=3).start(
        AVAILABLE_NOW
    )
    query.awaitTermination()
    label = f'{{query="{query.id}"}}'
    with metrics.serve() as address:
        while True:  # Spark tells listeners a little later
            with urllib.request.urlopen(address) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                figures = samples(answer.read().decode())
            if figures.get("rocketpy_query_active" + label) == 0:
                break
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address + "/else")
    assert figures["rocketpy_batches_total" + label] == 2
    assert figures["rocketpy_rows_total" + label] == 5
    assert figures[f'rocketpy_messages_behind{{query="{query.id}",topic="orders"}}'] == 0
    assert figures["rocketpy_batch_duration_seconds" + label] > 0
    assert f"query {query.id}, batch 0: 3 rows in" in caplog.text
    assert ", 2 behind" in caplog.text


def test_a_query_tells_what_it_reads_for_which_group_as_which_member(
    stream: MakeStream, store: rocketpy.Store, metrics: rocketpy.Metrics
) -> None:
    send(store, *"ab")
    shared = {"startingOffsets": "earliest", "consumerGroup": "billing", "member": "one"}
    query = stream(topic="orders", **shared).start(AVAILABLE_NOW)
    query.awaitTermination()
    until(metrics, f'rocketpy_query_active{{query="{query.id}"}}', 0)
    families = {each.name: each for each in text_string_to_metric_families(metrics.text())}
    (source,) = families["rocketpy_query_source"].samples
    assert source.labels == {
        "query": str(query.id),
        "place": str(store.path),
        "topic": "orders",
        "consumer_group": "billing",
        "member": "one",
    }
    (failed,) = families["rocketpy_query_failed"].samples
    assert failed.value == 0
    (batch,) = families["rocketpy_last_batch_timestamp_seconds"].samples
    assert 0 <= time.time() - batch.value < 600


def test_the_console_shows_a_query_with_links_to_its_topic_and_its_group(
    stream: MakeStream, store: rocketpy.Store, metrics: rocketpy.Metrics
) -> None:
    send(store, *"abcde")
    made = stream(topic="orders", startingOffsets="earliest", consumerGroup="billing")
    query = made.start(AVAILABLE_NOW)
    query.awaitTermination()
    until(metrics, f'rocketpy_query_active{{query="{query.id}"}}', 0)
    with metrics.serve() as address:
        watch = SparkWatch([address])
        watch.look()
    (shown,) = [each.line for each in watch.view().queries if each.line.name == str(query.id)]
    assert (shown.state, shown.behind, shown.rows, shown.batches) == ("ended", 0, 5, 1)
    server = ConsoleServer([WatchedPlace(FolderReader(store.path))], port=0, spark=watch)
    server.serve()
    try:
        page = ask(server, "/spark").text
    finally:
        server.close()
    for part in (str(query.id), '/0/topic?name=orders">', '/0/group?name=billing">'):
        assert part in page


def until(metrics: rocketpy.Metrics, sample: str, value: float) -> dict[str, float]:
    """Return the figures once one has a value: Spark tells listeners a little later."""
    while (figures := samples(metrics.text())).get(sample) != value:
        time.sleep(0.05)
    return figures


def test_a_query_that_is_started_again_takes_the_place_of_its_last_run(
    stream: MakeStream, store: rocketpy.Store, metrics: rocketpy.Metrics
) -> None:
    made = stream(topic="orders", startingOffsets="earliest")
    for bodies in ("abc", "de"):
        send(store, *bodies)
        query = made.start(AVAILABLE_NOW)
        query.awaitTermination()
        label = f'{{query="{query.id}"}}'
        until(metrics, "rocketpy_rows_total" + label, len(bodies))
        until(metrics, "rocketpy_query_active" + label, 0)
    lines = [line for line in metrics.text().splitlines() if "rocketpy_rows_total{" in line]
    assert lines == [f"rocketpy_rows_total{label} 2.0"]


def test_each_metric_of_a_query_says_what_it_is(metrics: rocketpy.Metrics) -> None:
    assert metrics.text() == ""  # nothing is told before there is a query
    for each in METRICS:
        told = block(each, [EVERYTHING], {})
        assert told.startswith(f"# HELP {each.name} {each.help}\n# TYPE {each.name} {each.kind}\n")
        (family,) = text_string_to_metric_families(told)
        assert len(family.samples) == 1
