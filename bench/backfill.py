"""A backfill of 1, 2, 5 and 10 million messages: is its memory flat, and its time linear?

CPU-seconds beside Kafka's connector are a section of the part spark: `--sections backfill`.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import Figure
from spark import messages
from spark.process_tree import PROC, Family, descendants, look_at

import rocketpy
from rocketpy.spark_jobs.backfill import backfill

MILLIONS = (1, 2, 5, 10)
MILLION = int(os.environ.get("ROCKETPY_BENCH_MILLION", 1_000_000))  # fewer, for a trial
_LOOK_S = 0.1
_MIB = 1 << 20


def figures() -> Iterator[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        # A heap that one chunk fills: what grew with the rows would show.
        spark = rocketpy.local_spark(2, spark_driver_memory="2g")
        try:
            jvm = Family(spark._jvm.java.lang.ProcessHandle.current().pid())
            _run(spark, jvm, folder, 1)  # for the JIT
            for count in MILLIONS:
                yield from _run(spark, jvm, folder, count)
        finally:
            spark.stop()
    finally:
        shutil.rmtree(folder)


def _run(spark: object, jvm: Family, folder: Path, count: int) -> list[Figure]:
    store, table = folder / "store", folder / "table"
    for path in (store, table):
        shutil.rmtree(path, ignore_errors=True)
    messages.fill_store(store, messages.TOPIC, count * MILLION)
    cpu_s, start = _cpu_s(jvm), time.perf_counter()
    with _peaks(jvm) as peaks:
        report = backfill(spark, store, table)  # type: ignore[arg-type]
    wall_s, cpu_s = time.perf_counter() - start, _cpu_s(jvm) - cpu_s
    assert report.rows == count * MILLION, report
    what, millions = f"backfill of {report.rows:,}", report.rows / 1_000_000
    return [
        Figure(f"{what}, per million", wall_s / millions, "s", "level"),
        Figure(f"{what}, per million", cpu_s / millions, "CPU-s of all processes", "level"),
        Figure(f"{what}, JVM", peaks["jvm"] / _MIB, "MiB, at most", "level"),
        Figure(f"{what}, Python workers together", peaks["python"] / _MIB, "MiB, at most", "level"),
    ]


def _cpu_s(jvm: Family) -> float:
    own = look_at(os.getpid())
    return jvm.own_cpu_s() + jvm.children_cpu_s() + (own.cpu_s if own else 0.0)


@contextmanager
def _peaks(jvm: Family) -> Iterator[dict[str, int]]:
    """Look at the memory that is theirs alone every moment.

    Pages of the store's files that they have mapped are not in it: the kernel takes them back.
    """
    found = {"jvm": 0, "python": 0}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_S):
            found["jvm"] = max(found["jvm"], _own_memory(jvm.pid))
            workers = sum(_own_memory(process.pid) for process in descendants(jvm.pid))
            found["python"] = max(found["python"], workers)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def _own_memory(pid: int) -> int:
    try:
        status = (PROC / str(pid) / "status").read_text()
    except OSError:
        return 0
    return next(
        (int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon")),
        0,
    )
