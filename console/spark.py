"""Queries of Spark, as the listeners that their sessions serve tell them (`rocketpy.Metrics`).

Q1  Only the addresses that were given are asked, without proxies, and no redirect is followed.
Q2  An answer has bounds in time and size; one that breaks them is a trouble, the rest is shown.
Q3  Nothing grows: an hour of samples of each query that is told, and no more queries than a page
    can show.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from http.client import HTTPException
from typing import Literal, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, build_opener

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.console.answers import Trouble

log = logging.getLogger(__name__)

EVERY_S = 10.0
_SAMPLES = int(3600 / EVERY_S)
_TIMEOUT_S = 3.0  # for a listener to answer, and for its whole answer
_MOST_BYTES, _MOST_QUERIES = 4 << 20, 200
_STEP = 64 << 10
QueryState = Literal["running", "ended", "failed"]


class QuerySource(NamedTuple):
    """What a query reads. Group and member are empty where it has none."""

    place: str
    topic: str
    group: str
    member: str


class QuerySample(NamedTuple):
    """What one look saw of a query."""

    at_ms: int
    lag: int | None
    rows_per_s: float


class QueryLine(NamedTuple):
    """A streaming query; numbers are those of its last batch."""

    listener: str
    name: str
    state: QueryState
    batches: int
    rows: int
    in_per_s: float
    done_per_s: float
    batch_s: float
    last_batch_ms: int | None
    lag: Mapping[str, int]  # by topic
    sources: tuple[QuerySource, ...]

    @property
    def behind(self) -> int | None:
        """Messages that it has not read; None if it has no topic of RocketMQ's."""
        return sum(self.lag.values()) if self.lag else None


class WatchedQuery(NamedTuple):
    """A query, and what the last hour saw of it."""

    line: QueryLine
    samples: tuple[QuerySample, ...]


class SparkView(NamedTuple):
    """All queries that are told, those that run first."""

    queries: tuple[WatchedQuery, ...]
    looked_ms: int | None
    troubles: tuple[Trouble, ...]


class ListenerAddressError(RocketPyError):
    """Is raised for what is no address of a listener."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return f"{self.address!r} is no address of a listener; give http://HOST:PORT/metrics"


def checked_address(text: str) -> str:
    """Return an address that can be asked.

    Raises:
        ListenerAddressError: it is none of HTTP.
    """
    try:
        found = urlsplit(text)
        has_host = bool(found.hostname) and (found.port is None or found.port > 0)
    except ValueError:  # of its port
        has_host = False
    if not has_host or found.scheme not in ("http", "https") or found.username is not None:
        raise ListenerAddressError(text)
    return text if found.path else f"{text}/metrics"


class SparkWatch:
    """Looks at some listeners time and again; a thread for each. Pages ask from any thread."""

    def __init__(self, addresses: Sequence[str], *, every_s: float = EVERY_S) -> None:
        """Look at nothing yet.

        Raises:
            ListenerAddressError: one is no address.
        """
        self._listeners = [_Listener(checked_address(each)) for each in dict.fromkeys(addresses)]
        self._every_s, self._is_over = every_s, threading.Event()
        self._threads = [
            threading.Thread(
                target=self._look_on, args=(each,), name="console looks at Spark", daemon=True
            )
            for each in self._listeners
        ]

    def start(self) -> None:
        """Look from now on."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Look no longer; an answer that is awaited is not waited for."""
        self._is_over.set()

    def look(self) -> None:
        """Look once at all."""
        for each in self._listeners:
            each.look()

    def view(self) -> SparkView:
        """Return what was seen last."""
        queries = [query for each in self._listeners for query in each.queries]
        queries.sort(key=lambda each: (each.line.state != "running", each.line.name))
        times = [each.looked_ms for each in self._listeners if each.looked_ms is not None]
        troubles = [Trouble(each.address, each.problem) for each in self._listeners if each.problem]
        return SparkView(tuple(queries), max(times, default=None), tuple(troubles))

    def _look_on(self, listener: _Listener) -> None:
        while not self._is_over.is_set():
            listener.look()
            self._is_over.wait(self._every_s)


class _Listener:
    """One address, and what it told last. One thread looks."""

    def __init__(self, address: str) -> None:
        self.address, self.problem = address, ""
        self.looked_ms: int | None = None
        self.queries: tuple[WatchedQuery, ...] = ()

    def look(self) -> None:
        """Look once. What was told before is kept while there is no answer."""
        try:
            families = [*text_string_to_metric_families(_fetched(self.address))]
            lines = _lines(self.address, families)[:_MOST_QUERIES]
        except (OSError, HTTPException, ValueError, OverflowError, KeyError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            self.problem = f"is no listener that answers: {reason}"
            log.info("%s %s", self.address, self.problem)
            return
        now_ms = int(time.time() * 1000)
        before = {each.line.name: each.samples for each in self.queries}
        self.queries = tuple(
            WatchedQuery(
                line,
                (
                    *before.get(line.name, ())[1 - _SAMPLES :],
                    QuerySample(now_ms, line.behind, line.done_per_s),
                ),
            )
            for line in lines
        )
        self.looked_ms, self.problem = now_ms, ""


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Go nowhere else: the answer is an error then."""


def _opener() -> OpenerDirector:
    return build_opener(ProxyHandler({}), _NoRedirect())


def _fetched(address: str) -> str:
    """Return the text at an address.

    Raises:
        OSError, HTTPException: there is none.
        ValueError: it is too long, takes too long, or is no text.
    """
    until_s, found = time.monotonic() + _TIMEOUT_S, bytearray()
    try:
        answer = _opener().open(address, timeout=_TIMEOUT_S)
    except HTTPError as refusal:
        refusal.close()  # it holds the connection
        raise ValueError(f"it answers with {refusal.code}, {refusal.reason}") from refusal
    with answer:
        while more := answer.read1(_STEP):
            found += more
            if len(found) > _MOST_BYTES:
                raise ValueError(f"its answer has more than {_MOST_BYTES >> 20} MiB")
            if time.monotonic() > until_s:
                raise ValueError(f"its answer takes longer than {_TIMEOUT_S:g} s")
    return found.decode("utf-8")


def _lines(address: str, families: Iterable[Metric]) -> list[QueryLine]:
    """Return the queries that are told."""
    values: dict[str, dict[str, float]] = {}  # by query and metric
    lags: dict[str, dict[str, int]] = {}
    sources: dict[str, list[QuerySource]] = {}
    for family in families:
        for sample in family.samples:
            query = sample.labels.get("query")
            if query is None:
                continue
            if sample.name == "rocketpy_messages_behind":
                lags.setdefault(query, {})[sample.labels["topic"]] = int(sample.value)
            elif sample.name == "rocketpy_query_source":
                names = ("place", "topic", "consumer_group", "member")
                source = QuerySource(*(sample.labels.get(name, "") for name in names))
                sources.setdefault(query, []).append(source)
            else:
                values.setdefault(query, {})[sample.name] = sample.value
    return [
        _line(address, query, told, lags.get(query, {}), sources.get(query, ()))
        for query, told in values.items()
        if "rocketpy_query_active" in told
    ]


def _line(
    address: str,
    query: str,
    told: Mapping[str, float],
    lag: Mapping[str, int],
    sources: Sequence[QuerySource],
) -> QueryLine:
    has_failed = bool(told.get("rocketpy_query_failed"))
    ended: QueryState = "failed" if has_failed else "ended"
    last_s = told.get("rocketpy_last_batch_timestamp_seconds")
    return QueryLine(
        listener=address,
        name=query,
        state="running" if told["rocketpy_query_active"] else ended,
        batches=int(told.get("rocketpy_batches_total", 0)),
        rows=int(told.get("rocketpy_rows_total", 0)),
        in_per_s=told.get("rocketpy_input_rows_per_second", 0.0),
        done_per_s=told.get("rocketpy_processed_rows_per_second", 0.0),
        batch_s=told.get("rocketpy_batch_duration_seconds", 0.0),
        last_batch_ms=None if last_s is None else int(last_s * 1000),
        lag=dict(sorted(lag.items())),
        sources=tuple(sources),
    )
