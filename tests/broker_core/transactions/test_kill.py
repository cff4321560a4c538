"""kill -9 at each operation on the disk: no transaction is lost, none is committed twice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker_core.transactions.drafting import (
    CONFIG,
    HALF,
    bodies,
    end_of,
    message,
    stored,
)
from tests.crash.killing_disk import KillingDisk

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.storage.appends import PlacedOne
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.checker import TransactionChecker
from rocketpy.broker_core.transactions.ending import Outcome, TransactionEnd
from rocketpy.broker_core.transactions.service import Transactions, open_transactions
from rocketpy.broker_core.transactions.settings import TransactionSettings

pytestmark = pytest.mark.crash

START_MS = 1_700_000_000_000
ROUND_MS = 30_000
SETTINGS = TransactionSettings(check_max=3)
SIGKILL = -9


def in_child(root: Path, now_ms: int, kill_at: int, work: Callable[[MessageStore], None]) -> bool:
    """Do something with a store in a process that dies on the way; return whether it did."""
    pid = os.fork()
    if not pid:
        try:
            disk = KillingDisk(kill_at)
            store = MessageStore(root, CONFIG, clock=ManualClock(now_ms), disk=disk)
            disk.arm()
            work(store)
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, SIGKILL)
    return code == SIGKILL


def opened(root: Path, now_ms: int) -> MessageStore:
    return MessageStore(root, CONFIG, clock=ManualClock(now_ms))


def prepare(root: Path, names: list[str], now_ms: int) -> list[PlacedOne]:
    store = opened(root, now_ms)
    store.create_topic("orders", 4)
    placed = Transactions(store).prepare(
        [message(name, born_timestamp_ms=now_ms) for name in names]
    )
    store.close()
    return placed


def test_an_end_killed_anywhere_is_done_or_not(tmp_path: Path) -> None:
    root, now_ms, outcomes, committed = tmp_path / "store", START_MS, set(), []
    for kill_at in range(1, 1000):
        names = [f"{kill_at}-{n}" for n in range(3)]
        halves = prepare(root, names, now_ms)
        ends = [end_of(half, Outcome.COMMIT) for half in halves[:2]]
        ends.append(end_of(halves[2], Outcome.ROLLBACK))
        is_dead = in_child(root, now_ms, kill_at, lambda s, e=ends: end_all(s, e))  # type: ignore[misc]
        store = opened(root, now_ms)
        left = [half.stored_body.decode() for half in open_transactions(store)]
        found = bodies(store)
        done = not left
        assert left == ([] if done else names)
        assert found == committed + (names[:2] if done else [])
        end_all(store, ends)  # the producer says it again
        committed += names[:2]
        assert bodies(store) == committed
        assert list(open_transactions(store)) == []
        assert list(store.verify()) == []
        store.close()
        outcomes.add(done)
        if not is_dead:
            break
    assert not is_dead
    assert kill_at > 10
    assert outcomes == {True, False}


def end_all(store: MessageStore, ends: list[TransactionEnd]) -> None:
    Transactions(store).end_all(ends)


def run_round(store: MessageStore) -> None:
    checker = TransactionChecker(store, SETTINGS, lambda *_: None)
    checker.run_round(store.clock.now_ms())


def test_a_round_killed_anywhere_loses_and_doubles_no_transaction(tmp_path: Path) -> None:
    root, now_ms, expected, copies = tmp_path / "store", START_MS, Counter[str](), set()
    is_dead = True
    for kill_at in range(1, 1000):
        spared = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "3600"}
        store = opened(root, now_ms)
        store.create_topic("orders", 4)
        names = [f"{kill_at}-{n}" for n in range(4)]
        transactions = Transactions(store)
        halves = transactions.prepare(
            [
                message(
                    name, born_timestamp_ms=now_ms, properties=spared if name[-1] == "3" else {}
                )
                for name in names
            ]
        )
        transactions.end(end_of(halves[1], Outcome.COMMIT))
        before = len(stored(store, HALF))
        store.close()
        now_ms += ROUND_MS
        is_dead = in_child(root, now_ms, kill_at, run_round)
        now_ms += ROUND_MS  # the lease of the dead one is over
        store = opened(root, now_ms)
        copies.add(len(stored(store, HALF)) - before)
        run_round(store)
        left = [half.stored_body.decode() for half in open_transactions(store)]
        assert sorted(left) == [names[0], names[2], names[3]]
        for half in halves:  # all are ended, by their first positions
            Transactions(store).end(end_of(half, Outcome.COMMIT))
        expected.update(names)
        assert Counter(bodies(store)) == expected
        assert list(open_transactions(store)) == []
        assert list(store.verify()) == []
        store.close()
        if not is_dead:
            break
    assert not is_dead
    assert kill_at > 20
    assert copies == {0, 3}  # it died before and after its append
