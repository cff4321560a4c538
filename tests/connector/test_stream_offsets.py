"""Where a stream begins, and where it goes on after a stop, a crash, or an upgrade."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.connector import checkpoint_v1
from tests.connector.streams import Stream, fail, reader_of, send

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.connector.offsets import OffsetFormatError, SourceOffset
from rocketpy.connector.stream_reader import StreamReader

MakeStream = Callable[..., Stream]


def test_a_new_stream_from_the_earliest_reads_all(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a", "b")
    send(store, "c", queue_id=1)
    assert stream(topic="orders", startingOffsets="earliest").run() == [["a", "b", "c"]]


def test_a_new_stream_without_a_group_reads_what_comes_after_its_start(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "old")
    orders = stream(topic="orders")
    query = orders.start()
    query.processAllAvailable()
    send(store, "new")
    query.processAllAvailable()
    assert orders.rows() == ["new"]


def test_a_new_stream_of_a_group_goes_on_where_the_group_is(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a", "b", "c")
    send(store, "never committed", queue_id=1)
    store.commit("billing", "orders", {0: 2})
    assert stream(topic="orders", consumerGroup="billing").run() == [["c", "never committed"]]


def test_a_new_stream_begins_at_the_offsets_that_are_given(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a", "b", "c")
    send(store, "d", "e", queue_id=1)
    send(store, "f", queue_id=2)
    start = json.dumps({"orders": {"0": 2, "rocketpy:1": -1}})
    assert stream(topic="orders", startingOffsets=start).run() == [["c", "f"]]


def test_a_new_stream_begins_at_a_time(stream: MakeStream, tmp_path: Path) -> None:
    clock = ManualClock()
    with rocketpy.open(tmp_path / "store", clock=clock) as store:
        send(store, "before")
        clock.advance(1000)
        send(store, "then", "after")
        time = clock.now_ms()
        assert stream(topic="orders", startingTimestamp=time).run() == [["then", "after"]]


def test_a_new_stream_begins_at_the_time_of_each_queue(stream: MakeStream, tmp_path: Path) -> None:
    clock = ManualClock()
    with rocketpy.open(tmp_path / "store", clock=clock) as store:
        for body in ("first", "second", "third"):
            for queue_id in range(3):
                send(store, f"{queue_id} {body}", queue_id=queue_id)
            clock.advance(1000)
        third_ms = clock.now_ms() - 1000
        start = json.dumps({"orders": {"0": third_ms, "rocketpy:1": third_ms - 500}})
        assert stream(topic="orders", startingTimestamp=start).run() == [
            ["0 third", "1 third", "2 first", "2 second", "2 third"]
        ]


def test_a_stream_goes_on_exactly_where_its_checkpoint_is(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    orders = stream(topic="orders", startingOffsets="latest")
    send(store, "before the start")
    assert orders.run() == [[]]
    for round in range(2):
        send(store, f"{round}a", f"{round}b")
        send(store, f"{round}c", queue_id=1)
        assert orders.run() == [[f"{round}a", f"{round}b", f"{round}c"]]


def test_a_group_that_moves_does_not_move_a_stream_that_has_a_checkpoint(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    # rocketmq-flink #76, #81: what was restored was overwritten by the broker's offsets.
    orders = stream(topic="orders", consumerGroup="billing")
    send(store, "a", "b")
    assert orders.run() == [["a", "b"]]
    send(store, "c", "d")
    store.commit("billing", "orders", {0: 4})
    assert orders.run() == [["c", "d"]]
    store.commit("billing", "orders", {0: 0})
    send(store, "e")
    assert orders.run() == [["e"]]
    assert store.committed("billing", "orders") == {0: 5}


def test_a_first_batch_that_failed_is_replayed_though_the_group_moved_on(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    """Spark asks anew where the query begins; the answer is another one by then."""
    orders = stream(topic="orders", consumerGroup="billing")
    send(store, "a", "b")
    with pytest.raises(StreamingQueryException, match="the sink failed"):
        orders.run(before=fail)
    store.commit("billing", "orders", {0: 2})
    send(store, "c")
    assert orders.run() == [["a", "b"], ["c"]]


def test_an_empty_first_batch_that_failed_does_not_skip_what_came_meanwhile(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    orders = stream(topic="orders", startingOffsets="latest")
    send(store, "before the start")
    with pytest.raises(StreamingQueryException, match="the sink failed"):
        orders.run(before=fail)
    send(store, "meanwhile")
    assert orders.run() == [[], ["meanwhile"]]


def test_what_came_between_the_start_and_the_first_batch_is_in_its_replay(
    store: rocketpy.Store,
) -> None:
    send(store, "before the start")
    options = {"topic": "orders", "startingOffsets": "latest"}
    first = reader_of(store, **options)
    start = first.initialOffset()
    send(store, "between")
    end = first.latestOffset(start, first.getDefaultReadLimit())
    send(store, "after")
    restarted = reader_of(store, **options)
    assert bodies(restarted, restarted.initialOffset(), end) == ["between"]
    following = restarted.latestOffset(end, restarted.getDefaultReadLimit())
    assert bodies(restarted, end, following) == ["after"]


def bodies(reader: StreamReader, start: dict[str, object], end: dict[str, object]) -> list[str]:
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return [body.decode() for batch in batches for body in batch.column("body").to_pylist()]


def test_an_idle_stream_makes_no_batches(stream: MakeStream, store: rocketpy.Store) -> None:
    for queue_id in range(11):  # as text, 10 comes before 2
        send(store, "a", queue_id=queue_id)
    send(store, "b", topic="audit")
    orders = stream(topicPattern=".*", startingOffsets="earliest")
    query = orders.start()
    for _ in range(10):  # each returns when Spark looked, and found nothing new
        query.processAllAvailable()
    assert orders.planned() == 1


def test_a_stream_that_was_restarted_idle_makes_no_batches(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a")
    orders = stream(topic="orders", startingOffsets="earliest")
    for _ in range(3):
        orders.run()
    assert orders.planned() == 1


def test_a_checkpoint_of_version_1_goes_on_where_it_was(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    checkpoint_v1.send_first(store)
    checkpoint_v1.send_second(store)
    send(store, "2a", queue_id=2)
    orders = stream(**checkpoint_v1.OPTIONS)
    shutil.copytree(checkpoint_v1.FOLDER, orders.checkpoint)
    assert orders.run() == [["0d", "1b", "1c"], ["2a"]]


def test_a_checkpoint_of_a_newer_version_is_refused_with_a_remedy(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a")
    orders = stream(topic="orders", startingOffsets="earliest")
    orders.run()
    log = orders.checkpoint / "offsets" / "0"
    (log.parent / ".0.crc").unlink()
    log.write_text(log.read_text().replace('"version": 2', '"version": 3'))
    with pytest.raises(StreamingQueryException, match="use the rocketpy that wrote it or a newer"):
        orders.run()


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"version": "1"},
        {"version": 1},
        {"version": 1, "offsets": {"orders": 3}},
        {"version": 1, "offsets": {"orders": {"queue": 3}}},
        {"version": 1, "offsets": {"orders": {"0": None}}},
        {"version": 1, "offsets": {}, "began": []},
    ],
)
def test_an_offset_that_is_none_is_refused(offset: dict[str, object]) -> None:
    with pytest.raises(OffsetFormatError, match="the checkpoint holds the offset"):
        SourceOffset.from_json(offset)


def test_an_option_of_batches_stops_a_stream_with_its_own_words(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path
) -> None:
    store.create_topic("orders", queues=1)
    reader = spark.readStream.format("rocketpy").option("topic", "orders")
    rows = reader.option("endingOffsets", "latest").load(str(store.path))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(StreamingQueryException, match="a stream has no end") as caught:
        writer.start().awaitTermination()
    assert "UnboundLocalError" not in str(caught.value)
