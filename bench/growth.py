"""One store that grows to 100 million messages: what should be level, and what is linear, by size.

Each look is a process of its own, so that nothing is known from the one before. A day has as many
messages at every size, so that the backfill of the last one should be level, too.
`ROCKETPY_BENCH_MILLION=10000` makes it a trial of a hundredth.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from measure import Figure
from pyspark.sql import SparkSession
from workload import QUEUES, TAGS, TOPIC

import rocketpy
from rocketpy import StoreConfig
from rocketpy.broker_core.clock import ManualClock
from rocketpy.spark_jobs.backfill import backfill

MILLION = int(os.environ.get("ROCKETPY_BENCH_MILLION", "1000000"))
MILLIONS = (1, 10, 100)
CHUNK = MILLION // 10
DAY_MESSAGES = MILLION // 2
DAY_MS = 86_400_000
BODY_BYTES = 100
CRASHES = "crashes"  # a topic of its own
LOOKS = 3  # of which the least counts
LOOKING = Path(__file__).with_name("growth_looks.py")
_CONFIG = StoreConfig(retention_hours=None)
_KILLED = """
import os, signal, sys, rocketpy
from rocketpy.broker_core.clock import ManualClock
config = rocketpy.StoreConfig(retention_hours=None)
store = rocketpy.open(sys.argv[1], config=config, clock=ManualClock(int(sys.argv[3])))
store.send(sys.argv[2], b"the last words")
os.kill(os.getpid(), signal.SIGKILL)
"""
_START_MS = 1_700_006_400_000  # the begin of a day


class GrowingStore:
    """A store whose clock is turned as it is filled."""

    def __init__(self, path: Path) -> None:
        self.path, self.messages = path, 0
        self._clock = ManualClock(_START_MS)
        self._bodies = pa.array([os.urandom(BODY_BYTES) for _ in range(CHUNK)], pa.binary())
        self._tags = pa.array([TAGS[number % len(TAGS)] for number in range(CHUNK)])

    def grow(self, messages: int) -> None:
        """Append until there are so many messages."""
        with rocketpy.open(self.path, config=_CONFIG, clock=self._clock) as store:
            store.create_topic(TOPIC, QUEUES)
            store.create_topic(CRASHES, 1)
            while self.messages < messages:
                store.append(TOPIC, self._chunk())
                self.messages += CHUNK
                self._clock.advance(DAY_MS * CHUNK // DAY_MESSAGES)

    @property
    def last_day_ms(self) -> int:
        """When the last day begins."""
        return self._clock.now_ms() - DAY_MS

    def _chunk(self) -> pa.Table:
        numbers = pa.array(range(self.messages, self.messages + CHUNK))
        keys = pc.binary_join_element_wise("order", pc.cast(numbers, pa.string()), "-")
        return pa.table({"body": self._bodies, "tags": self._tags, "keys": keys})


def figures() -> Iterator[Figure]:
    """Yield what each look costs at each size."""
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-"))
    spark = rocketpy.local_spark(2)
    try:
        store = GrowingStore(folder / "store")
        for millions in MILLIONS:
            store.grow(millions * MILLION)
            yield from _looked_at(store, f"{millions} million")
            yield from _last_day(spark, store, folder / "table", f"{millions} million")
    finally:
        spark.stop()
        shutil.rmtree(folder)


def _looked_at(store: GrowingStore, size: str) -> Iterator[Figure]:
    for name in ("open", "tail", "find", "time", "plan", "recover"):
        least = min(
            (_look(store, name) for _ in range(LOOKS)), key=lambda look: float(look["cpu_s"])
        )
        yield Figure(f"{size}: {least['what']}", least["cpu_s"] * 1000, "CPU-ms", "level")
    verified = _look(store, "verify")
    per_million = verified["cpu_s"] * MILLION / store.messages
    yield Figure(f"{size}: {verified['what']}, per million", per_million, "CPU-s", "level")
    yield Figure(f"{size}: verify, memory of its own", verified["own_mib"], "MiB", "level")


def _look(store: GrowingStore, name: str) -> dict[str, float]:
    if name == "recover":
        _crash(store)
    words = [str(store.path), name, str(store.messages), str(store.last_day_ms)]
    done = subprocess.run(
        [sys.executable, str(LOOKING), *words], check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout))


def _crash(store: GrowingStore) -> None:
    """Leave the store as a process does that is killed while it writes."""
    words = [str(store.path), CRASHES, str(store.last_day_ms + DAY_MS)]
    done = subprocess.run([sys.executable, "-c", _KILLED, *words], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (store.path / "abort").exists()


def _last_day(spark: SparkSession, store: GrowingStore, table: Path, size: str) -> Iterator[Figure]:
    walls = []
    for _ in range(LOOKS):
        shutil.rmtree(table, ignore_errors=True)
        start = time.perf_counter()
        report = backfill(spark, store.path, table, topics=[TOPIC], since=store.last_day_ms)
        walls.append(time.perf_counter() - start)
        assert report.rows == DAY_MESSAGES, report
    yield Figure(f"{size}: backfill of the last day, {DAY_MESSAGES:,}", min(walls), "s", "level")
