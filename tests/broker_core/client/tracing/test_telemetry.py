"""Spans of OpenTelemetry, from who sends over the broker to who consumes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tests.broker_core.client.tracing.conftest import PATIENCE_S

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.local import LocalBroker


class Spans(NamedTuple):
    """Who makes spans, and who keeps them."""

    provider: TracerProvider
    exporter: InMemorySpanExporter

    def named(self, name: str) -> list[ReadableSpan]:
        return [each for each in self.exporter.get_finished_spans() if each.name == name]


@pytest.fixture
def spans() -> Spans:
    found = Spans(TracerProvider(), InMemorySpanExporter())
    found.provider.add_span_processor(SimpleSpanProcessor(found.exporter))
    return found


@pytest.fixture
def mq(fresh: LocalBroker, spans: Spans) -> Iterator[rocketpy.BlockingClient]:
    with rocketpy.connect(fresh.namesrv_addr, group="billing", telemetry=spans.provider) as client:
        yield client


def context_of(span: ReadableSpan) -> trace.SpanContext:
    found: trace.SpanContext | None = span.context
    assert found is not None
    return found


def got_by(client: rocketpy.BlockingClient, count: int = 1) -> list[ReceivedMessage]:
    found: list[ReceivedMessage] = []
    with client.consumer("readers", "orders", start="earliest") as consumer:
        while len(found) < count:
            found += consumer.poll(1)
    return found


def test_one_trace_goes_from_the_sender_to_what_the_handler_does(
    mq: rocketpy.BlockingClient, spans: Spans
) -> None:
    tracer, done = spans.provider.get_tracer("test"), threading.Event()

    def handler(_: ReceivedMessage) -> None:
        with tracer.start_as_current_span("booking"):
            done.set()

    with tracer.start_as_current_span("checkout"):
        receipt = mq.send("orders", b"hello", tags="paid", keys=["k1", "k2"])
    with mq.listen("readers", "orders", handler, start="earliest"):
        assert done.wait(PATIENCE_S)
    (checkout,) = spans.named("checkout")
    (send,) = spans.named("send orders")
    (process,) = spans.named("process orders")
    (booking,) = spans.named("booking")
    assert (send.parent, booking.parent) == (context_of(checkout), context_of(process))
    assert process.parent is not None
    assert process.parent.span_id == context_of(send).span_id
    assert len({context_of(each).trace_id for each in (checkout, send, process, booking)}) == 1
    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert send.attributes is not None
    assert dict(send.attributes) == {
        "messaging.system": "rocketmq",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.rocketmq.client_group": "billing",
        "messaging.rocketmq.namespace": "",
        "messaging.rocketmq.message.tag": "paid",
        "messaging.rocketmq.message.keys": ("k1", "k2"),
        "messaging.message.id": receipt.uniq_key,
        "messaging.destination.partition.id": str(receipt.queue_id),
    }
    assert process.attributes is not None
    assert process.attributes["messaging.consumer.group.name"] == "readers"
    assert process.attributes["messaging.message.id"] == receipt.uniq_key


@pytest.mark.parametrize("bodies", [[b"a", b"b"], [{"body": b"a"}, {"body": b"b", "tags": "t"}]])
def test_a_batch_is_one_span_whose_context_all_messages_carry(
    bodies: list[bytes], mq: rocketpy.BlockingClient, spans: Spans
) -> None:
    mq.send_many("orders", bodies)
    (send,) = spans.named("send orders")
    assert send.attributes is not None
    assert send.attributes["messaging.batch.message_count"] == 2
    carried = {each.properties["traceparent"].rpartition("-")[0] for each in got_by(mq, 2)}
    assert carried == {f"00-{context_of(send).trace_id:032x}-{context_of(send).span_id:016x}"}
    (receive, *_) = spans.named("receive orders")
    assert len(receive.links) == 1


def test_a_poll_is_linked_to_the_senders(mq: rocketpy.BlockingClient, spans: Spans) -> None:
    mq.send("orders", b"a", queue_id=0)
    got_by(mq)
    (receive,) = spans.named("receive orders")
    (send,) = spans.named("send orders")
    assert receive.parent is None
    assert [each.context.span_id for each in receive.links] == [context_of(send).span_id]


def test_a_handler_of_many_is_linked_to_all_their_senders(
    mq: rocketpy.BlockingClient, spans: Spans
) -> None:
    for body in (b"a", b"b"):
        mq.send("orders", body, queue_id=0)
    done = threading.Event()
    with mq.listen("readers", "orders", lambda _: done.set(), start="earliest", batch=2):
        assert done.wait(PATIENCE_S)
    linked = {link.context.span_id for span in spans.named("process orders") for link in span.links}
    senders = {context_of(each).span_id for each in spans.named("send orders")}
    assert linked <= senders
    assert len(senders) == 2


def test_what_fails_is_an_error_of_its_span(
    fresh: LocalBroker, mq: rocketpy.BlockingClient, spans: Spans
) -> None:
    failed = threading.Event()

    def handler(message: ReceivedMessage) -> rocketpy.Later:
        if message.reconsume_times:
            failed.set()
            raise ValueError("never")
        return rocketpy.Later()

    mq.send("orders", b"x")
    with mq.listen("readers", "orders", handler, start="earliest", max_tries=1):
        assert failed.wait(PATIENCE_S)
    later, raised = spans.named("process orders")
    assert [later.status.status_code, raised.status.status_code] == [StatusCode.ERROR] * 2
    assert (later.attributes or {})["error.type"] == "Later"
    assert (raised.attributes or {})["error.type"] == "ValueError"
    assert [each.name for each in raised.events] == ["exception"]
    with (
        fresh.faults.refuse("SEND_MESSAGE_V2", answer="MESSAGE_ILLEGAL"),
        pytest.raises(errors.ServerRefusedError),
    ):
        mq.send("orders", b"y")
    assert spans.named("send orders")[-1].status.status_code == StatusCode.ERROR


def test_a_context_that_a_message_has_already_stays(
    mq: rocketpy.BlockingClient, spans: Spans
) -> None:
    given = f"00-{7:032x}-{8:016x}-01"
    mq.send("orders", b"x", properties={"traceparent": given})
    (message,) = got_by(mq)
    assert message.properties["traceparent"] == given
    assert spans.named("send orders")


def test_sends_of_all_kinds_carry_a_context(mq: rocketpy.BlockingClient, spans: Spans) -> None:
    with mq.transaction("orders", b"a"):
        pass
    mq.send_async("orders", b"b").result(PATIENCE_S)
    mq.send_oneway("orders", b"c")
    found = got_by(mq, 3)
    assert {each.body for each in found} == {b"a", b"b", b"c"}
    ids = {f"{context_of(each).span_id:016x}" for each in spans.named("send orders")}
    assert {each.properties["traceparent"].split("-")[2] for each in found} == ids


def test_without_the_option_messages_carry_nothing_and_nothing_is_imported(
    fresh: LocalBroker,
) -> None:
    program = (
        "import sys, rocketpy\n"
        f"with rocketpy.connect({fresh.namesrv_addr!r}) as mq:\n"
        "    mq.send('orders', b'x')\n"
        "print([each for each in sys.modules if 'opentelemetry' in each or 'tracing' in each])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout.strip() == b"[]"
    with rocketpy.connect(fresh.namesrv_addr) as mq:
        (message,) = got_by(mq)
    assert "traceparent" not in message.properties


def test_without_opentelemetry_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rocketpy.broker_core.client.tracing.telemetry", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(errors.TelemetryMissingError, match=r"rocketpy-spark\[otel\]"):
        rocketpy.connect("127.0.0.1:1", telemetry=True)
