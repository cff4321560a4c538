"""Pulls in flight together give each offset once and in order, whatever a broker gives for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.client.pull_window import PullWindow
from rocketpy.broker_core.client.pulled import Pulled
from rocketpy.broker_core.message_queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 0)


@dataclass
class Broker:
    """Covers as many offsets for a pull as `limit` says, up to the end of the queue."""

    end: int
    limit: Callable[[int], int]
    is_filtering: bool = False
    asked: list[tuple[int, int]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    def send(self, queue_offset: int, most: int) -> tuple[int, int]:
        self.asked.append((queue_offset, most))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        return queue_offset, most

    def receive(self, ticket: tuple[int, int]) -> Pulled:
        self.in_flight -= 1
        queue_offset, most = ticket
        covered = self.limit(queue_offset)
        if not self.is_filtering:
            covered = min(covered, most)
        upto = max(queue_offset, min(queue_offset + covered, self.end))
        return Pulled(QUEUE, queue_offset, upto, 0, self.end, b"x" * (upto - queue_offset))


def offsets(window: PullWindow[tuple[int, int]], start: int, end: int) -> list[int]:
    return [
        offset
        for pulled in window.read(start, end)
        for offset in range(pulled.new_from, min(pulled.next_offset, end))
    ]


@given(
    st.lists(st.integers(1, 50), min_size=1),
    st.integers(0, 300),
    st.integers(0, 300),
    st.integers(1, 60),
    st.booleans(),
)
def test_each_offset_of_a_range_comes_once_and_in_order(
    limits: list[int], start: int, length: int, most: int, is_filtered: bool
) -> None:
    broker = Broker(10_000, lambda offset: limits[offset % len(limits)], is_filtered)
    window = PullWindow(broker, most=most, is_filtered=is_filtered)
    assert offsets(window, start, start + length) == [*range(start, start + length)]
    assert broker.in_flight == 0


def test_many_pulls_are_in_flight_when_a_broker_gives_32_each() -> None:
    broker = Broker(32_000, lambda _: 32)
    assert offsets(PullWindow(broker, most=4096), 0, 32_000) == [*range(32_000)]
    assert broker.most_in_flight >= 12
    assert len(broker.asked) < 1.1 * 1000  # few were guessed wrong


def test_a_broker_that_gives_more_again_is_asked_for_more() -> None:
    broker = Broker(100_000, lambda offset: 8 if offset < 2_000 else 32)
    assert offsets(PullWindow(broker, most=4096), 0, 100_000) == [*range(100_000)]
    assert max(most for offset, most in broker.asked[-20:]) >= 32


def test_large_answers_leave_fewer_in_flight() -> None:
    broker = Broker(64 << 20, lambda _: 4 << 20)
    assert sum(1 for _ in PullWindow(broker, most=4 << 20).read(0, 64 << 20)) == 16
    assert broker.most_in_flight <= 4


@pytest.mark.parametrize("is_filtered", [False, True])
def test_a_queue_that_ends_early_is_told_by_an_answer_that_does_not_lead_on(
    is_filtered: bool,
) -> None:
    broker = Broker(50, lambda _: 20, is_filtered)
    answers = [*PullWindow(broker, most=20, is_filtered=is_filtered).read(0, 100)]
    assert (answers[-1].new_from, answers[-1].next_offset) == (50, 50)
    assert broker.in_flight == 0
