"""`scan=commitlog`: the log itself, in stretches, with and without queues."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.connector.conftest import Load

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.record import decode_record, encode_record
from rocketpy.connector.data_loss import DataLossError
from rocketpy.connector.source import RocketPyDataSource

T0 = 1_700_000_000_000
COUNT = 60
SMALL = rocketpy.StoreConfig(
    commit_log_file_size=4096,
    max_message_size=3000,
    consume_queue_file_entries=5,
    index_slots=5,
    index_entries=20,
    disk_max_used_ratio=0.0,  # what is expired goes at any hour
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rocketpy.Store]:
    """Sixty messages of all sizes of two topics, in some ten files of the log."""
    clock = ManualClock(T0)
    with rocketpy.open(tmp_path / "store", config=SMALL, clock=clock) as opened:
        opened.create_topic("orders", queues=2)
        opened.create_topic("parcels", queues=1)
        for number in range(COUNT):
            topic = "parcels" if number % 5 == 4 else "orders"
            opened.send(
                topic, f"{number:0{number * 37 % 1000 + 2}d}", tags="ab"[number % 2],
                keys=f"k{number % 6}",
            )  # fmt: skip
            clock.advance(1000)
        yield opened


def numbers(frame: DataFrame) -> list[int]:
    return [int(bytes(row["body"])) for row in frame.select("body").collect()]


def scan(path: Path, **options: object) -> list[int]:
    """Read a scan in this process, task by task: Spark's many tasks take their time."""
    given = {"path": str(path), "scan": "commitlog"} | {k: str(v) for k, v in options.items()}
    source = RocketPyDataSource(given)
    reader = source.reader(source.schema())
    batches: list[pa.RecordBatch] = [
        batch for part in reader.partitions() for batch in reader.read(part)
    ]
    return [int(body) for batch in batches for body in batch.column("body").to_pylist()]


def test_a_scan_is_every_message_in_the_order_of_the_log(load: Load) -> None:
    assert numbers(load(scan="commitlog")) == list(range(COUNT))


def test_a_scan_equals_the_read_by_queues(load: Load) -> None:
    by_queue = load(topicPattern=".*", columns="*").sort("commit_log_offset")
    assert_df_equality(load(scan="commitlog", columns="*"), by_queue)


def test_a_scan_is_cut_into_as_many_tasks_as_asked_for(load: Load) -> None:
    frame = load(scan="commitlog", minPartitions=7)
    assert (frame.rdd.getNumPartitions(), numbers(frame)) == (7, list(range(COUNT)))


@pytest.mark.parametrize("count", [2, 3, 11, 61, pytest.param(200, marks=pytest.mark.further)])
def test_no_message_is_lost_or_doubled_at_the_cuts(store: rocketpy.Store, count: int) -> None:
    assert scan(store.path, minPartitions=count) == list(range(COUNT))


def test_a_scan_needs_no_queues(load: Load, store: rocketpy.Store) -> None:
    shutil.rmtree(store.path / "consumequeue")
    assert numbers(load(scan="commitlog", minPartitions=3)) == list(range(COUNT))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"topic": "parcels"}, range(4, COUNT, 5)),
        ({"topicPattern": "par.*"}, range(4, COUNT, 5)),
        ({"topic": "nothing"}, []),
        ({"tags": "b"}, range(1, COUNT, 2)),
        ({"tags": "*"}, range(COUNT)),
        ({"keys": "k0,k3"}, range(0, COUNT, 3)),
        ({"startingTimestamp": T0 + 5000, "endingTimestamp": T0 + 9000}, range(5, 9)),
        ({"topic": "parcels", "tags": "a", "keys": "k4", "endingTimestamp": T0 + 40_000}, [4, 34]),
    ],
)
def test_a_scan_has_the_same_filters(
    store: rocketpy.Store, options: dict[str, object], expected: range
) -> None:
    assert scan(store.path, columns="body", **options) == list(expected)


def test_what_is_appended_later_is_not_in_the_snapshot(load: Load, store: rocketpy.Store) -> None:
    frame = load(scan="commitlog", minPartitions=2)
    assert frame.count() == COUNT
    for _ in range(20):
        store.send("orders", b"7" * 500)
    assert frame.count() == COUNT
    assert load(scan="commitlog").count() == COUNT + 20


def test_what_another_broker_wrote_behind_our_tail_is_read(store: rocketpy.Store) -> None:
    # Apache's broker knows nothing of the file that says where the log ends.
    tail = store.path / "rocketpy" / "tail"
    before = tail.read_bytes()
    for number in range(COUNT, COUNT + 5):
        store.send("orders", f"{number}")
    path = store.path
    store.close()
    tail.write_bytes(before)
    assert scan(path, minPartitions=4) == list(range(COUNT + 5))
    tail.unlink()
    assert scan(path, minPartitions=4) == list(range(COUNT + 5))


def test_an_empty_store_has_an_empty_scan(tmp_path: Path) -> None:
    rocketpy.open(tmp_path / "empty").close()
    assert scan(tmp_path / "empty") == []


def test_an_apache_store_is_cut_into_tasks_as_well(apache_store: str) -> None:
    given = {"path": apache_store, "scan": "commitlog", "columns": "commit_log_offset"}

    def offsets(**more: str) -> list[int]:
        source = RocketPyDataSource(given | more)
        reader = source.reader(source.schema())
        batches: list[pa.RecordBatch] = [
            batch for part in reader.partitions() for batch in reader.read(part)
        ]
        return [at for batch in batches for at in batch.column(0).to_pylist()]

    assert offsets(minPartitions="9") == offsets()
    assert offsets() == sorted(offsets()) != []


# --- stretches of the log -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"scan": "commitlog"}, {"scan": "queues", "topicPattern": ".*"}]
)
def test_stretches_cut_anywhere_hold_each_message_once(
    store: rocketpy.Store, options: dict[str, str]
) -> None:
    bounds = [0, 1, 1000, 4095, 4096, 9000, 9001, 20_000, 99_999_999]
    found = [
        scan(store.path, startingLogOffset=start, endingLogOffset=end, minPartitions=2, **options)
        for start, end in pairwise(bounds)
    ]
    assert sorted(number for stretch in found for number in stretch) == list(range(COUNT))
    assert sum(map(bool, found)) > 4
    # In log order: a message of a stretch is before all those of the next one.
    ends = [(min(stretch), max(stretch)) for stretch in found if stretch]
    assert all(before[1] < after[0] for before, after in pairwise(ends))


@pytest.mark.parametrize(
    "options", [{"scan": "commitlog"}, {"scan": "queues", "topicPattern": ".*"}]
)
def test_a_stretch_that_is_gone_is_lost_aloud(
    store: rocketpy.Store, options: dict[str, str]
) -> None:
    lost = delete_oldest(store, 3)
    with pytest.raises(DataLossError, match="the commit log from offset 100 up to"):
        scan(store.path, startingLogOffset=100, **options)
    assert scan(store.path, startingLogOffset=100, failOnDataLoss="false", scan="commitlog") == [
        *range(lost, COUNT)
    ]


@pytest.mark.parametrize("count", [1, 11])
@pytest.mark.parametrize("numbers", [(0,), (31, 32), (COUNT - 1,), (0, 30, COUNT - 1)])
def test_damage_is_passed_over_on_request(
    store: rocketpy.Store, numbers: tuple[int, ...], count: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = store.path
    store.close()
    file, offset = [spoil(path, number) for number in reversed(numbers)][-1]
    found = scan(path, minPartitions=count, failOnDamage="false")
    assert found == [number for number in range(COUNT) if number not in numbers]
    assert f"passed over: {file} is corrupt at offset {offset}" in caplog.text


# --- damage and deletion --------------------------------------------------------------------------


def spoil(path: Path, number: int) -> tuple[Path, int]:
    """Flip a bit in the body of a record; return its file, and where it begins in the log."""
    for file in sorted((path / "commitlog").iterdir()):
        data, at = file.read_bytes(), 0
        while at + 8 < len(data) and (size := int.from_bytes(data[at : at + 4], "big")):
            if data[at + 4 : at + 8] == b"\xda\xa3\x20\xa7":
                message = decode_record(data, at)
                assert encode_record(message) == data[at : at + size]
                if int(message.stored_body) == number:
                    place = data.index(message.stored_body, at)
                    spoilt = bytes([data[place] ^ 1])
                    file.write_bytes(data[:place] + spoilt + data[place + 1 :])
                    return file, int(file.name) + at
            at += size
    raise AssertionError(f"no message {number}")


@pytest.mark.parametrize("count", [1, 11])
@pytest.mark.parametrize("number", [0, 31, COUNT - 1])
def test_a_damaged_record_is_an_error_that_names_its_place(
    store: rocketpy.Store, number: int, count: int
) -> None:
    path = store.path
    store.close()
    file, offset = spoil(path, number)
    with pytest.raises(Exception, match=f"{file} is corrupt at offset {offset}"):
        scan(path, minPartitions=count, failOnDataLoss="false")


def test_a_damaged_record_is_an_error_in_spark(spark: SparkSession, store: rocketpy.Store) -> None:
    path = store.path
    store.close()
    file, offset = spoil(path, 31)
    reader = spark.read.format("rocketpy").option("topic", "orders")
    with pytest.raises(PySparkException, match=f"{file} is corrupt at offset {offset}") as raised:
        reader.option("failOnDataLoss", "false").load(str(path)).count()
    assert "gone before they were read" not in str(raised.value)


def delete_oldest(store: rocketpy.Store, files: int) -> int:
    """Let retention delete files of the log; return how many messages went with them."""
    oldest = sorted((store.path / "commitlog").iterdir())[:files]
    for file in oldest:
        os.utime(file, (0, 0))
    assert set(oldest) <= set(store.clean())
    return COUNT - len(scan(store.path))


def test_a_scan_begins_at_what_is_left(store: rocketpy.Store) -> None:
    lost = delete_oldest(store, 3)
    assert scan(store.path, minPartitions=4) == list(range(lost, COUNT))


def test_what_is_deleted_between_planning_and_reading_is_lost_aloud(
    store: rocketpy.Store,
) -> None:
    given = {"path": str(store.path), "scan": "commitlog", "minPartitions": "4"}
    source = RocketPyDataSource(given)
    reader = source.reader(source.schema())
    lenient = RocketPyDataSource(given | {"failOnDataLoss": "false"}).reader(source.schema())
    parts = reader.partitions()
    lost = delete_oldest(store, 3)
    low = 3 * SMALL.commit_log_file_size
    with pytest.raises(
        DataLossError, match=f"the commit log from offset 0 up to .*begins at {low}"
    ):
        list(reader.read(parts[0]))
    batches: list[pa.RecordBatch] = [batch for part in parts for batch in lenient.read(part)]
    found = [int(body) for batch in batches for body in batch.column("body").to_pylist()]
    assert found == list(range(lost, COUNT))
