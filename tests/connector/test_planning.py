"""How much a batch takes, and how it is cut into tasks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connector.queues import lengths_of, q, ranges, waiting

from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.planning import (
    MOST_SIZES,
    MOST_TASK_ROWS,
    ROW_BYTES,
    TASK_ROWS,
    QueueRange,
    Ranges,
    at_most_bytes,
    at_most_rows,
    split,
    tasks,
    total,
    waiting_ranges,
)


def is_first_part(of: Ranges, admitted: Ranges) -> bool:
    """Whether each queue begins where it did, and ends no later."""
    return admitted.keys() == of.keys() and all(
        part.start == of[queue].start and part.start <= part.end <= of[queue].end
        for queue, part in admitted.items()
    )


# --- rows -----------------------------------------------------------------------------------------


@given(waiting, st.integers(1, 200))
def test_exactly_the_rows_asked_for_are_admitted(some: Ranges, rows: int) -> None:
    admitted = at_most_rows(some, rows)
    assert is_first_part(some, admitted)
    assert total(admitted) == min(rows, total(some))


@given(waiting, st.integers(1, 200))
def test_each_queue_gets_what_its_length_makes_out(some: Ranges, rows: int) -> None:
    admitted = at_most_rows(some, rows)
    queues = sum(len(part) > 0 for part in some.values())
    if total(some) > rows >= queues:  # one each, and of the rest in proportion
        for queue, part in some.items():
            behind = max(len(part) - 1, 0)
            share = (rows - queues) * behind / (total(some) - queues)
            assert abs(len(admitted[queue]) - min(len(part), 1) - share) < 1


@given(waiting, st.integers(1, 200))
def test_no_queue_is_left_out_while_there_are_rows_for_all(some: Ranges, rows: int) -> None:
    filled = [queue for queue, part in some.items() if len(part)]
    if rows >= len(filled):
        admitted = at_most_rows(some, rows)
        assert all(len(admitted[queue]) for queue in filled)


def test_a_limit_is_shared_in_proportion() -> None:
    assert lengths_of(at_most_rows(ranges(1001, 101, 0), 112)) == [101, 11, 0]


def test_fewer_rows_than_queues_go_to_each_in_turn() -> None:
    at, read = {q(i): 0 for i in range(3)}, {q(i): 0 for i in range(3)}
    for _ in range(60):  # all queues grow faster than they are read
        some = {queue: QueueRange(queue, start, start + 1000) for queue, start in at.items()}
        for queue, part in at_most_rows(some, 1).items():
            at[queue] += len(part)
            read[queue] += len(part)
    assert min(read.values()) > 5


# --- bytes ----------------------------------------------------------------------------------------


class Sized:
    """Messages of given sizes, repeated."""

    def __init__(self, *sizes: list[int]) -> None:
        self._sizes = sizes

    def __call__(self, queue: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        sizes = self._sizes[queue.queue_id % len(self._sizes)]
        return np.array([sizes[at % len(sizes)] for at in range(start, end)], np.int64)

    def of(self, some: Ranges) -> int:
        parts = [self(queue, part.start, part.end) for queue, part in some.items()]
        return int(sum(part.sum() for part in parts))


sizes = st.lists(st.lists(st.integers(1, 90), min_size=1, max_size=5), min_size=1, max_size=4)


@given(waiting, sizes, st.integers(1, 2000))
def test_the_limit_in_bytes_is_held_but_by_a_single_message(
    some: Ranges, each: list[list[int]], limit: int
) -> None:
    sized = Sized(*each)
    admitted = at_most_bytes(some, limit, sized)
    assert is_first_part(some, admitted)
    assert sized.of(admitted) <= limit or total(admitted) == 1
    assert total(admitted) >= min(1, total(some))


@given(waiting, sizes, st.integers(1, 2000))
def test_all_is_admitted_that_fits(some: Ranges, each: list[list[int]], limit: int) -> None:
    sized = Sized(*each)
    if sized.of(some) <= limit:
        assert at_most_bytes(some, limit, sized) == some


@given(waiting, sizes)
def test_each_queue_gets_a_message_where_all_first_ones_fit(
    some: Ranges, each: list[list[int]]
) -> None:
    sized = Sized(*each)
    heads = {queue: part.first(min(1, len(part))) for queue, part in some.items()}
    admitted = at_most_bytes(some, max(sized.of(heads), 1), sized)
    assert all(len(admitted[queue]) >= len(head) for queue, head in heads.items())


def test_bytes_are_shared_evenly_and_what_is_left_goes_to_the_others() -> None:
    admitted = at_most_bytes(ranges(2, 100, 100), 1200, Sized([10]))
    assert lengths_of(admitted) == [2, 59, 59]


@pytest.mark.parametrize("limit", [5, 60, 100])
def test_no_queue_waits_for_ever_behind_one_that_grows_all_the_time(limit: int) -> None:
    sized, at = Sized([50], [10]), {q(0): 0, q(1): 0}
    for _ in range(100):
        some = {q(0): QueueRange(q(0), at[q(0)], 1), q(1): QueueRange(q(1), at[q(1)], 10_000)}
        for queue, part in at_most_bytes(some, limit, sized).items():
            at[queue] = part.end
    assert at[q(0)] == 1


def test_no_more_sizes_are_looked_at_however_many_queues_there_are() -> None:
    asked = list[int]()

    def sizes(_: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        asked.append(end - start)
        return np.full(3, 100, np.int64)

    at_most_bytes(ranges(*[1_000_000] * 1000), 1 << 30, sizes)
    assert sum(asked) <= MOST_SIZES
    assert min(asked) > 1000


# --- tasks ----------------------------------------------------------------------------------------

limits = st.none() | st.integers(1, 40)


@given(waiting, limits, limits)
def test_the_parts_are_the_whole_in_order(
    some: Ranges, least: int | None, most: int | None
) -> None:
    parts = split(some, min_partitions=least, max_rows=most)
    covered = [(part.queue, at) for part in parts for at in range(part.start, part.end)]
    assert covered == [
        (queue, at) for queue in sorted(some) for at in range(some[queue].start, some[queue].end)
    ]
    assert all(len(part) for part in parts)


@given(waiting, st.integers(1, 40), limits)
def test_there_are_as_many_parts_as_wanted_if_there_are_rows(
    some: Ranges, least: int, most: int | None
) -> None:
    assert len(split(some, min_partitions=least, max_rows=most)) >= min(least, total(some))


@given(waiting, limits, st.integers(1, 40))
def test_no_part_has_more_rows_than_allowed(some: Ranges, least: int | None, most: int) -> None:
    assert all(len(part) <= most for part in split(some, min_partitions=least, max_rows=most))


def test_a_queue_is_one_part_if_nothing_else_is_said() -> None:
    assert [len(part) for part in split(ranges(5, 0, 7))] == [5, 7]


def test_the_longest_queue_is_split_first() -> None:
    assert [len(part) for part in split(ranges(10, 100), min_partitions=3)] == [10, 50, 50]


MANY_CORES = 1024
TASK_BYTES = TASK_ROWS * ROW_BYTES


def test_a_few_rows_of_any_size_are_one_task() -> None:
    assert [len(some) for some in tasks(split(ranges(900, 900)), {}, MANY_CORES)] == [2]
    assert tasks([], {}, MANY_CORES) == []


def test_queues_with_some_rows_share_tasks_up_to_a_limit() -> None:
    parts = split(ranges(*[TASK_ROWS // 4] * 9))
    shared = tasks(parts, near(parts, TASK_BYTES), MANY_CORES)
    assert [len(some) for some in shared] == [4, 4, 1]
    assert [part for some in shared for part in some] == parts


def test_a_queue_with_many_rows_is_a_task() -> None:
    parts = split(ranges(3, TASK_ROWS, 5, 6))
    shared = tasks(parts, near(parts, 10), MANY_CORES)
    assert [[len(part) for part in some] for some in shared] == [[3], [TASK_ROWS], [5, 6]]


@pytest.mark.parametrize(("cores", "expected"), [(1, [2, 2]), (2, [2, 2]), (3, [1] * 4)])
def test_queues_share_larger_tasks_where_these_keep_all_cores_busy(
    cores: int, expected: list[int]
) -> None:
    parts = split(ranges(25_001, 25_001, 24_999, 24_999))
    shared = tasks(parts, near(parts, 28 << 20), cores)
    assert [len(some) for some in shared] == expected


def test_no_task_of_several_queues_takes_long() -> None:
    parts = split(ranges(*[MOST_TASK_ROWS // 4] * 9))
    shared = tasks(parts, near(parts, MOST_TASK_ROWS * ROW_BYTES), 1)
    assert [len(some) for some in shared] == [4, 4, 1]
    assert len(tasks(parts, near(parts, MOST_TASK_ROWS * ROW_BYTES + 1), 1)) == 9


def test_queues_whose_messages_are_large_or_lie_far_apart_share_no_task() -> None:
    parts = split(ranges(1_500, 1_500, 1_500))
    far = {q(0): (0, 100), q(1): (TASK_BYTES, TASK_BYTES + 1), q(2): (TASK_BYTES, TASK_BYTES + 2)}
    assert [len(some) for some in tasks(parts, far, MANY_CORES)] == [1, 2]
    large = near(parts, TASK_BYTES + 1)
    assert [len(some) for some in tasks(parts, large, MANY_CORES)] == [1, 1, 1]


def test_a_queue_of_unknown_size_is_a_task() -> None:
    parts = split(ranges(1_500, 1_500, 1_500))
    known = {q(0): (0, 1), q(2): (0, 1)}
    assert [len(some) for some in tasks(parts, known, MANY_CORES)] == [1, 1, 1]


def near(parts: list[QueueRange], end: int) -> dict[MessageQueue, tuple[int, int]]:
    """Have all ranges lie before some byte of the log."""
    return dict.fromkeys((part.queue for part in parts), (0, end))


# --- what waits -----------------------------------------------------------------------------------

Bounds = dict[int, tuple[int, int]]


@pytest.mark.parametrize(
    ("start", "held", "target", "expected"),
    [
        pytest.param({0: 3}, {0: (0, 9)}, None, {0: (3, 9)}, id="what is behind the start"),
        pytest.param({0: 9}, {0: (0, 9)}, None, {0: (9, 9)}, id="nothing new"),
        pytest.param({0: 3}, {0: (0, 9), 1: (0, 2)}, None, {0: (3, 9), 1: (0, 2)}, id="new queue"),
        pytest.param({0: 3, 1: 4}, {0: (0, 9)}, None, {0: (3, 9)}, id="vanished queue"),
        pytest.param({0: 3}, {0: (5, 9)}, None, {0: (5, 9)}, id="retention"),
        pytest.param({0: 3}, {0: (0, 9)}, {0: 6}, {0: (3, 6)}, id="up to the target"),
        pytest.param({0: 6}, {0: (0, 9)}, {0: 6}, {0: (6, 6)}, id="target reached"),
        pytest.param({0: 3}, {0: (0, 9), 1: (0, 2)}, {0: 6}, {0: (3, 6)}, id="newer than target"),
        pytest.param(
            {0: 3, 1: 1},
            {0: (0, 9), 1: (0, 2)},
            {0: 6},
            {0: (3, 6), 1: (1, 1)},
            id="gone when the target was fixed",
        ),
        pytest.param({}, {0: (0, 9)}, {0: 6}, {0: (0, 6)}, id="found before the target"),
        pytest.param({0: 8}, {0: (0, 9)}, {0: 6}, {0: (8, 8)}, id="begun behind the target"),
        pytest.param({0: 3}, {0: (7, 9)}, {0: 6}, {0: (6, 6)}, id="deleted up to the target"),
    ],
)
def test_what_waits(
    start: dict[int, int], held: Bounds, target: dict[int, int] | None, expected: Bounds
) -> None:
    found = waiting_ranges(
        {q(i): at for i, at in start.items()},
        {q(i): bounds for i, bounds in held.items()},
        None if target is None else {q(i): at for i, at in target.items()},
    )
    shown = {queue.queue_id: (part.start, part.end) for queue, part in found.items()}
    assert shown == expected
