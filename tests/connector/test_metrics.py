"""Figures of streaming queries, as a scraper gets them."""

from __future__ import annotations

import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession
from tests.connector.streams import AVAILABLE_NOW, Stream, send

import rocketpy

MakeStream = Callable[..., Stream]


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
    assert lines == [f"rocketpy_rows_total{label} 2"]


def test_each_metric_says_what_it_is(metrics: rocketpy.Metrics) -> None:
    lines = metrics.text().splitlines()
    assert "# TYPE rocketpy_messages_behind gauge" in lines
    assert sum(line.startswith("# HELP") for line in lines) == 7
