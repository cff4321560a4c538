"""Crashes in the commit of a staged batch: all of it is there afterwards, or nothing, and once."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from tests.crash import workload
from tests.crash.children import Zygote
from tests.crash.faulty_disk import Note, Operation, PowerLoss, RecordingDisk, Style
from tests.crash.model import check
from tests.crash.test_power_loss import SlowClock, open_store
from tests.crash.workload import TOPICS, Id

import rocketpy
from rocketpy.broker_core.intake.staged import TaskStage
from rocketpy.broker_core.storage.batches.commit import StagedBatch

pytestmark = pytest.mark.crash

BEFORE, AFTER, FIRST_BATCH = 0, 1, 100
SIGKILL = -9


def batch_ids(number: int, rows: int = 30) -> set[Id]:
    return {Id(FIRST_BATCH + number, row) for row in range(rows)}


def stage(root: Path, number: int, *, tasks: int, rows: int = 30) -> StagedBatch:
    """Stage a batch of messages of all topics, by some tasks; the messages are always the same."""
    topics = list(TOPICS)
    sent = [workload.message(Id(FIRST_BATCH + number, row), topics[row % 3]) for row in range(rows)]
    files = []
    for task in range(tasks):
        part = sent[task * rows // tasks : (task + 1) * rows // tasks]
        table = workload.table(part).append_column(
            "topic", pa.array([one.topic for one in part], pa.string())
        )
        stage = TaskStage(root=root, transaction=f"q-{number}")
        stage.add(table.to_batches()[0])
        file, _ = stage.finish()
        assert file is not None
        files.append(file)
    return StagedBatch(files=files, writer="q", number=number)


def send(store: rocketpy.Store, id: Id) -> None:
    workload.send(store, workload.message(id, "orders"))


@dataclass
class Expected:
    """What must and what may be found."""

    sent: set[Id] = field(default_factory=set)
    trying: set[Id] = field(default_factory=set)
    committed: set[int] = field(default_factory=set)
    started: set[int] = field(default_factory=set)

    def take(self, operation: Operation) -> None:
        match operation:
            case Note("sending", id):
                self.trying.add(id)
            case Note("sent", id):
                self.sent.add(id)
            case Note("committing", number):
                self.started.add(number)
            case Note("committed", number):
                self.committed.add(number)

    def judge(self, store: rocketpy.Store) -> set[int]:
        """Return which batches are there: each is whole."""
        found = check(store, key_samples=8)
        assert self.sent <= found
        numbers = {id.writer - FIRST_BATCH for id in found if id.writer >= FIRST_BATCH}
        singles = {id for id in found if id.writer < FIRST_BATCH}
        assert self.committed <= numbers <= self.started
        assert singles <= self.trying
        for number in numbers:
            assert batch_ids(number) <= found, f"batch {number} is there in part"
        assert not store._store.parts.tail.has_intent()
        return numbers


def record(root: Path) -> list[Operation]:
    """Return what commits of two batches do to the disk, with messages before, between, after."""
    with open_store(root, clock=SlowClock()) as store:
        workload.create_topics(store)
    batches = [stage(root, number, tasks=2) for number in range(2)]
    disk = RecordingDisk(root)
    with open_store(root, disk, clock=SlowClock()) as store:
        for number, batch in enumerate(batches):
            disk.note("sending", Id(BEFORE, number))
            send(store, Id(BEFORE, number))
            disk.note("sent", Id(BEFORE, number))
            disk.note("committing", number)
            assert store._store.commit_batch(batch)
            disk.note("committed", number)
        disk.note("sending", Id(AFTER, 0))
        send(store, Id(AFTER, 0))
        disk.note("sent", Id(AFTER, 0))
    return disk.operations


def test_a_batch_is_there_whole_or_not_at_all_after_a_power_loss(
    folder: Path, is_soak: bool
) -> None:
    """At every operation; then the batch is run again, by fewer tasks, and the power goes again."""
    operations = record(folder / "live")
    loss, expected, rng = PowerLoss(), Expected(), random.Random(5)
    first = next(n for n, op in enumerate(operations) if isinstance(op, Note))
    outcomes: set[tuple[int, ...]] = set()
    for number, operation in enumerate(operations):
        loss.apply(operation)
        expected.take(operation)
        if number < first or isinstance(operation, Note):
            continue
        if not is_soak and rng.random() > 0.15:
            continue
        style = rng.choice([Style.LOST, Style.KEPT, *[Style.SECTORS, Style.TORN] * 2])
        print(f"power loss after operation {number}, {style.value}")
        found = folder / "found"
        loss.found(style, rng).write_to(found)
        disk = RecordingDisk(found)
        started = len(disk.operations)
        with open_store(found, disk, clock=SlowClock(1_800_000_000_000)) as store:
            numbers = expected.judge(store)
            outcomes.add(tuple(sorted(numbers)))
            for again in range(max(numbers, default=0), 2):  # as Spark goes on
                disk.note("committing", again)
                is_new = store._store.commit_batch(stage(found, again, tasks=1))
                assert is_new == (again not in numbers)
                disk.note("committed", again)
            wanted = Expected(expected.sent, expected.trying, {0, 1}, {0, 1})
            assert wanted.judge(store) == {0, 1}
        wanted = Expected(expected.sent, expected.trying, set(numbers), set(numbers))
        _lose_power_again(folder / "again", disk.operations, started, wanted)
    assert outcomes == {(), (0,), (0, 1)}


def _lose_power_again(
    root: Path, operations: list[Operation], started: int, wanted: Expected
) -> None:
    """Lose power at some operation of a recovery and the commits behind it."""
    rng = random.Random(len(operations))
    loss, last = PowerLoss(), rng.randrange(started, len(operations))
    for operation in operations[: last + 1]:
        loss.apply(operation)
        wanted.take(operation)
    style = rng.choice(list(Style))
    print(f"  then power loss after operation {last - started}, {style.value}")
    loss.found(style, rng).write_to(root)
    with open_store(root) as store:
        wanted.judge(store)


def test_a_committer_that_is_killed_leaves_all_of_its_batch_or_nothing(
    folder: Path, zygote: Zygote, is_soak: bool
) -> None:
    """Another process has the store open meanwhile, writes on at once, and runs the batch again."""
    outcomes = set()
    root, kills = folder / "store-0", 0
    for kill_at in range(1, 1000, 1 if is_soak else 4):
        if kill_at % 20 == 1:
            root, expected = folder / f"store-{kill_at}", Expected()
        with rocketpy.open(root, flush="sync", config=workload.CONFIG) as store:
            workload.create_topics(store)
            batch = stage(root, kill_at, tasks=2)
            child = zygote.start_commit(root, batch, kill_at=kill_at)
            code = child.wait()
            assert code in (0, SIGKILL), child.notes().errors
            kills += code == SIGKILL
            scanned = {workload.id_of(body) for body in _scan(root)}
            assert scanned & batch_ids(kill_at) in (set(), batch_ids(kill_at))
            send(store, Id(BEFORE, kill_at))
            expected.sent.add(Id(BEFORE, kill_at))
            expected.trying.add(Id(BEFORE, kill_at))
            expected.started.add(kill_at)
            is_there = kill_at in expected.judge(store)
            outcomes.add(is_there)
            assert store._store.commit_batch(stage(root, kill_at, tasks=1)) != is_there
            expected.committed.add(kill_at)
            expected.judge(store)
        if code == 0:
            break
    assert code == 0
    assert kills > 10
    assert outcomes == {True, False}


def _scan(root: Path) -> list[bytes]:
    """Read the log as it is, before anybody has settled anything."""
    with rocketpy.open(root, read_only=True) as store:
        problems = [problem for problem in store.verify() if problem.invariant in ("I1", "I3")]
        assert problems == []
        bodies: list[bytes] = store.scan(columns=["body"]).read_all()["body"].to_pylist()
        return bodies


def test_a_batch_of_a_dead_process_is_settled_when_the_store_is_opened(
    folder: Path, zygote: Zygote, is_soak: bool
) -> None:
    """Nobody else had the store open: recovery meets the intent, and may be killed as well."""
    outcomes = set()
    for kill_at in range(1, 1000, 3 if is_soak else 18):
        root = folder / f"store-{kill_at}"
        with rocketpy.open(root, flush="sync", config=workload.CONFIG) as store:
            workload.create_topics(store)
            send(store, Id(BEFORE, 0))
        code = zygote.start_commit(root, stage(root, 0, tasks=2), kill_at=kill_at).wait()
        for life in range(1, 40 if is_soak else 2):
            opening = zygote.start(
                root, writer=2, seed=0, phase="open", kill_at=9 * life, limit=0, flush="sync"
            )
            opening.wait()
        expected = Expected({Id(BEFORE, 0)}, {Id(BEFORE, 0)}, set(), {0})
        with rocketpy.open(root, flush="sync", config=workload.CONFIG) as store:
            is_there = expected.judge(store) == {0}
            outcomes.add(is_there)
            assert store._store.commit_batch(stage(root, 0, tasks=1)) != is_there
            expected.judge(store)
        shutil.rmtree(root)
        if code == 0:
            break
    assert outcomes == {True, False}
