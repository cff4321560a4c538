"""Store times and a clock that jumps: bounded, told, and messages in order all the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock

DAY_MS = 86_400_000


def times(store: rocketpy.Store) -> list[int]:
    table = store.read("t", columns=["store_timestamp"]).read_all()
    return [int(time.timestamp() * 1000) for time in table["store_timestamp"].to_pylist()]


def test_a_clock_that_is_put_back_a_little_does_not_put_store_times_back(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    start = clock.now_ms()
    store.send("t", "first")
    clock.advance(-30_000)
    store.send("t", "second")
    clock.advance(31_000)
    store.send("t", "third")
    assert times(store) == [start, start, start + 1000]


def test_a_clock_that_jumped_ahead_does_not_decide_for_ever(
    store: rocketpy.Store, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    start = clock.now_ms()
    clock.advance(DAY_MS)
    store.send("t", "0")
    clock.advance(-DAY_MS)
    for number in range(1, 5):
        clock.advance(1000)
        store.send("t", f"{number}")
    assert times(store) == [start + DAY_MS, *(start + 1000 * number for number in range(1, 5))]
    assert caplog.text.count("86399 s ahead of the clock") == 1
    assert store.read("t").read_all()["body"].to_pylist() == [b"0", b"1", b"2", b"3", b"4"]


def test_a_delay_is_of_the_clock_as_it_is_now(store: rocketpy.Store, clock: ManualClock) -> None:
    clock.advance(DAY_MS)
    store.send("t", "from tomorrow")
    clock.advance(-DAY_MS)
    store.send("t", "late", delay_level=1)
    clock.advance(1000)
    assert store.deliver_due() == 1


@pytest.mark.crash
def test_what_was_stored_after_a_clock_was_put_back_survives_a_crash(
    tmp_path: Path, small: rocketpy.StoreConfig, clock: ManualClock
) -> None:
    with rocketpy.open(tmp_path / "live", config=small, clock=clock) as store:
        store.create_topic("t", queues=1)
        clock.advance(DAY_MS)
        store.send("t", "0", keys=["k0"])
        store._store.checkpoint()  # says that all up to tomorrow is durable
        clock.advance(-DAY_MS)
        for number in range(1, 60):
            store.send("t", f"{number}", keys=[f"k{number}"])
            clock.advance(1000)
        store.flush()
        copy = Path(shutil.copytree(tmp_path / "live", tmp_path / "crashed"))
    for file in (copy / "consumequeue" / "t" / "0").iterdir():
        first = int(file.name) // 20
        data = file.read_bytes()
        file.write_bytes(data[:20] + bytes(len(data) - 20) if first == 0 else bytes(len(data)))
    with rocketpy.open(copy, config=small, clock=clock) as store:
        assert store.read("t").read_all()["body"].to_pylist() == [b"%d" % n for n in range(60)]
        assert list(store.verify()) == []
        assert store.query("t", key="k1").num_rows == 1
