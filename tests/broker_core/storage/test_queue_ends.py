"""Where queues end by the log: followed, noted, read again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.queue_ends import (
    NotedEnds,
    QueueEnd,
    QueueEnds,
    QueueEndsFile,
    sampled_ends,
)

NOTED = NotedEnds(700, {("t", 0): QueueEnd(3, 600), ("ü", 12): QueueEnd(1, 0)})


@pytest.fixture
def file(tmp_path: Path) -> QueueEndsFile:
    (tmp_path / "rocketpy").mkdir()
    return QueueEndsFile(tmp_path, Disk())


def test_what_is_noted_is_read_again(file: QueueEndsFile) -> None:
    assert file.read() is None
    file.write(NOTED)
    assert file.read() == NOTED


@pytest.mark.parametrize("at", range(0, 100, 7))
def test_a_damaged_note_counts_as_none(file: QueueEndsFile, tmp_path: Path, at: int) -> None:
    file.write(NOTED)
    path = tmp_path / "rocketpy" / "queues"
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)
    assert QueueEndsFile(tmp_path, Disk()).read() in (None, NOTED)  # a blank does not matter


def test_ends_are_those_of_the_log_whoever_appended(store: rocketpy.Store) -> None:
    parts = store._store.parts
    for number in range(9):
        store.send("wide", f"{number}", queue_id=number % 2)
    ends = QueueEnds(parts.log, NotedEnds(0, {}))
    state = parts.tail.read()
    assert state is not None
    found = ends.read_on(state.end)
    last = {0: store.read("wide", queue_id=0), 1: store.read("wide", queue_id=1)}
    assert {key: end.next_offset for key, end in found.ends.items()} == {
        ("wide", 0): 5,
        ("wide", 1): 4,
    }
    for queue_id, reader in last.items():
        table = reader.read_all()
        assert found.ends["wide", queue_id].next_offset == table.num_rows


def test_own_appends_between_those_of_others_are_not_put_back(store: rocketpy.Store) -> None:
    parts = store._store.parts
    ends, places = QueueEnds(parts.log, NotedEnds(0, {})), []
    for number in range(12):
        receipt = store.send("t", f"{number}")
        places.append(receipt.physical_offset)
        if number % 3 == 0:  # ours; the others are seen as those of another process
            state = parts.tail.read()
            assert state is not None
            end = QueueEnd(number + 1, receipt.physical_offset)
            ends.note(receipt.physical_offset, state.end, {("t", 0): end})
    state = parts.tail.read()
    assert state is not None
    assert ends.read_on(state.end).ends == {("t", 0): QueueEnd(12, places[-1])}


def test_a_sample_has_no_end_that_is_too_high(store: rocketpy.Store) -> None:
    for number in range(40):
        store.send("wide", f"{number}", queue_id=number % 3)
    sampled = sampled_ends(store._store.parts.log)
    assert set(sampled) == {("wide", 0), ("wide", 1), ("wide", 2)}
    for (topic, queue_id), end in sampled.items():
        assert end.next_offset <= store.queues(topic)[queue_id][1]


def test_batches_of_our_own_are_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stretches: list[int] = []
    read_step = QueueEnds._read_step

    def counted(ends: QueueEnds) -> bool:
        stretches.extend(start for start, _ in ends._unread)
        return read_step(ends)

    clock = ManualClock(1_000_000)
    with rocketpy.open(path, clock=clock) as store:
        store.create_topic("t", 2)
        waiting = {"body": [f"{number}" * 50 for number in range(100)], "delay_level": [1] * 100}
        store.append("t", pa.table(waiting))
        clock.advance(10_000)
        monkeypatch.setattr(QueueEnds, "_read_step", counted)
        assert store.deliver_due() == 100
        receipt = store.send("t", "one more", queue_id=0)
        assert list(store.verify()) == []
    assert (stretches, receipt.queue_offset) == ([], 50)
