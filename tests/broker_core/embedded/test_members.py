"""Members of groups on an open store: leases, names, generations, files that are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import (
    CorruptStoreError,
    GroupNameError,
    MemberNameError,
    MemberNotFoundError,
    MemberReplacedError,
    ReadOnlyStoreError,
    RebalanceError,
)

LEASE_MS = 1000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[rocketpy.Store]:
    with rocketpy.open(tmp_path / "store", clock=clock) as opened:
        opened.create_topic("orders", 4)
        yield opened
        assert list(opened.verify()) == []


def test_a_member_is_there_until_its_lease_is_over(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    joined = store.join("billing", "one", "orders", lease_ms=LEASE_MS)
    clock.advance(LEASE_MS - 1)
    assert store.members("billing") == {"one": joined}
    clock.advance(1)
    assert store.members("billing") == {}


def test_a_renewal_begins_the_lease_again_even_late_if_nobody_noticed(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    store.join("billing", "one", "orders", lease_ms=LEASE_MS)
    clock.advance(5 * LEASE_MS)
    store.renew("billing", "one")
    clock.advance(LEASE_MS - 1)
    assert list(store.members("billing")) == ["one"]


def test_a_dead_member_that_another_removed_has_to_join_again(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    store.join("billing", "one", "orders", lease_ms=LEASE_MS)
    clock.advance(LEASE_MS)
    store.join("billing", "two", "orders", lease_ms=LEASE_MS)
    with pytest.raises(MemberNotFoundError, match="its lease was over; join again"):
        store.renew("billing", "one")


def test_a_member_that_left_is_gone_and_leaving_twice_is_fine(store: rocketpy.Store) -> None:
    store.join("billing", "one", "orders")
    store.leave("billing", "one")
    store.leave("billing", "one")
    assert store.members("billing") == {}


def test_another_process_under_the_same_name_takes_its_place(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    store.join("billing", "one", "orders", lease_ms=LEASE_MS)
    with rocketpy.open(store.path, clock=clock) as other:
        other.join("billing", "one", "orders", lease_ms=LEASE_MS)
        with pytest.raises(MemberReplacedError, match="give each query a member name of its own"):
            store.renew("billing", "one")
        other.renew("billing", "one")


def test_two_members_share_and_the_queues_of_a_dead_one_come_back(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    store.join("billing", "one", "orders", lease_ms=LEASE_MS)
    store.rebalance("billing")
    assert len(store.follow("billing", "one").holds) == 4
    store.join("billing", "two", "orders", lease_ms=2 * LEASE_MS)
    made = store.rebalance("billing")
    assert made is not None
    assert (made.number, made.strategy, made.reason) == (2, "averagely", "two joined")
    assert len(store.follow("billing", "two").holds) == 0  # still held by the other
    assert len(store.follow("billing", "one").holds) == 2
    assert len(store.follow("billing", "two").holds) == 2
    clock.advance(LEASE_MS)
    made = store.rebalance("billing")
    assert made is not None
    assert made.reason == "one left"
    assert len(store.follow("billing", "two").holds) == 4


def test_a_generation_that_would_say_the_same_is_not_made(store: rocketpy.Store) -> None:
    store.join("billing", "one", "orders")
    first = store.rebalance("billing", "circle")
    assert store.rebalance("billing") is None
    assert store.generation("billing") == first
    changed = store.rebalance("billing", "averagely")
    assert changed is not None
    assert changed.reason == "strategy averagely instead of circle"


def test_new_queues_are_told_as_the_reason(store: rocketpy.Store) -> None:
    store.join("billing", "one", "orders")
    store.rebalance("billing")
    store.create_topic("orders", 6)
    made = store.rebalance("billing")
    assert made is not None
    assert made.reason == "2 queues came"


def test_members_of_different_topics_share_each_topic_among_its_own(store: rocketpy.Store) -> None:
    store.create_topic("payments", 2)
    store.join("billing", "both", ["orders", "payments"])
    store.join("billing", "one", "orders")
    for strategy in ("averagely", "backlog"):
        made = store.rebalance("billing", strategy)
        assert made is not None
        topics = {name: {queue.topic for queue in share} for name, share in made.queues.items()}
        assert topics == {"both": {"orders", "payments"}, "one": {"orders"}}
        assert len(made.queues["one"]) == 2


def test_the_strategy_by_backlog_weighs_what_the_group_has_not_read(store: rocketpy.Store) -> None:
    for _ in range(9):
        store.send("orders", b"x", queue_id=0)
    store.send("orders", b"x", queue_id=1)
    store.commit("billing", "orders", {1: 1})
    store.join("billing", "one", "orders")
    store.join("billing", "two", "orders")
    made = store.rebalance("billing", "backlog")
    assert made is not None
    assert sorted(len(share) for share in made.queues.values()) == [1, 3]


@pytest.mark.parametrize("folder", ["members", "generations"])
def test_a_damaged_file_is_told_and_not_taken_for_empty(store: rocketpy.Store, folder: str) -> None:
    store.join("billing", "one", "orders")
    store.rebalance("billing")
    path = store.path / "rocketpy" / folder / "billing.json"
    path.write_bytes(path.read_bytes().replace(b"orders", b"others"))
    with pytest.raises(CorruptStoreError, match="does not match its check sum; remove it"):
        store.follow("billing", "one")


def test_a_generation_made_after_its_file_was_lost_has_a_higher_number(
    store: rocketpy.Store,
) -> None:
    store.join("billing", "one", "orders")
    store.rebalance("billing")
    store.rebalance("billing", "circle")
    store.follow("billing", "one")
    (store.path / "rocketpy" / "generations" / "billing.json").unlink()
    made = store.rebalance("billing")
    assert made is not None
    assert made.number == 3


def test_wrong_names_and_a_wrong_lease_are_refused(store: rocketpy.Store) -> None:
    with pytest.raises(MemberNameError, match="use 1 to 120 letters"):
        store.join("billing", "../one", "orders")
    with pytest.raises(GroupNameError):
        store.join("bill/ing", "one", "orders")
    with pytest.raises(RebalanceError, match="give 1 ms or more"):
        store.join("billing", "one", "orders", lease_ms=0)


def test_a_store_that_is_only_read_shows_members_and_takes_none(store: rocketpy.Store) -> None:
    store.join("billing", "one", "orders")
    store.rebalance("billing")
    with rocketpy.open(store.path, read_only=True, clock=ManualClock()) as reader:
        assert list(reader.members("billing")) == ["one"]
        assert reader.generation("billing") == store.generation("billing")
        with pytest.raises(ReadOnlyStoreError):
            reader.join("billing", "two", "orders")
