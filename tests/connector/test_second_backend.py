"""The connector on another kind of place: queues of two brokers, in memory.

Nothing above the interfaces of backend.py knows the difference.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.connector.memory_backend import MemoryBackend, MemoryQueue, rows_of

from rocketpy.connector import backends
from rocketpy.connector.backend import Backend
from rocketpy.connector.batch_reader import BatchReader
from rocketpy.connector.data_loss import DataLossError
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.options import OptionError
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import spark_schema
from rocketpy.connector.stream_reader import StreamReader

Rows = list[tuple[str, int, int, str]]
A0, A1 = (MessageQueue("orders", "broker-a", number) for number in range(2))
B0, B1 = (MessageQueue("orders", "broker-b", number) for number in range(2))
COLUMNS = "broker,queue_id,queue_offset,body"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> MemoryBackend:
    """Three messages in each of the four queues; options lead here, whatever the path."""
    memory = MemoryBackend()
    memory.create("orders")
    for number in range(3):
        for queue in (A0, A1, B0, B1):
            tag = "even" if number % 2 == 0 else "odd"
            memory.send(queue, f"{queue.key}-{number}", stored_ms=1000 * number, tag=tag)

    def open_memory(_: ReadOptions, seen: object) -> Backend:
        assert seen in (None, "memory")
        return memory

    monkeypatch.setattr(backends, "opener_of", lambda _: open_memory)
    return memory


def options(**given: object) -> ReadOptions:
    named = {"path": "/nowhere", "topic": "orders", "columns": COLUMNS} | given
    return ReadOptions.parse({name: str(value) for name, value in named.items()})


def batch(**given: object) -> Rows:
    reader = BatchReader(options(**given), spark_schema("messages", COLUMNS))
    return sorted(row for part in reader.partitions() for row in rows_of(reader.read(part)))


class Query:
    """A stream as Spark runs it: the offsets go through JSON, each batch is planned twice."""

    def __init__(self, **given: object) -> None:
        self.given = {"startingOffsets": "earliest"} | given
        self.restart()
        self.at: dict[str, Any] = self.reader.initialOffset()

    def restart(self) -> None:
        self.reader = StreamReader(options(**self.given), spark_schema("messages", COLUMNS))

    def run(self, limit: int | None = None) -> Rows:
        asked = ReadAllAvailable() if limit is None else ReadMaxRows(limit)
        end = json.loads(json.dumps(self.reader.latestOffset(self.at, asked)))
        if end == self.at:
            return []
        self.restart()
        parts = self.reader.partitions(self.at, end)
        found = sorted(row for part in parts for row in rows_of(self.reader.read(part)))
        self.at = end
        self.reader.commit(end)
        return found


def expected(*queues: MessageQueue, first: int = 0, last: int = 3) -> Rows:
    return sorted(
        (queue.broker, queue.queue_id, number, f"{queue.key}-{number}")
        for queue in queues
        for number in range(first, last)
    )


EVERY = (A0, A1, B0, B1)


# --- batches -------------------------------------------------------------------------------------


def test_a_batch_has_the_queues_of_both_brokers(place: MemoryBackend) -> None:
    assert place.topics() == ["orders"]
    assert batch() == expected(*EVERY)


@pytest.mark.usefixtures("place")
def test_positions_are_named_by_broker_and_queue() -> None:
    start = {"orders": {"broker-a:0": 2, "broker-a:1": -2, "broker-b:0": 3, "broker-b:1": -1}}
    found = batch(startingOffsets=json.dumps(start))
    assert found == sorted([*expected(A0, first=2), *expected(A1)])


@pytest.mark.usefixtures("place")
def test_queues_of_one_broker_are_chosen() -> None:
    chosen = json.dumps({"orders": ["broker-b:0", "broker-b:1"]})
    named = {"path": "/nowhere", "queues": chosen, "columns": COLUMNS}
    reader = BatchReader(ReadOptions.parse(named), spark_schema("messages", COLUMNS))
    found = sorted(row for part in reader.partitions() for row in rows_of(reader.read(part)))
    assert found == expected(B0, B1)


@pytest.mark.usefixtures("place")
def test_times_tags_and_sql_narrow_a_batch() -> None:
    assert batch(startingTimestamp=1000) == expected(*EVERY, first=1)
    assert batch(tags="odd") == expected(*EVERY, first=1, last=2)
    assert batch(sql="TAGS = 'odd'") == expected(*EVERY, first=1, last=2)


@pytest.mark.usefixtures("place")
def test_keys_find_the_message_of_the_broker_that_has_it() -> None:
    start = {"broker-a:0": 0, "broker-a:1": 3, "broker-b:0": 3, "broker-b:1": 3}
    keys = [f"k{A0.key}-1", f"k{B0.key}-1"]
    found = batch(keys=json.dumps(keys), startingOffsets=json.dumps({"orders": start}))
    assert found == expected(A0, first=1, last=2)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"view": "queues", "topic": "orders"}, "view"),
        ({"view": "index"}, "view"),
        ({"view": "groups"}, "view"),
        ({"scan": "commitlog"}, "scan"),
        ({"topic": "orders", "startingLogOffset": "0"}, "startingLogOffset"),
        ({"topic": "orders", "endingLogOffset": "9"}, "endingLogOffset"),
    ],
)
@pytest.mark.usefixtures("place")
def test_a_place_without_files_says_which_option_needs_them(
    given: dict[str, str], option: str
) -> None:
    asked = ReadOptions.parse({"path": "/nowhere"} | given)
    reader = BatchReader(asked, spark_schema(asked.view, None))
    with pytest.raises(OptionError, match=f"'{option}'.* needs the files of a store"):
        reader.partitions()


# --- streams -------------------------------------------------------------------------------------


def test_a_stream_reads_each_message_once_in_batches(place: MemoryBackend) -> None:
    query = Query(maxRowsPerTrigger=5)
    found = [query.run(5), query.run(5), query.run(5), query.run(5)]
    assert [len(rows) for rows in found] == [5, 5, 2, 0]
    assert sorted(row for rows in found for row in rows) == expected(*EVERY)
    place.send(B0, f"{B0.key}-3")
    assert query.run() == expected(B0, first=3, last=4)


def test_a_queue_that_comes_is_read_from_its_begin(place: MemoryBackend) -> None:
    query = Query()
    query.run()
    new = MessageQueue("orders", "broker-b", 2)
    place.queues[new] = MemoryQueue()
    place.send(new, f"{new.key}-0")
    assert query.run() == expected(new, last=1)


def test_available_now_ends_with_what_was_there(place: MemoryBackend) -> None:
    query = Query()
    query.reader.prepareForTriggerAvailableNow()
    end = query.reader.latestOffset(query.at, ReadAllAvailable())
    place.send(A0, "later")
    assert query.reader.latestOffset(end, ReadAllAvailable()) == end


@pytest.mark.usefixtures("place")
def test_a_stream_of_queue_entries_needs_files() -> None:
    with pytest.raises(OptionError, match=r"'view'.* needs the files of a store"):
        Query(view="queues", columns="queue_offset").run()


# --- groups --------------------------------------------------------------------------------------


def test_a_group_is_committed_by_broker_and_goes_on_there(place: MemoryBackend) -> None:
    query = Query(consumerGroup="billing")
    query.run()
    assert place.committed("billing", ["orders"]) == dict.fromkeys(EVERY, 3)
    place.send(B1, f"{B1.key}-3")
    other = Query(consumerGroup="billing", startingOffsets="group")
    assert other.run() == expected(B1, first=3, last=4)


@pytest.mark.usefixtures("place")
def test_a_place_without_members_says_so() -> None:
    query = {"consumerGroup": "billing", "member": "a"}
    with pytest.raises(OptionError, match="keeps no members"):
        Query(**query)


# --- losses --------------------------------------------------------------------------------------


def test_what_is_gone_is_told_by_broker_and_queue(place: MemoryBackend) -> None:
    query = Query()
    place.queues[B0].low = 2
    with pytest.raises(DataLossError, match=r"orders/broker-b:0 from offset 0 up to 2"):
        query.run()
    patient = Query(failOnDataLoss="false", startingOffsets='{"orders": {"broker-b:0": 0}}')
    assert patient.run() == sorted([*expected(A0, A1, B1), *expected(B0, first=2)])


def test_a_queue_that_was_made_anew_is_a_loss_and_read_from_its_begin(
    place: MemoryBackend,
) -> None:
    query = Query(failOnDataLoss="false")
    query.run()
    place.queues[A1] = MemoryQueue()
    for number in range(5):
        place.send(A1, f"{A1.key}-{number}")
    assert query.run() == expected(A1, last=5)


def test_what_is_deleted_while_a_task_reads_is_passed_over(place: MemoryBackend) -> None:
    reader = BatchReader(options(failOnDataLoss="false"), spark_schema("messages", COLUMNS))
    parts = reader.partitions()
    place.queues[A0].low = 1
    found = sorted(row for part in parts for row in rows_of(reader.read(part)))
    assert found == sorted([*expected(A0, first=1), *expected(A1, B0, B1)])
