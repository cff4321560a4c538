"""By backlog: every queue once, a bound on the load, and queues that stay where they are."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.backlog import TOLERANCE, ByBacklog
from rocketpy.broker_core.rebalance.strategy import Assignment

NAMES = [f"m{number}" for number in range(8)]
LAGS = st.one_of(st.just(0), st.integers(0, 20), st.integers(0, 1_000_000))


def queue(number: int) -> MessageQueue:
    return MessageQueue("orders", "broker-a", number)


def owners_in(assignment: Assignment) -> dict[MessageQueue, str]:
    return {queue: name for name, share in assignment.items() for queue in share}


@st.composite
def groups(draw: st.DrawFn) -> tuple[ByBacklog, list[MessageQueue], list[str]]:
    queues = [queue(number) for number in range(draw(st.integers(0, 24)))]
    members = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    lag = {one: draw(LAGS) for one in queues}
    owners = {one: draw(st.sampled_from([*NAMES, ""])) for one in queues}
    return ByBacklog(lag, owners), queues, members


@given(groups())
def test_every_queue_belongs_to_exactly_one_member(
    group: tuple[ByBacklog, list[MessageQueue], list[str]],
) -> None:
    strategy, queues, members = group
    assignment = strategy.assign(queues, members)
    assert sorted(assignment) == sorted(members)
    assert sorted(one for share in assignment.values() for one in share) == queues


@given(groups())
def test_no_load_is_a_tenth_above_the_average_unless_no_move_would_lower_it(
    group: tuple[ByBacklog, list[MessageQueue], list[str]],
) -> None:
    strategy, queues, members = group
    assignment = strategy.assign(queues, members)
    loads = {name: sum(map(strategy.weight, share)) for name, share in assignment.items()}
    most, least = max(loads.values()), min(loads.values())
    average = sum(loads.values()) / len(loads)
    heaviest = [name for name, load in loads.items() if load == most]
    lightest_queue = min((strategy.weight(one) for one in assignment[min(heaviest)]), default=0)
    assert most <= (1 + TOLERANCE) * average or most - least <= lightest_queue
    assert most <= (1 + TOLERANCE) * average + max(map(strategy.weight, queues), default=0)


@given(groups())
def test_nothing_moves_when_nothing_changed(
    group: tuple[ByBacklog, list[MessageQueue], list[str]],
) -> None:
    strategy, queues, members = group
    first = strategy.assign(queues, members)
    assert ByBacklog(strategy.lag, owners_in(first)).assign(queues, members) == first


@given(groups(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_count(
    group: tuple[ByBacklog, list[MessageQueue], list[str]], rng: random.Random
) -> None:
    strategy, queues, members = group
    expected = strategy.assign(queues, members)
    rng.shuffle(queues)
    rng.shuffle(members)
    assert strategy.assign(queues, members) == expected


def test_a_queue_stays_while_its_member_is_within_a_tenth_of_the_average() -> None:
    queues = [queue(number) for number in range(4)]
    lag = dict(zip(queues, (49, 55, 49, 43), strict=True))  # loads 106 and 94, average 100
    owners = dict(zip(queues, ("a", "a", "b", "b"), strict=True))
    assert owners_in(ByBacklog(lag, owners).assign(queues, ["a", "b"])) == owners


def test_when_a_member_goes_only_its_queues_move() -> None:
    queues = [queue(number) for number in range(12)]
    before = ByBacklog().assign(queues, ["a", "b", "c"])
    after = ByBacklog({}, owners_in(before)).assign(queues, ["a", "b"])
    assert {*before["a"]} < {*after["a"]}
    assert {*before["b"]} < {*after["b"]}


def test_a_hot_queue_is_left_alone_with_its_member() -> None:
    queues = [queue(number) for number in range(9)]
    averagely = dict.fromkeys(queues[:3], "a") | dict.fromkeys(queues[3:], "b")
    assigned = ByBacklog({queues[0]: 1_000_000}, averagely).assign(queues, ["a", "b"])
    assert assigned["a"] == (queues[0],)


def test_a_newcomer_gets_its_part() -> None:
    queues = [queue(number) for number in range(12)]
    alone = ByBacklog().assign(queues, ["a"])
    shared = ByBacklog({}, owners_in(alone)).assign(queues, ["a", "b"])
    assert [len(shared["a"]), len(shared["b"])] == [6, 6]
