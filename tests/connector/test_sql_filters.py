"""The option `sql`: in batches by queue, by key and by the log, and in streams."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from tests.broker_core.filters.marked_store import make_marked_store
from tests.connector.conftest import Load, MakeStream

import rocketpy
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.partitions import KeyPartition, QueuePartition
from rocketpy.connector.planning import QueueRange
from rocketpy.connector.read_options import ReadOptions

SQL = "region = 'eu' AND amount > 3"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rocketpy.Store]:
    with rocketpy.open(tmp_path / "store") as opened:
        opened.create_topic("orders", queues=2)
        opened.create_topic("other", queues=1)
        send(opened, range(12))
        opened.send("other", "other", properties={"region": "eu", "amount": "99"})
    with rocketpy.open(tmp_path / "store") as opened:  # what was sent is indexed
        yield opened


def send(store: rocketpy.Store, numbers: range) -> None:
    for number in numbers:
        store.send(
            "orders",
            f"{number}",
            tags=("paid", "shipped")[number % 4 // 2],
            keys=f"customer-{number % 3}",
            properties={"region": ("eu", "us")[number % 2], "amount": f"{number}"},
            queue_id=number % 2,
        )


def bodies(frame: DataFrame) -> list[str]:
    rows = frame.select("body").collect()
    return sorted((bytes(row["body"]).decode() for row in rows), key=lambda text: text.zfill(9))


def test_a_batch_has_the_messages_that_pass(load: Load) -> None:
    assert bodies(load(topic="orders", sql=SQL)) == ["4", "6", "8", "10"]
    assert bodies(load(topic="orders", sql=SQL, tags="paid", columns="body")) == ["4", "8"]
    assert bodies(load(topic="orders", sql=SQL, keys="customer-0")) == ["6"]
    assert bodies(load(scan="commitlog", sql=SQL)) == ["4", "6", "8", "10", "other"]
    assert bodies(load(scan="commitlog", topic="orders", sql=SQL, tags="paid")) == ["4", "8"]


def test_a_mistake_is_shown_when_the_frame_is_made(load: Load) -> None:
    with pytest.raises(PySparkException, match=r"region = eu'\n +\^") as refusal:
        load(topic="orders", sql="region = eu'")
    assert "Option 'sql' of format 'rocketpy': SQL filter, character 12" in str(refusal.value)


def test_a_stream_moves_past_what_does_not_pass(stream: MakeStream, store: rocketpy.Store) -> None:
    orders = stream(topic="orders", sql=SQL, startingOffsets="earliest", consumerGroup="billing")
    orders.run()
    assert orders.rows() == ["4", "6", "8", "10"]
    assert store.committed("billing", "orders") == {0: 6, 1: 6}
    send(store, range(12, 15))
    orders.run()
    assert orders.rows() == ["4", "6", "8", "10", "12", "14"]
    assert store.committed("billing", "orders") == {0: 8, 1: 7}


def test_the_filter_travels_with_the_options() -> None:
    options = ReadOptions.parse({"path": "store", "topic": "t", "sql": SQL})
    assert pickle.loads(pickle.dumps(options)).sql == SqlFilter(SQL)


def test_a_key_that_nobody_has_finds_nothing_to_filter(store: rocketpy.Store) -> None:
    part = KeyPartition((QueueRange(MessageQueue("orders", "rocketpy", 0), 0, 6),))
    options = {"path": str(store.path), "topic": "orders", "keys": "nobody", "sql": SQL}
    assert list(part.batches(ReadOptions.parse(options), ["body"])) == []


@pytest.mark.parametrize(
    ("group", "expected"), [("g", ["0", "2", "4"]), ("h", ["0", "1", "2", "4"])]
)
def test_the_bit_maps_of_the_group_are_used(
    tmp_path: Path, group: str, expected: list[str]
) -> None:
    marked = tmp_path / "marked"
    make_marked_store(marked)
    part = QueuePartition((QueueRange(MessageQueue("t", "rocketpy", 0), 0, 5),))
    options = {"path": str(marked), "topic": "t", "sql": "region = 'eu'", "consumerGroup": group}
    batches = part.batches(ReadOptions.parse(options), ["body"])
    assert [body.as_py().decode() for batch in batches for body in batch.column("body")] == expected
