"""Broadcasting: every member reads every message, and keeps offsets of its own."""

from __future__ import annotations

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.connector.streams import reader_of, send

import rocketpy
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.connector.stream_reader import StreamReader

EVERYTHING = ReadAllAvailable()


def member(store: rocketpy.Store, name: str, **options: object) -> StreamReader:
    given = {"topic": "orders", "consumerGroup": "news", "messageModel": "broadcasting"} | options
    return reader_of(store, member=name, **given)


def read_all(reader: StreamReader, start: dict[str, object] | None = None) -> dict[str, object]:
    """Run a batch and plan the next; return where it ended."""
    begin = start or reader.initialOffset()
    end = reader.latestOffset(begin, EVERYTHING)
    assert reader.latestOffset(end, EVERYTHING) == end
    return end


def positions(store: rocketpy.Store, name: str) -> dict[str, int]:
    initial = member(store, name).initialOffset()
    found: dict[str, int] = initial["offsets"]["orders"]
    return found


def test_every_member_reads_all_queues_from_offsets_of_its_own(store: rocketpy.Store) -> None:
    send(store, "1", "2", "3", queue_id=0)
    send(store, "4", queue_id=1)
    one, two = member(store, "one"), member(store, "two")
    assert read_all(one)["offsets"] == {"orders": {"rocketpy:0": 3, "rocketpy:1": 1}}
    send(store, "5", queue_id=1)
    assert read_all(two)["offsets"] == {"orders": {"rocketpy:0": 3, "rocketpy:1": 2}}
    assert positions(store, "one") == {"rocketpy:0": 3, "rocketpy:1": 1}
    assert positions(store, "two") == {"rocketpy:0": 3, "rocketpy:1": 2}
    assert positions(store, "three") == {"rocketpy:0": 0, "rocketpy:1": 0}


def test_nobody_joins_and_the_offsets_of_the_group_stay_as_they_are(store: rocketpy.Store) -> None:
    send(store, "1", "2")
    store.commit("news", "orders", {0: 1})
    read_all(member(store, "one"))
    assert store.members("news") == {}
    assert store.generation("news") is None
    assert store.committed("news", "orders") == {0: 1}


def test_a_new_member_may_begin_at_the_end(store: rocketpy.Store) -> None:
    send(store, "1", "2")
    reader = member(store, "one", startingOffsets="latest")
    assert reader.initialOffset()["offsets"] == {"orders": {"rocketpy:0": 2}}


def test_without_commits_a_member_leaves_no_trace(store: rocketpy.Store) -> None:
    send(store, "1", "2")
    read_all(member(store, "one", commitOffsets="false"))
    assert positions(store, "one") == {"rocketpy:0": 0}


def test_offsets_that_are_damaged_are_told_and_not_taken_for_a_new_member(
    store: rocketpy.Store,
) -> None:
    send(store, "1", "2")
    read_all(member(store, "room@10.0.0.1#7"))
    (path,) = (store.path / "rocketpy" / "broadcast" / "news").iterdir()
    path.write_bytes(path.read_bytes().replace(b",2]", b",1]"))
    with pytest.raises(CorruptStoreError, match="the member then begins as a new one"):
        member(store, "room@10.0.0.1#7").initialOffset()
