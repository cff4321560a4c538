"""Threads that share a store, processes forked from one that has it open, and the ends of both."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.crash import workload
from tests.crash.model import check
from tests.crash.workload import Id, message

import rocketpy
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.errors import StoreClosedError
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.store import MessageStore

pytestmark = pytest.mark.crash


def open_store(root: Path) -> rocketpy.Store:
    return rocketpy.open(root, flush="sync", config=workload.CONFIG)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run it in threads; raise what the first of them raised."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class CountingDisk(Disk):
    """Counts the syncs of commit-log files."""

    def __init__(self) -> None:
        self.syncs = 0

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        file = _CountedFile(path, writable=writable)
        file.disk = self
        return file


class _CountedFile(DiskFile):
    disk: CountingDisk

    def sync(self) -> None:
        super().sync()
        self.disk.syncs += self.path.parent.name == "commitlog"


def test_threads_that_send_at_once_share_the_syncs(tmp_path: Path) -> None:
    """Group commit; on a real disk, for in memory a sync takes no time to share."""
    disk = CountingDisk()
    config = rocketpy.StoreConfig(
        commit_log_file_size=4 << 20, index_slots=1000, index_entries=4000
    )
    store = rocketpy.Store(
        MessageStore(tmp_path, config, clock=SystemClock(), disk=disk, sync_flush=True)
    )
    with store:
        workload.create_topics(store)
        before = disk.syncs

        def work(writer: int) -> None:
            for number in range(50):
                workload.send(store, message(Id(writer, number), "orders"))

        in_threads(8, work)
        assert 0 < disk.syncs - before < 400
        assert len(check(store)) == 400


def test_threads_may_send_append_read_and_look_up_at_once(folder: Path) -> None:
    stored: set[Id] = set()
    with open_store(folder / "store") as store:
        workload.create_topics(store)

        def work(number: int) -> None:
            if number < 4:
                workload.write(
                    store,
                    number,
                    random.Random(number),
                    limit=250,
                    trying=lambda _: None,
                    acknowledged=lambda batch: stored.update(sent.id for sent in batch),
                )
                return
            for _ in range(10):
                for topic in workload.TOPICS:
                    table = store.read(topic, columns=["body"]).read_all()
                    for body in table["body"].to_pylist()[-3:]:
                        sent = message(workload.id_of(body), topic)
                        assert body == sent.body
                        # Queues come before the index: until it is acknowledged, a message may
                        # be read before its key is found.
                        if sent.keys and sent.id in stored:
                            assert store.query(topic, key=sent.keys).num_rows == 1

        in_threads(7, work)
        assert check(store, acknowledged=stored) == stored


def in_child(work: Callable[[], None]) -> None:
    """Run it in a forked child that ends as programs do, with its exit handlers."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_forked_child_opens_the_store_itself(folder: Path) -> None:
    with open_store(folder / "store") as store:
        workload.create_topics(store)
        workload.send(store, message(Id(0, 0), "orders"))

        def work() -> None:
            with open_store(folder / "store") as own:
                workload.send(own, message(Id(1, 0), "orders"))
            assert (folder / "store" / "abort").exists()

        in_child(work)
        workload.send(store, message(Id(0, 1), "orders"))
        assert check(store) == {Id(0, 0), Id(0, 1), Id(1, 0)}
    assert not (folder / "store" / "abort").exists()


def test_a_forked_child_reads_but_does_not_write_with_what_it_inherits(folder: Path) -> None:
    with open_store(folder / "store") as store:
        workload.create_topics(store)
        workload.send(store, message(Id(0, 0), "orders"))

        def work() -> None:
            assert store.read("orders").read_all().num_rows == 1
            with pytest.raises(StoreClosedError):
                workload.send(store, message(Id(1, 0), "orders"))
            store.close()

        in_child(work)
        assert (folder / "store" / "abort").exists(), "the parent has it open still"
        workload.send(store, message(Id(0, 1), "orders"))
        assert check(store) == {Id(0, 0), Id(0, 1)}


def test_a_store_can_be_opened_again_while_a_forked_child_lives(folder: Path) -> None:
    """The child holds copies of all descriptors, locks and all."""
    store = open_store(folder / "store")
    workload.create_topics(store)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent closes the pipe
        os._exit(0)
    try:
        store.close()
        with open_store(folder / "store") as store:
            workload.send(store, message(Id(0, 0), "orders"))
            assert check(store) == {Id(0, 0)}
        assert not (folder / "store" / "abort").exists()
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(pid, 0)


def run_program(folder: Path, program: str) -> str:
    """Run a program with `store` open; return what it writes to standard error."""
    head = f"import rocketpy, sys, threading\nstore = rocketpy.open({str(folder / 'store')!r})\n"
    head += "store.create_topic('orders', 1)\n"
    done = subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, text=True, check=False
    )
    return done.stderr


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("store.send('orders', b'x')", ""),
        ("store.send('orders', b'x'); sys.exit(0)", ""),
        ("store.send('orders', b'x'); raise ValueError('mine')", "ValueError: mine"),
        ("keep = store; del store; keep.send('orders', b'x')", ""),
        ("threading.Thread(target=store.send, args=('orders', b'x')).start()", ""),
    ],
)
def test_a_program_that_ends_without_close_stops_cleanly(
    folder: Path, program: str, says: str
) -> None:
    errors = run_program(folder, program)
    assert says in errors
    assert "rocketpy" not in errors.replace(str(folder), "")
    assert not (folder / "store" / "abort").exists()
    with rocketpy.open(folder / "store") as store:
        assert store.read("orders").read_all().num_rows == 1
        assert list(store.verify()) == []


def test_close_ends_the_background_thread_and_may_be_called_twice(folder: Path) -> None:
    before = threading.active_count()
    for _ in range(5):
        store = open_store(folder / "store")
        assert threading.active_count() == before + 1
        store.close()
        store.close()
        assert threading.active_count() == before


def test_two_openings_in_one_process_share_the_store(folder: Path) -> None:
    with open_store(folder / "store") as one, open_store(folder / "store") as two:
        workload.create_topics(one)
        for number in range(40):
            workload.send((one, two)[number % 2], message(Id(0, number), "orders"))
        one.close()
        assert (folder / "store" / "abort").exists()
        workload.send(two, message(Id(0, 40), "orders"))
        assert len(check(two)) == 41
    assert not (folder / "store" / "abort").exists()
