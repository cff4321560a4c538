"""The service: delivers by itself, waits for its turn, stops when it lost it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.delay.delivery import LEASE
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.errors import LeaseHeldError, LeaseLostError

CONFIG = rocketpy.StoreConfig(delay_levels="1s 2s", retention_hours=None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rocketpy.Store]:
    with rocketpy.open(tmp_path / "store", config=CONFIG) as opened:
        opened.create_topic("orders", 1)
        yield opened
        assert list(opened.verify()) == []


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.01)


def count(store: rocketpy.Store) -> int:
    return int(store.queues("orders")[0][1])


def test_it_delivers_while_messages_are_sent(store: rocketpy.Store) -> None:
    with store.delivering() as service:
        for number in range(20):
            store.send("orders", str(number), delay_level=1 + number % 2)
        store.send("orders", "timed", deliver_at=int(time.time() * 1000) + 1200)
        wait_until(lambda: count(store) == 21)
        service.check()
    assert service.delivered == 21
    assert store._store.delay_offsets.all() == {1: 10, 2: 10}


def test_it_waits_while_a_job_has_the_lease_and_then_goes_on(store: rocketpy.Store) -> None:
    job = Lease(store._store, LEASE, "job", duration_ms=400)
    job.acquire()
    store.send("orders", "a", delay_level=1)
    with store.delivering() as service:
        wait_until(lambda: count(store) == 1)  # the job is silent, its lease runs out
        with pytest.raises(LeaseLostError):
            job.renew()
        with pytest.raises(LeaseHeldError, match="by a service"):
            job.acquire()
    assert service.error is None
    job.acquire()  # the service gave it back


def test_it_stops_when_another_took_over(store: rocketpy.Store) -> None:
    with store.delivering() as service:
        store.send("orders", "a", delay_level=1)
        wait_until(lambda: count(store) == 1)
        (store.path / "rocketpy/leases/delivery").unlink()
        Lease(store._store, LEASE, "job").acquire()
        store.send("orders", "b", delay_level=1)
        wait_until(lambda: service.error is not None)
        with pytest.raises(LeaseLostError, match="this process must stop"):
            service.check()
    assert count(store) == 1
