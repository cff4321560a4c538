"""kill -9 at each operation on the disk: no transaction is lost, none is committed twice."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.broker_core.transactions.drafting import (
    CONFIG,
    HALF,
    bodies,
    end_of,
    message,
    stored,
)
from tests.crash.killing_disk import KillingDisk, die

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.storage.appends import PlacedOne
from rocketpy.broker_core.storage.disk import DiskFile
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.checker import TransactionChecker
from rocketpy.broker_core.transactions.ending import TransactionEnd, TransactionOutcome
from rocketpy.broker_core.transactions.service import Transactions, open_transactions
from rocketpy.broker_core.transactions.settings import TransactionSettings

pytestmark = pytest.mark.crash

START_MS = 1_700_000_000_000
ROUND_MS = 30_000
SETTINGS = TransactionSettings(check_max=3)
SIGKILL = -9

Work = Callable[[MessageStore], None]


class TearingDisk(KillingDisk):
    """A disk on which the process dies after a part of a write."""

    def __init__(self, kill_at: int, part: float) -> None:
        super().__init__(kill_at)
        self.part = part

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        return TearingFile(path, self, writable=writable)


class TearingFile(DiskFile):
    def __init__(self, path: Path, disk: TearingDisk, *, writable: bool) -> None:
        super().__init__(path, writable=writable)
        self._disk = disk

    def write(self, data: bytes | memoryview[Any], at: int) -> None:
        if self._disk.is_last():
            super().write(memoryview(data)[: int(len(data) * self._disk.part)], at)
            die()
        super().write(data, at)

    def write_on(self, data: bytes | memoryview[Any], at: int) -> None:
        self.write(data, at)

    def poke(self, data: bytes | memoryview[Any], at: int) -> None:
        self._disk.step()
        super().poke(data, at)

    def sync(self) -> None:
        self._disk.step()
        super().sync()


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: the death of a process does not need a disk."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path / "store"
        return
    with tempfile.TemporaryDirectory(prefix="rocketpy-", dir=memory) as folder:
        yield Path(folder) / "store"


def in_child(root: Path, now_ms: int, disk: KillingDisk, work: Work) -> bool:
    """Do something with a store in a process that dies on the way; return whether it did."""
    pid = os.fork()
    if not pid:
        try:
            store = MessageStore(root, CONFIG, clock=ManualClock(now_ms), disk=disk)
            disk.arm()
            work(store)
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, SIGKILL)
    return code == SIGKILL


def disks(operations: int) -> Iterator[TearingDisk]:
    """Yield disks on which processes die at each of so many operations, if they come so far."""
    for part, last in ((0.4, operations), (0.9, 6)):  # the write of records is an early one
        yield from (TearingDisk(kill_at, part) for kill_at in range(1, last + 1))


def opened(root: Path, now_ms: int) -> MessageStore:
    return MessageStore(root, CONFIG, clock=ManualClock(now_ms))


def prepare(root: Path, names: list[str], now_ms: int = START_MS) -> list[PlacedOne]:
    """Begin transactions; the producer of a fourth one is not to be asked soon."""
    store = opened(root, now_ms)
    store.create_topic("orders", 4)
    immunity = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "3600"}
    messages = [
        message(name, born_timestamp_ms=now_ms, properties=immunity if number == 3 else {})
        for number, name in enumerate(names)
    ]
    placed = Transactions(store).prepare(messages)
    store.close()
    return placed


def end_all(store: MessageStore, ends: list[TransactionEnd]) -> None:
    Transactions(store).end_all(ends)


def test_an_end_killed_anywhere_is_done_or_not(root: Path) -> None:
    committed: list[str] = []
    outcomes: Counter[tuple[int, int] | None] = Counter()
    for number, disk in enumerate(disks(8)):
        names = [f"{number}-{n}" for n in range(3)]
        halves = prepare(root, names)
        ends = [end_of(half, TransactionOutcome.COMMIT) for half in halves[:2]]
        ends.append(end_of(halves[2], TransactionOutcome.ROLLBACK))
        is_dead = in_child(root, START_MS, disk, partial(end_all, ends=ends))
        store = opened(root, START_MS)
        end_all(store, [])  # what was cut short is finished
        left = [half.stored_body.decode() for half in open_transactions(store)]
        found = bodies(store)
        outcomes[(len(found) - len(committed), len(left)) if is_dead else None] += 1
        assert found == committed + [name for name in names[:2] if name not in left]
        end_all(store, ends)  # the producer says it again
        committed += names[:2]
        assert bodies(store) == committed
        assert list(open_transactions(store)) == []
        assert list(store.verify()) == []
        store.close()
    # Nothing was done, one commit, both, all of it; and one that lived.
    assert outcomes.keys() == {(0, 3), (1, 2), (2, 1), (2, 0), None}


def run_round(store: MessageStore) -> None:
    checker = TransactionChecker(store, SETTINGS, lambda *_: None)
    checker.run_round(store.clock.now_ms())


def test_a_round_killed_anywhere_loses_and_doubles_no_transaction(root: Path) -> None:
    now_ms, expected = START_MS, Counter[str]()
    outcomes: Counter[int | None] = Counter()  # copies that the dead left
    for number, disk in enumerate(disks(20)):
        names = [f"{number}-{n}" for n in range(4)]
        halves = prepare(root, names, now_ms)
        store = opened(root, now_ms)
        Transactions(store).end(end_of(halves[1], TransactionOutcome.COMMIT))
        before = len(stored(store, HALF))
        store.close()
        now_ms += ROUND_MS
        is_dead = in_child(root, now_ms, disk, run_round)
        now_ms += ROUND_MS  # the lease of the dead one is over
        store = opened(root, now_ms)
        outcomes[len(stored(store, HALF)) - before if is_dead else None] += 1
        run_round(store)
        left = [half.stored_body.decode() for half in open_transactions(store)]
        assert sorted(left) == [names[0], names[2], names[3]]
        for half in halves:  # all are ended, by their first positions
            Transactions(store).end(end_of(half, TransactionOutcome.COMMIT))
        expected.update(names)
        assert Counter(bodies(store)) == expected
        assert list(open_transactions(store)) == []
        assert list(store.verify()) == []
        store.close()
    assert outcomes.keys() == {0, 1, 3, None}
    assert outcomes[3] > 4  # also after its append, and before progress is noted
