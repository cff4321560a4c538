"""Ctrl-C between any two steps of the main thread: the lock is given back, and nothing is lost.

An interrupt may come anywhere, so it is made to come everywhere: before each opcode of the modules
that append and lock, one after the other.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.storage import flush, lock, queue_keeper, writer
from rocketpy.broker_core.storage.lock import lock_of

pytestmark = pytest.mark.crash


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flush, "LONGEST_WAIT_S", 0.05)


MODULES = {module.__file__ for module in (lock, writer, queue_keeper, flush, contextlib)}


def is_interrupted(at: int, act: Callable[[], object]) -> bool:
    """Run it with an interrupt at the given step; return whether it was that long."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename not in MODULES:
            return None
        frame.f_trace_opcodes = True
        if event in ("call", "opcode"):
            steps += 1
            if steps == at:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def in_another_thread(act: Callable[[], object]) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert errors == []


def test_a_send_that_is_interrupted_at_any_step_leaves_lock_and_store_whole(folder: Path) -> None:
    config = rocketpy.StoreConfig(lock_timeout_s=5, index_slots=1000, index_entries=100_000)
    acknowledged, tried, at = list[bytes](), set[bytes](), 0
    with rocketpy.open(folder / "store", config=config, flush="sync") as store:
        store.create_topic("t", queues=1)
        is_long_enough = True
        while is_long_enough:
            at += 1
            tried.add(b"try %d" % at)
            is_long_enough = is_interrupted(at, lambda: store.send("t", f"try {at}"))  # noqa: B023
            in_another_thread(lambda: store.send("t", f"after {at}"))  # noqa: B023
            acknowledged.append(b"after %d" % at)
        assert at > 100
        check(store, acknowledged, tried)


def test_an_append_that_is_interrupted_at_any_step_leaves_lock_and_store_whole(
    folder: Path,
) -> None:
    config = rocketpy.StoreConfig(lock_timeout_s=5, index_slots=1000, index_entries=100_000)
    acknowledged, tried, at = list[bytes](), set[bytes](), 0
    with rocketpy.open(folder / "store", config=config, flush="sync") as store:
        store.create_topic("t", queues=2)
        is_long_enough = True
        while is_long_enough:
            at += 1
            rows = [f"try {at} {row}" for row in range(3)]
            tried.update(row.encode() for row in rows)
            table = pa.table({"body": rows})
            is_long_enough = is_interrupted(at, lambda: store.append("t", table))  # noqa: B023
            in_another_thread(lambda: store.send("t", f"after {at}"))  # noqa: B023
            acknowledged.append(b"after %d" % at)
        assert at > 100
        check(store, acknowledged, tried)


def check(store: rocketpy.Store, acknowledged: list[bytes], tried: set[bytes]) -> None:
    """All that was acknowledged is there once; what was interrupted once or not at all."""
    found = store.read("t", columns=["body"]).read_all()["body"].to_pylist()
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found) <= set(acknowledged) | tried
    assert list(store.verify()) == []
    assert store.scan().read_all().num_rows == len(found)


def test_a_hold_that_was_never_given_back_ends_with_the_frame_that_had_it(folder: Path) -> None:
    rocketpy.open(folder / "store").close()
    guard = lock_of(folder / "store")

    def leak() -> None:
        hold = lock.Hold()
        guard.acquire(hold, 1)  # and an interrupt takes the frame away

    def take() -> None:
        with guard.held(1):
            pass

    leak()
    in_another_thread(take)
