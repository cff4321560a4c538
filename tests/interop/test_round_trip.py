"""One store, written in turn by rocketpy and by Java clients through Apache's broker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.interop import workload
from tests.interop.apache import ApacheBroker
from tests.interop.comparison import keys_found_by_apache, keys_found_by_us
from tests.interop.our_side import create_topics, in_order, offsets_by_key, read_all, send

import rocketpy
from rocketpy.broker_core.errors import StoreLockedError

MESSAGES = 150
JAVA_GROUP = "billing"
OUR_GROUP = "shipping"


@pytest.mark.parametrize("end", [pytest.param("stopped", marks=pytest.mark.further), "killed"])
def test_both_sides_append_in_turn_and_each_reads_all(tmp_path: Path, end: str) -> None:
    path = tmp_path / "store"
    topics = list(workload.TOPICS)
    expected = append_ours(path, topics, turn=0)
    for turn in (1, 2):
        topics.append(f"from-java-{turn}")
        apache = ApacheBroker(path, settings=workload.SETTINGS)
        apache.start()
        try:
            pulled = in_order(apache.tool.pull(topics[:-1]))
            assert pulled == expected, "Apache reads what both sides wrote"
            assert keys_found_by_apache(apache.tool, pulled) == offsets_by_key(pulled)
            assert apache.tool.committed(OUR_GROUP, "busy") == our_offsets(turn - 1)
            receipts = append_java(apache, topics, turn=turn)
            committed = {queue_id: turn * 10 + queue_id for queue_id in range(4)}
            apache.tool.commit(JAVA_GROUP, "orders", committed)
            pulled = in_order(apache.tool.pull(topics))
            assert {r["msgId"] for r in receipts} <= {m["msgId"] for m in pulled}
            if end == "stopped":
                apache.stop()
        finally:
            apache.kill()
        check_ours(path, topics, pulled)
        if end == "stopped":  # a killed broker loses what it had not written yet: every 5 s
            with rocketpy.open(path, read_only=True, config=workload.CONFIG) as store:
                assert store.committed(JAVA_GROUP, "orders") == committed
        expected = append_ours(path, topics, turn=turn)


def append_ours(path: Path, topics: Sequence[str], *, turn: int) -> list[dict[str, Any]]:
    """Send one by one and append in bulk; return all that the store then holds."""
    with rocketpy.open(path, config=workload.CONFIG) as store:
        if turn == 0:
            create_topics(store)
        for message in workload.messages(MESSAGES, name=f"ours-{turn}"):
            send(store, message)
        store.append(topics[-1], bulk(turn))
        store.commit(OUR_GROUP, "busy", our_offsets(turn))
    with rocketpy.open(path, read_only=True, config=workload.CONFIG) as store:
        return read_all(store, topics)


def our_offsets(turn: int) -> dict[int, int]:
    return {0: turn * 7 + 1, 1: turn * 9 + 2}


def bulk(turn: int) -> pa.Table:
    numbers = range(200)
    properties = [[("row", str(number))] for number in numbers]
    return pa.table(
        {
            "body": pa.array([f"bulk {number}".encode() for number in numbers], pa.binary()),
            "tags": pa.array([f"tag-{number % 3}" for number in numbers]),
            "keys": pa.array([f"bulk-{turn}-{number}" for number in numbers]),
            "properties": pa.array(properties, pa.map_(pa.string(), pa.string())),
        }
    )


def append_java(apache: ApacheBroker, topics: Sequence[str], *, turn: int) -> list[dict[str, Any]]:
    """Send to a topic of ours and a new one: singly, compressed by the client, as a batch."""
    sends = []
    for topic in ("orders", "busy", topics[-1]):
        plain = [java_message(topic, turn, number) for number in range(80)]
        long = {"body": b"the client compresses this " * 300, "keys": f"long-{topic}-{turn}"}
        batch = [java_message(f"batch-{topic}", turn, number) for number in range(30)]
        sends += [(topic, [*plain, long], False), (topic, batch, True)]
    return apache.tool.send_all(sends)


def java_message(name: str, turn: int, number: int) -> dict[str, Any]:
    return {
        "body": f"java {name} {turn} {number}".encode() * (number % 9 + 1),
        "tags": f"tag-{number % 4}",
        "keys": f"{name}-{turn}-{number} every-tenth-{name}-{number // 10}",
        "properties": {"número": str(number), "side": "java"},
        "flag": number,
    }


def check_ours(path: Path, topics: Sequence[str], pulled: list[dict[str, Any]]) -> None:
    """Recover the store if it needs that, then compare with what Java had pulled."""
    with rocketpy.open(path, config=workload.CONFIG) as store:
        assert list(store.verify()) == []
        assert set(topics) <= set(store.topics())
        assert read_all(store, topics) == pulled
        assert keys_found_by_us(store, pulled) == offsets_by_key(pulled)
        scanned = store.scan(columns=["msg_id"]).read_all()
        assert {m["msgId"] for m in pulled} <= set(scanned["msg_id"].to_pylist())


def test_a_writer_that_stays_open_goes_on_where_apache_left_the_store(tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "store", config=workload.CONFIG) as store:
        create_topics(store)
        for message in workload.messages(100, name="before"):
            send(store, message)
        with ApacheBroker(tmp_path / "store", settings=workload.SETTINGS) as apache:
            with pytest.raises(StoreLockedError):
                store.send("orders", b"while Apache holds the lock")
            append_java(apache, workload.TOPICS, turn=1)
            pulled = in_order(apache.tool.pull(workload.TOPICS))
        after = [send(store, message) for message in workload.messages(100, name="after")]
        found = read_all(store, workload.TOPICS)
        by_id = {message["msgId"]: message for message in found}
        assert [sent for sent in after if not sent.is_told_by(by_id[sent.msg_id])] == []
        assert [m for m in found if m["msgId"] not in {sent.msg_id for sent in after}] == pulled
        assert keys_found_by_us(store, found) == offsets_by_key(found)
        assert list(store.verify()) == []
