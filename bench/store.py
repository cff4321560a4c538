"""The embedded store: bulk append, single sends, recovery, reading from stores of all sizes."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import Figure, cpu_seconds
from workload import QUEUES, TOPIC, table

import rocketpy
from rocketpy import StoreConfig

MILLION = 1_000_000
CHUNK = 100_000
SENDS = 100_000
READ_ROWS = 10_000
STORE_SIZES = (MILLION // 10, MILLION, 10 * MILLION)


def _new(folder: Path, name: str) -> rocketpy.Store:
    store = rocketpy.open(folder / name, config=StoreConfig(retention_hours=None))
    store.create_topic(TOPIC, QUEUES)
    return store


def append_figures(folder: Path) -> Iterator[Figure]:
    chunks = [table(CHUNK, first) for first in range(0, MILLION, CHUNK)]
    spent = []
    for attempt in range(3):
        store = _new(folder, f"append-{attempt}")
        start = time.process_time()
        for chunk in chunks:
            store.append(TOPIC, chunk)
        spent.append(time.process_time() - start)
        store.close()
        shutil.rmtree(folder / f"append-{attempt}")
    yield Figure("encode + append + dispatch", min(spent), "CPU-s per million", "<= 1.6")


def send_figures(folder: Path) -> Iterator[Figure]:
    store = _new(folder, "send")
    rates, cpu = [], []
    for _ in range(3):
        start, start_cpu = time.perf_counter(), time.process_time()
        for number in range(SENDS // 3):
            store.send(
                TOPIC, b"x" * 128, tags="paid", keys=[f"order-{number:08d}"],
                properties={"region": "eu-west", "tenant": "t1", "source": "web", "trace": "0"},
            )  # fmt: skip
        rates.append(SENDS / 3 / (time.perf_counter() - start))
        cpu.append(SENDS / 3 / (time.process_time() - start_cpu))
    store.close()
    yield Figure("send, one by one, async flush", max(rates), "messages/s", ">= 20,000")
    yield Figure("the same by CPU time", max(cpu), "messages per CPU-s")


def _crashed_store(folder: Path, name: str) -> None:
    """Fill a store in a child process that is killed with everything appended."""
    child = os.fork()
    if child == 0:
        store = _new(folder, name)
        for first in range(0, MILLION, CHUNK):
            store.append(TOPIC, table(CHUNK, first))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def recovery_figures(folder: Path) -> Iterator[Figure]:
    _crashed_store(folder, "crashed")
    assert (folder / "crashed" / "abort").exists()
    start = time.process_time()
    store = rocketpy.open(folder / "crashed", config=StoreConfig(retention_hours=None))
    spent = time.process_time() - start
    ranges = store.queues(TOPIC)
    assert sum(end - first for first, end in ranges.values()) == MILLION
    store.close()
    yield Figure("recovery of a million after a crash", spent, "CPU-s", "< 5")


def reading_figures(folder: Path) -> Iterator[Figure]:
    for rows in STORE_SIZES:
        store = _new(folder, "sized")
        for first in range(0, rows, CHUNK):
            store.append(TOPIC, table(CHUNK, first))
        store.close()
        middle = rows // QUEUES // 2

        def read(middle: int = middle) -> None:
            with rocketpy.open(folder / "sized", read_only=True) as reader:
                end = min(middle + READ_ROWS, reader.queues(TOPIC)[0][1])
                found = reader.read(TOPIC, queue_id=0, start=middle, end=end).read_all()
                assert found.num_rows == end - middle

        def find(middle: int = middle) -> None:
            with rocketpy.open(folder / "sized", read_only=True) as reader:
                assert reader.query(TOPIC, key=f"order-{middle:08d}").num_rows == 1

        size = f"{rows / MILLION:g} M"
        spent = cpu_seconds(read, repeat=5)
        yield Figure(f"open, read {READ_ROWS:,} of {size}", spent * 1000, "CPU-ms", "level")
        yield Figure(
            f"open, find a key among {size}", cpu_seconds(find, repeat=5) * 1000, "CPU-ms", "level"
        )
        shutil.rmtree(folder / "sized")


def figures() -> Iterator[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-"))
    try:
        yield from append_figures(folder)
        yield from send_figures(folder)
        yield from recovery_figures(folder)
        yield from reading_figures(folder)
    finally:
        shutil.rmtree(folder)
