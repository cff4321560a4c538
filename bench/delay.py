"""Delivery: CPU per million by the service and by the Spark job, and how late the service is."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from measure import Figure
from spark.process_tree import Family
from workload import QUEUES, TOPIC, table

import rocketpy
from rocketpy import StoreConfig
from rocketpy.broker_core.clock import ManualClock

MILLION = 1_000_000
CHUNK = 100_000
SIZES = (MILLION // 10, MILLION // 2, MILLION)
RATE, LEVELS, SECONDS = 1000, 18, 20
LONG_AGO_MS = 1_700_000_000_000


def _fill(path: Path, rows: int) -> None:
    """Schedule messages over all levels, long ago: all are due."""
    config = StoreConfig(retention_hours=None)
    with rocketpy.open(path, config=config, clock=ManualClock(LONG_AGO_MS)) as store:
        store.create_topic(TOPIC, QUEUES)
        for first in range(0, rows, CHUNK):
            levels = pa.array(np.arange(CHUNK) % LEVELS + 1)
            store.append(TOPIC, table(CHUNK, first).append_column("delay_level", levels))


def service_figures(folder: Path) -> Iterator[Figure]:
    path = folder / "service"
    _fill(path, MILLION)
    with rocketpy.open(path) as store:
        start = time.process_time()
        assert store.deliver_due() == MILLION
        spent = time.process_time() - start
    shutil.rmtree(path)
    yield Figure("deliver_due()", spent, "CPU-s per million")


def lateness_figures(folder: Path) -> Iterator[Figure]:
    """Send 1,000 a second, each due after a second or two; look how late each was stored."""
    config = StoreConfig(retention_hours=None, delay_levels="1s 2s")
    with rocketpy.open(folder / "lateness", config=config) as store:
        store.create_topic(TOPIC, QUEUES)
        stop = threading.Event()

        def produce() -> None:
            due = time.perf_counter()
            for number in range(RATE * SECONDS):
                store.send(TOPIC, b"x" * 128, keys=[str(number)], delay_level=1 + number % 2)
                due += 1 / RATE
                stop.wait(max(due - time.perf_counter(), 0))

        sender = threading.Thread(target=produce)
        with store.delivering() as service:
            sender.start()
            sender.join()
            while service.delivered < RATE * SECONDS:
                time.sleep(0.05)
        late_s = np.sort(_lateness(store, config))
    shutil.rmtree(folder / "lateness")
    for name, at in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0)):
        value = float(late_s[min(int(len(late_s) * at), len(late_s) - 1)])
        yield Figure(f"lateness of the service at {RATE}/s, {name}", value, "s", "<= 0.2")


def _lateness(store: rocketpy.Store, config: StoreConfig) -> np.ndarray:
    """Return how long after its due time each message was stored in its topic."""
    waiting = store.read("SCHEDULE_TOPIC_XXXX", columns=["keys", "queue_id", "store_timestamp"])
    due = {
        row["keys"]: row["store_timestamp"].timestamp()
        + config.delay_ms(row["queue_id"] + 1) / 1000
        for row in waiting.read_all().to_pylist()
    }
    arrived = store.read(TOPIC, columns=["keys", "store_timestamp"]).read_all().to_pylist()
    return np.array([row["store_timestamp"].timestamp() - due[row["keys"]] for row in arrived])


def job_figures(folder: Path) -> Iterator[Figure]:
    from rocketpy.spark_jobs.redelivery import Redelivery

    spark = rocketpy.local_spark(2)
    jvm = Family(spark._jvm.java.lang.ProcessHandle.current().pid())

    def cpu_s() -> float:
        return time.process_time() + jvm.own_cpu_s() + jvm.children_cpu_s()

    def run(rows: int) -> tuple[float, float]:
        path = folder / f"job-{rows}"
        _fill(path, rows)
        start, start_cpu = time.perf_counter(), cpu_s()
        assert Redelivery(spark=spark, path=path).run() == rows
        spent = time.perf_counter() - start, cpu_s() - start_cpu
        shutil.rmtree(path)
        return spent

    run(CHUNK)  # warms Spark up
    before = 0, 0.0
    for rows in SIZES:
        wall_s, spent = run(rows)
        name = f"redelivery job, {rows / MILLION:g} million"
        yield Figure(name, spent, "CPU-s")
        yield Figure(f"{name}, wall time", wall_s, "s")
        if before[0]:  # what a query costs whatever it does is in both
            per_million = (spent - before[1]) / (rows - before[0]) * MILLION
            yield Figure(f"{name}: since the size before", per_million, "CPU-s per million")
        before = rows, spent
    spark.stop()


def figures() -> Iterator[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-", dir=os.environ.get("BENCH_FOLDER")))
    try:
        yield from service_figures(folder)
        yield from lateness_figures(folder)
        yield from job_figures(folder)
    finally:
        shutil.rmtree(folder)
