"""kill -9 of a writer, at any moment: what it acknowledged is there, and nothing half."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from tests.crash import workload
from tests.crash.children import Child, Notes, Zygote
from tests.crash.model import check

import rocketpy

pytestmark = pytest.mark.crash

SIGKILL = -9
QUIET = replace(workload.CONFIG, flush_interval_ms=1_000_000_000)  # indexes nothing by itself


class Chain:
    """One store, and what all its writers noted, one crash after the other."""

    def __init__(self, root: Path) -> None:
        self.root, self.notes, self.kills = root, Notes(), 0

    def judge(self, child: Child) -> None:
        """Wait for a writer's end, reopen, and hold the store against all notes."""
        code = child.wait()
        self.notes.add(child.diary)
        assert not self.notes.errors, self.notes.errors[0]
        assert code in (0, SIGKILL)
        self.kills += code == SIGKILL
        self.check()

    def check(self) -> None:
        """Reopen, check, and see that the store takes messages again."""
        notes = self.notes
        with rocketpy.open(self.root, flush="sync", config=workload.CONFIG) as store:
            workload.create_topics(store)
            check(store, acknowledged=notes.acknowledged, tried=notes.tried)
            for writer, offset in notes.commits.items():
                committed = store.committed(f"{workload.GROUP}-{writer}", "orders")
                assert committed[0] >= offset
            probe = workload.message(workload.Id(1_000_000, self.kills), "events")
            if probe.id not in notes.acknowledged:
                workload.send(store, probe)
                notes.tried.add(probe.id)
                notes.acknowledged.add(probe.id)
        assert not (self.root / "abort").exists()


def test_a_writer_killed_at_random_moments_loses_nothing(
    folder: Path, zygote: Zygote, is_soak: bool
) -> None:
    rng = random.Random(1)
    for store_number in range(25 if is_soak else 2):
        chain = Chain(folder / str(store_number))
        for writer in range(8):
            child = zygote.start(chain.root, writer=writer, seed=rng.randrange(1 << 30))
            if rng.random() < 0.5:
                child.wait_for("ack", rng.randrange(1, 25))
            else:
                time.sleep(rng.random() * 0.08)  # the moment is random; nothing is measured
            child.kill()
            chain.judge(child)
        assert chain.kills == writer + 1


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_a_writer_killed_at_each_operation_on_the_disk_loses_nothing(
    folder: Path, zygote: Zygote, is_soak: bool, flush: Literal["sync", "async"]
) -> None:
    for writer, kill_at in enumerate(range(1, 300, 3 if is_soak else 40)):
        if writer % 5 == 0:  # a fresh one: to read back all takes long when it has grown
            chain = Chain(folder / f"store-{writer}")
        child = zygote.start(
            chain.root, writer=writer, seed=kill_at, phase="write", kill_at=kill_at, flush=flush
        )
        chain.judge(child)


def test_a_store_killed_while_it_opens_again_and_again_loses_nothing(
    folder: Path, zygote: Zygote, is_soak: bool
) -> None:
    """Recovery that dies is an unclean stop again."""
    for seed in range(6 if is_soak else 1):
        chain = Chain(folder / str(seed))
        chain.judge(zygote.start(chain.root, writer=0, seed=seed, phase="write", kill_at=300))
        for writer in range(1, 2000):
            if writer % 8 == 0:
                chain = Chain(folder / f"{seed}-{writer}")
            # Dirty first, then die a little later in each recovery, until one comes through.
            dirty = zygote.start(
                chain.root, writer=2 * writer, seed=writer, phase="write", kill_at=20 + 7 * seed
            )
            assert dirty.wait() == SIGKILL
            chain.notes.add(dirty.diary)
            step = 1 if is_soak else 12
            recovering = zygote.start(
                chain.root,
                writer=2 * writer + 1,
                seed=writer,
                phase="open",
                kill_at=writer * step,
                limit=0,
            )
            has_opened = recovering.wait_for("open")
            chain.judge(recovering)
            if has_opened:
                break
        assert has_opened


def test_a_store_killed_while_it_closes_loses_nothing(
    folder: Path, zygote: Zygote, is_soak: bool
) -> None:
    chain = Chain(folder / "store")
    for kill_at in range(1, 400, 1 if is_soak else 8):
        child = zygote.start(
            chain.root, writer=kill_at, seed=kill_at, limit=30, phase="close", kill_at=kill_at
        )
        has_closed = child.wait_for("closed")
        chain.judge(child)
        if has_closed:
            break
    assert has_closed


@pytest.mark.parametrize("is_in_use", [pytest.param(False, marks=pytest.mark.further), True])
def test_a_writer_killed_while_it_indexes_loses_nothing_and_indexes_nothing_twice(
    folder: Path, zygote: Zygote, is_in_use: bool
) -> None:
    """If the store is in use nobody recovers it: the next to index goes on from what is there."""
    for kill_at in range(1, 100):
        chain = Chain(folder / f"store-{kill_at}")
        with ExitStack() as stack:
            if is_in_use:
                store = stack.enter_context(rocketpy.open(chain.root, config=QUIET))
            child = zygote.start(
                chain.root, writer=0, seed=4, limit=30, phase="index", kill_at=kill_at
            )
            has_indexed = child.wait_for("indexed")
            if is_in_use:
                notes = child.notes()
                check(store, acknowledged=notes.acknowledged, tried=notes.tried)
        chain.judge(child)
        with rocketpy.open(chain.root, config=workload.CONFIG, read_only=True) as closed:
            entries = index_entries(closed)
            assert len(set(entries)) == len(entries)
        if has_indexed:
            break
    assert has_indexed
    assert kill_at > 10


def index_entries(store: rocketpy.Store) -> list[tuple[int, int]]:
    """Return hash and place of each entry that the index counts."""
    index = store._store.parts.index
    files = [index.file(name) for name in index.names()]
    views = [file.read_entries(1, file.header().count) for file in files]
    return [(int(e["key_hash"]), int(e["physical_offset"])) for view in views for e in view]


def test_writers_go_on_when_one_of_them_is_killed(
    folder: Path, zygote: Zygote, is_soak: bool
) -> None:
    """The next holder of the lock finishes or cuts what the dead one left; none waits for it."""
    for seed in range(40 if is_soak else 3):
        chain = Chain(folder / str(seed))
        survivors = [
            zygote.start(chain.root, writer=writer, seed=seed + writer, limit=150)
            for writer in range(2)
        ]
        victims = [
            zygote.start(
                chain.root, writer=n, seed=seed + n, phase="write", kill_at=9 + 17 * seed + 3 * n
            )
            for n in (10, 11)
        ]
        for victim in victims:
            assert victim.wait() == SIGKILL
            chain.notes.add(victim.diary)
        for survivor in survivors:
            assert survivor.wait() == 0, survivor.notes().errors
            chain.notes.add(survivor.diary)
        assert not chain.notes.errors, chain.notes.errors[0]
        chain.check()
