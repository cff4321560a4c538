"""How much one micro-batch takes, and how it is cut into tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.connector.streams import Stream, reader_of, send

import rocketpy
from rocketpy.connector.partitions import QueuePartition
from rocketpy.connector.stream_reader import StreamReader

MakeStream = Callable[..., Stream]

LETTERS = tuple("abcdefghij")


def next_batch(reader: StreamReader, start: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the end of the batch behind an offset, as Spark asks for it."""
    return reader.latestOffset(start or reader.initialOffset(), reader.getDefaultReadLimit())


def taken(offset: dict[str, Any], topic: str = "orders") -> list[int]:
    return list(offset["offsets"][topic].values())


def cut(reader: StreamReader) -> list[tuple[int, int, int]]:
    """Return queue, start and end of each task of a first batch."""
    start = reader.initialOffset()
    parts = reader.partitions(start, next_batch(reader, start))
    ranges = [part.ranges[0] for part in parts if isinstance(part, QueuePartition)]
    assert len(ranges) == len(parts)
    return [(each.queue.queue_id, each.start, each.end) for each in ranges]


# --- at most -----------------------------------------------------------------------------------


def test_available_now_reads_in_batches_of_the_given_rows(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, *LETTERS)
    batches = stream(topic="orders", startingOffsets="earliest", maxRowsPerTrigger=4).run()
    assert list(map(len, batches)) == [4, 4, 2]
    assert [row for rows in batches for row in rows] == [*LETTERS]


def test_a_running_stream_reads_in_batches_of_the_given_rows(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, *LETTERS)
    orders = stream(topic="orders", startingOffsets="earliest", maxRowsPerTrigger=6)
    orders.start().processAllAvailable()
    assert list(map(len, orders.batches.values())) == [6, 4]


def test_queues_share_the_rows_of_a_batch_by_what_waits_in_them(store: rocketpy.Store) -> None:
    send(store, *LETTERS)
    send(store, *LETTERS[:5], queue_id=1)
    reader = reader_of(store, topic="orders", startingOffsets="earliest", maxRowsPerTrigger=6)
    first = next_batch(reader)
    assert taken(first) == [4, 2]
    assert taken(next_batch(reader, first)) == [7, 5]  # each queue gets one before they share


def test_a_batch_has_no_more_bytes_than_given(stream: MakeStream, store: rocketpy.Store) -> None:
    send(store, *(letter * 1000 for letter in LETTERS))
    orders = stream(topic="orders", startingOffsets="earliest", maxBytesPerTrigger="5k")
    batches = orders.run()
    assert list(map(len, batches)) == [4, 4, 2]  # a record has some 150 bytes besides the body


def test_one_message_that_is_larger_than_the_limit_passes_alone(store: rocketpy.Store) -> None:
    send(store, "a" * 2000, "b" * 2000)
    reader = reader_of(store, topic="orders", startingOffsets="earliest", maxBytesPerTrigger=1000)
    first = next_batch(reader)
    assert taken(first) == [1]
    second = next_batch(reader, first)
    assert taken(second) == [2]
    assert next_batch(reader, second) == second


def test_a_limit_of_bytes_stands_an_idle_hour(store: rocketpy.Store) -> None:
    store.create_topic("orders", 2)
    reader = reader_of(store, topic="orders", maxBytesPerTrigger=1000, maxTriggerDelay="0s")
    assert next_batch(reader) == reader.initialOffset()


def test_places_that_repair_filled_have_no_bytes(tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        send(store, *LETTERS)
        store._store.parts.queues.get("orders", 0).fill(2, 6)
        reader = reader_of(
            store, topic="orders", startingOffsets="earliest", maxBytesPerTrigger=999
        )
        assert taken(next_batch(reader)) == [10]


def test_limits_of_rows_and_of_bytes_hold_together(store: rocketpy.Store) -> None:
    send(store, *("x" * 1000 for _ in range(4)), *LETTERS)
    reader = reader_of(
        store,
        topic="orders",
        startingOffsets="earliest",
        maxRowsPerTrigger=3,
        maxBytesPerTrigger=2400,
    )
    first = next_batch(reader)
    second = next_batch(reader, first)
    third = next_batch(reader, second)
    assert [taken(each) for each in (first, second, third)] == [[2], [4], [7]]


def test_trigger_once_reads_all_whatever_the_limits_are(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, *LETTERS)
    orders = stream(
        topic="orders", startingOffsets="earliest", maxRowsPerTrigger=2, minRowsPerTrigger=100
    )
    orders.start({"once": True}).awaitTermination()
    assert orders.batches == {0: [*LETTERS]}


# --- at least ----------------------------------------------------------------------------------


def test_a_batch_waits_until_the_given_rows_are_there(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "old")
    orders = stream(topic="orders", startingOffsets="latest", minRowsPerTrigger=3)
    query = orders.start()
    query.processAllAvailable()
    send(store, "a", "b")
    query.processAllAvailable()
    assert orders.rows() == []
    send(store, "c")
    query.processAllAvailable()
    assert orders.rows() == ["a", "b", "c"]


def test_a_batch_waits_no_longer_than_the_given_delay(store: rocketpy.Store) -> None:
    send(store, "a")
    options = {"topic": "orders", "startingOffsets": "earliest", "minRowsPerTrigger": 3}
    patient = reader_of(store, **options, maxTriggerDelay="1h")
    assert next_batch(patient) == patient.initialOffset()
    assert taken(next_batch(reader_of(store, **options, maxTriggerDelay="0s"))) == [1]


def test_available_now_does_not_wait_for_rows_that_will_not_come(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, *LETTERS[:5])
    orders = stream(
        topic="orders", startingOffsets="earliest", minRowsPerTrigger=4, maxRowsPerTrigger=4
    )
    assert orders.run() == [["a", "b", "c", "d"], ["e"]]


# --- up to a point -----------------------------------------------------------------------------


def test_messages_that_come_while_available_now_runs_are_left_to_the_next_run(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a", "b", "c")
    orders = stream(topic="orders", startingOffsets="earliest", maxRowsPerTrigger=2)

    def send_more(batch_id: int) -> None:
        send(store, f"late {batch_id}")
        send(store, f"late {batch_id}, new queue", queue_id=1)

    assert orders.run(before=send_more) == [["a", "b"], ["c"]]
    late = [row for rows in orders.run() for row in rows]
    assert sorted(late) == ["late 0", "late 0, new queue", "late 1", "late 1, new queue"]


def test_a_limit_that_is_lifted_is_lifted_from_the_next_batch_on(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, *LETTERS)
    orders = stream(topic="orders", startingOffsets="earliest", maxRowsPerTrigger=3)

    def stop_after_one(batch_id: int) -> None:
        if batch_id:
            raise RuntimeError("enough")

    with pytest.raises(Exception, match="enough"):
        orders.run(before=stop_after_one)
    del orders.options["maxRowsPerTrigger"]
    # The second batch was planned already.
    assert list(map(len, orders.run())) == [3, 4]


# --- tasks -------------------------------------------------------------------------------------


def test_few_rows_of_many_queues_are_one_task(stream: MakeStream, store: rocketpy.Store) -> None:
    send(store, "a", queue_id=2)
    send(store, "b", "c")
    orders = stream(topic="orders", startingOffsets="earliest")
    assert orders.run() == [["b", "c", "a"]]
    assert orders.partitions == {0: 1}


def test_each_queue_with_much_that_is_new_is_one_task(store: rocketpy.Store) -> None:
    store.create_topic("orders", 3)
    store.append("orders", pa.table({"body": [b""] * 3000, "queue_id": [0, 2] * 1500}))
    reader = reader_of(store, topic="orders", startingOffsets="earliest")
    assert cut(reader) == [(0, 0, 1500), (2, 0, 1500)]


@pytest.mark.parametrize(("body", "tasks"), [(b"", 1), (bytes(5_000), 3)])
def test_queues_with_some_that_is_new_share_a_task(
    store: rocketpy.Store, body: bytes, tasks: int
) -> None:
    store.create_topic("orders", 3)
    send(store, "a", "b", "c")
    send(store, "d", "e", "f", queue_id=1)
    send(store, "g", queue_id=2)
    reader = reader_of(store, topic="orders", startingOffsets="earliest")
    begin = next_batch(reader, reader.initialOffset())
    store.append("orders", pa.table({"body": [body] * 3000, "queue_id": [0, 1, 2] * 1000}))
    parts = reader.partitions(begin, next_batch(reader, begin))
    assert len(parts) == tasks
    rows = sum(batch.num_rows for part in parts for batch in reader.read(part))
    assert rows == 3000


def test_long_queues_are_split_until_there_are_enough_tasks(store: rocketpy.Store) -> None:
    send(store, *LETTERS)
    send(store, *LETTERS[:5], queue_id=1)
    reader = reader_of(store, topic="orders", startingOffsets="earliest", minPartitions=3)
    assert cut(reader) == [(0, 0, 5), (0, 5, 10), (1, 0, 5)]


def test_no_task_has_more_rows_than_given(stream: MakeStream, store: rocketpy.Store) -> None:
    send(store, *LETTERS[:5])
    options = {"topic": "orders", "startingOffsets": "earliest", "maxRowsPerPartition": 2}
    assert cut(reader_of(store, **options)) == [(0, 0, 1), (0, 1, 3), (0, 3, 5)]
    orders = stream(**options)
    assert orders.run() == [[*LETTERS[:5]]]
    assert orders.partitions == {0: 3}


def test_there_are_no_more_tasks_than_rows(store: rocketpy.Store) -> None:
    send(store, "a", "b")
    reader = reader_of(store, topic="orders", startingOffsets="earliest", minPartitions=50)
    assert cut(reader) == [(0, 0, 1), (0, 1, 2)]


def test_all_that_is_available_is_asked_for_without_options(store: rocketpy.Store) -> None:
    store.create_topic("orders", 1)
    assert reader_of(store, topic="orders").getDefaultReadLimit() == ReadAllAvailable()
