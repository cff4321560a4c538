"""A topic that is deleted and made anew: its new life is told from the old one, however long."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.connector.member_queries import Query
from tests.connector.streams import Stream, reader_of, send
from tests.connector.test_new_and_lost_queues import (
    SMALL_FILES,
    delete_topic,
    expire,
    plan,
    send_large,
)

import rocketpy
from rocketpy.connector.data_loss import DataLossError

MakeStream = Callable[..., Stream]
EARLIEST = {"topic": "orders", "startingOffsets": "earliest"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A topic with three messages; nobody has the store open."""
    with rocketpy.open(tmp_path / "store") as store:
        send(store, *"abc")
    return tmp_path / "store"


def remake(path: Path, *bodies: str) -> rocketpy.Store:
    """Delete the topic and make it anew; return the store, closed."""
    delete_topic(path, "orders")
    with rocketpy.open(path) as store:
        send(store, *bodies)
    return store


def test_a_longer_new_life_stops_the_query_which_says_so(path: Path) -> None:
    with rocketpy.open(path, read_only=True) as store:
        reader = reader_of(store, **EARLIEST)
    end, _ = plan(reader, reader.initialOffset())
    remake(path, *"defgh")
    with pytest.raises(DataLossError, match=r"from offset 3 on \(it was made anew: another mess"):
        plan(reader, end)


def test_a_longer_new_life_is_read_from_its_first_message(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with rocketpy.open(path, read_only=True) as store:
        reader = reader_of(store, **EARLIEST, failOnDataLoss=False)
    end, _ = plan(reader, reader.initialOffset())
    remake(path, *"defgh")
    following, rows = plan(reader, end)
    assert rows == [*"defgh"]
    assert "orders/rocketpy:0 from offset 3 on (it was made anew" in caplog.text
    assert plan(reader, following) == (following, [])


def test_a_batch_in_a_new_life_reads_the_same_when_it_is_planned_again(path: Path) -> None:
    with rocketpy.open(path, read_only=True) as store:
        reader = reader_of(store, **EARLIEST, failOnDataLoss=False, maxRowsPerTrigger=2)
        again = reader_of(store, **EARLIEST, maxRowsPerTrigger=2)
    start = reader.initialOffset()
    for _ in range(2):
        start, _ = plan(reader, start)
    remake(path, *"defgh")
    end, rows = plan(reader, start)
    assert rows == ["d", "e"]
    (task,) = again.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end)))
    assert [part.start for part in task.ranges] == [0]  # type: ignore[attr-defined]


def test_a_planned_batch_does_not_read_the_new_life_of_its_queue(path: Path) -> None:
    with rocketpy.open(path, read_only=True) as store:
        reader = reader_of(store, **EARLIEST)
        lenient = reader_of(store, **EARLIEST, failOnDataLoss=False)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    remake(path, *"defgh")
    with pytest.raises(DataLossError, match=r"0 up to 3 \(it was made anew after it was planned"):
        reader.partitions(start, end)
    assert lenient.partitions(start, end) == []
    assert plan(lenient, end)[1] == [*"defgh"]


def test_a_topic_that_was_made_anew_and_is_empty_keeps_its_position_until_it_has_messages(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with rocketpy.open(path, read_only=True) as store:
        before = reader_of(store, **EARLIEST)
        reader = reader_of(store, **EARLIEST, failOnDataLoss=False)
    end, _ = plan(before, before.initialOffset())
    delete_topic(path, "orders")
    with rocketpy.open(path) as store:
        store.create_topic("orders", 1)
    for _ in range(3):
        assert plan(reader, end) == (end, [])
    assert caplog.text.count("the queue ends at 0: it was made anew, or its end was lost") == 1
    with rocketpy.open(path) as store:
        send(store, *"de")
    assert plan(reader, end)[1] == ["d", "e"]


def test_what_retention_deleted_is_not_taken_for_a_new_life(tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "store", config=SMALL_FILES) as store:
        send_large(store, *"abcdef")
        reader = reader_of(store, **EARLIEST)
        end, _ = plan(reader, reader.initialOffset())
        send_large(store, *"ghij")
        expire(store, files=2)  # the last message that was read is gone, and no other
        assert plan(reader, end)[1] == [*"ghij"]


def test_available_now_reads_a_longer_new_life(stream: MakeStream, path: Path) -> None:
    orders = stream(**EARLIEST, failOnDataLoss=False)
    assert orders.run() == [[*"abc"]]
    remake(path, *"defgh")
    assert orders.run() == [[*"defgh"]]
    assert orders.run() == []


def test_a_checkpoint_of_version_1_gets_anchors_with_its_next_batch(path: Path) -> None:
    with rocketpy.open(path) as store:
        send(store, "x", queue_id=1)
        reader = reader_of(store, **EARLIEST)
        old = {"version": 1, "offsets": {"orders": {"rocketpy:0": 3, "rocketpy:1": 0}}}
        end, rows = plan(reader, old)
    assert rows == ["x"]
    assert end["anchors"].keys() == {"orders"}  # type: ignore[attr-defined]
    assert sorted(end["anchors"]["orders"]) == ["rocketpy:0", "rocketpy:1"]  # type: ignore[index]


# --- members -------------------------------------------------------------------------------------


def test_a_member_reads_a_longer_new_life_from_its_first_message(path: Path) -> None:
    with rocketpy.open(path, read_only=True) as store:
        query = Query(store, "a", failOnDataLoss=False)
    assert query.batch() == [("orders", 0, 0, 3)]
    assert query.batch() == []
    store = remake(path, *"defgh")
    assert query.plan() == [("orders", 0, 0, 5)]
    with rocketpy.open(path) as store:  # whoever takes the queue over begins there too
        assert store.committed("billing", "orders") == {0: 0}
    query.finish()
    assert query.batch() == []
    with rocketpy.open(path) as store:
        assert store.committed("billing", "orders") == {0: 5}


def test_a_member_that_may_lose_nothing_stops_and_leaves_the_offset_as_it_is(path: Path) -> None:
    with rocketpy.open(path, read_only=True) as store:
        query = Query(store, "a")
    query.batch()
    query.batch()
    remake(path, *"defgh")
    with pytest.raises(DataLossError, match="another message stands before that offset"):
        query.batch()
    with rocketpy.open(path) as store:
        assert store.committed("billing", "orders") == {0: 3}


def test_a_member_takes_over_a_shorter_new_life_from_its_first_message(path: Path) -> None:
    with rocketpy.open(path) as store:
        store.commit("billing", "orders", {0: 3})
    store = remake(path, *"de")
    strict, lenient = Query(store, "a"), Query(store, "b", failOnDataLoss=False)
    with pytest.raises(DataLossError, match="from offset 2 up to 3"):
        strict.batch()
    strict.die()
    strict.leave()
    assert lenient.batch() == [("orders", 0, 0, 2)]


def test_a_store_that_was_made_anew_is_told_by_where_its_messages_lie(path: Path) -> None:
    with rocketpy.open(path, read_only=True) as store:
        reader = reader_of(store, **EARLIEST, failOnDataLoss=False)
    end, _ = plan(reader, reader.initialOffset())
    shutil.rmtree(path)
    with rocketpy.open(path) as store:
        send(store, "another first", *"efgh")
    assert plan(reader, end)[1] == ["a", *"efgh"]
