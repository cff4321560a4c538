"""Traces of ours in Apache's eyes, and Apache's in ours; on our broker and on Apache's."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.apache import ApacheBroker
from tests.interop.java_tracer import JavaTracer
from tests.interop.mqadmin import mqadmin

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.local import local_broker

PATIENCE_S = 60.0


@pytest.fixture(scope="module", params=["ours", "apaches"])
def namesrv_addr(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The name server of a broker that has a trace topic."""
    if request.param == "ours":
        with local_broker(settings={"traceTopicEnable": "true"}) as running:
            yield running.namesrv_addr
    else:
        store = tmp_path_factory.mktemp("traces") / "store"
        with ApacheBroker(store, settings={"traceTopicEnable": True}) as broker:
            yield broker.namesrv_addr


def test_mqadmin_shows_what_python_sent_and_java_consumed(
    namesrv_addr: str, tmp_path: Path
) -> None:
    with Cluster(namesrv_addr, timeout_s=30) as cluster:
        ClusterTopics(cluster).create("orders", queues=1)
    with (
        rocketpy.connect(namesrv_addr, group="billing", trace=True, timeout_s=30) as mq,
        mqadmin(namesrv_addr) as admin,
        JavaTracer(namesrv_addr, home=tmp_path) as java,
    ):
        receipt = mq.send("orders", b"hello", tags="paid", keys="k1")
        assert java.run("consume readers orders concurrently 0 1") == {"isDone": True}
        printed = admin.run(["queryMsgTraceById", "-i", receipt.uniq_key])
        assert re.search(r"Pub +billing +127.0.0.1 .* success", printed)
        assert re.search(r"Sub +readers +127.0.0.1 .* success", printed)
        with mq.listen("ours", "orders", lambda _: None, start="earliest"):
            deadline_s = time.monotonic() + PATIENCE_S
            while "ours" not in printed:
                assert time.monotonic() < deadline_s, printed
                printed = admin.run(["queryMsgTraceById", "-i", receipt.uniq_key])
                time.sleep(0.2)
        found = mq.admin.messages.trace(receipt.uniq_key)
    assert [event.group for _, event in found.sends] == ["billing"]
    groups = {(each.group, each.is_success) for each in found.deliveries}
    assert groups == {("readers", True), ("ours", True)}


def test_python_reads_what_java_sent(namesrv_addr: str, tmp_path: Path) -> None:
    with Cluster(namesrv_addr, timeout_s=30) as cluster:
        ClusterTopics(cluster).create("bills", queues=1)
    with JavaTracer(namesrv_addr, home=tmp_path) as java:
        sent = java.run("send billing bills paid k1,k2 0 hello")
    with rocketpy.connect(namesrv_addr) as mq:
        ((_, event),) = mq.admin.messages.trace(sent["uniqueKey"]).sends
    assert (event.group, event.topic, event.keys) == ("billing", "bills", "k1 k2")
    assert event.offset_msg_id == sent["offsetId"]
