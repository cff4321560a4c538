"""Queues and topics that come, go, or lose messages while a stream is under way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from tests.connector.streams import Stream, fail, reader_of, send

import rocketpy
from rocketpy.connector.data_loss import DataLossError
from rocketpy.connector.stream_reader import StreamReader

MakeStream = Callable[..., Stream]

# Three messages of 1,000 bytes a file; what is older than a day goes at once.
SMALL_FILES = rocketpy.StoreConfig(
    commit_log_file_size=4096, retention_hours=24, disk_max_used_ratio=0, index_slots=8
)


def send_large(store: rocketpy.Store, *letters: str) -> None:
    send(store, *(letter * 1000 for letter in letters))


def expire(store: rocketpy.Store, files: int) -> None:
    """Let retention delete the oldest files of the log."""
    for path in sorted((store.path / "commitlog").iterdir())[:files]:
        os.utime(path, (0, 0))
    assert store.clean()


def delete_topic(path: Path, topic: str) -> None:
    """Do as Apache's broker does: its entry and its queues go, its records stay in the log."""
    with rocketpy.open(path) as store, store._store.locked():
        store._store.topics.delete(topic, now_ms=store._store.clock.now_ms())
    shutil.rmtree(path / "consumequeue" / topic)


def plan(reader: StreamReader, start: dict[str, object]) -> tuple[dict[str, object], list[str]]:
    """Return the end of the next batch, and what it holds."""
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    if end == start:  # then Spark does not ask what is between
        return end, []
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return end, [body.decode()[0] for each in batches for body in each.column("body").to_pylist()]


# --- new ---------------------------------------------------------------------------------------


def test_queues_that_are_added_to_a_topic_are_read_from_their_first_message(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    # rocketmq-flink #95, rocketmq-externals #787: new queues were never read.
    send(store, "old")
    orders = stream(topic="orders", startingOffsets="latest", consumerGroup="billing")
    query = orders.start()
    query.processAllAvailable()
    store.create_topic("orders", 3)
    send(store, "a", queue_id=2)
    send(store, "b")
    query.processAllAvailable()
    assert sorted(orders.rows()) == ["a", "b"]
    # Queue 1 is empty: that it exists is seen within a second.
    assert store.committed("billing", "orders") | {1: 0} == {0: 2, 1: 0, 2: 1}


def test_topics_that_appear_are_read_if_the_pattern_fits(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "old", topic="shop-a")
    orders = stream(topicPattern="shop-.*", startingOffsets="latest")
    query = orders.start()
    query.processAllAvailable()
    send(store, "new", topic="shop-b")
    send(store, "other", topic="workshop-b")
    query.processAllAvailable()
    assert orders.rows() == ["new"]


def test_a_pattern_may_fit_nothing_yet(store: rocketpy.Store) -> None:
    reader = reader_of(store, topicPattern="shop-.*")
    start = reader.initialOffset()
    assert plan(reader, start) == (start, [])
    send(store, "a", topic="shop-a")
    assert plan(reader, start)[1] == ["a"]


def test_a_queue_found_while_the_first_batch_failed_is_in_the_next(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a")
    orders = stream(topic="orders", startingOffsets="earliest")
    with pytest.raises(StreamingQueryException, match="the sink failed"):
        orders.run(before=fail)
    send(store, "b", queue_id=1)
    assert orders.run() == [["a"], ["b"]]


# --- lost --------------------------------------------------------------------------------------


def test_a_topic_that_is_gone_stops_the_stream_and_is_named(
    stream: MakeStream, tmp_path: Path
) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        send(store, "a", "b", topic="shop-a")
        send(store, "c", topic="shop-b")
    orders = stream(topicPattern="shop-.*", startingOffsets="earliest")
    query = orders.start()
    query.processAllAvailable()
    delete_topic(tmp_path / "store", "shop-a")
    with pytest.raises(StreamingQueryException) as failure:
        query.processAllAvailable()
    assert (
        "messages are gone before they were read: shop-a/rocketpy:0 from offset 2 on "
        "(there is no such queue any more)" in str(failure.value)
    )
    orders.options["failOnDataLoss"] = "false"
    with rocketpy.open(tmp_path / "store") as store:
        send(store, "d", topic="shop-b")
    orders.run()
    assert orders.rows() == ["a", "b", "c", "d"]


def test_messages_that_retention_deleted_are_named(tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "store", config=SMALL_FILES) as store:
        send_large(store, *"abcdefgh")
        reader = reader_of(store, topic="orders", startingOffsets="earliest", maxRowsPerTrigger=1)
        first, _ = plan(reader, reader.initialOffset())
        expire(store, files=2)
        with pytest.raises(DataLossError) as lost:
            plan(reader, first)
        assert "orders/rocketpy:0 from offset 1 up to 6 (the oldest that is held is 6)" in str(
            lost.value
        )


def test_a_stream_may_go_on_behind_what_retention_deleted_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with rocketpy.open(tmp_path / "store", config=SMALL_FILES) as store:
        send_large(store, *"abcdefgh")
        reader = reader_of(
            store,
            topic="orders",
            startingOffsets="earliest",
            maxRowsPerTrigger=1,
            failOnDataLoss=False,
        )
        first, rows = plan(reader, reader.initialOffset())
        assert rows == ["a"]
        expire(store, files=2)
        second, rows = plan(reader, first)
        assert rows == ["g"]
        assert "orders/rocketpy:0 from offset 1 up to 6" in caplog.text
        assert plan(reader, second)[1] == ["h"]


def test_a_planned_batch_that_retention_cut_short_is_not_taken_for_whole(
    stream: MakeStream, tmp_path: Path
) -> None:
    with rocketpy.open(tmp_path / "store", config=SMALL_FILES) as store:
        send_large(store, *"abcdefgh")
        orders = stream(topic="orders", startingOffsets="earliest")
        with pytest.raises(StreamingQueryException, match="the sink failed"):
            orders.run(before=fail)
        expire(store, files=1)
        with pytest.raises(StreamingQueryException, match="from offset 0 up to 3"):
            orders.run()
        orders.options["failOnDataLoss"] = "false"
        assert [[row[0] for row in rows] for rows in orders.run()] == [[*"defgh"]]


def remake_topic(path: Path) -> None:
    delete_topic(path, "orders")


def remake_store(path: Path) -> None:
    shutil.rmtree(path)


@pytest.mark.parametrize("remake", [remake_topic, remake_store])
def test_a_topic_that_was_made_anew_is_noticed_and_read_from_its_start(
    tmp_path: Path, remake: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        send(store, "a", "b", "c")
    strict = reader_of(store, topic="orders", startingOffsets="earliest")
    lenient = reader_of(store, topic="orders", startingOffsets="earliest", failOnDataLoss=False)
    end, rows = plan(strict, strict.initialOffset())
    assert rows == ["a", "b", "c"]
    assert plan(lenient, end) == (end, [])
    remake(tmp_path / "store")
    with rocketpy.open(tmp_path / "store") as store:
        send(store, "d", "e")
        with pytest.raises(DataLossError, match=r"from offset 2 up to 3 .*it was made anew"):
            plan(strict, end)
        following, rows = plan(lenient, end)
        assert rows == ["d", "e"]
        assert "it was made anew" in caplog.text
        assert plan(lenient, following) == (following, [])


def test_a_topic_that_was_gone_for_a_while_is_read_from_its_new_start(tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        send(store, "a", "b", "c")
    options = {"topicPattern": "ord.*", "startingOffsets": "earliest", "failOnDataLoss": False}
    reader = reader_of(store, **options)
    end, _ = plan(reader, reader.initialOffset())
    delete_topic(tmp_path / "store", "orders")
    without, rows = plan(reader, end)
    assert without["offsets"] == {}
    assert rows == []
    with rocketpy.open(tmp_path / "store") as store:
        send(store, "d", "e")
        assert plan(reader, without)[1] == ["d", "e"]


def test_available_now_ends_though_the_topic_was_made_anew(
    stream: MakeStream, tmp_path: Path
) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        send(store, "a", "b", "c")
    orders = stream(topic="orders", startingOffsets="earliest", failOnDataLoss=False)
    orders.run()
    remake_topic(tmp_path / "store")
    with rocketpy.open(tmp_path / "store") as store:
        send(store, "d")
        assert orders.run() == [["d"]]
