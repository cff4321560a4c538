"""Lag and rates of streaming queries: a log line for each batch, Prometheus' text on request.

    metrics = rocketpy.Metrics()
    spark.streams.addListener(metrics)
    print(metrics.text())               # or: with metrics.serve(9400) as address: ...

Queries without a source or sink of this format are counted as well, without a lag.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from rocketpy.broker_core.metrics.families import COUNTER, GAUGE, Family, Row
from rocketpy.broker_core.metrics.listening import TextServer
from rocketpy.connector.lag import QueryReading, messages_behind, readings

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Query:
    name: str
    id: str  # stays with the checkpoint
    run_id: str
    is_active: bool = True
    has_failed: bool = False
    batches: int = 0
    rows: int = 0
    lag: dict[str, int] = field(default_factory=dict)
    input_rate: float = 0.0
    processed_rate: float = 0.0
    duration_s: float = 0.0
    last_batch_s: float | None = None  # when it was told, since 1970
    reads: tuple[QueryReading, ...] = ()


Number = float | None


def _of_query(
    name: str, kind: str, help_text: str, value: Callable[[_Query], Number]
) -> Family[_Query]:
    def rows(query: _Query) -> Iterator[Row]:
        number = value(query)
        if number is not None:
            yield (query.name,), number

    return Family(name, kind, help_text, ("query",), rows)


def _lag(query: _Query) -> Iterable[Row]:
    return [((query.name, topic), count) for topic, count in sorted(query.lag.items())]


def _reads(query: _Query) -> Iterable[Row]:
    return [
        ((query.name, each.place, each.topic, each.group, each.member), 1) for each in query.reads
    ]


METRICS: Sequence[Family[_Query]] = (
    _of_query(
        *("rocketpy_query_active", GAUGE, "Whether the query runs."),
        lambda query: int(query.is_active),
    ),
    _of_query(
        *("rocketpy_query_failed", GAUGE, "Whether the query ended by an error."),
        lambda query: int(query.has_failed),
    ),
    Family(
        *(
            "rocketpy_query_source",
            GAUGE,
            "What the query reads, for which group, as which member.",
        ),
        *(("query", "place", "topic", "consumer_group", "member"), _reads),
    ),
    _of_query(
        *("rocketpy_batches_total", COUNTER, "Micro-batches that were done."),
        lambda query: query.batches,
    ),
    _of_query(*("rocketpy_rows_total", COUNTER, "Rows that were read."), lambda query: query.rows),
    Family(
        *("rocketpy_messages_behind", GAUGE, "Messages of a topic not yet read."),
        *(("query", "topic"), _lag),
    ),
    _of_query(
        *("rocketpy_input_rows_per_second", GAUGE, "Rows that came in, last batch."),
        lambda query: query.input_rate,
    ),
    _of_query(
        *("rocketpy_processed_rows_per_second", GAUGE, "Rows worked on, last batch."),
        lambda query: query.processed_rate,
    ),
    _of_query(
        *("rocketpy_batch_duration_seconds", GAUGE, "How long the last batch took."),
        lambda query: query.duration_s,
    ),
    _of_query(
        *("rocketpy_last_batch_timestamp_seconds", GAUGE, "When the last batch was done."),
        lambda query: query.last_batch_s,
    ),
)


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
        lag, reads = messages_behind(progress), tuple(readings(progress))
        with self._lock:
            query.reads, query.last_batch_s = reads, time.time()
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
                    query.is_active, query.has_failed = False, event.exception is not None

    def text(self) -> str:
        """Return all figures in Prometheus' text format.

        Raises:
            ModuleNotFoundError: prometheus_client is missing.
        """
        from rocketpy.broker_core.metrics.writing import (
            block,
        )  # not before: who only logs needs none

        names: dict[str, str] = {}
        with self._lock:
            told = [*self._queries.values()]
            return "".join(block(family, told, names) for family in METRICS)

    @contextmanager
    def serve(self, port: int = 0, host: str = "127.0.0.1") -> Iterator[str]:
        """Answer `GET /metrics` while the block runs; yield the address. Port 0 is any free one.

        Raises:
            ModuleNotFoundError: prometheus_client is missing.
            OSError: the port is taken, or the address is not of this machine.
        """
        self.text()
        server = TextServer(lambda _: self.text().encode(), port=port, host=host)
        server.start()
        try:
            yield server.address
        finally:
            server.stop()

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


def _number(rate: float) -> float:
    """Spark reports NaN or infinity of a batch that took no time."""
    return rate if rate == rate and abs(rate) != float("inf") else 0.0
