"""AvailableNow reads what was there when it began, never goes back, and waits for its queues."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.streaming.query import StreamingQuery
from tests.connector.member_queries import Query, locked_elsewhere
from tests.connector.streams import AVAILABLE_NOW, Stream, reader_of, send

import rocketpy
from rocketpy.broker_core.clock import ManualClock, SystemClock
from rocketpy.broker_core.errors import RebalanceError, StoreLockedError
from rocketpy.connector.membership import QueuesHeldError
from rocketpy.connector.store import backend as store_backend
from rocketpy.connector.store.backend import StoreBackend

MakeStream = Callable[..., Stream]


@pytest.fixture
def store(store: rocketpy.Store) -> rocketpy.Store:
    """A topic of two queues with three messages each."""
    for queue_id in range(2):
        send(store, *"abc", queue_id=queue_id)
    return store


def when_it_waits(query: Query, happens: Callable[[], object]) -> None:
    """Let something happen when the query waits for the first time; it must not wait again."""

    def wait(_: float) -> None:
        assert not waits, "it waits for something else"
        waits.append(True)
        happens()

    waits: list[bool] = []
    query.reader._planner.sleep = wait


# --- what it reads -------------------------------------------------------------------------------


def test_a_message_sent_between_target_and_start_is_no_loss_and_nothing_is_read_again(
    store: rocketpy.Store,
) -> None:
    reader = reader_of(store, topic="orders", startingOffsets='{"orders": {"0": -1, "1": -2}}')
    reader.prepareForTriggerAvailableNow()
    send(store, "between")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end["offsets"] == {"orders": {"rocketpy:0": 4, "rocketpy:1": 3}}
    bodies = [
        body.as_py()
        for part in reader.partitions(start, end)
        for batch in reader.read(part)
        for body in batch.column("body")
    ]
    assert bodies == [b"a", b"b", b"c"]


def test_a_queue_that_another_member_read_further_than_the_target_is_no_loss(
    store: rocketpy.Store,
) -> None:
    query = Query(store, "a")
    query.reader.prepareForTriggerAvailableNow()
    send(store, "for the other")
    store.commit("billing", "orders", {0: 4, 1: 0})
    assert query.batch() == [("orders", 1, 0, 3)]
    assert query.at["offsets"] == {"orders": {"rocketpy:0": 4, "rocketpy:1": 3}}


# --- what it waits for ---------------------------------------------------------------------------


def test_a_member_waits_for_the_lock_and_says_so(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query(store, "a")
    query.reader.prepareForTriggerAvailableNow()
    backend = query.reader._backend
    assert isinstance(backend, StoreBackend)
    unlocked = backend.locked
    monkeypatch.setattr(backend, "locked", locked_elsewhere)
    when_it_waits(query, lambda: monkeypatch.setattr(backend, "locked", unlocked))
    assert query.batch() == [("orders", 0, 0, 3), ("orders", 1, 0, 3)]
    assert "AvailableNow waits, for up to 900 s: " in caplog.text


def test_a_member_waits_for_queues_that_are_still_in_hand(
    store: rocketpy.Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.commit("billing", "orders", {0: 3, 1: 0})
    holder, query = Query(store, "a"), Query(store, "b")
    holder.plan()
    query.reader.prepareForTriggerAvailableNow()

    def hand_over() -> None:
        store.commit("billing", "orders", {1: 2})
        holder.die()
        holder.leave()

    when_it_waits(query, hand_over)
    assert query.batch() == [("orders", 1, 2, 3)]
    assert "orders/rocketpy:1 (held by a)" in caplog.text


def test_a_member_does_not_wait_for_a_queue_that_was_read_up_to_the_target(
    store: rocketpy.Store,
) -> None:
    store.commit("billing", "orders", {0: 3, 1: 3})
    holder, query = Query(store, "a"), Query(store, "b")
    holder.plan()
    query.reader.prepareForTriggerAvailableNow()
    send(store, "newer than the target", queue_id=1)
    when_it_waits(query, lambda: pytest.fail("it waits"))
    assert query.batch() == []


def test_a_member_waits_to_see_whether_one_lives_whose_lease_is_over_by_the_clock(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Query(store, "a"), Query(store, "b")
    for query in (first, second, first, second):
        query.batch()
    for queue_id in range(2):
        send(store, "new", queue_id=queue_id)
    first.die()
    second.die()
    clock = ManualClock(SystemClock().now_ms() + 60_000)
    monkeypatch.setattr(store_backend, "SystemClock", lambda: clock)
    again = Query(store, "b")
    again.reader.prepareForTriggerAvailableNow()
    assert again.batch() == [("orders", 1, 3, 4)]
    when_it_waits(again, lambda: clock.advance(30_000))
    assert again.batch() == [("orders", 0, 3, 4)]


@pytest.mark.parametrize("is_locked", [True, False])
def test_a_member_that_waited_in_vain_fails_and_says_for_what(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch, is_locked: bool
) -> None:
    holder, query = Query(store, "a"), Query(store, "b", maxTriggerDelay="300ms")
    holder.plan()
    query.reader.prepareForTriggerAvailableNow()
    if is_locked:
        monkeypatch.setattr(query.reader._backend, "locked", locked_elsewhere)
    expected = StoreLockedError if is_locked else QueuesHeldError
    words = (
        "is locked by process 1" if is_locked else r"orders/rocketpy:1 \(held by a\).*'maxTrigger"
    )
    with pytest.raises(expected, match=words):
        query.batch()


def test_a_member_that_gets_no_queues_because_its_strategy_refuses_fails(
    store: rocketpy.Store,
) -> None:
    Query(store, "a").batch()
    nearby = Query(store, "b", rebalanceStrategy="machineRoomNearby", maxTriggerDelay="300ms")
    nearby.reader.prepareForTriggerAvailableNow()
    with pytest.raises(RebalanceError, match="tells no machine room"):
        nearby.batch()


# --- in Spark ------------------------------------------------------------------------------------


def test_a_query_of_spark_waits_for_its_queue_and_reads_it(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    holder = Query(store, "a")
    holder.plan()
    query = started_and_waiting(stream, store)
    holder.finish()
    holder.batch()  # hands over one of its two queues
    send(store, "newer than the target", queue_id=1)
    query.awaitTermination()
    assert query.exception() is None
    assert store.committed("billing", "orders") == {0: 3, 1: 3}
    assert list(store.members("billing")) == ["a"]


def test_a_query_of_spark_can_be_stopped_while_it_waits(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    Query(store, "a").plan()
    query = started_and_waiting(stream, store)
    query.stop()
    assert not query.isActive


def started_and_waiting(stream: MakeStream, store: rocketpy.Store) -> StreamingQuery:
    query = stream(topic="orders", consumerGroup="billing", member="b").start(AVAILABLE_NOW)
    while "b" not in store.members("billing"):
        time.sleep(0.05)
    return query
