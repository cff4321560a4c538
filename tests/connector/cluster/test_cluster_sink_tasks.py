"""Writing to a cluster without Spark: tasks that fail, die, come again and move, each row once."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.connector.cluster.sinks import MANY, Rows, Sink, TaskDied, batches, stored

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import AccessRefusedError
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.stale_batch import StaleBatchError
from rocketpy.connector.backends import writing_of
from rocketpy.connector.options import OptionError
from rocketpy.connector.write_options import WriteOptions

numbers = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with rocketpy.local_broker(brokers=2, topics={"t": 2, "u": 1}) as running:
        yield running


@pytest.fixture
def sink(broker: LocalBroker) -> Sink:
    broker.reset()
    return Sink(broker)


def test_batches_are_in_the_topic_once(sink: Sink) -> None:
    sink.run(0, ["a", "b"], [], ["c"])
    sink.run(1, ["d"])
    assert sink.found() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("attempt", [1, 0])  # a task run again; a stage run again
def test_a_task_that_dies_is_completed_by_its_next_attempt(sink: Sink, attempt: int) -> None:
    writing = sink.writing()
    with pytest.raises(TaskDied):
        writing.stage(sink.task(0, 0), batches(MANY, dies=True))
    assert 0 < len(sink.found()) < len(MANY)
    part = writing.stage(sink.task(0, 0, attempt), batches(MANY[::-1]))
    sink.writing().commit([part], sink.writer, 0)
    assert sink.found() == MANY


def test_a_batch_of_a_driver_that_died_is_completed_by_its_next_run(sink: Sink) -> None:
    sink.run(0, ["first"])
    writing = sink.writing()
    writing.stage(sink.task(1, 0), batches(["a", "b"]))
    with pytest.raises(TaskDied):
        writing.stage(sink.task(1, 1), batches(MANY, dies=True))
    sink.run(1, ["b", "a"], MANY)
    assert sink.found() == ["a", "b", "first", *MANY]


def test_rows_that_move_to_other_partitions_are_known_again(sink: Sink) -> None:
    sink.fail(0, p0=["a", "b"], p2=["c", "d"])
    sink.run(0, ["d", "e", "a"], ["c", "b", "f"])
    assert sink.found() == ["a", "b", "c", "d", "e", "f"]


def test_equal_rows_are_as_many_as_in_the_batch(sink: Sink) -> None:
    sink.fail(0, p0=["a", "a"])
    sink.fail(0, p1=["a"], p0=["a", "a"])
    sink.run(0, ["a", "a"], ["a", "b", "a"])
    assert sink.found() == ["a", "a", "a", "a", "b"]


@settings(max_examples=30)
@given(data=st.data())
def test_whatever_runs_failed_each_row_is_there_once(
    broker: LocalBroker, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.sampled_from("abc"), max_size=8), label="rows")
    query = Sink(broker, "u", f"any {next(numbers)}")

    def partitions() -> list[Rows]:
        """Spark may put rows anywhere, in any order."""
        found: list[Rows] = [[], [], []]
        for row in data.draw(st.permutations(rows)):
            found[data.draw(st.integers(0, 2))].append(row)
        return found[: data.draw(st.integers(1, 3))] if not any(found[1:]) else found

    before = Counter(query.found())
    for _ in range(data.draw(st.integers(0, 2), label="failed runs")):
        sent = {
            f"p{number}": part[: data.draw(st.integers(0, len(part)), label="sent")]
            for number, part in enumerate(partitions())
        }
        query.fail(0, **sent)
    query.run(0, *partitions())
    assert Counter(query.found()) - before == Counter(rows)


def test_a_batch_that_is_done_is_dropped_and_an_older_one_refused(sink: Sink) -> None:
    sink.run(0, ["a"])
    sink.run(1, ["b"])
    sink.run(1, ["b"])
    with pytest.raises(StaleBatchError, match="batch 0 of 'query q1 topic t'"):
        sink.run(0, ["a"])
    assert sink.found() == ["a", "b"]


def test_a_commit_that_died_before_its_notes_doubles_nothing(sink: Sink) -> None:
    sink.run(0, ["a"])
    sink.fail(1, p0=["a", "b"], p1=["c"])  # all tasks are done
    sink.run(1, ["a", "b"], ["c"])
    sink.run(2, ["a"])
    assert sink.found() == ["a", "a", "a", "b", "c"]


def test_notes_that_a_broker_lost_cost_reading_only(sink: Sink, broker: LocalBroker) -> None:
    """Brokers save offsets every five seconds: a crash takes the last ones."""
    sink.run(0, ["a"])
    for running in broker.brokers:
        assert running._broker is not None
        running._broker.offsets.save()
    sink.run(1, ["b"])
    sink.fail(2, p0=["c"])
    for index in range(2):
        broker.kill_broker(index)
        broker.start_broker(index)
    sink.run(2, ["c", "d"])
    assert sink.found() == ["a", "b", "c", "d"]


def test_queries_and_others_share_a_topic(sink: Sink, broker: LocalBroker) -> None:
    other = Sink(broker, query="q2")
    sink.fail(0, p0=["a"])
    other.run(0, ["a"])
    with broker.store() as store:
        store.send("t", "a")
    sink.run(0, ["a"])
    assert sink.found() == ["a", "a", "a"]


# --- what may go wrong on the way -----------------------------------------------------------------


@pytest.mark.parametrize("fault", ["lose_answer", "drop_connection"])
def test_what_was_not_answered_is_looked_up(sink: Sink, broker: LocalBroker, fault: str) -> None:
    for running in broker.brokers:
        getattr(running.faults, fault)("SEND_BATCH_MESSAGE", times=2)
    sink.run(0, MANY)
    assert all(not running.faults._faults for running in broker.brokers)
    assert sink.found() == MANY


def test_a_busy_broker_is_tried_again(sink: Sink, broker: LocalBroker) -> None:
    fault = broker.faults.be_busy(times=3)
    sink.run(0, MANY)
    assert fault.happened == 3
    assert sink.found() == MANY


def test_rows_go_to_other_brokers_when_theirs_is_gone(sink: Sink, broker: LocalBroker) -> None:
    writing = sink.writing()

    def rows() -> Iterator[pa.RecordBatch]:
        broker.kill_broker(1)
        yield from batches(MANY)

    part = writing.stage(sink.task(0, 0), rows())
    broker.start_broker(1)
    sink.writing().commit([part], sink.writer, 0)
    assert sink.found() == MANY
    assert {row["broker"] for row in stored(broker, "t")} == {"broker-a"}


def test_what_a_broker_stored_before_it_died_is_found_there(
    sink: Sink, broker: LocalBroker
) -> None:
    back = threading.Timer(2, broker.start_broker, [1])

    def rows() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches(MANY)):
            if number == 3:  # some were sent, and wait for their answers
                broker.kill_broker(1)
                back.start()
            yield batch

    part = sink.writing().stage(sink.task(0, 0), rows())
    back.join()
    sink.writing().commit([part], sink.writer, 0)
    assert sink.found() == MANY


def test_a_broker_that_refuses_is_an_error_that_says_why(sink: Sink, broker: LocalBroker) -> None:
    broker.faults.refuse("SEND_BATCH_MESSAGE", answer="NO_PERMISSION", times=None)
    with pytest.raises(AccessRefusedError, match="'rocketpy topic update --perm'"):
        sink.run(0, ["a", "b", "c", "d"])


def test_a_row_that_brokers_find_too_large_is_named() -> None:
    with rocketpy.local_broker(topics=["t"], settings={"maxMessageSize": "1000"}) as small:
        table = pa.table({"body": ["x"] * 20 + ["y" * 1001] + ["z"]})
        with pytest.raises(MessageRefusedError, match=r"row 20 of partition 0: .*1000"):
            Sink(small).run(0, table)


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("body", ["a", "x" * (4 << 20) + "y"], "4194305 bytes are more than"),
        ("tags", ["a", "x" * 33_000], "properties .* more than the 32767"),
        ("queue_id", [0, 9], "queues 0 to 1, not 9"),
        ("delay_level", [1, -1], "levels count from 1"),
    ],
)
def test_a_row_that_cannot_be_sent_is_named(
    sink: Sink, column: str, values: list[object], reason: str
) -> None:
    table = pa.table({"body": ["a", "b"]} | {column: values})
    with pytest.raises(MessageRefusedError, match=rf"row 1 of partition 0: .*{reason}"):
        sink.run(0, table)
    assert sink.found() == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"topic": "missing"}, "'missing', which no broker .* 'rocketpy topic create missing'"),
        ({}, "a write to a cluster goes to one topic"),
        ({"topic": "t", "compress": "zlib"}, "uncompressed"),
        ({"topic": "t", "queues": "3"}, "'rocketpy topic create'"),
        ({"topic": "rmq_sys_wheel_timer"}, "RocketMQ's own"),
    ],
)
def test_what_cannot_be_written_is_said_on_the_driver(
    broker: LocalBroker, options: dict[str, str], reason: str
) -> None:
    parsed = WriteOptions.parse({"namesrvAddr": broker.namesrv_addr, **options})
    with pytest.raises(OptionError, match=reason):
        writing_of(parsed)


# --- what comes back ------------------------------------------------------------------------------


def test_all_columns_come_back(sink: Sink, broker: LocalBroker) -> None:
    table = pa.table(
        {
            "body": [b"1", b""],
            "tags": ["paid", None],
            "topic": ["the option", "wins"],
            "keys": [["k1", "k2"], None],
            "properties": pa.array(
                [[("region", "eu"), ("UNIQ_KEY", "own")], None], pa.map_(pa.string(), pa.string())
            ),
            "queue_id": pa.array([1, 0], pa.int32()),
            "flag": pa.array([7, None], pa.int32()),
        }
    )
    sink.run(0, table)
    first, second = sorted(stored(broker, "t"), key=lambda row: -len(row["body"]))
    properties = dict(first["properties"])
    assert len(properties.pop("UNIQ_KEY")) == 50
    assert properties == {"TAGS": "paid", "KEYS": "k1 k2", "region": "eu"}
    assert [first[name] for name in ("body", "tags", "queue_id", "flag")] == [b"1", "paid", 1, 7]
    assert [second[name] for name in ("body", "tags", "queue_id", "flag")] == [b"", None, 0, 0]


def test_rows_of_a_sharding_key_keep_their_order(sink: Sink, broker: LocalBroker) -> None:
    keys = [f"k{number % 7}" for number in range(len(MANY))]
    table = pa.table({"body": MANY, "sharding_key": keys})
    for running in broker.brokers:
        running.faults.be_busy(times=2)
        running.faults.lose_answer("SEND_BATCH_MESSAGE", times=1)
    sink.run(0, table)
    rows = sorted(stored(broker, "t"), key=lambda row: (row["broker"], row["queue_offset"]))
    by_key: dict[str, list[tuple[object, ...]]] = {}
    for row in rows:
        key = dict(row["properties"])["__SHARDINGKEY"]
        by_key.setdefault(key, []).append((row["broker"], row["queue_id"], row["body"].decode()))
    for key, found in by_key.items():
        assert len({place[:2] for place in found}) == 1
        assert [body for *_, body in found] == [
            row for row, of in zip(MANY, keys, strict=True) if of == key
        ]
    with Cluster(broker.namesrv_addr) as cluster:
        receipt = Producer(cluster).send("t", MessageDraft(body=b"x", sharding_key="k3"))
    assert (receipt.queue.broker, receipt.queue.queue_id) == by_key["k3"][0][:2]


def test_delayed_rows_wait_and_are_sent_once(sink: Sink, broker: LocalBroker) -> None:
    table = pa.table(
        {
            "body": ["now", "later", "then"],
            "delay_level": pa.array([None, 1, None], pa.int32()),
            "deliver_at": pa.array(
                [None, None, time.time_ns() // 1_000_000 + 1500], pa.timestamp("ms", "UTC")
            ),
        }
    )
    sink.fail(0, p0=table)
    assert sink.found() == ["now"]
    sink.run(0, table)
    deadline = time.monotonic() + 20
    while len(sink.found()) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert sink.found() == ["later", "now", "then"]
    for running in broker.brokers:  # nothing more waits
        with rocketpy.open(running.store_path, read_only=True) as store:
            waiting = store.read("SCHEDULE_TOPIC_XXXX", columns=["body"]).read_all()["body"]
            assert waiting.to_pylist() in ([b"later"], [])
