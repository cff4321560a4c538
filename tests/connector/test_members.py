"""Streams that share a group: what each plans, batch by batch, without a Spark around them."""

from __future__ import annotations

import gc
import json
import shutil
import threading
import time

import pytest
from tests.connector.member_queries import (
    LONG_AFTER_MS,
    Query,
    bury_the_dead,
    locked_elsewhere,
)
from tests.connector.streams import send

import rocketpy
from rocketpy.broker_core.clock import ManualClock, SystemClock
from rocketpy.broker_core.errors import MemberReplacedError, RebalanceError
from rocketpy.connector.data_loss import DataLossError
from rocketpy.connector.lease import THREAD_NAME
from rocketpy.connector.store import backend as store_backend
from rocketpy.connector.store.backend import StoreBackend


@pytest.fixture
def store(store: rocketpy.Store) -> rocketpy.Store:
    """A topic of four queues with ten messages each."""
    store.create_topic("orders", 4)
    for queue_id in range(4):
        send(store, *map(str, range(10)), queue_id=queue_id)
    return store


def test_a_member_alone_reads_all_queues(store: rocketpy.Store) -> None:
    query = Query(store, "a")
    assert query.batch() == [("orders", queue_id, 0, 10) for queue_id in range(4)]
    assert query.batch() == []
    assert store.committed("billing", "orders") == dict.fromkeys(range(4), 10)


def test_a_second_member_waits_until_the_first_has_done_its_batch(store: rocketpy.Store) -> None:
    first, second = Query(store, "a"), Query(store, "b")
    first.plan()
    assert second.batch() == []
    generation = store.generation("billing")
    assert generation is not None
    assert (generation.number, generation.made_by, generation.reason) == (2, "b", "b joined")
    assert second.batch() == []
    first.finish()
    assert second.batch() == []  # done, but not committed yet
    assert first.batch() == []
    assert (first.queues(), second.queues()) == ([0, 1], [])
    for queue_id in range(4):
        send(store, "new", queue_id=queue_id)
    assert second.batch() == [("orders", 2, 10, 11), ("orders", 3, 10, 11)]
    assert first.batch() == [("orders", 0, 10, 11), ("orders", 1, 10, 11)]


def test_a_planned_batch_reads_the_same_when_it_is_planned_again(store: rocketpy.Store) -> None:
    first, second = Query(store, "a"), Query(store, "b")
    first.batch()
    second.batch()
    first.batch()
    send(store, "new", queue_id=2)
    planned = second.plan()
    assert planned == [("orders", 2, 10, 11)]
    send(store, "newer", queue_id=2)
    again = Query(store, "b")  # the process that plans, started anew
    assert second.replay(again.reader) == planned
    again.at = second.planned[-1][1]
    assert again.batch() == [("orders", 2, 11, 12)]


def test_a_queue_that_comes_back_is_read_on_where_the_other_left_off(store: rocketpy.Store) -> None:
    first, second = Query(store, "a"), Query(store, "b")
    first.batch()
    second.batch()
    first.batch()
    send(store, "for b", queue_id=3)
    assert second.batch() == [("orders", 3, 10, 11)]
    second.batch()
    second.leave()
    send(store, "for a", queue_id=3)
    planned = first.plan()
    assert planned == [("orders", 3, 11, 12)]
    assert first.planned[-1][1]["began"] == {"orders": {"rocketpy:3": 11}}
    assert first.replay(Query(store, "a").reader) == planned


def test_what_a_dead_member_had_in_hand_is_read_by_its_successor(store: rocketpy.Store) -> None:
    first, second = Query(store, "a"), Query(store, "b")
    first.plan()
    first.die()
    second.batch()
    bury_the_dead(store)
    assert second.batch() == [("orders", queue_id, 0, 10) for queue_id in range(4)]


def test_a_member_taken_for_dead_commits_nothing_and_begins_anew(store: rocketpy.Store) -> None:
    first, second = Query(store, "a"), Query(store, "b")
    first.plan()
    first.die()
    second.batch()
    bury_the_dead(store)
    second.plan()  # all four queues are in its hand now
    first.finish()
    assert first.batch() == []
    assert first.queues() == []
    assert store.committed("billing", "orders") == dict.fromkeys(range(4), 0)
    second.finish()
    second.batch()
    first.batch()
    assert (first.queues(), second.queues()) == ([0, 1], [2, 3])
    assert store.committed("billing", "orders") == dict.fromkeys(range(4), 10)


@pytest.mark.parametrize("off_by_ms", [-300_000, 300_000])
def test_a_member_whose_clock_is_wrong_takes_nobody_for_dead_who_lives(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch, off_by_ms: int
) -> None:
    first = Query(store, "a")
    first.plan()
    wrong = ManualClock(SystemClock().now_ms() + off_by_ms)
    monkeypatch.setattr(store_backend, "SystemClock", lambda: wrong)
    second = Query(store, "b")
    assert second.batch() == []  # what the first has in its hand
    wrong.advance(29_000)
    assert second.batch() == []
    first.finish()
    first.batch()
    assert (first.queues(), second.queues()) == ([0, 1], [])


def test_a_member_is_dead_to_who_saw_it_silent_for_its_lease(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Query(store, "a")
    first.plan()
    first.die()
    clock = ManualClock(SystemClock().now_ms() - 300_000)  # by it the lease lasts on
    monkeypatch.setattr(store_backend, "SystemClock", lambda: clock)
    second = Query(store, "b")
    assert second.batch() == []
    clock.advance(30_000)
    assert second.batch() == [("orders", queue_id, 0, 10) for queue_id in range(4)]


def test_a_second_query_of_the_same_name_stops_the_first(store: rocketpy.Store) -> None:
    first = Query(store, "a")
    first.batch()
    first.batch()
    assert Query(store, "a").batch() == []
    with pytest.raises(MemberReplacedError, match="give each query a member name of its own"):
        first.batch()


def test_a_new_topic_of_a_pattern_is_shared_as_well(store: rocketpy.Store) -> None:
    first, second = (Query(store, name, topicPattern="orders.*") for name in "ab")
    for query in (first, second, first, second):
        query.batch()
    send(store, "x", topic="orders-eu", queue_id=1)
    read = [row for query in (first, second, first, second) for row in query.batch()]
    assert read == [("orders-eu", 1, 0, 1)]


def test_where_the_group_never_read_the_options_say_where_to_begin(store: rocketpy.Store) -> None:
    first = Query(store, "a", startingOffsets="latest")
    assert first.batch() == []
    assert store.committed("billing", "orders") == dict.fromkeys(range(4), 10)
    first.die()
    send(store, "new")
    second = Query(store, "b", startingOffsets="latest")
    second.batch()
    bury_the_dead(store)
    assert second.batch() == [("orders", 0, 10, 11)]  # what came in between is not passed over


def test_the_strategy_of_the_options_and_then_that_of_the_last_generation(
    store: rocketpy.Store,
) -> None:
    first, second = Query(store, "a", rebalanceStrategy="circle"), Query(store, "b")
    for query in (first, second, first, second):
        query.batch()
    assert (first.queues(), second.queues()) == ([0, 2], [1, 3])


def test_a_generation_made_elsewhere_is_followed(store: rocketpy.Store) -> None:
    first, second = Query(store, "a"), Query(store, "b")
    for query in (first, second, first, second):
        query.batch()
    table = {"a": {"orders": [3]}, "b": {"orders": [0, 1, 2]}}
    store.rebalance("billing", f"config:{json.dumps(table)}")
    for query in (first, second, first, second):
        query.batch()
    assert (first.queues(), second.queues()) == ([3], [0, 1, 2])


def test_a_strategy_that_cannot_divide_stops_only_who_would_be_the_first(
    store: rocketpy.Store, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RebalanceError, match="'rocketpy': tells no machine room"):
        Query(store, "alone", rebalanceStrategy="machineRoomNearby").batch()
    store.rebalance("billing", "averagely")
    first, second = Query(store, "a"), Query(store, "b", rebalanceStrategy="machineRoomNearby")
    second.batch()
    assert "group billing stays as it is: the name 'rocketpy'" in caplog.text
    first.batch()
    bury_the_dead(store)  # the one that was alone, with the others
    for query in (first, second, first, second):
        query.batch()
    assert (first.queues(), second.queues()) == ([0, 1], [2, 3])


def test_the_progress_speaks_of_the_queues_that_are_its_own(store: rocketpy.Store) -> None:
    first, second = Query(store, "a"), Query(store, "b")
    for query in (first, second, first, second):
        query.batch()
    send(store, "new", queue_id=2)
    latest = second.reader.reportLatestOffset()
    assert latest is not None
    assert latest["offsets"] == {"orders": {"rocketpy:2": 11, "rocketpy:3": 10}}
    progress = {"sources": [{"endOffset": second.at, "latestOffset": latest}]}
    assert rocketpy.messages_behind(progress) == {"orders": 1}  # none of the two was read yet


def test_the_lease_is_renewed_while_a_batch_is_in_hand(store: rocketpy.Store) -> None:
    query = Query(store, "a", memberLease="1s")
    query.plan()
    before = store.members("billing")["a"]
    while store.members("billing")["a"].until_ms == before.until_ms:
        time.sleep(0.01)
    assert store.members("billing")["a"].holds == before.holds
    query.die()


def test_a_lease_ends_with_its_query(store: rocketpy.Store) -> None:
    others = {*threading.enumerate()}
    query = Query(store, "a", memberLease="1s")
    query.plan()
    (keeper,) = {*threading.enumerate()} - others
    assert keeper.name == THREAD_NAME
    del query
    gc.collect()
    keeper.join()
    assert not keeper.is_alive()


def test_nothing_is_written_while_nothing_changes(store: rocketpy.Store) -> None:
    first, second = Query(store, "a"), Query(store, "b")
    first.plan()
    second.batch()
    path = store.path / "rocketpy" / "members" / "billing.json"
    before = path.stat()
    for _ in range(5):
        second.batch()  # waits
    assert path.stat().st_ino == before.st_ino


def test_a_member_without_a_lease_plans_nothing_while_the_store_is_locked(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(store, "a")
    query.batch()
    send(store, "new")
    backend = query.reader._backend
    assert isinstance(backend, StoreBackend)
    monkeypatch.setattr(backend, "locked", locked_elsewhere)
    assert query.batch() == [("orders", 0, 10, 11)]
    later = ManualClock()
    later.advance(SystemClock().steady_ms() + LONG_AFTER_MS)
    monkeypatch.setattr(backend.store, "clock", later)
    send(store, "newer")
    assert query.batch() == []


def test_a_topic_that_goes_with_unread_messages_is_a_loss(store: rocketpy.Store) -> None:
    query = Query(store, "a")
    query.batch()
    with store._store.locked():
        store._store.topics.delete("orders", now_ms=0)
    shutil.rmtree(store.path / "consumequeue" / "orders")
    with pytest.raises(DataLossError, match="there is no such queue any more"):
        query.batch()
