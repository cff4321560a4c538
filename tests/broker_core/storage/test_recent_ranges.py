from __future__ import annotations

from rocketpy.broker_core.message import QueueOffset
from rocketpy.broker_core.storage.queue_ends import QueueEnd
from rocketpy.broker_core.storage.recent_ranges import Range, RecentRanges

QUEUE, OTHER = ("orders", 0), ("orders", 1)


class Log:
    """A log whose end is moved by hand, and that counts how often it is looked at."""

    def __init__(self) -> None:
        self.mark, self.end, self.looks = b"0", 0, 0

    def look_up(self) -> Range:
        self.looks += 1
        return QueueOffset(0), QueueOffset(self.end)


def ended(at: int) -> dict[tuple[str, int], QueueEnd]:
    return {QUEUE: QueueEnd(at, 0)}


def test_a_range_is_looked_up_once() -> None:
    log = Log()
    ranges = RecentRanges(lambda: log.mark)
    assert [ranges.get(QUEUE, log.look_up) for _ in range(3)] == [(0, 0)] * 3
    assert log.looks == 1


def test_our_appends_carry_a_range_on_without_a_look() -> None:
    log = Log()
    ranges = RecentRanges(lambda: log.mark)
    ranges.get(QUEUE, log.look_up)
    ranges.get(OTHER, log.look_up)
    log.mark = b"1"
    ranges.carry_on(b"0", ended(5))
    assert ranges.get(QUEUE, log.look_up) == (0, 5)
    assert ranges.get(OTHER, log.look_up) == (0, 0)
    assert log.looks == 2


def test_an_append_of_others_has_all_ranges_looked_up_again() -> None:
    log = Log()
    ranges = RecentRanges(lambda: log.mark)
    ranges.get(QUEUE, log.look_up)
    log.mark, log.end = b"theirs", 7
    assert ranges.get(QUEUE, log.look_up) == (0, 7)


def test_our_append_after_one_of_others_does_not_hide_theirs() -> None:
    log = Log()
    ranges = RecentRanges(lambda: log.mark)
    ranges.get(OTHER, log.look_up)
    log.mark, log.end = b"theirs", 7  # in OTHER
    log.mark = b"ours"
    ranges.carry_on(b"theirs", ended(5))
    assert ranges.get(OTHER, log.look_up) == (0, 7)


def test_an_append_while_a_range_is_looked_up_is_not_hidden_by_it() -> None:
    log = Log()
    ranges = RecentRanges(lambda: log.mark)

    def overtaken() -> Range:
        found = log.look_up()
        log.mark, log.end = b"1", 5
        ranges.carry_on(b"0", ended(5))
        return found

    assert ranges.get(QUEUE, overtaken) == (0, 0)
    assert ranges.get(QUEUE, log.look_up) == (0, 5)


def test_an_append_of_others_while_a_range_is_looked_up_is_not_hidden_by_it() -> None:
    log = Log()
    ranges = RecentRanges(lambda: log.mark)

    def overtaken() -> Range:
        found = log.look_up()
        log.mark, log.end = b"theirs", 5
        return found

    assert ranges.get(QUEUE, overtaken) == (0, 0)
    assert ranges.get(QUEUE, log.look_up) == (0, 5)
