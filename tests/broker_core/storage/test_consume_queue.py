"""A consume queue: bytes of its units, its end, what is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rocketpy.broker_core.storage.consume_queue import ConsumeQueue, QueueUnit
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import QUEUE_UNIT, QUEUE_UNIT_STRUCT

UNIT = QueueUnit(258, 100, -2)


def open_queue(folder: Path, *, entries: int = 5) -> ConsumeQueue:
    return ConsumeQueue(folder, "t", 0, entries, Disk(), writable=True)


@pytest.fixture
def queue(tmp_path: Path) -> ConsumeQueue:
    return open_queue(tmp_path)


def put(queue: ConsumeQueue, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        queue.put_packed(number, QUEUE_UNIT_STRUCT.pack(*QueueUnit(number * 100, 100, number)))


def test_a_unit_takes_twenty_bytes(queue: ConsumeQueue, tmp_path: Path) -> None:
    queue.put_packed(1, QUEUE_UNIT_STRUCT.pack(*UNIT))
    data = (tmp_path / "00000000000000000000").read_bytes()
    assert len(data) == 5 * 20
    assert data[20:40].hex(" ", 4) == (
        "00000000 00000102"  # physical offset
        " 00000064"  # size
        " ffffffff fffffffe"  # tag code
    )


def test_an_empty_queue_ends_at_zero(queue: ConsumeQueue) -> None:
    assert queue.last() == (0, None)
    assert queue.units(0, 10).size == 0
    assert queue.min_offset(0, 0) == 0


@pytest.mark.parametrize("count", [1, 4, 5, 6, 10, 11])
def test_the_end_is_behind_the_last_entry(count: int, queue: ConsumeQueue, tmp_path: Path) -> None:
    put(queue, count)
    for one in (queue, open_queue(tmp_path)):
        assert one.last() == (count, QueueUnit((count - 1) * 100, 100, count - 1))


def test_what_others_append_is_seen(queue: ConsumeQueue, tmp_path: Path) -> None:
    other = open_queue(tmp_path)
    for count in range(1, 23):
        put(other, 1, count - 1)
        assert queue.end() == count


def test_what_others_cut_is_seen(queue: ConsumeQueue, tmp_path: Path) -> None:
    put(queue, 12)
    open_queue(tmp_path).cut(3)
    assert queue.end() == 3


def test_a_range_over_files_is_read(queue: ConsumeQueue) -> None:
    put(queue, 12)
    assert queue.units(3, 12)["tag_code"].tolist() == list(range(3, 12))


def test_bytes_of_a_few_entries_end_with_their_file(queue: ConsumeQueue) -> None:
    put(queue, 7)  # a file has five
    assert bytes(queue.few_units(1, 3)) == b"".join(
        QUEUE_UNIT_STRUCT.pack(number * 100, 100, number) for number in (1, 2)
    )
    assert len(queue.few_units(4, 7)) == QUEUE_UNIT_STRUCT.size
    assert len(queue.few_units(20, 22)) == 0


def test_a_queue_that_does_not_begin_at_zero_is_filled_before(queue: ConsumeQueue) -> None:
    queue.fill_before(13)
    queue.put_packed(13, QUEUE_UNIT_STRUCT.pack(*UNIT))
    assert queue.first_offset() == 10
    assert queue.last() == (14, UNIT)
    unit = queue.unit(10)
    assert unit is not None
    assert unit.is_filler
    assert queue.min_offset(0, 14) == 13


def test_a_queue_without_its_first_files_begins_later(queue: ConsumeQueue) -> None:
    put(queue, 12)
    queue.files.remove(0)
    assert queue.first_offset() == 5
    assert queue.end() == 12
    assert queue.min_offset(0, 12) == 5
    assert queue.min_offset(850, 12) == 9


def test_many_units_are_put_over_files(queue: ConsumeQueue) -> None:
    units = np.zeros(12, QUEUE_UNIT)
    units["physical_offset"], units["size"] = np.arange(12) * 50, 50
    queue.put(0, units)
    assert queue.end() == 12
    assert queue.files.starts() == [0, 100, 200]


def test_the_end_that_one_thread_finds_is_not_changed_by_another(
    queue: ConsumeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        queue.put_packed(number, QUEUE_UNIT_STRUCT.pack(*QueueUnit(number * 100, 100, 0)))
    queue._known_end = 8  # others appended two since we looked
    read = queue.files.read

    def read_while_another_thread_looks(offset: int, size: int) -> bytes:
        data = read(offset, size)
        queue._known_end = 8
        return data

    monkeypatch.setattr(queue.files, "read", read_while_another_thread_looks)
    end, last = queue.last()
    assert (end, last) == (10, QueueUnit(900, 100, 0))


@pytest.mark.parametrize("others", range(1, 12))
def test_entries_go_to_their_file_whoever_wrote_those_before(
    others: int, queue: ConsumeQueue, tmp_path: Path
) -> None:
    put(queue, 2)
    put(open_queue(tmp_path), others, first=2)
    assert queue.end() == others + 2
    put(queue, 2, first=others + 2)
    expected = open_queue(tmp_path / "other")
    put(expected, others + 4)
    assert queue.units(0, others + 4).tolist() == expected.units(0, others + 4).tolist()
    for file in (tmp_path / "other").iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()
