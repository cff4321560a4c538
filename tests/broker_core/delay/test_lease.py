"""Leases: one owner at a time, taken over when it is silent, never held by two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.errors import CorruptStoreError, LeaseHeldError, LeaseLostError
from rocketpy.broker_core.storage.store import MessageStore


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def opened(tmp_path: Path, clock: ManualClock) -> Iterator[MessageStore]:
    store = MessageStore(tmp_path / "store", StoreConfig(), clock=clock)
    yield store
    store.close()


def lease(store: MessageStore, kind: str = "service") -> Lease:
    return Lease(store, "delivery", kind, duration_ms=1000)


def test_a_second_owner_is_told_who_the_first_is_and_how_long(
    opened: MessageStore, clock: ManualClock
) -> None:
    first, second = lease(opened, "job"), lease(opened)
    first.acquire()
    clock.advance(400)
    with pytest.raises(LeaseHeldError, match=rf"a job \({first.owner}\).*wait 0.6 s") as held:
        second.acquire()
    assert held.value.retriable


def test_what_is_released_can_be_taken_at_once(opened: MessageStore) -> None:
    first, second = lease(opened), lease(opened)
    first.acquire()
    first.release()
    second.acquire()
    second.require()


def test_a_silent_owner_is_followed_when_its_time_is_over(
    opened: MessageStore, clock: ManualClock
) -> None:
    first, second = lease(opened), lease(opened, "job")
    first.acquire()
    clock.advance(999)
    with pytest.raises(LeaseHeldError):
        second.acquire()
    clock.advance(1)
    second.acquire()
    for ask in (first.require, first.renew):
        with pytest.raises(LeaseLostError, match=f"{second.owner} has taken it"):
            ask()
    first.release()  # changes nothing
    second.require()
    record = second.current()
    assert record is not None
    assert (record.epoch, record.kind) == (1, "job")


def test_an_owner_that_renews_stays_one(opened: MessageStore, clock: ManualClock) -> None:
    first, second = lease(opened), lease(opened)
    first.acquire()
    for _ in range(5):
        clock.advance(900)
        first.renew()
    with pytest.raises(LeaseHeldError):
        second.acquire()


def test_one_that_was_late_stays_the_owner_if_nobody_came(
    opened: MessageStore, clock: ManualClock
) -> None:
    first = lease(opened)
    first.acquire()
    clock.advance(5000)
    first.renew()
    first.require()


def test_what_was_taken_over_and_given_back_is_not_the_first_owners(
    opened: MessageStore, clock: ManualClock
) -> None:
    first, second = lease(opened), lease(opened)
    first.acquire()
    clock.advance(1000)
    second.acquire()
    second.release()
    with pytest.raises(LeaseLostError):
        first.renew()


def test_kinds_of_work_have_leases_of_their_own(opened: MessageStore) -> None:
    lease(opened).acquire()
    Lease(opened, "rebalance", "job").acquire()


def test_a_lease_that_cannot_be_read_is_not_taken_for_free(opened: MessageStore) -> None:
    lease(opened).acquire()
    (opened.root / "rocketpy/leases/delivery").write_text("{")
    with pytest.raises(CorruptStoreError, match="remove it"):
        lease(opened).acquire()


def test_delivery_is_refused_while_another_has_the_lease(
    tmp_path: Path, clock: ManualClock
) -> None:
    with rocketpy.open(tmp_path / "s", clock=clock) as store:
        job = Lease(store._store, "delivery", "job")
        job.acquire()
        with pytest.raises(LeaseHeldError, match="delivery is done by a job"):
            store.deliver_due()
        job.release()
        assert store.deliver_due() == 0
