"""Queues that cannot be reached now are not gone; queues that are not asked for are not lost."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.connector.member_queries import Query
from tests.connector.streams import reader_of, send
from tests.connector.test_new_and_lost_queues import plan

import rocketpy
from rocketpy.broker_core.errors import StoreNotFoundError
from rocketpy.connector import planner
from rocketpy.connector.topics import UnreachableError

BOTH = {"topic": "orders,parcels", "startingOffsets": "earliest"}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "_PAUSE_S", 0)  # between looks


@pytest.fixture
def store(store: rocketpy.Store) -> rocketpy.Store:
    """Two topics."""
    send(store, *"abc")
    send(store, *"xy", topic="parcels")
    return store


@contextmanager
def out_of_reach(folder: Path) -> Iterator[None]:
    """Put a link to itself in the place of a folder: whatever looks at it meets an OSError."""
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.symlink_to(folder)
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


@contextmanager
def unmounted(folder: Path) -> Iterator[None]:
    """Leave an empty folder in the place of one, as where nothing is mounted."""
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.mkdir()
    try:
        yield
    finally:
        folder.rmdir()
        aside.rename(folder)


# --- out of reach --------------------------------------------------------------------------------


def test_a_topic_out_of_reach_stops_the_query_and_is_not_called_lost(store: rocketpy.Store) -> None:
    reader = reader_of(store, **BOTH)
    end, _ = plan(reader, reader.initialOffset())
    with (
        out_of_reach(store.path / "consumequeue" / "orders"),
        pytest.raises(UnreachableError, match=r"orders \(.*Too many levels.*Nothing is lost") as e,
    ):
        plan(reader, end)
    assert str(pickle.loads(pickle.dumps(e.value))) == str(e.value)
    assert e.value.retriable


def test_with_losses_allowed_the_others_are_read_and_the_position_stays(
    store: rocketpy.Store, caplog: pytest.LogCaptureFixture
) -> None:
    reader = reader_of(store, **BOTH, failOnDataLoss=False)
    end, _ = plan(reader, reader.initialOffset())
    send(store, "z", topic="parcels")
    send(store, "d")
    with out_of_reach(store.path / "consumequeue" / "orders"):
        middle, rows = plan(reader, end)
        assert plan(reader, middle) == (middle, [])
    assert rows == ["z"]
    for part in ("offsets", "anchors"):
        assert middle[part]["orders"] == end[part]["orders"]  # type: ignore[index]
    assert caplog.text.count("The others are read meanwhile") == 1
    assert plan(reader, middle)[1] == ["d"]


def test_a_planned_batch_is_not_read_in_part(store: rocketpy.Store) -> None:
    reader = reader_of(store, **BOTH, failOnDataLoss=False)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    with (
        out_of_reach(store.path / "consumequeue" / "orders"),
        pytest.raises(UnreachableError, match="orders"),
    ):
        reader.partitions(start, end)


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_store_that_is_not_mounted_is_not_taken_for_an_empty_one(
    store: rocketpy.Store, is_strict: bool
) -> None:
    reader = reader_of(store, **BOTH, failOnDataLoss=is_strict)
    end, _ = plan(reader, reader.initialOffset())
    with unmounted(store.path), pytest.raises(StoreNotFoundError):
        plan(reader, end)
    assert plan(reader, end) == (end, [])


def test_queues_that_are_not_mounted_keep_their_positions(store: rocketpy.Store) -> None:
    reader = reader_of(store, **BOTH, failOnDataLoss=False)
    end, _ = plan(reader, reader.initialOffset())
    restarted = reader_of(store, **BOTH, failOnDataLoss=False)  # has no file open
    with unmounted(store.path / "consumequeue"):
        assert plan(restarted, end) == (end, [])
    send(store, "d")
    assert plan(restarted, end)[1] == ["d"]


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_member_stops_while_a_topic_of_its_group_is_out_of_reach(
    store: rocketpy.Store, is_strict: bool
) -> None:
    query = Query(store, "a", failOnDataLoss=is_strict)
    query.batch()
    query.batch()
    with (
        out_of_reach(store.path / "consumequeue" / "orders"),
        pytest.raises(UnreachableError, match="orders"),
    ):
        query.batch()
    assert store.committed("billing", "orders") == {0: 3}
    assert query.queues() == [0]


# --- not asked for -------------------------------------------------------------------------------


def test_a_topic_that_the_options_name_no_more_is_not_lost_and_not_read(
    store: rocketpy.Store, caplog: pytest.LogCaptureFixture
) -> None:
    reader = reader_of(store, **BOTH)
    end, _ = plan(reader, reader.initialOffset())
    send(store, "d")
    send(store, "z", topic="parcels")
    narrow = reader_of(store, topic="orders")
    middle, rows = plan(narrow, end)
    assert rows == ["d"]
    assert middle["offsets"]["parcels"] == {"rocketpy:0": 2}  # type: ignore[index]
    assert "do not name these queues any more, their positions are kept: parcels/" in caplog.text
    wide = reader_of(store, **BOTH)
    assert plan(wide, middle)[1] == ["z"]


def test_a_narrowed_stream_without_news_makes_no_batch(store: rocketpy.Store) -> None:
    reader = reader_of(store, **BOTH)
    end, _ = plan(reader, reader.initialOffset())
    assert plan(reader_of(store, topic="orders"), end) == (end, [])


def test_a_batch_that_was_planned_before_is_read_whole_by_a_narrowed_stream(
    store: rocketpy.Store,
) -> None:
    reader = reader_of(store, **BOTH)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    narrow = reader_of(store, topic="orders")
    batches = [batch for part in narrow.partitions(start, end) for batch in narrow.read(part)]
    assert sum(batch.num_rows for batch in batches) == 5


@pytest.mark.parametrize(
    "options",
    [
        {"topic": "orders"},
        {"topicPattern": "ord.*"},
        {"queues": '{"orders": [0]}'},
    ],
)
def test_each_way_to_name_topics_can_be_narrowed(
    store: rocketpy.Store, options: dict[str, object]
) -> None:
    reader = reader_of(store, **BOTH)
    end, _ = plan(reader, reader.initialOffset())
    shutil.rmtree(store.path / "consumequeue" / "parcels")  # nobody asks for it
    with store._store.locked():
        store._store.topics.delete("parcels", now_ms=0)
    send(store, "d")
    middle, rows = plan(reader_of(store, **options), end)
    assert rows == ["d"]
    assert middle["offsets"]["parcels"] == {"rocketpy:0": 2}  # type: ignore[index]


def test_a_member_keeps_the_position_of_a_topic_that_it_does_not_read_any_more(
    store: rocketpy.Store,
) -> None:
    query = Query(store, "a", topicPattern="orders|parcels")
    query.batch()  # done, but not committed yet
    query.die()
    narrow = Query(store, "a")
    narrow.at = query.at
    send(store, "d")
    assert narrow.batch() == [("orders", 0, 3, 4)]
    narrow.batch()
    narrow.die()
    wide = Query(store, "a", topicPattern="orders|parcels")
    wide.at = narrow.at
    assert wide.batch() == []  # nothing is read twice
