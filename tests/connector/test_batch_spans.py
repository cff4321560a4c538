"""Spans of micro-batches: what a listener of Spark's tells OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.connector.streams import AVAILABLE_NOW, Stream, send

import rocketpy

MakeStream = Callable[..., Stream]
PATIENCE_S = 60


@pytest.fixture
def exporter(spark: SparkSession) -> Iterator[InMemorySpanExporter]:
    """What keeps the spans of all queries."""
    found, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    listener = rocketpy.BatchSpans(provider)
    spark.streams.addListener(listener)
    yield found
    spark.streams.removeListener(listener)


def spans_of(exporter: InMemorySpanExporter, count: int) -> tuple[ReadableSpan, ...]:
    """Return the spans; Spark tells its listeners a moment later."""
    deadline = time.monotonic() + PATIENCE_S
    while len(found := exporter.get_finished_spans()) < count:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def test_each_batch_is_a_span_as_long_as_it_took(
    stream: MakeStream, store: rocketpy.Store, exporter: InMemorySpanExporter
) -> None:
    send(store, *"abcde")
    began_ns = time.time_ns()
    made = stream(
        topic="orders", startingOffsets="earliest", maxRowsPerTrigger=3, consumerGroup="billing"
    )
    query = made.start(AVAILABLE_NOW)
    query.awaitTermination()
    ended_ns = time.time_ns()

    first, second = spans_of(exporter, 2)
    assert first.name == second.name == f"batch {query.id}"
    assert first.kind == SpanKind.CONSUMER
    assert first.attributes is not None
    assert second.attributes is not None
    told = {name: first.attributes[name] for name in first.attributes if "duration" not in name}
    assert told == {
        "spark.query.id": str(query.id),
        "spark.query.name": str(query.id),
        "spark.batch.id": 0,
        "messaging.batch.message_count": 3,
        "messaging.system": "rocketmq",
        "messaging.destination.name": "orders",
        "messaging.consumer.group.name": "billing",
    }
    assert second.attributes["messaging.batch.message_count"] == 2
    assert (
        first.attributes["spark.duration_ms.addBatch"]
        == query.recentProgress[0]["durationMs"]["addBatch"]
    )
    for span, progress in zip((first, second), query.recentProgress, strict=True):
        assert span.start_time is not None
        assert span.end_time is not None
        assert began_ns - 1_000_000 <= span.start_time <= span.end_time <= ended_ns + 1_000_000
        assert span.end_time - span.start_time == progress["batchDuration"] * 1_000_000
        assert span.status.status_code is StatusCode.UNSET


def test_what_ends_a_query_is_a_span_with_the_error(
    stream: MakeStream, store: rocketpy.Store, exporter: InMemorySpanExporter
) -> None:
    def fail(_: int) -> None:
        raise ValueError("no room")

    send(store, "a")
    query = stream(topic="orders", startingOffsets="earliest").start(AVAILABLE_NOW, before=fail)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()
    (span,) = spans_of(exporter, 1)
    assert span.name == f"batch {query.id}"
    assert span.status.status_code is StatusCode.ERROR
    assert "no room" in str(span.status.description)
    assert span.attributes is not None
    assert span.attributes["spark.query.id"] == str(query.id)


def test_without_opentelemetry_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["opentelemetry"] = None
import rocketpy
try:
    rocketpy.BatchSpans()
except rocketpy.errors.TelemetryMissingError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'rocketpy-spark[otel]'" in done.stdout, done.stderr
