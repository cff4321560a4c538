"""kill -9 of the redelivery job, which takes turns with a service: each message comes once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.crash.test_spark_kill import kill_session

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.delay.delivery import LEASE, Deliverer
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.errors import LeaseHeldError
from rocketpy.broker_core.storage.batches.ledger import read_ledger

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.soak]

CONFIG = rocketpy.StoreConfig(commit_log_file_size=16 << 20, retention_hours=None)
START_MS = 1_700_000_000_000
LEVELS = 18


class Job:
    """A job in a session of its own, which its JVM and all Python workers share."""

    def __init__(self, path: Path, *, now_ms: int, batch_rows: int, once: bool) -> None:
        self._path, self._log = path, path.parent / "job.log"
        task = {"path": str(path), "now_ms": now_ms, "batch_rows": batch_rows, "once": once}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.redelivery_driver", json.dumps(task)],
                cwd=Path(__file__).parents[2],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for_commits(self, more: int) -> None:
        wanted = commits(self._path) + more
        while commits(self._path) < wanted:
            assert self._process.poll() is None, self._log.read_text()[-5000:]
            time.sleep(0.005)

    def wait(self) -> None:
        assert self._process.wait() == 0, self._log.read_text()[-5000:]

    def kill(self) -> None:
        kill_session(self._process)


def commits(path: Path) -> int:
    return read_ledger(path).numbers.get("delivery", -1)


def fill(path: Path, count: int) -> None:
    """Schedule messages over all levels; the body is the number, levels come in turn."""
    with rocketpy.open(path, config=CONFIG, clock=ManualClock(START_MS)) as store:
        store.create_topic("orders", 4)
        numbers = np.arange(count)
        store.append(
            "orders",
            pa.table(
                {
                    "body": pa.array(numbers).cast(pa.string()),
                    "delay_level": numbers % LEVELS + 1,
                    "queue_id": numbers // LEVELS % 4,
                }
            ),
        )


def serve(store: rocketpy.Store, now_ms: int) -> int:
    """Deliver what is due as a service does, when its turn has come."""
    lease = Lease(store._store, LEASE, "service")
    while True:
        try:
            with lease.kept():
                return Deliverer(store._store, lease).deliver_due(now_ms)
        except LeaseHeldError as held:  # by the job that was killed
            time.sleep(held.left_ms / 1000)


@pytest.mark.timeout(3600)
def test_a_job_killed_at_random_moments_and_a_service_deliver_each_message_once(
    folder: Path, is_soak: bool
) -> None:
    count, kills = (1_000_000, 10) if is_soak else (20_000, 1)
    batch_rows = count // LEVELS // 10
    path, rng = folder / "store", random.Random(3)
    fill(path, count)
    horizons = [START_MS + CONFIG.delay_ms(level) for level in range(1, LEVELS + 1)]
    turns = horizons[:kills] if is_soak else [horizons[8]]
    with rocketpy.open(path, config=CONFIG) as store:
        served = []
        for now_ms in turns:
            job = Job(path, now_ms=now_ms, batch_rows=batch_rows, once=False)
            try:
                job.wait_for_commits(rng.randrange(1, 6))
                time.sleep(rng.random() * 0.3)  # the moment is random; nothing is measured
            finally:
                job.kill()
            served.append(serve(store, now_ms))
        last = Job(path, now_ms=horizons[-1], batch_rows=count, once=True)
        try:
            last.wait()
        finally:
            last.kill()
        assert any(served), "the service had nothing to do: the jobs lived too long"
        check(store, count)


def check(store: rocketpy.Store, count: int) -> None:
    """Each number is there once; in each queue those of a level are in order."""
    seen = np.zeros(0, np.int64)
    for queue_id in range(4):
        table = store.read("orders", columns=["body"], queue_id=queue_id).read_all()
        numbers = table["body"].cast(pa.string()).cast(pa.int64()).to_numpy()
        for level in range(LEVELS):
            of_level = numbers[numbers % LEVELS == level]
            assert (np.diff(of_level) > 0).all(), f"level {level + 1} in queue {queue_id}"
        seen = np.concatenate([seen, numbers])
    assert np.array_equal(np.sort(seen), np.arange(count))
    ends = {level: (count - level + LEVELS) // LEVELS for level in range(1, LEVELS + 1)}
    assert store._store.delay_offsets.all() == ends
    assert list(store.verify()) == []
