"""The store's lock between processes and threads, and who has the store open."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.errors import StoreClosedError, StoreLockedError
from rocketpy.broker_core.storage.lock import Openers, lock_of, locked
from rocketpy.broker_core.storage.statistics import statistics

HOLD = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(fd, fcntl.LOCK_EX, 1)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_elsewhere(path: Path) -> Iterator[int]:
    """Hold the lock in another process, as a running broker does; yields its pid."""
    command = [sys.executable, "-c", HOLD, str(path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process.pid
        finally:
            process.stdin.close()
            process.wait()


def test_a_store_that_another_process_holds_is_not_opened(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    config = replace(small, lock_timeout_s=0.05)
    rocketpy.open(path, config=config).close()
    with held_elsewhere(path) as pid, pytest.raises(StoreLockedError) as caught:
        rocketpy.open(path, config=config)
    assert caught.value.holder_pid == pid
    assert re.search(
        rf"locked by process {pid} \(waited 0\.05 s\).*read_only=True", str(caught.value)
    )


def test_a_store_that_another_process_holds_is_read(path: Path, store: rocketpy.Store) -> None:
    store.send("t", b"x")
    with held_elsewhere(path), rocketpy.open(path, read_only=True) as reader:
        assert reader.read("t").read_all().num_rows == 1


def test_an_append_waits_for_its_turn(path: Path, store: rocketpy.Store) -> None:
    sent = threading.Event()

    def send() -> None:
        store.send("t", b"x")
        sent.set()

    with held_elsewhere(path):
        thread = threading.Thread(target=send)
        thread.start()
        assert not sent.wait(0.1)
    assert sent.wait(10)
    thread.join()


def test_an_append_that_waits_too_long_stores_nothing(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(path, config=replace(small, lock_timeout_s=0.05)) as store:
        store.create_topic("t", queues=1)
        with held_elsewhere(path), pytest.raises(StoreLockedError):
            store.send("t", b"x")
        assert store.queues("t") == {0: (0, 0)}


@pytest.mark.usefixtures("store")
def test_the_lock_is_one_per_process_and_store(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    assert lock_of(path) is lock_of(link)


@pytest.mark.usefixtures("store")
def test_a_thread_may_take_the_lock_twice(path: Path) -> None:
    lock = lock_of(path)
    with lock.held(1), lock.held(1):
        assert lock.holder() is None  # no other process holds it


@pytest.mark.usefixtures("store")
def test_the_lock_excludes_threads(path: Path) -> None:
    lock = lock_of(path)
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(20):
            with lock.held(10):
                inside += 1
                most = max(most, inside)
                time.sleep(0.0001)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_closing_another_descriptor_does_not_lose_the_lock(
    path: Path, store: rocketpy.Store
) -> None:
    with rocketpy.open(path, config=store.config), lock_of(path).held(1):
        other = rocketpy.open(path, config=store.config)
        other.close()
        assert is_taken(path)


def is_taken(path: Path) -> bool:
    """Whether another process finds the lock taken."""
    command = [sys.executable, "-c", TRY, str(path / "lock")]
    return subprocess.run(command, capture_output=True, check=True).stdout.strip() == b"busy"


TRY = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
    print("free")
except BlockingIOError:
    print("busy")
"""


def test_threads_of_one_store_send_without_loss(store: rocketpy.Store) -> None:
    def send(sender: int) -> None:
        for number in range(20):
            store.send("t", f"{sender}-{number}")

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bodies = store.read("t").read_all()["body"].to_pylist()
    assert len(set(bodies)) == 80
    for sender in range(4):
        own = [body for body in bodies if body.startswith(b"%d-" % sender)]
        assert own == [b"%d-%d" % (sender, number) for number in range(20)]


SEND = """
import sys, rocketpy
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with rocketpy.open(path) as store:
    for number in range(count):
        store.send("t", f"{name}-{number}", keys=[name])
"""


def test_processes_send_to_one_store_without_loss(path: Path, store: rocketpy.Store) -> None:
    senders = [
        subprocess.Popen([sys.executable, "-c", SEND, str(path), name, "30"]) for name in "ab"
    ]
    for number in range(30):
        store.send("t", f"c-{number}", keys=["c"])
    assert [sender.wait(60) for sender in senders] == [0, 0]
    bodies = store.read("t").read_all()["body"].to_pylist()
    for name in "abc":
        own = [body for body in bodies if body.startswith(name.encode())]
        assert own == [f"{name}-{number}".encode() for number in range(30)]
        assert store.query("t", key=name).num_rows == 30


def test_who_comes_alone_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "rocketpy").mkdir()
    first, second = Openers(tmp_path), Openers(tmp_path)
    assert first.join()
    assert not second.join()
    assert not first.leave()
    assert second.leave()
    assert not second.leave()


@pytest.mark.usefixtures("store")
def test_a_descriptor_of_the_lock_is_not_inherited(path: Path) -> None:
    flags = fcntl.fcntl(lock_of(path)._fd, fcntl.F_GETFD)
    assert flags & fcntl.FD_CLOEXEC
    assert os.get_inheritable(lock_of(path)._fd) is False


KEEP_TAKING = """
import mmap, sys, threading, time
from pathlib import Path
from rocketpy.broker_core.storage.lock import lock_of
lock = lock_of(Path(sys.argv[1]))
file = open(sys.argv[2], "r+b")
taken = mmap.mmap(file.fileno(), 8)

def take():
    while True:
        with lock.held(60):
            taken[:8] = (int.from_bytes(taken[:8], "big") + 1).to_bytes(8, "big")
            time.sleep(0.01)  # the others wait for it meanwhile

for _ in range(3):
    threading.Thread(target=take, daemon=True).start()
print("taking", flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("store")
def test_threads_of_another_process_do_not_keep_the_lock_among_themselves(
    path: Path, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.write_bytes(bytes(8))
    command = [sys.executable, "-c", KEEP_TAKING, str(path), str(taken)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"taking\n"
        passed_over = 0
        for _ in range(30):
            time.sleep(0.02)  # they have it again
            before = int.from_bytes(taken.read_bytes(), "big")
            with lock_of(path).held(60):
                passed_over += int.from_bytes(taken.read_bytes(), "big") - before
        process.stdin.close()
    assert passed_over < 150


def test_verify_does_not_lose_the_lock_of_its_own_process(
    path: Path, store: rocketpy.Store
) -> None:
    with store._store.locked():
        assert list(store.verify()) == []
        assert is_taken(path)


WHO_OPENS = """
import sys, traceback
opened = set()

def note(event, args):
    if event == "open" and str(args[0]).endswith("/lock"):
        names = [each.filename for each in traceback.extract_stack()]
        ours = [name for name in names if "broker_core/" in name]
        opened.add(ours[-1].rpartition("broker_core/")[2])

sys.addaudithook(note)
import rocketpy
from pathlib import Path
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.doctor.store_checks import check_store
from rocketpy.broker_core.storage.statistics import statistics
path = sys.argv[1]
with rocketpy.open(path, read_only=True) as reader:
    list(reader.verify())
with rocketpy.open(path) as store:
    store.create_topic("t")
    store.send("t", b"x")
    list(store.verify())
    statistics(store._store)
    list(check_store(Path(path), SystemClock()))
print(*sorted(opened))
"""


def test_nothing_but_the_locks_own_module_opens_the_lock_file(path: Path) -> None:
    rocketpy.open(path).close()
    command = [sys.executable, "-c", WHO_OPENS, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["storage/lock.py"]


def descriptors(path: Path) -> int:
    """Return how many files below a folder this process has open."""
    links = Path("/proc/self/fd").iterdir()
    return sum(os.path.realpath(link).startswith(f"{path}/") for link in links)


def test_a_process_that_opened_many_stores_keeps_no_file_of_them_open(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    """Others need low descriptors: Py4J's server for `foreachBatch` takes none from 1024 on."""
    for number in range(20):
        with rocketpy.open(path / str(number), config=small) as store:
            store.create_topic("t", queues=1)
            store.send("t", b"x")
            list(store.verify())
            statistics(store._store)
        with locked(path / str(number), 1):
            pass
    del store
    assert descriptors(path) == 0


def test_closing_a_store_inside_its_lock_keeps_the_lock(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    store = rocketpy.open(path, config=small)
    with store._store.locked():
        store.close()
        assert is_taken(path)
    assert not is_taken(path)
    assert descriptors(path) == 0


def test_who_waited_for_the_lock_of_a_store_that_was_closed_is_told(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    store = rocketpy.open(path, config=small)
    store.create_topic("t", queues=1)
    lock = store._store._lock
    store.close()
    with pytest.raises(StoreClosedError), lock.held(1):
        pass
    with locked(path, 1):  # a new guard takes its place
        assert is_taken(path)
    assert not is_taken(path)
