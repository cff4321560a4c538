"""10,000 groups of four members on a topic of 100 queues, divided anew in one run of the job."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from measure import Figure
from spark.process_tree import Family

import rocketpy
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.rebalance.membership import MEMBERS_FILE
from rocketpy.broker_core.storage.layout import MEMBERS

GROUPS, QUEUES, MEMBERS_EACH, MESSAGES = 10_000, 100, 4, 20_000
LEASE_MS = 3_600_000


def figures() -> Iterator[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        make_store(folder / "store")
        spark = rocketpy.local_spark()
        try:
            yield from _runs(spark, folder / "store")
        finally:
            spark.stop()
    finally:
        shutil.rmtree(folder)


def make_store(path: Path) -> None:
    """Lay down a topic, members and committed offsets, as so many groups would have left them."""
    with rocketpy.open(path) as store:
        store.create_topic("orders", QUEUES)
        store.append("orders", pa.table({"body": [b"x"] * MESSAGES}))
        store.join("group-0", "m0", "orders")  # makes the folder
    rng = random.Random(1)
    held = MESSAGES // QUEUES
    offsets = {
        f"orders@group-{group}": {str(q): rng.randrange(held) for q in range(QUEUES)}
        for group in range(GROUPS)
    }
    (path / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    members = MEMBERS_FILE.encode({"version": 1, "members": list(map(member, range(MEMBERS_EACH)))})
    for group in range(GROUPS):
        (path / MEMBERS / f"group-{group}.json").write_bytes(members)


def member(number: int) -> dict[str, object]:
    now_ms = SystemClock().now_ms()
    return {
        "name": f"m{number}",
        "token": "bench",
        "topics": ["orders"],
        "joinedMs": now_ms,
        "leaseMs": LEASE_MS,
        "untilMs": now_ms + LEASE_MS,
        "acknowledged": 0,
        "holds": [],
    }


def _runs(spark: object, path: Path) -> Iterator[Figure]:
    from rocketpy.spark_jobs.rebalance import MADE, SAME, rebalance

    rebalance(spark, path, groups=["group-0"], dry_run=True)  # type: ignore[arg-type]
    what = f"rebalance {GROUPS:,} groups of {QUEUES} queues"
    for strategy, status in (("averagely", MADE), ("averagely", SAME), ("backlog", MADE)):
        family, start = Family(os.getpid()), time.monotonic()
        spent = family.own_cpu_s() + family.children_cpu_s()
        outcomes = rebalance(spark, path, strategy=strategy)  # type: ignore[arg-type]
        seconds = time.monotonic() - start
        spent = family.own_cpu_s() + family.children_cpu_s() - spent
        assert [outcome.status for outcome in outcomes] == [status] * GROUPS
        name = f"{what}, {strategy}{', nothing new' if status == SAME else ''}"
        yield Figure(name, seconds, "s")
        yield Figure(f"{name}, all processes", spent, "CPU-s")
