"""What looks at all of a store: `verify` in stores of several sizes, and `rocketpy report`.

Each runs in a process of its own.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from measure import Figure
from workload import QUEUES, TAGS, TOPIC

import rocketpy
from rocketpy import StoreConfig

MILLION = int(os.environ.get("ROCKETPY_BENCH_MILLION", "1000000"))
CHUNK = MILLION // 10
BODY_BYTES = 300
VERIFIED = (1, 5, 10)  # millions
REPORTED = 5

VERIFY = """
import sys, threading, rocketpy
most, over = 0, threading.Event()

def watch():
    global most
    while not over.wait(0.02):
        status = open("/proc/self/status").read()
        most = max(most, int(status.partition("RssAnon:")[2].split()[0]))

threading.Thread(target=watch).start()
with rocketpy.open(sys.argv[1], read_only=True) as store:
    found = list(store.verify())
over.set()
assert not found
print(most)
"""
REPORT = "from rocketpy.spark_jobs.cli import main; main()"


def figures() -> Iterator[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-"))
    try:
        for millions in VERIFIED:
            path = folder / "store"
            make_store(path, millions)
            yield from verify_figures(path, millions)
            if millions == REPORTED:
                yield from report_figures(path, millions)
            shutil.rmtree(path)
    finally:
        shutil.rmtree(folder)


def make_store(path: Path, millions: int) -> None:
    """Lay down messages with a key and a tag each."""
    with rocketpy.open(path, config=StoreConfig(retention_hours=None)) as store:
        store.create_topic(TOPIC, QUEUES)
        for first in range(0, millions * MILLION, CHUNK):
            store.append(TOPIC, _messages(first))


def _messages(first: int) -> pa.Table:
    numbers = range(first, first + CHUNK)
    return pa.table(
        {
            "body": pa.array([f"{n:0{BODY_BYTES}d}".encode() for n in numbers], pa.binary()),
            "tags": pa.array([TAGS[n % len(TAGS)] for n in numbers]),
            "keys": pa.array([f"order-{n:08d}" for n in numbers]),
        }
    )


def verify_figures(path: Path, millions: int) -> Iterator[Figure]:
    before = _cpu_of_children()
    most_kib = int(_run(VERIFY, str(path)))
    what = f"verify, {millions} million"
    yield Figure(what, _cpu_of_children() - before, "CPU-s")
    yield Figure(f"{what}, memory of its own at most", most_kib / 1024, "MiB")


def report_figures(path: Path, millions: int) -> Iterator[Figure]:
    start = time.monotonic()
    _run(REPORT, "report", str(path))
    yield Figure(f"report, {millions} million", time.monotonic() - start, "s")


def _run(program: str, *words: str) -> str:
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
