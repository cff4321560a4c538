"""kill -9 of a Spark driver and all it started: each message is in table and topic exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.slow]

CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=1 << 20,
    consume_queue_file_entries=1000,
    index_slots=1000,
    index_entries=4000,
    retention_hours=None,
)
GROUPS = ("to-table", "to-topic")  # each is a query, too, and a folder with its checkpoint


class Producer:
    """Sends numbers to a topic while other things happen."""

    def __init__(self, store: rocketpy.Store) -> None:
        self._store, self._stop = store, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent = 0

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            numbers = [str(self.sent + row).encode() for row in range(10)]
            self._store.append("orders", pa.table({"body": numbers}))
            self.sent += len(numbers)

    def __enter__(self) -> Producer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


class Driver:
    """A driver in a session of its own, which its JVM and all Python workers share."""

    def __init__(self, folder: Path, task: str) -> None:
        self._folder = folder
        with (folder / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.spark_driver", str(folder), task],
                cwd=Path(__file__).parents[2],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> None:
        assert self._process.wait() == 0, self.log()

    def wait_for_batches(self, more: int) -> None:
        """Return when so many more batches were planned."""
        wanted = planned_batches(self._folder) + more
        while planned_batches(self._folder) < wanted:
            assert self._process.poll() is None, self.log()
            time.sleep(0.01)

    def kill(self) -> None:
        """Kill all at once."""
        kill_session(self._process)

    def log(self) -> str:
        return (self._folder / "driver.log").read_text()[-10_000:]


def kill_session(leader: subprocess.Popen[bytes]) -> None:
    """Kill a driver and all that it started.

    Spark's Python daemon is in another process group, so by session.
    """
    while pids := list(session_members(leader.pid)):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    leader.wait()  # it may have ended by itself, just before


def session_members(session: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            if entry.name.isdigit():
                state, _, _, of, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(of) == session and state != "Z":
                    yield int(entry.name)


@contextmanager
def driver(folder: Path, task: str) -> Iterator[Driver]:
    started = Driver(folder, task)
    try:
        yield started
    finally:
        started.kill()


def planned_batches(folder: Path) -> int:
    """Return how many batches all queries planned; Spark forgets old ones, but numbers them on."""
    logs = [(folder / group / "offsets").glob("[0-9]*") for group in GROUPS]
    return sum(max((int(path.name) + 1 for path in log), default=0) for log in logs)


@pytest.mark.timeout(3600)
def test_a_driver_killed_at_random_moments_loses_and_doubles_nothing(
    folder: Path, is_soak: bool
) -> None:
    rng = random.Random(1)
    with rocketpy.open(folder / "store", config=CONFIG) as store:
        store.create_topic("orders", 4)
        with Producer(store) as producer:
            for _ in range(20 if is_soak else 1):
                with driver(folder, "run") as running:
                    running.wait_for_batches(rng.randrange(1, 8))
                    time.sleep(rng.random())  # the moment is random; nothing is measured
        with driver(folder, "drain") as draining:
            draining.wait()

        sent = Counter(str(number) for number in range(producer.sent))
        assert Counter(json.loads((folder / "table.json").read_text())) == sent
        copies = store.read("copies", columns=["body"]).read_all()["body"].to_pylist()
        assert Counter(body.decode() for body in copies) == sent
        ends = {queue_id: end for queue_id, (_, end) in store.queues("orders").items()}
        for group in GROUPS:
            assert store.committed(group, "orders") == ends
        assert list(store.verify()) == []
