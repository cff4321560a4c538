"""verify is right while others write: no false alarm, and what is broken is found all the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.storage.verify import Problem, verify

STEPS = range(11)  # of verify: files of the log, of queues, of the index


def fill(path: Path, config: StoreConfig) -> None:
    with rocketpy.open(path, config=config, clock=ManualClock()) as store:
        store.create_topic("orders", 2)
        for number in range(20):
            store.send("orders", b"x" * 200, keys=f"k{number}", tags="even")


def write_more(path: Path, config: StoreConfig) -> None:
    with rocketpy.open(path, config=config, clock=ManualClock(1_800_000_000_000)) as store:
        write(store)


def write(store: rocketpy.Store) -> None:
    rows = {"body": [b"y" * 150] * 30, "keys": ["all"] * 30, "tags": ["odd"] * 30}
    store.append("orders", pa.table(rows))
    for number in range(10):
        store.send("orders", b"z" * 300, keys=f"z{number}", tags="even")


def verified(path: Path, step: int, work: Callable[[], object]) -> list[Problem]:
    """Return what verify finds if something is done while it is at a step."""
    done: list[int] = []

    def at_step(_: int, __: int) -> None:
        done.append(1)
        if len(done) - 1 == step:
            work()

    with rocketpy.open(path, read_only=True) as reader:
        found = list(verify(reader._store.parts, at_step))
    assert len(done) > step
    return found


@pytest.mark.parametrize("step", STEPS)
def test_a_store_that_others_open_write_and_close_meanwhile_is_sound(
    path: Path, small: StoreConfig, step: int
) -> None:
    fill(path, small)
    assert verified(path, step, lambda: write_more(path, small)) == []


@pytest.mark.parametrize("step", STEPS)
def test_a_store_that_is_written_to_meanwhile_is_sound(
    path: Path, small: StoreConfig, step: int
) -> None:
    fill(path, small)
    with rocketpy.open(path, config=small, clock=ManualClock(1_800_000_000_000)) as store:
        write(store)
        assert verified(path, step, lambda: write(store)) == []


@pytest.mark.parametrize("step", STEPS)
def test_old_messages_that_are_deleted_meanwhile_are_not_missed(
    path: Path, small: StoreConfig, step: int
) -> None:
    late = ManualClock(int(time.time() * 1000) + 100 * 3_600_000)
    hour = datetime.fromtimestamp(late.now_ms() / 1000).hour
    config = replace(small, retention_hours=1, delete_when_hour=hour)

    def delete() -> None:
        with rocketpy.open(path, config=config, clock=late) as store:
            assert store._store.clean()

    fill(path, small)
    assert verified(path, step, delete) == []


@pytest.mark.parametrize("step", STEPS)
def test_damage_is_found_while_others_write(path: Path, small: StoreConfig, step: int) -> None:
    fill(path, small)
    queue = min((path / "consumequeue/orders/0").iterdir())
    with queue.open("r+b") as file:
        file.seek(11)
        file.write(b"\1")  # the size of the first entry
    with rocketpy.open(path, config=small, clock=ManualClock(1_800_000_000_000)) as store:
        found = verified(path, step, lambda: write(store))
    assert [problem.path for problem in found] == [queue]
