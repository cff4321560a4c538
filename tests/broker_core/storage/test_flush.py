"""Group commit: who waits, who syncs, what a failing disk means."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.storage import flush
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.flush import Flusher
from rocketpy.broker_core.storage.store import MessageStore


class CountingDisk(Disk):
    """Counts the syncs of the log, and does at each what a test says."""

    def __init__(self) -> None:
        self.syncs = 0
        self.at_sync: Callable[[], None] = lambda: None

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        file = super().open(path, writable=writable)
        if path.parent.name == "commitlog":
            sync = file.sync

            def counted() -> None:
                self.syncs += 1
                self.at_sync()
                sync()

            file.sync = counted  # type: ignore[method-assign]
        return file


@pytest.fixture
def disk() -> CountingDisk:
    return CountingDisk()


@pytest.fixture
def messages(
    path: Path, roomy: rocketpy.StoreConfig, disk: CountingDisk
) -> Iterator[tuple[rocketpy.Store, MessageStore]]:
    opened = MessageStore(path, roomy, clock=ManualClock(), sync_flush=True, disk=disk)
    with rocketpy.Store(opened) as store:
        store.create_topic("t", queues=1)
        yield store, opened


Opened = tuple[rocketpy.Store, MessageStore]


def test_under_sync_flush_a_message_is_durable_when_send_returns(
    messages: Opened, disk: CountingDisk
) -> None:
    store, inner = messages
    receipt = store.send("t", b"x")
    assert disk.syncs >= 1
    state = inner.parts.tail.read()
    assert state is not None
    assert inner.parts.tail.flushed() == state.end > receipt.physical_offset


def test_a_table_is_synced_once(messages: Opened, disk: CountingDisk) -> None:
    store, _ = messages
    store.send("t", b"x")
    before = disk.syncs
    store.append("t", pa.table({"body": ["x"] * 100}))
    assert disk.syncs == before + 1


def test_what_is_durable_already_is_not_synced_again(messages: Opened, disk: CountingDisk) -> None:
    store, _ = messages
    store.send("t", b"x")
    before = disk.syncs
    store.flush()
    assert disk.syncs == before


def test_many_that_wait_share_a_sync(messages: Opened, disk: CountingDisk) -> None:
    store, inner = messages
    store.send("t", b"first")
    inner._sync_flush = False
    for _ in range(8):
        store.send("t", b"x")
    before = disk.syncs
    threads = [threading.Thread(target=store.flush) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert disk.syncs - before <= 2


def test_a_disk_that_fails_to_sync_is_not_believed_again(
    messages: Opened, disk: CountingDisk
) -> None:
    store, inner = messages
    store.send("t", b"x")
    inner._sync_flush = False
    store.send("t", b"y")
    state = inner.parts.tail.read()
    assert state is not None
    flusher = Flusher(inner.parts)

    def fail() -> None:
        raise OSError(5, "Input/output error")

    disk.at_sync = fail
    with pytest.raises(OSError, match="Input/output"):
        flusher.flush_to(state.end)
    disk.at_sync = lambda: None
    with pytest.raises(OSError, match="Input/output"):
        flusher.flush_to(state.end)
    assert inner.parts.tail.flushed() < state.end


def test_a_forked_child_does_not_wait_for_a_sync_of_its_parent(
    messages: Opened, disk: CountingDisk
) -> None:
    store, opened = messages
    inside, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        inside.set()
        go_on.wait(30)

    disk.at_sync = hang
    sender = threading.Thread(target=store.send, args=("t", b"x"))
    sender.start()
    assert inside.wait(30)
    disk.at_sync = lambda: None
    child = os.fork()
    if child == 0:
        opened.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    go_on.set()
    sender.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_sync_that_was_interrupted_is_done_by_the_next(
    messages: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flush, "LONGEST_WAIT_S", 0.01)
    store, opened = messages
    assert opened._flusher._turn.acquire()  # and an interrupt before it is given back
    store.send("t", b"x")
    assert opened.parts.tail.flushed() > 0


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="asks Linux")
def test_what_was_sent_does_not_stay_in_the_memory_of_the_process(path: Path) -> None:
    config = rocketpy.StoreConfig(commit_log_file_size=16 << 20, flush_interval_ms=10)
    with rocketpy.open(path, config=config) as store:
        store.create_topic("t", queues=1)
        for _ in range(4000):
            store.send("t", bytes(1000))
        give_up_s = time.monotonic() + 60
        while mapped_kib(path / "commitlog") > 1024 and time.monotonic() < give_up_s:
            time.sleep(0.01)
        assert mapped_kib(path / "commitlog") <= 1024


def mapped_kib(folder: Path) -> int:
    """Return how much of the files below a folder counts as memory of this process."""
    total, is_inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.partition(" ")[0]:
            is_inside = str(folder) in line
        elif is_inside and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total
