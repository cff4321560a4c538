"""A consume queue against a list."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue, QueueUnit
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import QUEUE_UNIT, QUEUE_UNIT_STRUCT

UNITS = st.builds(
    QueueUnit, st.integers(0, 1 << 40), st.integers(1, 1 << 20), st.integers(-(1 << 63), 1 << 62)
)


def queue_in(folder: Path, file_entries: int) -> ConsumeQueue:
    return ConsumeQueue(folder, "t", 0, file_entries, Disk(), writable=True)


@given(
    batches=st.lists(st.lists(UNITS, min_size=1, max_size=9), max_size=6),
    file_entries=st.integers(1, 6),
    data=st.data(),
)
def test_what_was_put_is_what_is_there(
    batches: list[list[QueueUnit]], file_entries: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        queue, model = queue_in(Path(name), file_entries), list[QueueUnit]()
        for units in batches:
            if len(units) == 1:
                queue.put_packed(len(model), QUEUE_UNIT_STRUCT.pack(*units[0]))
            else:
                queue.put(len(model), np.array(units, QUEUE_UNIT))
            model += units
            assert queue.last() == (len(model), model[-1])
        other = queue_in(Path(name), file_entries)  # one that knows of no end yet
        assert other.last() == (len(model), model[-1] if model else None)
        assert other.end() == len(model)
        start = data.draw(st.integers(0, len(model)))
        end = data.draw(st.integers(start, len(model)))
        found = [QueueUnit(*unit) for unit in other.units(start, end).tolist()]
        assert found == model[start:end]
        assert [other.unit(number) for number in range(start, end)] == model[start:end]
        assert other.unit(len(model)) is None


@given(
    sizes=st.lists(st.integers(1, 50), max_size=20),
    file_entries=st.integers(1, 6),
    log_start=st.integers(0, 1100),
    fillers=st.integers(0, 5),
)
def test_the_first_entry_held_is_the_first_whose_record_is_still_there(
    sizes: list[int], file_entries: int, log_start: int, fillers: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        queue = queue_in(Path(name), file_entries)
        first = min(fillers, file_entries - 1)
        if first:
            queue.fill_before(first)
        places = np.cumsum([0, *sizes])[: len(sizes)].tolist()
        for number, (place, size) in enumerate(zip(places, sizes, strict=True), first):
            queue.put_packed(number, QUEUE_UNIT_STRUCT.pack(*QueueUnit(place, size, 0)))
        gone = sum(place < log_start for place in places)
        assert queue.min_offset(log_start, queue.end()) == first + gone


@given(count=st.integers(0, 20), file_entries=st.integers(1, 6), cut=st.integers(0, 22))
def test_what_was_cut_is_not_there_any_more(count: int, file_entries: int, cut: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        queue = queue_in(Path(name), file_entries)
        units = [QueueUnit(100 * number, 100, 7) for number in range(count)]
        if units:
            queue.put(0, np.array(units, QUEUE_UNIT))
        assert queue.end() == count
        queue.cut(cut)
        assert queue.end() == min(cut, count)
        assert not queue.files.has_data_from(20 * min(cut, count))


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100))
def test_bisection_finds_where_it_ceases_to_hold(low: int, length: int, bound: int) -> None:
    high = low + length
    expected = min(max(bound, low), high)
    assert first_false(lambda number: number < bound, low, high) == expected
