"""Queries of Spark, as their listeners tell them: what is told, and what is not believed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.console.listener import NASTY, listener, queries

from rocketpy.console import spark as spark_module
from rocketpy.console.spark import ListenerAddressError, QuerySource, SparkWatch


@contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[tuple[str, list[str]]]:
    """Have an address with an answer, and what was asked for there."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics", asked
        finally:
            server.shutdown()


def test_a_query_is_told_with_its_group_its_lag_and_its_state() -> None:
    told = queries("/data/shop")
    with listener(told) as address:
        watch = SparkWatch([address])
        watch.look()
        told[0].lag["orders"] = 4
        watch.look()
    view = watch.view()
    assert (view.troubles, [each.line.name for each in view.queries]) == (
        (),
        ["billing", NASTY, "broken"],
    )
    line, samples = view.queries[0]
    assert (line.state, line.behind, line.rows, line.batches) == ("running", 4, 1200, 12)
    assert (line.in_per_s, line.done_per_s, line.batch_s) == (100.0, 90.5, 1.25)
    assert line.sources == (QuerySource("/data/shop", "orders", "billing", "billing-1"),)
    assert [each.lag for each in samples] == [34, 4]
    assert [each.line.state for each in view.queries[1:]] == ["ended", "failed"]
    assert view.queries[1].line.behind is None


def test_a_listener_that_is_gone_is_named_and_what_it_told_is_kept() -> None:
    with listener(queries("other")) as there:
        with listener(queries("shop")) as gone:
            watch = SparkWatch([gone, there])
            watch.look()
        watch.look()
    assert len(watch.view().queries) == 6
    ((where, what),) = watch.view().troubles
    assert (where, "refused" in what) == (gone, True)
    assert {len(each.samples) for each in watch.view().queries} == {1, 2}


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, b"<html>no metrics</html>", ""),
        (200, b"\xff\xfe", "utf-8"),
        (200, b'rocketpy_query_active{query="a"} +Inf\nrocketpy_rows_total{query="a"} +Inf\n', ""),
        (500, b"", "500"),
        (302, b"", "302"),
    ],
    ids=["a page", "bytes", "infinity", "an error", "a redirect"],
)
def test_what_is_no_listener_is_named(status: int, body: bytes, reason: str) -> None:
    with (
        listener(queries("shop")) as elsewhere,
        answering(status, body, Location=elsewhere) as (address, asked),
    ):
        watch = SparkWatch([address])
        watch.look()
        ((where, what),) = watch.view().troubles
    assert where == address
    assert reason in what
    assert watch.view().queries == ()
    assert asked == ["/metrics"]


def test_an_answer_that_is_too_long_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark_module, "_MOST_BYTES", 1 << 20)
    with answering(200, b"# HELP\n" * (1 << 18)) as (address, _):
        watch = SparkWatch([address])
        watch.look()
    ((_, what),) = watch.view().troubles
    assert "more than 1 MiB" in what


@pytest.mark.parametrize(
    "text", ["file:///etc/passwd", "127.0.0.1:9400", "http://", "http://a:b", "http://u:p@h/m", ""]
)
def test_only_addresses_of_http_are_taken(text: str) -> None:
    with pytest.raises(ListenerAddressError, match="http://HOST:PORT/metrics"):
        SparkWatch([text])
