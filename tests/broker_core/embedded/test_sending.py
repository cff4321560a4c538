"""Store.send and Store.append: where messages go and what is stored of them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.embedded import AppendResult
from rocketpy.broker_core.errors import (
    ColumnError,
    MessageRefusedError,
    QueueNotFoundError,
    TopicNotFoundError,
)
from rocketpy.broker_core.intake.destination import queue_of

KEYS = ["o-1", "o-2", "o-3", "ключ", ""]


def column(table: pa.Table | pa.RecordBatchReader, name: str) -> list[object]:
    read = table.read_all() if isinstance(table, pa.RecordBatchReader) else table
    values: list[object] = read[name].to_pylist()
    return values


def test_a_receipt_tells_where_the_message_is(store: rocketpy.Store, clock: ManualClock) -> None:
    first, second = store.send("t", b"one"), store.send("t", b"two")
    assert (first.queue_id, first.queue_offset, first.physical_offset) == (0, 0, 0)
    assert (second.queue_offset, second.stored_ms) == (1, clock.now_ms())
    assert column(store.get(second.msg_id), "body") == [b"two"]


def test_a_text_is_stored_as_utf8(store: rocketpy.Store) -> None:
    store.send("t", "ключ")
    assert column(store.read("t"), "body") == ["ключ".encode()]


def test_an_empty_body_is_stored(store: rocketpy.Store) -> None:
    store.send("t", b"")
    assert column(store.read("t"), "body") == [b""]


def test_tags_keys_and_properties_are_stored(store: rocketpy.Store) -> None:
    store.send("t", b"x", tags="paid", keys=["a", "b"], properties={"region": "eu"}, flag=-3)
    (row,) = store.read("t", columns="*").read_all().to_pylist()
    assert (row["tags"], row["keys"], row["flag"]) == ("paid", "a b", -3)
    properties = dict(row["properties"])
    assert properties.pop("UNIQ_KEY") == row["uniq_key"]
    assert properties == {"region": "eu", "TAGS": "paid", "KEYS": "a b"}


@pytest.mark.parametrize("keys", ["a b", ["a", "b"], ("a", "b")])
def test_keys_are_a_string_or_a_list(
    keys: str | list[str] | tuple[str, ...], store: rocketpy.Store
) -> None:
    store.send("t", b"x", keys=keys)
    assert column(store.query("t", key="b"), "keys") == ["a b"]


@pytest.mark.parametrize("codec", ["zlib", "lz4", "zstd"])
def test_a_body_is_compressed_on_request(
    codec: Literal["zlib", "lz4", "zstd"], store: rocketpy.Store
) -> None:
    body = b"again and " * 50
    store.send("t", body, compress=codec)
    assert column(store.read("t"), "body") == [body]
    (stored,) = column(store.read("t", decompress=False), "body")
    assert isinstance(stored, bytes)
    assert len(stored) < len(body) / 2


def test_an_unknown_compression_is_refused_with_the_known_ones(store: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match="compress='gzip': give one of zlib, lz4, zstd"):
        store.send("t", b"x", compress="gzip")  # type: ignore[arg-type]


def test_messages_of_one_sharding_key_go_to_one_queue(store: rocketpy.Store) -> None:
    for key in KEYS[:4]:
        queues = {store.send("wide", b"x", sharding_key=key).queue_id for _ in range(5)}
        assert queues == {queue_of(key, 4)}


def test_the_queue_of_a_sharding_key_never_changes() -> None:
    # Written down once: a process of another version must choose the same.
    assert [queue_of(key, 4) for key in KEYS] == [2, 2, 0, 2, 0]


def test_send_and_append_put_a_sharding_key_into_the_same_queue(store: rocketpy.Store) -> None:
    table = pa.table({"body": ["x"] * 4, "sharding_key": KEYS[:4]})
    store.append("wide", table)
    rows = store.read("wide", columns=["queue_id", "properties"]).read_all().to_pylist()
    found = {dict(row["properties"])["__SHARDINGKEY"]: row["queue_id"] for row in rows}
    assert found == {key: store.send("wide", b"", sharding_key=key).queue_id for key in KEYS[:4]}


def test_messages_without_a_key_go_round_the_queues(store: rocketpy.Store) -> None:
    queues = [store.send("wide", b"x").queue_id for _ in range(8)]
    assert sorted(queues[:4]) == [0, 1, 2, 3]
    assert queues[4:] == queues[:4]


def test_rows_without_a_key_go_on_round_the_queues(store: rocketpy.Store) -> None:
    sent = store.send("wide", b"x").queue_id
    store.append("wide", pa.table({"body": ["a", "b", "c"]}))
    assert store.queues("wide") == dict.fromkeys(range(4), (0, 1))
    assert store.send("wide", b"x").queue_id == sent


def test_a_queue_can_be_chosen(store: rocketpy.Store) -> None:
    assert store.send("wide", b"x", queue_id=3).queue_id == 3


@pytest.mark.parametrize("queue_id", [-1, 4])
def test_a_queue_that_is_not_there_is_refused(queue_id: int, store: rocketpy.Store) -> None:
    with pytest.raises(QueueNotFoundError, match=f"'wide' has queues 0 to 3, not {queue_id}"):
        store.send("wide", b"x", queue_id=queue_id)


@pytest.mark.parametrize("queue_id", [-1, 4])
def test_a_row_for_a_queue_that_is_not_there_is_refused(
    queue_id: int, store: rocketpy.Store
) -> None:
    table = pa.table({"body": ["x", "y"], "queue_id": [0, queue_id]})
    with pytest.raises(ColumnError, match=f"{queue_id}, but 'wide' has queues 0 to 3"):
        store.append("wide", table)
    assert store.queues("wide") == dict.fromkeys(range(4), (0, 0))


def test_sending_to_a_topic_that_is_not_there_names_the_nearest(store: rocketpy.Store) -> None:
    with pytest.raises(TopicNotFoundError, match="did you mean 'wide'"):
        store.send("wid", b"x")


def test_appending_tells_count_and_offsets_by_queue(store: rocketpy.Store) -> None:
    store.send("wide", b"x", queue_id=1)
    table = pa.table({"body": ["a", "b", "c"], "queue_id": [1, 1, 3]})
    assert store.append("wide", table) == AppendResult(3, {1: (1, 3), 3: (0, 1)})


def test_appending_nothing_stores_nothing(store: rocketpy.Store) -> None:
    empty = pa.table({"body": pa.array([], pa.binary())})
    assert store.append("t", empty) == AppendResult(0, {})
    assert store.queues("t") == {0: (0, 0)}


@pytest.mark.parametrize("kind", ["table", "batch", "reader", "pandas-like"])
def test_appending_takes_any_arrow_table(kind: str, store: rocketpy.Store) -> None:
    table = pa.table({"body": ["a", "b"]})
    stream = type("Stream", (), {"__arrow_c_stream__": table.__arrow_c_stream__})()
    data = {
        "table": table,
        "batch": table.to_batches()[0],
        "reader": table.to_reader(),
        "pandas-like": stream,
    }[kind]
    assert store.append("t", data).count == 2
    assert column(store.read("t"), "body") == [b"a", b"b"]


def test_appending_something_else_is_refused(store: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match="rows are dicts, not bytes"):
        store.append("t", [b"x"])  # type: ignore[list-item]


def test_messages_over_several_files_are_read_in_order(store: rocketpy.Store, path: Path) -> None:
    bodies = [bytes([number]) * 900 for number in range(20)]
    for body in bodies[:10]:
        store.send("t", body)
    store.append("t", pa.table({"body": bodies[10:]}))
    assert len(list((path / "commitlog").iterdir())) > 4
    assert column(store.read("t"), "body") == bodies
    assert column(store.scan(), "body") == bodies


def test_what_was_read_can_be_appended_to_another_topic(store: rocketpy.Store) -> None:
    store.send("t", b"x", tags="a", keys=["k"], properties={"p": "1"}, sharding_key="s")
    kept = ["body", "tags", "keys", "properties"]
    store.append("wide", store.read("t", columns=kept))
    first, second = (store.read(topic, columns=kept).read_all() for topic in ("t", "wide"))
    rows = [row | {"properties": dict(row["properties"])} for row in first.to_pylist()]
    assert [row | {"properties": dict(row["properties"])} for row in second.to_pylist()] == rows


def test_a_clock_that_goes_back_does_not_take_store_times_back(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    first = store.send("t", b"x").stored_ms
    clock.advance(-60_000)
    assert store.send("t", b"x").stored_ms == first
    store.append("t", pa.table({"body": ["y"]}))
    assert column(store.read("t", columns=["store_timestamp"]), "store_timestamp")[2] is not None
    assert store.offset_by_time("t", 0, first) == 0


@pytest.mark.parametrize("body", [bytearray(b"x"), memoryview(b"x")])
def test_a_body_may_be_any_bytes(body: bytes, store: rocketpy.Store) -> None:
    store.send("t", body)
    assert column(store.read("t"), "body") == [b"x"]


@pytest.mark.parametrize("is_bulk", [False, True])
def test_a_unique_key_that_the_sender_gives_is_kept(is_bulk: bool, store: rocketpy.Store) -> None:
    if is_bulk:
        given = pa.array([[("UNIQ_KEY", "mine")]], pa.map_(pa.string(), pa.string()))
        store.append("t", pa.table({"body": ["x"], "properties": given}))
    else:
        store.send("t", b"x", properties={"UNIQ_KEY": "mine"})
    assert column(store.read("t", columns=["uniq_key"]), "uniq_key") == ["mine"]
    assert store.query("t", key="mine").num_rows == 1
