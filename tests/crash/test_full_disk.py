"""A full disk: a clear error, nothing acknowledged lost, nothing else stored, and on it goes.

The disk is a small file system in memory, filled to each size in turn, so that the room ends in the
log, in a queue, in the index, in a metadata file, or where a file is to be made.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash import workload
from tests.crash.children import Zygote
from tests.crash.model import check
from tests.crash.small_disk import PAGE, Filler
from tests.crash.test_batch_commit import batch_ids, stage
from tests.crash.workload import Id

import rocketpy
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.errors import DiskFullError
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.store import MessageStore

pytestmark = pytest.mark.crash

# Larger files than elsewhere: room is given by the page, and all of it is to be used.
CONFIG = replace(
    workload.CONFIG,
    commit_log_file_size=64 << 10,
    consume_queue_file_entries=600,
    index_slots=600,
    index_entries=1200,
)


def open_store(root: Path, config: rocketpy.StoreConfig = CONFIG) -> rocketpy.Store:
    return rocketpy.open(root, flush="sync", config=config)


@contextmanager
def room_or_clear_error() -> Iterator[None]:
    """There may be room for it; if not, the error says so."""
    try:
        yield
    except DiskFullError as error:
        if "no room" not in str(error):
            raise


def write_until_full(
    store: rocketpy.Store, writer: int, rng: random.Random
) -> tuple[set[Id], DiskFullError | None]:
    """Return what was acknowledged before the disk was full, and the error."""
    stored: set[Id] = set()
    for number, batch in enumerate(workload.batches(writer, rng)):
        try:
            if len(batch) > 1 or number % 5 == 0:
                store.append(batch[0].topic, workload.table(batch))
            else:
                workload.send(store, batch[0])
            stored.update(sent.id for sent in batch)
            if number % 2:
                store._store._writer.catch_up()
            if number % 11 == 0:
                end = store.queues("orders")[0][1]
                store.commit(f"group-{writer}-{number}", "orders", {0: end})
        except DiskFullError as error:
            return stored, error
    raise AssertionError("batches never end")


def test_a_full_disk_loses_nothing_and_stores_no_half_message(
    small_disk: Path, is_soak: bool
) -> None:
    filler = Filler(small_disk)
    hit: set[str] = set()
    with open_store(small_disk / "store") as store:
        workload.create_topics(store)
        stored: set[Id] = set()
        for pages in range(0, 60, 1 if is_soak else 5):
            filler.leave(pages * PAGE)
            more, error = write_until_full(store, pages, random.Random(pages))
            assert error is not None
            assert "no room" in str(error)
            assert "free some space" in str(error)
            hit.add(Path(error.path).relative_to(small_disk / "store").parts[0])
            stored |= more
            check(store, acknowledged=stored, tried=stored)
            filler.free()
            assert check(store, acknowledged=stored, tried=stored) == stored
            probe = workload.message(Id(1000 + pages, 0), "events")
            workload.send(store, probe)
            stored.add(probe.id)
            if pages % 16 == 0:
                check(store, acknowledged=stored, tried=stored)
    with open_store(small_disk / "store") as store:
        assert check(store, acknowledged=stored, tried=stored) == stored
    print(f"the room ended in {sorted(hit)}")
    assert hit >= {"commitlog", "consumequeue", "index"}


class FullInIndex(Disk):
    """Has no room for more than one index file."""

    def create(self, path: Path, size: int, *, allocated: int = 0) -> DiskFile:
        if path.parent.name == "index" and any(path.parent.iterdir()):
            raise DiskFullError(path, allocated, "No space left on device")
        return super().create(path, size, allocated=allocated)


def test_a_failed_append_leaves_nothing_in_the_index(folder: Path) -> None:
    """Entries that went into a file before the next could not be made are taken out again."""
    inner = MessageStore(
        folder / "store",
        workload.CONFIG,
        clock=SystemClock(),
        disk=FullInIndex(),
        sync_flush=True,
    )
    with rocketpy.Store(inner) as store:
        workload.create_topics(store)
        first = workload.message(Id(0, 1), "orders")
        workload.send(store, first)
        end = inner.parts.tail.read()
        assert end is not None
        many = [workload.message(Id(1, number), "orders") for number in range(40)]
        with pytest.raises(DiskFullError):
            store.append("orders", workload.table(many))
        assert inner.parts.tail.read() == end
        assert inner.parts.index.end_physical_offset() < end.end
        second = workload.message(Id(2, 1), "orders")
        workload.send(store, second)
        assert check(store) == {first.id, second.id}


def test_a_store_on_a_full_disk_can_be_closed_and_opened_when_there_is_room(
    small_disk: Path, is_soak: bool
) -> None:
    filler = Filler(small_disk)
    stored: set[Id] = set()
    with open_store(small_disk / "store") as store:
        workload.create_topics(store)
    for pages in range(0, 24, 1 if is_soak else 5):
        store = open_store(small_disk / "store")
        filler.leave(pages * PAGE)
        more, _ = write_until_full(store, pages, random.Random(pages))
        stored |= more
        with room_or_clear_error():
            store.close()
        with room_or_clear_error(), open_store(small_disk / "store") as store:
            check(store, acknowledged=stored, tried=stored)
        filler.free()
        with open_store(small_disk / "store") as store:
            assert check(store, acknowledged=stored, tried=stored) == stored
        assert not (small_disk / "store" / "abort").exists()


def test_a_writer_that_meets_a_full_disk_leaves_the_others_a_sound_store(
    small_disk: Path, zygote: Zygote
) -> None:
    filler = Filler(small_disk)
    with open_store(small_disk / "store", workload.CONFIG) as store:
        workload.create_topics(store)
        filler.leave(30 * PAGE)
        child = zygote.start(small_disk / "store", writer=0, seed=1)
        assert child.wait() == 1
        notes = child.notes()
        assert "DiskFullError" in notes.errors[0]
        check(store, acknowledged=notes.acknowledged)
        filler.free()
        stored = check(store, acknowledged=notes.acknowledged)
        probe = workload.message(Id(1, 0), "events")
        workload.send(store, probe)
        assert check(store) == {*stored, probe.id}


def test_a_batch_that_finds_no_room_leaves_nothing_of_itself(
    small_disk: Path, is_soak: bool
) -> None:
    filler = Filler(small_disk)
    failures = 0
    for number in range(60 if is_soak else 12):
        root = small_disk / f"store-{number}"
        with open_store(root) as store:
            workload.create_topics(store)
            before = workload.message(Id(0, number), "orders")
            workload.send(store, before)
            batch = stage(root, number, tasks=2)
            filler.leave(number * PAGE)
            is_stored = False
            with room_or_clear_error():
                is_stored = store._store.commit_batch(batch)
            failures += not is_stored
            filler.free()
            expected = {before.id} | (batch_ids(number) if is_stored else set())
            workload.send(store, workload.message(Id(1, number), "orders"))
            found = check(store, acknowledged=expected | {Id(1, number)})
            is_there = batch_ids(number) <= found
            assert is_there or not batch_ids(number) & found
            assert store._store.commit_batch(stage(root, number, tasks=1)) != is_there
            assert check(store) == {before.id, Id(1, number)} | batch_ids(number)
        shutil.rmtree(root)
    assert 1 < failures < number
