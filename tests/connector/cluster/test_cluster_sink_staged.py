"""Writing to brokers of ours: whole and once at each, whatever fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.connector.cluster.sinks import (
    MANY,
    Rows,
    Sink,
    TaskDied,
    batches,
    stored,
)

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import NoBrokerError, ServerRefusedError
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.stale_batch import StaleBatchError
from rocketpy.broker_core.storage.layout import STAGED
from rocketpy.connector.backends import writing_of
from rocketpy.connector.cluster.staged_writing import OtherBrokersError, StagedWriting

HUNDRED = sorted(f"{number}" for number in range(100))


class StagedSink(Sink):
    """As Sink, by the way that brokers of ours offer."""

    def writing(self) -> StagedWriting:
        found = writing_of(self.options)
        assert isinstance(found, StagedWriting)
        return found


@pytest.fixture(scope="module", params=[1, 2])
def running(request: pytest.FixtureRequest) -> Iterator[LocalBroker]:
    with rocketpy.local_broker(brokers=request.param, topics={"t": 2}) as broker:
        yield broker


@pytest.fixture
def broker(running: LocalBroker) -> LocalBroker:
    running.reset()
    return running


@pytest.fixture
def sink(broker: LocalBroker) -> StagedSink:
    return StagedSink(broker)


def left_lying(broker: LocalBroker) -> list[str]:
    folders = [each.store_path / STAGED for each in broker.brokers]
    return [path.name for folder in folders if folder.is_dir() for path in folder.iterdir()]


def test_nothing_is_seen_before_the_commit(sink: StagedSink, broker: LocalBroker) -> None:
    writing = sink.writing()
    parts = [
        writing.stage(sink.task(0, number), batches(rows))
        for number, rows in enumerate([MANY, [], ["a", "a"]])
    ]
    assert sink.found() == []
    sink.writing().commit(parts, sink.writer, 0)
    assert sink.found() == ["a", "a", *MANY]
    assert left_lying(broker) == []


def test_a_batch_that_comes_again_is_dropped_and_an_older_one_refused(sink: StagedSink) -> None:
    sink.run(0, ["a", "b"])
    sink.run(1, ["a"])
    sink.run(1, ["a"])
    with pytest.raises(StaleBatchError, match="batch 0 of 'query q1 topic t'"):
        sink.run(0, ["a", "b"])
    assert sink.found() == ["a", "a", "b"]


def test_tasks_and_drivers_that_die_leave_nothing_to_be_seen(
    sink: StagedSink, broker: LocalBroker
) -> None:
    sink.fail(0, p0=["a"])
    with pytest.raises(TaskDied):
        sink.writing().stage(sink.task(0, 1), batches(MANY, dies=True))
    assert sink.found() == []
    sink.run(0, ["a", "b"])
    assert sink.found() == ["a", "b"]
    assert left_lying(broker) == []


def test_an_aborted_batch_is_removed(sink: StagedSink, broker: LocalBroker) -> None:
    sink.fail(0, p0=["a"])
    assert left_lying(broker)
    sink.writing().remove(["q1-0"])
    assert left_lying(broker) == []


def test_a_commit_that_reached_one_broker_is_completed(
    sink: StagedSink, broker: LocalBroker
) -> None:
    """The rows come in other partitions then, and in another order."""
    rows: Rows = [f"{number}" for number in range(100)] + ["same"] * 5
    writing = sink.writing()
    part = writing.stage(sink.task(0, 0), batches(rows))
    first = replace(part, files=dict([*part.files.items()][:1]))
    sink.writing().commit([first], sink.writer, 0)
    assert len(broker.brokers) == 1 or 0 < len(sink.found()) < len(rows)
    sink.run(0, rows[60:], rows[:60][::-1])
    assert Counter(sink.found()) == Counter(rows)


def test_a_batch_that_is_partly_stored_is_refused_for_other_brokers(
    sink: StagedSink, broker: LocalBroker
) -> None:
    part = sink.writing().stage(sink.task(0, 0), batches(HUNDRED))
    first = replace(part, files=dict([*part.files.items()][:1]))
    sink.writing().commit([first], sink.writer, 0)
    if len(broker.brokers) > 1:
        again = sink.writing().stage(sink.task(0, 0), batches(HUNDRED))
        alone = replace(again, brokers=("broker-a",))
        with pytest.raises(OtherBrokersError, match="for the brokers broker-a, broker-b; now"):
            sink.writing().commit([alone], sink.writer, 0)
        with pytest.raises(OtherBrokersError):  # tasks that saw different brokers
            sink.writing().commit([alone, again], sink.writer, 0)


# --- a broker that goes away ----------------------------------------------------------------------

with_two = pytest.mark.parametrize("running", [2], indirect=True)


@pytest.fixture
def two(broker: LocalBroker) -> Iterator[LocalBroker]:
    """Two brokers; all run at the end."""
    yield broker
    for number, each in enumerate(broker.brokers):
        if not each.is_running:
            broker.start_broker(number)


@with_two
def test_rows_of_a_broker_that_is_away_at_the_commit_are_not_left_out(
    two: LocalBroker, sink: StagedSink
) -> None:
    part = sink.writing().stage(sink.task(0, 0), batches(HUNDRED))
    two.kill_broker(1)
    with pytest.raises(NoBrokerError, match="broker 'broker-b': it is away"):
        sink.writing().commit([part], sink.writer, 0)
    two.start_broker(1)
    assert sink.found() == []
    sink.writing().commit([part], sink.writer, 0)
    assert sorted(sink.found()) == HUNDRED


@with_two
def test_a_batch_that_was_written_without_a_broker_is_known_when_it_is_back(
    two: LocalBroker, sink: StagedSink
) -> None:
    two.kill_broker(1)
    sink.run(0, HUNDRED)
    two.start_broker(1)
    sink.run(0, HUNDRED)
    assert sorted(sink.found()) == HUNDRED


@with_two
def test_a_batch_does_not_go_elsewhere_while_a_broker_that_may_have_it_is_away(
    two: LocalBroker, sink: StagedSink
) -> None:
    sink.run(0, HUNDRED)
    part = sink.writing().stage(sink.task(1, 0), batches(HUNDRED))
    first = replace(part, files={"broker-a": part.files["broker-a"]})
    sink.writing().commit([first], sink.writer, 1)
    two.kill_broker(0)
    with pytest.raises(NoBrokerError, match="broker 'broker-a': it is away"):
        sink.run(1, HUNDRED)
    two.start_broker(0)
    sink.run(1, HUNDRED)
    assert sorted(sink.found()) == sorted(2 * HUNDRED)


# --- what else fails ------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [9002, 9003])
@pytest.mark.parametrize("fault", ["lose_answer", "drop_connection"])
def test_what_was_not_answered_is_asked_again(
    sink: StagedSink, broker: LocalBroker, fault: str, code: int
) -> None:
    for running in broker.brokers:
        getattr(running.faults, fault)(code, times=1)
    sink.run(0, MANY)
    assert sink.found() == MANY


def test_a_broker_that_dies_loses_the_upload_and_its_task_is_run_again(
    sink: StagedSink, broker: LocalBroker
) -> None:
    writing = sink.writing()

    def rows() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches(MANY)):
            if number == 3:
                broker.kill_broker(0)
                broker.start_broker(0)
            yield batch

    with pytest.raises(ServerRefusedError, match="run the task again"):
        writing.stage(sink.task(0, 0), rows())
    part = writing.stage(sink.task(0, 0, 1), batches(MANY))
    sink.writing().commit([part], sink.writer, 0)
    assert sink.found() == MANY


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("body", ["a", "x" * (4 << 20) + "y"], "4194305 bytes"),
        ("tags", ["a", "x" * 33_000], "properties"),
        ("queue_id", [0, 9], "queues 0 to 1"),
        ("delay_level", [1, -1], "levels count from 1"),
    ],
)
def test_a_row_that_cannot_be_stored_is_named(
    sink: StagedSink, column: str, values: list[object], reason: str
) -> None:
    table = pa.table({"body": ["a", "b"]} | {column: values})
    with pytest.raises(MessageRefusedError, match=rf"row 1 of partition 0: .*{reason}"):
        sink.run(0, table)
    assert sink.found() == []


def test_columns_come_back_and_keys_keep_queue_and_order(
    sink: StagedSink, broker: LocalBroker
) -> None:
    table = pa.table(
        {
            "body": MANY[:5000],
            "tags": ["paid"] * 5000,
            "topic": ["the option wins"] * 5000,
            "keys": [[f"k{number}"] for number in range(5000)],
            "sharding_key": [f"s{number % 7}" for number in range(5000)],
        }
    )
    sink.run(0, table)
    rows = sorted(stored(broker, "t"), key=lambda row: (row["broker"], row["queue_offset"]))
    assert {row["tags"] for row in rows} == {"paid"}
    assert {(row["body"].decode(), row["keys"]) for row in rows} == {
        (body, f"k{number}") for number, body in enumerate(MANY[:5000])
    }
    by_key: dict[str, list[tuple[object, ...]]] = {}
    for row in rows:
        key = dict(row["properties"])["__SHARDINGKEY"]
        by_key.setdefault(key, []).append((row["broker"], row["queue_id"], row["body"].decode()))
    for number in range(7):
        found = by_key[f"s{number}"]
        assert [body for *_, body in found] == MANY[:5000][number::7]
        with Cluster(broker.namesrv_addr) as cluster:
            draft = MessageDraft(body=b"x", sharding_key=f"s{number}")
            queue = Producer(cluster).send("t", draft).queue
        assert {place[:2] for place in found} == {(queue.broker, queue.queue_id)}


def test_what_the_wire_wrote_the_folder_knows(sink: StagedSink, broker: LocalBroker) -> None:
    """A query may go from one way to the other: its batches are numbered in one ledger."""
    sink.run(0, ["a"])
    sink.run(1, ["b"])
    if len(broker.brokers) == 1:
        by_path = writing_of(
            type(sink.options).parse({"path": str(broker.store_path), "topic": "t"})
        )
        by_path.commit([by_path.stage(sink.task(1, 0), batches(["b"]))], sink.writer, 1)
        by_path.commit([by_path.stage(sink.task(2, 0), batches(["c"]))], sink.writer, 2)
        sink.run(2, ["c"])
        assert sink.found() == ["a", "b", "c"]
