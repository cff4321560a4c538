"""Spans of OpenTelemetry for micro-batches: one for each that had rows, one for each failure.

    spark.streams.addListener(rocketpy.BatchSpans())

A span is made when Spark reports its batch, from the time at which that was begun. It has no links
to the senders of its rows: these are thousands, and rows have their contexts as properties.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from rocketpy.broker_core.telemetry_missing import TelemetryMissingError
from rocketpy.connector.lag import readings

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

_Attributes = dict[str, str | int]
_NS_PER_MS = 1_000_000
_MOST_ERROR = 4_000  # characters: Spark's errors have the traceback of Python in them


class BatchSpans(StreamingQueryListener):
    """Makes a span of each micro-batch: `spark.streams.addListener(rocketpy.BatchSpans())`.

    Spans go to `provider`, or to that of the process, in the program that has the session.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        """Take who makes spans.

        Raises:
            TelemetryMissingError: OpenTelemetry is not installed.
        """
        try:
            from opentelemetry import trace
        except ModuleNotFoundError as cause:
            raise TelemetryMissingError(cause.name or "opentelemetry") from cause
        self._trace = trace
        self._tracer = trace.get_tracer("rocketpy", tracer_provider=provider)
        self._names: dict[str, str] = {}  # of queries that run, by run

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Note what a query is called."""
        self._names[str(event.runId)] = event.name or str(event.id)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Make the span of a batch."""
        progress = event.progress
        if not progress.numInputRows:  # Spark tells of idle queries as well
            return
        start_ns = _nanoseconds(progress.timestamp)
        span = self._tracer.start_span(
            f"batch {progress.name or progress.id}",
            kind=self._trace.SpanKind.CONSUMER,
            attributes=_attributes(progress),
            start_time=start_ns,
        )
        span.end(start_ns + progress.batchDuration * _NS_PER_MS)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Make a span with the error that ended a query, if one did."""
        name = self._names.pop(str(event.runId), str(event.id))
        if event.exception is None:
            return
        attributes: _Attributes = {"spark.query.id": str(event.id), "spark.query.name": name}
        attributes["error.type"] = event.errorClassOnException or "StreamingQueryException"
        now_ns = time.time_ns()
        span = self._tracer.start_span(f"batch {name}", attributes=attributes, start_time=now_ns)
        what = event.exception[:_MOST_ERROR]
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, what))
        span.end(now_ns)


def _attributes(progress: StreamingQueryProgress) -> _Attributes:
    found: _Attributes = {
        "spark.query.id": str(progress.id),
        "spark.query.name": progress.name or str(progress.id),
        "spark.batch.id": progress.batchId,
        "messaging.batch.message_count": progress.numInputRows,
    }
    found |= {f"spark.duration_ms.{phase}": ms for phase, ms in progress.durationMs.items()}
    read = readings(progress.json)
    if read:
        found["messaging.system"] = "rocketmq"
        found["messaging.destination.name"] = " ".join(sorted({each.topic for each in read}))
        groups = sorted({each.group for each in read} - {""})
        if groups:
            found["messaging.consumer.group.name"] = " ".join(groups)
    return found


def _nanoseconds(timestamp: str) -> int:
    """Return what Spark writes like 2026-01-31T08:00:00.123Z, since 1970."""
    moment = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))  # Python 3.10 reads no Z
    return round(moment.timestamp() * 1000) * _NS_PER_MS
