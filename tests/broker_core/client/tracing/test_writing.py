"""Traces on their way: nobody waits for them, they are bounded, and what is dropped is counted."""

from __future__ import annotations

import asyncio
import logging
import os
import time

import pytest
from tests.broker_core.client.tracing.conftest import Traced

import rocketpy
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.client.tracing import writing
from rocketpy.broker_core.client.tracing.writing import TraceCounts, TraceWriter
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.metadata.names import TRACE_TOPIC
from rocketpy.broker_core.protocol.bodies.traces import decode_events

EVENT = "SubAfter\x01R\x01{}\x017\x01true\x01k\x02"


def test_closing_writes_what_waits(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr, trace=True) as mq:
        receipts = mq.send_many("orders", [b"x"] * 3_000)
    with fresh.store() as store:
        rows = store.read(TRACE_TOPIC).read_all().to_pylist()
    keys = [each.uniq_key for row in rows for each in decode_events(row["body"])]
    assert keys == [each.uniq_key for each in receipts]
    assert max(len(row["body"]) for row in rows) <= 128_000
    assert 5 < len(rows) < 300


def test_a_queue_that_is_full_drops_and_counts(
    fresh: LocalBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writing, "MOST_WAITING", 10 * len(EVENT))

    async def scenario() -> tuple[TraceCounts, TraceCounts]:
        async with Session(fresh.namesrv_addr) as session:
            writer = TraceWriter(session, TRACE_TOPIC, "g")
            for number in range(25):
                writer.put(EVENT.format(number), (str(number),))
            before = writer.counts
            await writer.close(10)
            return before, writer.counts

    with caplog.at_level(logging.WARNING):
        before, after = asyncio.run(scenario())
    assert before == TraceCounts(0, 15, 10)
    assert after == TraceCounts(10, 15, 0)
    assert "traces were dropped: more came than the cluster took" in caplog.text


def test_closing_ends_in_time_though_the_broker_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    with local_broker(settings={"traceTopicEnable": "true"}, topics=["orders"]) as broker:
        mq = rocketpy.connect(broker.namesrv_addr, trace=True, timeout_s=0.5)
        for _ in range(50):
            mq.send("orders", b"x")
        broker.kill_broker()
        began_s = time.monotonic()
        with caplog.at_level(logging.WARNING):
            mq.close(timeout_s=1)
        assert time.monotonic() - began_s < 8
    assert "50 traces were dropped: the client was closed" in caplog.text


def test_traces_wait_for_a_broker_that_comes_back(traced: Traced, fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr, trace=True) as mq:
        receipt = mq.send("orders", b"x")
        fresh.kill_broker()
        time.sleep(0.5)  # they are tried meanwhile
        fresh.start_broker()
        assert traced(receipt.uniq_key, sends=1).sends
        counts = mq.traced
    assert counts is not None
    assert counts.dropped == 0


def test_a_topic_that_is_missing_is_told_once_and_holds_up_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), local_broker(topics=["orders"]) as broker:
        mq = rocketpy.connect(broker.namesrv_addr, trace=True)
        for _ in range(3):
            mq.send("orders", b"x")
            time.sleep(0.3)
        assert mq.traced == TraceCounts(0, 0, 3)
        began_s = time.monotonic()
        mq.close()
        assert time.monotonic() - began_s < 2
    told = [each.getMessage() for each in caplog.records if "traces" in each.getMessage()]
    assert len(told) == 2
    assert "there is no topic RMQ_SYS_TRACE_TOPIC: brokers make RocketMQ's own" in told[0]
    assert told[1] == "3 traces were dropped: the client was closed"


def test_closing_at_once_does_not_wait_for_a_topic_that_is_missing() -> None:
    with local_broker(topics=["orders"]) as broker:
        mq = rocketpy.connect(broker.namesrv_addr, trace=True)
        mq.send("orders", b"x")
        began_s = time.monotonic()
        mq.close()
        assert time.monotonic() - began_s < 3


def test_a_forked_child_traces_for_itself(mq: rocketpy.BlockingClient, traced: Traced) -> None:
    ours = mq.send("orders", b"parent")
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, mq.send("orders", b"child").uniq_key.encode())
            mq.close()
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        theirs = pipe.read()
    os.waitpid(pid, 0)
    assert len(traced(theirs, sends=1).sends) == 1
    assert len(traced(ours.uniq_key, sends=1).sends) == 1


def test_a_client_of_asyncio_traces_as_well(fresh: LocalBroker, traced: Traced) -> None:
    async def scenario() -> str:
        async with rocketpy.aio.connect(fresh.namesrv_addr, trace=True) as mq:
            return (await mq.send("orders", b"x")).uniq_key

    assert traced(asyncio.run(scenario()), sends=1)
