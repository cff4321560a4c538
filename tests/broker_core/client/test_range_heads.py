"""Small ranges are pulled at once, as far as brokers give them; the rest is left, not decided."""

from __future__ import annotations

import pytest

from rocketpy.broker_core.client import range_heads
from rocketpy.broker_core.client.asking import ask_each
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.pulled import PullFilter, PullRequest
from rocketpy.broker_core.client.range_heads import RangeHead, pull_heads
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.message_queue import MessageQueue

A, B = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-b", 0)


@pytest.fixture
def filled(servers: LocalBroker, cluster: Cluster) -> Cluster:
    """Ten messages in the only queue of each broker, the odd ones tagged."""
    ClusterTopics(cluster).create("orders", queues=1)
    for number in (0, 1):
        with servers.store(number) as store:
            for body in range(10):
                store.send("orders", str(body), queue_id=0, tags="odd" if body % 2 else "even")
    return cluster


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests each turn had."""
    seen = list[int]()

    def counted(*args, **kwargs):  # type: ignore[no-untyped-def]
        seen.append(len(args[1]))
        return ask_each(*args, **kwargs)

    monkeypatch.setattr(range_heads, "ask_each", counted)
    return seen


def head(queue: MessageQueue, start: int, end: int, **wanted: str) -> RangeHead:
    return RangeHead(PullRequest(wanted=PullFilter.of(**wanted)), queue, start, end)


def covered(head: RangeHead) -> list[tuple[int, int]]:
    return [(pulled.asked, pulled.next_offset) for pulled in head.pulled]


def test_all_ranges_come_in_one_turn(filled: Cluster, turns: list[int]) -> None:
    first, second = head(A, 2, 10), head(B, 0, 4)
    pull_heads(filled, [first, second], most=100)
    assert (covered(first), covered(second)) == ([(2, 10)], [(0, 4)])
    assert turns == [2]


def test_a_broker_that_gives_less_is_asked_for_the_rest_at_once(
    filled: Cluster, turns: list[int]
) -> None:
    some = head(A, 0, 10)
    pull_heads(filled, [some], most=3)
    assert covered(some) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert turns == [1, 3]


def test_pulls_in_flight_are_bounded_and_so_are_turns(
    filled: Cluster, turns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_heads, "BYTES_AT_ONCE", 1)
    some = head(A, 0, 10)
    pull_heads(filled, [some], most=3)
    assert (covered(some), some.at) == ([(0, 3), (3, 6), (6, 9)], 9)
    assert turns == [1, 1, 1]


def test_with_a_filter_a_range_ends_where_the_broker_looked(filled: Cluster) -> None:
    some = head(A, 0, 10, tags="odd")
    pull_heads(filled, [some], most=100)
    assert some.at == 10
    nothing = head(A, 0, 10, tags="other")
    pull_heads(filled, [nothing], most=100)
    assert (nothing.at, nothing.is_left) == (0, True)


@pytest.mark.parametrize("queue", [A._replace(broker="nobody"), A._replace(topic="none")])
def test_a_range_without_an_answer_is_left_and_the_others_come(
    filled: Cluster, queue: MessageQueue
) -> None:
    lost, found = head(queue, 0, 10), head(B, 0, 10)
    pull_heads(filled, [lost, found], most=100)
    assert (lost.at, lost.is_left, lost.pulled) == (0, True, [])
    assert covered(found) == [(0, 10)]


def test_an_offset_beyond_the_end_is_left(filled: Cluster) -> None:
    beyond = head(A, 10, 12)
    pull_heads(filled, [beyond], most=100)
    assert (beyond.at, beyond.is_left) == (10, True)
