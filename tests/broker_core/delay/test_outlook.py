"""Whether a round of delivery can find anything: never wrongly that it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.delay.delivery import LEASE, Deliverer
from rocketpy.broker_core.delay.lease import Lease


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[rocketpy.Store]:
    with rocketpy.open(tmp_path / "store", clock=clock) as opened:
        opened.create_topic("orders", queues=1)
        yield opened


@pytest.fixture
def deliverer(store: rocketpy.Store, clock: ManualClock) -> Iterator[Deliverer]:
    lease = Lease(store._store, LEASE, "service")
    with lease.kept():
        found = Deliverer(store._store, lease)
        assert found.may_be_due(clock.now_ms())
        found.deliver_due(clock.now_ms())
        yield found


def test_nothing_waits_and_other_messages_change_nothing(
    store: rocketpy.Store, deliverer: Deliverer, clock: ManualClock
) -> None:
    assert not deliverer.may_be_due(clock.now_ms())
    store.send("orders", "x")
    assert not deliverer.may_be_due(clock.now_ms() + 10**9)


@pytest.mark.parametrize("level", [1, 18])
def test_a_first_delayed_message_is_noticed_and_then_waited_for(
    store: rocketpy.Store, deliverer: Deliverer, clock: ManualClock, level: int
) -> None:
    store.send("orders", "later", delay_level=level)
    assert deliverer.may_be_due(clock.now_ms())
    assert deliverer.deliver_due(clock.now_ms()) == 0
    assert not deliverer.may_be_due(clock.now_ms())
    store.send("orders", "later still", delay_level=level)
    assert not deliverer.may_be_due(clock.now_ms())
    delay_ms = store.config.delay_ms(level)
    assert not deliverer.may_be_due(clock.now_ms() + delay_ms - 1)
    assert deliverer.may_be_due(clock.now_ms() + delay_ms)


def test_an_earlier_level_is_noticed_beside_a_later_one(
    store: rocketpy.Store, deliverer: Deliverer, clock: ManualClock
) -> None:
    store.send("orders", "in two hours", delay_level=18)
    deliverer.deliver_due(clock.now_ms())
    store.send("orders", "in a second", delay_level=1)
    assert deliverer.may_be_due(clock.now_ms())


def test_a_message_with_a_delivery_time_is_noticed_and_then_waited_for(
    store: rocketpy.Store, deliverer: Deliverer, clock: ManualClock
) -> None:
    now_ms = clock.now_ms()
    store.send("orders", "at five", deliver_at=now_ms + 5_000)
    assert deliverer.may_be_due(now_ms)
    deliverer.deliver_due(now_ms)
    assert not deliverer.may_be_due(now_ms + 3_999)
    store.send("orders", "at two", deliver_at=now_ms + 2_000)
    assert deliverer.may_be_due(now_ms)
    deliverer.deliver_due(now_ms)
    clock.advance(7_000)
    assert deliverer.may_be_due(clock.now_ms())
    assert deliverer.deliver_due(clock.now_ms()) == 2
