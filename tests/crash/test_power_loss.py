"""Power loss at every operation on the disk: what was said to be durable is there afterwards."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.crash import workload
from tests.crash.faulty_disk import Note, Operation, PowerLoss, RecordingDisk, Style, Tree
from tests.crash.model import check
from tests.crash.workload import Id, Sent

import rocketpy
from rocketpy.broker_core.clock import Clock, SystemClock
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.storage.writer import Writer

pytestmark = pytest.mark.crash

# The background thread must not add operations of its own: it would never be the same twice.
CONFIG = replace(
    workload.CONFIG,
    commit_log_file_size=4096,
    flush_interval_ms=1_000_000_000,
    checkpoint_interval_ms=1_000_000_000,
)


@dataclass
class SlowClock:
    """Moves on at every second question, so that many messages share a time."""

    now: int = 1_700_000_000_000
    asked: int = 0

    def now_ms(self) -> int:
        self.asked += 1
        self.now += self.asked % 2
        return self.now


@pytest.fixture(autouse=True)
def _index_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writer, "most_unindexed", 5)


# Tag codes in files of their own, of which one more may be torn.
CONFIG_EXT = replace(CONFIG, consume_queue_ext=True, consume_queue_ext_file_size=256)


def open_store(
    root: Path,
    disk: Disk | None = None,
    *,
    flush: str = "sync",
    clock: Clock | None = None,
    config: rocketpy.StoreConfig = CONFIG,
) -> rocketpy.Store:
    return rocketpy.Store(
        MessageStore(
            root, config, clock=clock or SystemClock(), disk=disk, sync_flush=flush == "sync"
        )
    )


def checkpoint(store: rocketpy.Store) -> None:
    """Do what the background thread does every ten seconds."""
    store._store.checkpoint()


def store_messages(
    store: rocketpy.Store, disk: RecordingDisk, *, writer: int, count: int, seed: int, flush: str
) -> None:
    """Store messages and note which, and from when on they must survive."""
    rng = random.Random(seed)
    unflushed: set[Id] = set()

    def trying(batch: list[Sent]) -> None:
        disk.note("tried", {sent.id for sent in batch})

    def acknowledged(batch: list[Sent]) -> None:
        unflushed.update(sent.id for sent in batch)
        if flush == "async" and rng.random() < 0.1:
            store.flush()
        elif flush == "async":
            return
        disk.note("durable", set(unflushed))
        unflushed.clear()
        if rng.random() < 0.08:
            checkpoint(store)

    workload.write(store, writer, rng, limit=count, trying=trying, acknowledged=acknowledged)


def record(
    root: Path, *, seed: int, flush: str, config: rocketpy.StoreConfig = CONFIG
) -> list[Operation]:
    """Return what two lives of a store do to the disk."""
    disk = RecordingDisk(root)
    clock = SlowClock()
    for life in range(2):
        with open_store(root, disk, flush=flush, clock=clock, config=config) as store:
            workload.create_topics(store)
            disk.note("topics")
            store_messages(store, disk, writer=life, count=70, seed=seed + life, flush=flush)
    return disk.operations


@dataclass
class Expected:
    """What must and what may be found."""

    tried: set[Id] = field(default_factory=set)
    durable: set[Id] = field(default_factory=set)
    has_topics: bool = False

    def take(self, operation: Operation) -> None:
        match operation:
            case Note("tried", ids):
                self.tried |= ids
            case Note("durable", ids):
                self.durable |= ids
            case Note("topics"):
                self.has_topics = True
            case Note("observed", ids):  # what a reader saw stays, and what it did not see is gone
                self.durable |= ids
                self.tried = set(ids)

    def judge(self, store: rocketpy.Store) -> set[Id]:
        if self.has_topics:
            assert store.topics().keys() >= workload.TOPICS.keys()
        return check(store, acknowledged=self.durable, tried=self.tried, key_samples=16)


def crashes(
    operations: list[Operation], rng: random.Random, every: float
) -> Iterator[tuple[str, Tree, Expected]]:
    """Yield what may be found after a power loss: at some or all operations."""
    loss, expected = PowerLoss(), Expected()
    for number, operation in enumerate(operations):
        loss.apply(operation)
        expected.take(operation)
        if not isinstance(operation, Note) and rng.random() < every:
            style = rng.choice([Style.LOST, Style.KEPT, *[Style.SECTORS, Style.TORN] * 2])
            name = f"power loss after operation {number}, {style.value}"
            yield name, loss.found(style, rng), expected


def live_on(root: Path, expected: Expected, *, writer: int, seed: int) -> list[Operation]:
    """Open what a power loss left, look at it, write on and close; return these operations."""
    disk = RecordingDisk(root)
    disk.note("tried", expected.tried)
    disk.note("durable", expected.durable)
    if expected.has_topics:
        disk.note("topics")
    disk.note("reopened")
    flush = "sync" if seed % 2 else "async"
    with open_store(root, disk, flush=flush) as store:
        disk.note("observed", expected.judge(store))
        workload.create_topics(store)
        store_messages(store, disk, writer=writer, count=12, seed=seed, flush=flush)
    return disk.operations


def after(what: str, operations: list[Operation]) -> int:
    return next(n for n, op in enumerate(operations) if isinstance(op, Note) and op.what == what)


@pytest.mark.parametrize(
    ("flush", "config"),
    [("sync", CONFIG), ("async", CONFIG), ("async", CONFIG_EXT)],
    ids=["sync", "async", "extended queues"],
)
def test_what_was_durable_survives_a_power_loss_at_any_operation(
    folder: Path, is_soak: bool, flush: str, config: rocketpy.StoreConfig
) -> None:
    for seed in range(2 if is_soak else 1):
        operations = record(folder / f"live-{seed}", seed=seed, flush=flush, config=config)
        rng = random.Random(seed)
        for name, tree, expected in crashes(operations, rng, 1.0 if is_soak else 0.025):
            tree.write_to(folder / "found")
            print(f"seed {seed}, {name}")
            with open_store(folder / "found", config=config) as store:
                expected.judge(store)


def test_what_was_cut_does_not_come_back_with_a_second_power_loss(
    folder: Path, is_soak: bool
) -> None:
    """During recovery, after it, while writing on: messages once gone stay gone."""
    for seed in range(100, 103 if is_soak else 101):
        operations = record(folder / f"live-{seed}", seed=seed, flush="async")
        rng = random.Random(seed)
        for name, tree, expected in crashes(operations, rng, 0.1 if is_soak else 0.008):
            tree.write_to(folder / "found")
            print(f"seed {seed}, {name}")
            more = live_on(folder / "found", expected, writer=7, seed=rng.randrange(100))
            first, second = after("reopened", more), PowerLoss()
            wanted = Expected()
            for number, operation in enumerate(more):
                second.apply(operation)
                wanted.take(operation)
                if number > first and rng.random() < 5 / (len(more) - first):
                    style = rng.choice(list(Style))
                    second.found(style, rng).write_to(folder / "found-again")
                    print(f"  then power loss after operation {number}, {style.value}")
                    with open_store(folder / "found-again") as store:
                        wanted.judge(store)


def test_a_file_is_durable_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulation takes this for granted."""
    done: list[str] = []

    class Watched(Disk):
        def rename(self, old: Path, new: Path) -> None:
            done.append("rename")
            super().rename(old, new)

    real = os.fsync

    def fsync(fd: int) -> None:
        done.append("fsync")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    Watched().replace(tmp_path / "small", b"content")
    Watched().create(tmp_path / "large", 4096, allocated=512)
    assert done == ["fsync", "rename", "fsync"] * 2


def test_an_end_that_went_back_does_not_return_with_a_second_power_loss(folder: Path) -> None:
    """The tail got to the disk, the messages it tells of did not, and then the same once more."""
    disk = RecordingDisk(folder / "live")
    with open_store(folder / "live", disk, flush="async") as store:
        workload.create_topics(store)
        for number in range(9):
            workload.send(store, workload.message(Id(0, number), "orders"))
        tail = (folder / "live" / "rocketpy" / "tail").read_bytes()
        tree = lost(disk.operations)
    tree.files[Path("rocketpy/tail")] = tail
    tree.write_to(folder / "found")
    disk = RecordingDisk(folder / "found")
    with open_store(folder / "found", disk) as store:
        assert check(store) == set()
    lost(disk.operations).write_to(folder / "found-again")
    with open_store(folder / "found-again") as store:
        sent = workload.message(Id(1, 0), "orders")
        assert workload.send(store, sent).physical_offset == 0
        assert check(store) == {sent.id}


def test_cut_records_do_not_follow_a_new_one_of_the_size_of_the_first(folder: Path) -> None:
    """apache/rocketmq #10666 with the power going once more, before anything else is synced."""
    with open_store(folder / "live") as store:
        workload.create_topics(store)
        workload.send(store, workload.message(Id(0, 0), "orders"))
        synced = (folder / "live" / "rocketpy" / "tail").read_bytes()
        three = [workload.message(Id(1, number), "orders") for number in range(3)]
        receipts = [workload.send(store, sent) for sent in three]
        shutil.copytree(folder / "live", folder / "found")
    (folder / "found" / "rocketpy" / "tail").write_bytes(synced)
    start, end = receipts[0].physical_offset, receipts[1].physical_offset
    path = folder / "found" / "commitlog" / f"{0:020}"
    content = bytearray(path.read_bytes())
    content[start + 40] ^= 0xFF  # the first of the three is torn
    path.write_bytes(content)
    disk = RecordingDisk(folder / "found")
    with open_store(folder / "found", disk, flush="async") as store:
        assert check(store) == {Id(0, 0)}
        assert workload.send(store, three[0]).physical_offset == start
        tree = lost(disk.operations)
        found = bytearray(tree.files[path.relative_to(folder / "found")])
        found[start:end] = path.read_bytes()[start:end]  # of all that, the new record is there
        tree.files[path.relative_to(folder / "found")] = bytes(found)
    tree.write_to(folder / "found-again")
    with open_store(folder / "found-again") as store:
        assert check(store) == {Id(0, 0), three[0].id}


def test_keys_are_found_when_only_the_slots_of_an_index_file_got_to_the_disk(
    folder: Path,
) -> None:
    """The slots then name entries that are lost, and with them the chains of older keys."""
    disk, clock = RecordingDisk(folder / "live"), SlowClock()
    config = replace(CONFIG, index_slots=64, index_entries=256)
    candidates = (workload.message(Id(0, number), "orders") for number in range(20, 1000))
    with open_store(folder / "live", disk, config=config, clock=clock) as store:
        workload.create_topics(store)
        for number in range(20):
            workload.send(store, workload.message(Id(0, number), "orders"))
        keyless = next(sent for sent in candidates if not sent.keys and not sent.tags)
        store.append("orders", workload.table([keyless]))
        checkpoint(store)
        for number in range(1000, 1020):
            workload.send(store, workload.message(Id(0, number), "orders"))
        tree = lost(disk.operations)
        (path,) = (path for path in tree.files if path.parts[0] == "index")
        slots = slice(40, 40 + 4 * config.index_slots)
        content = bytearray(tree.files[path])
        content[slots] = (folder / "live" / path).read_bytes()[slots]
        tree.files[path] = bytes(content)
    tree.write_to(folder / "found")
    with open_store(folder / "found", config=config) as store:
        assert len(check(store, key_samples=100)) == 41


def lost(operations: list[Operation]) -> Tree:
    """Return what is found if nothing got to the disk that was not synced."""
    loss = PowerLoss()
    for operation in operations:
        loss.apply(operation)
    return loss.found(Style.LOST, random.Random(0))
