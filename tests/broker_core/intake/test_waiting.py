"""Delays of tables: what a column says is what `send` says of one message."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.staged import TaskStage, commit
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, TIMER_TOPIC
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.reading import QueueReader

NOW = 1_700_000_000_400
DAY_MS = 86_400_000
# Level or time, and the delay in ms of the level that it means.
LEVELS = {0: 0, 1: 1000, 3: 10_000, 18: 7_200_000, 40: 7_200_000}
TIMES = [NOW - 1, NOW, NOW + 1, NOW + 599, NOW + 600, NOW + 601, NOW + 5_600, NOW + 3 * DAY_MS]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[rocketpy.Store]:
    with rocketpy.open(tmp_path / "store", clock=clock) as opened:
        opened.create_topic("orders", 4)
        yield opened
        assert list(opened.verify()) == []


def stored(store: rocketpy.Store) -> list[tuple[Any, ...]]:
    """Return what is noted of each message, wherever it is, in the order of bodies."""
    rows = store.scan(columns=["body", "topic", "queue_id", "properties"]).read_all().to_pylist()
    dropped = {"UNIQ_KEY", "queue"}
    return sorted(
        (
            *(row["body"], row["topic"], row["queue_id"]),
            *sorted(p for p in row["properties"] if p[0] not in dropped),
        )
        for row in rows
    )


def sent_singly(store: rocketpy.Store) -> None:
    for number, level in enumerate(LEVELS):
        store.send("orders", f"l{number}", tags="t", queue_id=2, delay_level=level)
    for number, time in enumerate(TIMES):
        store.send("orders", f"t{number}", tags="t", queue_id=2, deliver_at=time)


def table() -> pa.Table:
    none = [None] * len(TIMES)
    return pa.table(
        {
            "body": [f"l{n}" for n in range(len(LEVELS))] + [f"t{n}" for n in range(len(TIMES))],
            "tags": ["t"] * (len(LEVELS) + len(TIMES)),
            "queue_id": [2] * (len(LEVELS) + len(TIMES)),
            "delay_level": pa.array([*LEVELS, *none], pa.int64()),
            "deliver_at": pa.array([None] * len(LEVELS) + TIMES, pa.timestamp("ms", "UTC")),
        }
    )


def test_a_table_waits_as_its_messages_sent_singly_do(
    store: rocketpy.Store, tmp_path: Path, clock: ManualClock
) -> None:
    sent_singly(store)
    with rocketpy.open(tmp_path / "bulk", clock=clock) as bulk:
        bulk.create_topic("orders", 4)
        result = bulk.append("orders", table())
        assert result.count == len(LEVELS) + len(TIMES)
        assert result.queues == {2: (0, 3)}  # the others have no place in the topic yet
        assert stored(bulk) == stored(store)
        assert list(bulk.verify()) == []


def due_times(store: rocketpy.Store) -> dict[int, list[int]]:
    parts = store._store.parts
    readers = {q: QueueReader(parts, SCHEDULE_TOPIC, q) for q in parts.queues.ids(SCHEDULE_TOPIC)}
    return {q: reader.due_times(*reader.range()).tolist() for q, reader in readers.items()}


def test_due_times_are_store_time_and_delay_however_a_message_came(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    sent_singly(store)
    clock.advance(50)
    store.append("orders", table())
    stage = TaskStage(root=store.path, transaction="t", topic="orders", clock=clock)
    stage.add(table().to_batches()[0])
    path, rows = stage.finish()
    assert path is not None
    assert rows == len(LEVELS) + len(TIMES)
    clock.advance(50)
    assert store._store.commit_batch(StagedBatch(files=[path]))
    expected = {0: [1000], 2: [10_000], 17: [7_200_000] * 2}
    found = due_times(store)
    assert found == {
        queue: [NOW + late + delay for late in (0, 50, 100) for delay in delays]
        for queue, delays in expected.items()
    }


def test_recovery_finds_the_same_due_times(tmp_path: Path, clock: ManualClock) -> None:
    with rocketpy.open(tmp_path / "store", clock=clock) as store:
        store.create_topic("orders", 4)
        store.append("orders", table())
        before = due_times(store)
    for path in (tmp_path / "store" / "consumequeue").rglob("0" * 20):
        path.unlink()
    (tmp_path / "store" / "abort").write_text("1")
    (tmp_path / "store" / "checkpoint").unlink()
    with rocketpy.open(tmp_path / "store", clock=clock) as store:
        assert due_times(store) == before
        assert list(store.verify()) == []


def test_topics_are_made_by_a_staged_batch_whose_messages_all_wait(tmp_path: Path) -> None:
    stage = TaskStage(root=tmp_path / "new", transaction="t", topic="orders", queues=3)
    (tmp_path / "new").mkdir()
    stage.add(pa.table({"body": ["late"], "delay_level": [2]}).to_batches()[0])
    path, _ = stage.finish()
    assert path is not None
    assert commit(tmp_path / "new", StagedBatch(files=[path]))
    with rocketpy.open(tmp_path / "new") as store:
        queues = {name: config.write_queues for name, config in store.topics().items()}
        assert queues == {"orders": 3, SCHEDULE_TOPIC: 18}
        assert list(store.verify()) == []


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"delay_level": [0, -1]}, "delay_level of row 1: levels count from 1"),
        ({"deliver_at": [0, NOW + 3 * DAY_MS + 1]}, "deliver_at of row 1: further ahead than 259"),
        ({"delay_level": [0, 1], "deliver_at": [0, NOW + 9]}, "row 1: the row has a delay_level"),
    ],
)
def test_a_row_that_cannot_wait_is_refused(
    store: rocketpy.Store, columns: dict[str, list[int]], words: str
) -> None:
    with pytest.raises(MessageRefusedError, match=words):
        store.append("orders", pa.table({"body": ["a", "b"], **columns}))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"delay_level": -1}, "levels count from 1"),
        ({"deliver_at": NOW + 3 * DAY_MS + 1}, "further ahead than 259200 s"),
        ({"deliver_at": NOW + 9, "delay_level": 1}, "give one of them"),
        ({"deliver_at": datetime(2026, 11, 16)}, "no time zone"),
    ],
)
def test_a_message_that_cannot_wait_is_refused(
    store: rocketpy.Store, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(MessageRefusedError, match=words):
        store.send("orders", b"", **arguments)


def test_a_time_may_be_a_datetime(store: rocketpy.Store) -> None:
    zone = timezone(timedelta(hours=8))
    store.send("orders", b"", deliver_at=datetime.fromtimestamp(NOW / 1000 + 5, zone))
    store.append(
        "orders",
        pa.table({"body": [""], "deliver_at": pa.array([(NOW + 5000) * 1000], pa.timestamp("us"))}),
    )
    rows = store.read(TIMER_TOPIC, columns=["properties"]).read_all().to_pylist()
    times = [dict(row["properties"])["TIMER_DELIVER_MS"] for row in rows]
    assert times == [str(NOW + 5000)] * 2


@pytest.mark.parametrize("topic", [SCHEDULE_TOPIC, TIMER_TOPIC])
def test_nobody_sends_to_the_topics_in_which_messages_wait(
    store: rocketpy.Store, topic: str
) -> None:
    store.send("orders", b"", delay_level=1)
    with pytest.raises(MessageRefusedError, match="RocketMQ's own"):
        store.send(topic, b"")
    with pytest.raises(MessageRefusedError, match="RocketMQ's own"):
        store.append(topic, pa.table({"body": [""]}))


def test_notes_of_an_earlier_delay_are_replaced(store: rocketpy.Store) -> None:
    old = [("DELAY", "7"), ("REAL_TOPIC", "gone"), ("region", "eu")]
    properties = pa.array([old], pa.map_(pa.string(), pa.string()))
    store.append("orders", pa.table({"body": [""], "properties": properties, "delay_level": [2]}))
    (row,) = store.read(SCHEDULE_TOPIC, columns=["properties"]).read_all().to_pylist()
    noted = dict(row["properties"])
    assert len(noted) == len(row["properties"])
    assert (noted["DELAY"], noted["REAL_TOPIC"], noted["region"]) == ("2", "orders", "eu")
