"""Lag and rates of streaming queries: a log line for each batch, Prometheus' text on request.

    metrics = rocketpy.Metrics()
    spark.streams.addListener(metrics)
    print(metrics.text())               # or: with metrics.serve(9400) as address: ...

Queries without a source or sink of this format are counted as well, without a lag.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from rocketpy.connector.lag import messages_behind

log = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One metric, as Prometheus describes it."""

    name: str
    kind: str
    help: str


ACTIVE = Metric("rocketpy_query_active", "gauge", "Whether the query runs.")
BATCHES = Metric("rocketpy_batches_total", "counter", "Micro-batches that were done.")
ROWS = Metric("rocketpy_rows_total", "counter", "Rows that were read.")
LAG = Metric("rocketpy_messages_behind", "gauge", "Messages of a topic not yet read.")
IN_RATE = Metric("rocketpy_input_rows_per_second", "gauge", "Rows that came in, last batch.")
DONE_RATE = Metric("rocketpy_processed_rows_per_second", "gauge", "Rows worked on, last batch.")
DURATION = Metric("rocketpy_batch_duration_seconds", "gauge", "How long the last batch took.")
METRICS = (ACTIVE, BATCHES, ROWS, LAG, IN_RATE, DONE_RATE, DURATION)


@dataclass(slots=True)
class _Query:
    name: str
    id: str  # stays with the checkpoint
    run_id: str
    is_active: bool = True
    batches: int = 0
    rows: int = 0
    lag: dict[str, int] = field(default_factory=dict)
    input_rate: float = 0.0
    processed_rate: float = 0.0
    duration_s: float = 0.0


class Metrics(StreamingQueryListener):
    """Keeps the newest figures of each query of a session; any thread may ask for them.

    A query that is started again replaces its last run: there is one line for a name, and
    counters begin anew, which Prometheus is prepared for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, _Query] = {}  # by name, or by id without one

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Note a query."""
        self._query(event)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Note a batch, and log a line about it."""
        progress = event.progress
        query = self._query(progress)
        lag = messages_behind(progress)
        with self._lock:
            query.batches += 1
            query.rows += progress.numInputRows
            query.lag |= lag
            query.input_rate = _number(progress.inputRowsPerSecond)
            query.processed_rate = _number(progress.processedRowsPerSecond)
            query.duration_s = progress.batchDuration / 1000
        log.info(
            "query %s, batch %d: %d rows in %.1f s (%.0f/s), %d behind",
            query.name,
            progress.batchId,
            progress.numInputRows,
            query.duration_s,
            query.processed_rate,
            sum(lag.values()),
        )

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Note the end of a query; its last figures stay."""
        with self._lock:
            for query in self._queries.values():
                if query.run_id == str(event.runId):
                    query.is_active = False

    def text(self) -> str:
        """Return all figures in Prometheus' text format."""
        with self._lock:
            samples = [sample for query in self._queries.values() for sample in _samples(query)]
        lines: list[str] = []
        for metric in METRICS:
            lines.append(f"# HELP {metric.name} {metric.help}")
            lines.append(f"# TYPE {metric.name} {metric.kind}")
            lines += [line for of, line in samples if of is metric]
        return "\n".join(lines) + "\n"

    @contextmanager
    def serve(self, port: int = 0, host: str = "127.0.0.1") -> Iterator[str]:
        """Answer `GET /metrics` while the block runs; yield the address. Port 0 is any free one."""
        handler = type("Handler", (_Handler,), {"metrics": self})
        with ThreadingHTTPServer((host, port), handler) as server:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield f"http://{host}:{server.server_port}/metrics"
            finally:
                server.shutdown()

    def _query(self, event: QueryStartedEvent | StreamingQueryProgress) -> _Query:
        """Return the figures of a run; a new run replaces those of the run before."""
        id_, run_id = str(event.id), str(event.runId)
        name = event.name or id_
        with self._lock:
            query = self._queries.get(name)
            if query is None or query.run_id != run_id:
                others = {key: each for key, each in self._queries.items() if each.id != id_}
                query = _Query(name, id_, run_id)
                self._queries = others | {name: query}
            return query


def _samples(query: _Query) -> Iterator[tuple[Metric, str]]:
    label = f'query="{_escaped(query.name)}"'
    values = {
        ACTIVE: int(query.is_active),
        BATCHES: query.batches,
        ROWS: query.rows,
        IN_RATE: query.input_rate,
        DONE_RATE: query.processed_rate,
        DURATION: query.duration_s,
    }
    for metric, value in values.items():
        yield metric, f"{metric.name}{{{label}}} {value}"
    for topic, count in sorted(query.lag.items()):
        yield LAG, f'{LAG.name}{{{label},topic="{_escaped(topic)}"}} {count}'


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(rate: float) -> float:
    """Spark reports NaN or infinity of a batch that took no time."""
    return rate if rate == rate and abs(rate) != float("inf") else 0.0


class _Handler(BaseHTTPRequestHandler):
    metrics: Metrics

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "only /metrics is here")
            return
        body = self.metrics.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Be silent: scrapes come every few seconds."""
