"""The doors of a store: what they say of topics, queues, the log and the index."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.errors import CorruptStoreError, TopicNotFoundError
from rocketpy.broker_core.storage.store import MessageStore

BODY = select("body")


@pytest.fixture
def contents(store: rocketpy.Store) -> MessageStore:
    store.create_topic("empty", queues=2)
    store.create_topic("filled", queues=3)
    for number in range(4):
        store.send("filled", f"{number}", queue_id=1, keys=f"k{number}")
    store.flush()
    return store._store


def bodies(batches: list[pa.RecordBatch]) -> list[bytes]:
    return [body for batch in batches for body in batch["body"].to_pylist()]


def test_a_topic_is_known_by_its_settings_or_by_its_queues(contents: MessageStore) -> None:
    assert {"empty", "filled"} <= contents.topic_names()
    assert contents.stored_topics() == ["filled"]


def test_a_queue_without_files_is_one_of_its_topic(contents: MessageStore) -> None:
    assert contents.queue_ids("filled") == [0, 1, 2]
    assert contents.stored_queue_ids("filled") == [1]
    assert contents.stored_queue_ids("empty") == []


def test_an_unknown_topic_is_told_with_the_names_of_others(contents: MessageStore) -> None:
    with pytest.raises(TopicNotFoundError, match="filled"):
        contents.queue_ids("filed")
    assert contents.stored_queue_ids("filed") == []


def test_a_queue_and_its_raw_records_hold_the_same(contents: MessageStore) -> None:
    held = contents.queue("filled", 1).range()
    assert held == contents.raw_queue("filled", 1).range() == (0, 4)
    raw = contents.raw_queue("filled", 1).raw(*held, most_bytes=1 << 20, most_messages=9)
    assert raw.messages == 4


def test_the_log_is_told_from_its_start_to_its_end(contents: MessageStore) -> None:
    start, end = contents.log_start(), contents.log_end()
    assert bodies([*contents.scan(BODY)]) == [b"0", b"1", b"2", b"3"]
    assert [*contents.walk(start)][-1].end == end
    assert contents.is_boundary(start)
    assert contents.is_boundary(end)
    assert not contents.is_boundary(start + 1)
    assert contents.next_record(end) is None
    assert len(contents.log_bytes(start, end)) == end - start


def test_a_message_is_found_by_its_place(contents: MessageStore) -> None:
    second = contents.next_record(contents.log_start() + 1)
    assert second is not None
    assert contents.message_at(second).stored_body == b"1"
    row = contents.row_at(second, BODY)
    assert row is not None
    assert bodies([row]) == [b"1"]
    assert contents.row_at(second + 1, BODY) is None
    with pytest.raises(CorruptStoreError):
        contents.message_at(second + 1)


def test_a_message_is_found_by_its_key(contents: MessageStore) -> None:
    assert bodies([*contents.find("filled", ["k2", "k3"], BODY)]) == [b"2", b"3"]
    assert bodies([*contents.find("filled", ["k2"], BODY, end_ms=1)]) == []


def test_index_files_are_there_once_entries_are_written(contents: MessageStore) -> None:
    contents.checkpoint()
    (name,) = contents.index_names()
    assert contents.index_file(name).header().count == 9  # key and unique key of each, from 1 on
    with pytest.raises(FileNotFoundError):
        contents.index_file("20000101000000000")


def test_a_sound_store_has_no_problems(contents: MessageStore) -> None:
    seen = []
    assert [*contents.verify(lambda done, total: seen.append((done, total)))] == []
    assert seen
