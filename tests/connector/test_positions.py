"""Where a read starts and ends: words, times and offsets become an offset of each queue."""

from __future__ import annotations

import pytest
from tests.connector.queues import Shelf, q

from rocketpy.connector.options import OptionError
from rocketpy.connector.positions import (
    AtTime,
    ByQueue,
    NamedPosition,
    Position,
    TimesByQueue,
    resolve,
)

SHELF = Shelf({q(0): [100, 200, 200, 300], q(1): [150], q(2): []}, low=10)
ENDS = {0: 14, 1: 11, 2: 10}
STARTS = {0: 10, 1: 10, 2: 10}


def resolved(
    position: Position, bound: NamedPosition = NamedPosition.EARLIEST, shelf: Shelf = SHELF
) -> dict[int, int]:
    found = resolve(position, bound, shelf.ranges(["t"]), shelf, "g")
    return {queue.queue_id: offset for queue, offset in found.items()}


def test_earliest_is_the_first_that_is_held_and_latest_the_end() -> None:
    assert resolved(NamedPosition.EARLIEST, NamedPosition.LATEST) == STARTS
    assert resolved(NamedPosition.LATEST) == ENDS


def test_group_is_where_the_group_is_and_the_bound_elsewhere() -> None:
    shelf = Shelf(SHELF.times, low=10, commits={q(0): 12, q(0, "other"): 3})
    assert resolved(NamedPosition.GROUP, shelf=shelf) == STARTS | {0: 12}
    assert resolved(NamedPosition.GROUP, NamedPosition.LATEST, shelf) == ENDS | {0: 12}


def test_a_group_that_never_committed_starts_at_the_bound() -> None:
    assert resolved(NamedPosition.GROUP) == STARTS


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ({"0": 11}, STARTS | {0: 11}),
        ({"0": -2, "1": -1}, STARTS | {1: 11}),
        ({"b:0": 13, "2": 10}, STARTS | {0: 13}),
        ({}, STARTS),
        ({"0": 99}, STARTS | {0: 99}),  # whether it is held is asked later
    ],
)
def test_offsets_by_queue_with_the_bound_for_the_others(
    offsets: dict[str, int], expected: dict[int, int]
) -> None:
    assert resolved(ByQueue("startingOffsets", {"t": offsets})) == expected


@pytest.mark.parametrize(("topic", "key"), [("t", "3"), ("t", "c:0"), ("u", "0")])
def test_offsets_of_a_queue_that_does_not_exist_are_refused(topic: str, key: str) -> None:
    with pytest.raises(OptionError, match=r"there is no queue .*; there are t/b:0, t/b:1, t/b:2"):
        resolved(ByQueue("startingOffsets", {topic: {key: 1}}))


@pytest.mark.parametrize(
    ("time_ms", "expected"),
    [
        (0, STARTS),
        (100, STARTS),
        (101, STARTS | {0: 11}),
        (150, STARTS | {0: 11}),
        (200, ENDS | {0: 11}),  # the first of two of the same time
        (300, ENDS | {0: 13}),
        (301, ENDS),
    ],
)
def test_a_time_is_the_first_message_stored_then_or_later(
    time_ms: int, expected: dict[int, int]
) -> None:
    assert resolved(AtTime("startingTimestamp", time_ms)) == expected


def test_a_queue_without_a_message_of_the_time_is_refused_if_asked() -> None:
    with pytest.raises(OptionError, match="t/b:1 has no message stored at 200 ms or later"):
        resolved(AtTime("startingTimestamp", 200, must_match=True))


def test_a_time_that_all_queues_have_is_not_refused() -> None:
    shelf = Shelf({q(0): [100, 200], q(1): [150]})
    assert resolved(AtTime("startingTimestamp", 120, must_match=True), shelf=shelf) == {0: 1, 1: 0}


def test_no_time_is_behind_the_end_that_was_seen() -> None:
    stored = SHELF.ranges(["t"])
    grown = Shelf({queue: [*times, 400, 500] for queue, times in SHELF.times.items()}, low=10)
    found = resolve(AtTime("startingTimestamp", 450), NamedPosition.EARLIEST, stored, grown, None)
    assert {queue.queue_id: offset for queue, offset in found.items()} == ENDS


# --- a time for each queue ------------------------------------------------------------------------


def times(**more: int) -> TimesByQueue:
    return TimesByQueue("startingTimestamp", {"t": {"0": 200, "b:1": 999, **more}})


def test_each_queue_may_have_a_time_of_its_own_and_the_others_take_the_bound() -> None:
    assert resolved(times()) == {0: 11, 1: 11, 2: 10}
    only = TimesByQueue("endingTimestamp", {"t": {"1": 0}})
    assert resolved(only, NamedPosition.LATEST) == ENDS | {1: 10}


def test_a_time_for_a_queue_that_does_not_exist_is_refused() -> None:
    with pytest.raises(OptionError, match=r"there is no queue t/b:7; there are t/b:0, t/b:1"):
        resolved(times(**{"7": 1}))


def test_only_queues_that_have_a_time_are_refused_for_lack_of_a_message() -> None:
    with pytest.raises(OptionError, match="t/b:1 has no message stored at 999 ms or later"):
        resolved(TimesByQueue("startingTimestamp", times().times, must_match=True))
    named = TimesByQueue("startingTimestamp", {"t": {"0": 100}}, must_match=True)
    assert resolved(named) == STARTS  # queue 2 has none at all
