"""What waits for its time is counted as delivery would find it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.delay import pending
from rocketpy.broker_core.delay.pending import OVERDUE_MS, Pending, PendingMessages
from rocketpy.broker_core.metadata import TimerCheckpoint
from rocketpy.broker_core.storage.store import MessageStore

MINUTE_MS = 60_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[rocketpy.Store]:
    with rocketpy.open(tmp_path / "store", clock=clock) as opened:
        opened.create_topic("orders", 1)
        opened.create_topic("bills", 1)
        yield opened


@pytest.fixture
def counting(store: rocketpy.Store, clock: ManualClock) -> Iterator[PendingMessages]:
    """What another process, which only reads, counts."""
    messages = MessageStore(store.path, StoreConfig(), clock=clock, read_only=True)
    with closing(messages):
        yield PendingMessages(messages)


def fill(store: rocketpy.Store, now_ms: int) -> None:
    for level in (1, 5, 5):  # a second, a minute
        store.send("orders", "x", delay_level=level)
    for topic, wait_ms in (("orders", MINUTE_MS), ("bills", 2 * MINUTE_MS)):
        store.send(topic, "x", deliver_at=now_ms + wait_ms)


def test_levels_and_topics_are_counted_until_they_are_delivered(
    store: rocketpy.Store, counting: PendingMessages, clock: ManualClock
) -> None:
    assert counting.look(clock.now_ms()) == Pending({}, {}, 0)
    fill(store, clock.now_ms())
    told = counting.look(clock.now_ms())
    assert told == Pending({1: 1, 5: 2}, {"orders": 1, "bills": 1}, 0)
    assert told.messages == 5
    clock.advance(MINUTE_MS + 2000)
    assert store.deliver_due() == 4
    assert counting.look(clock.now_ms()) == Pending({1: 0, 5: 0}, {"bills": 1}, 0)
    clock.advance(MINUTE_MS)
    assert store.deliver_due() == 1
    assert counting.look(clock.now_ms()).messages == 0


def test_what_nobody_delivers_is_overdue_after_some_seconds(
    store: rocketpy.Store, counting: PendingMessages, clock: ManualClock
) -> None:
    fill(store, clock.now_ms())
    clock.advance(1000 + OVERDUE_MS - 1)
    assert counting.look(clock.now_ms()).overdue == 0
    clock.advance(1)
    assert counting.look(clock.now_ms()).overdue == 1
    clock.advance(MINUTE_MS)
    assert counting.look(clock.now_ms()).overdue == 4


def test_timer_messages_that_apaches_broker_delivered_are_not_counted(
    store: rocketpy.Store, counting: PendingMessages, clock: ManualClock
) -> None:
    fill(store, clock.now_ms())
    assert counting.look(clock.now_ms()).by_topic == {"orders": 1, "bills": 1}
    clock.advance(MINUTE_MS + 2000)
    noted = TimerCheckpoint(clock.now_ms(), 2)
    messages = MessageStore(store.path, StoreConfig(), clock=clock)
    with closing(messages), messages.locked():
        messages.timer_checkpoint.put(noted, now_ms=clock.now_ms())
    assert counting.look(clock.now_ms()).by_topic == {"bills": 1}


def test_what_recalls_another_message_is_no_message(
    store: rocketpy.Store, counting: PendingMessages, clock: ManualClock
) -> None:
    receipt = store.send("orders", "x", deliver_at=clock.now_ms() + MINUTE_MS)
    store.recall(receipt)
    assert counting.look(clock.now_ms()).by_topic == {"orders": 1}  # until its second comes
    clock.advance(MINUTE_MS + 2000)
    store.deliver_due()
    assert counting.look(clock.now_ms()).by_topic == {}


def test_many_timer_messages_are_told_when_all_were_seen(
    store: rocketpy.Store,
    counting: PendingMessages,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending, "_STEP", 1)
    fill(store, clock.now_ms())
    assert counting.look(clock.now_ms()) == Pending({1: 1, 5: 2}, None, 0)
    assert counting.look(clock.now_ms()).by_topic == {"orders": 1, "bills": 1}
