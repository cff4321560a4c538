"""The redelivery job: plans, results, and how it says that something is wrong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import rocketpy
import rocketpy.spark_jobs.cli  # adds its commands
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.delay.delivery import LEASE
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.delay.levels import LevelRange
from rocketpy.broker_core.errors import CorruptStoreError, LeaseHeldError, StoreNotFoundError
from rocketpy.spark_jobs.level_source import cut
from rocketpy.spark_jobs.redelivery import Redelivery

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # py4j leaves sockets to the end
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def test_a_task_has_a_range_of_one_level_and_a_deep_level_has_several() -> None:
    start, end = {"1": 5, "3": 0, "4": 9}, {"1": 5, "2": 3, "3": 250, "4": 7}
    assert cut(start, end, 100) == [
        LevelRange(2, 0, 3),
        LevelRange(3, 0, 100),
        LevelRange(3, 100, 200),
        LevelRange(3, 200, 250),
        LevelRange(4, 9, 7),  # damaged: the task says how
    ]


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    job = Redelivery(spark=None, path=tmp_path / "nothing")  # type: ignore[arg-type]
    with pytest.raises(StoreNotFoundError):
        job.run()
    assert not (tmp_path / "nothing").exists()


@pytest.mark.spark
def test_the_job_delivers_levels_and_timers_that_are_due(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "store"
    with rocketpy.open(path, clock=ManualClock(START_MS)) as store:
        store.create_topic("orders", 2)
        levels = [1 + n % 18 for n in range(360)]
        store.append("orders", pa.table({"body": [str(n) for n in levels], "delay_level": levels}))
        store.send("orders", "timed", deliver_at=START_MS + 5000)
    with rocketpy.open(path) as store:
        lease = Lease(store._store, LEASE, "service")
        lease.acquire()
        with pytest.raises(LeaseHeldError, match="delivery is done by a service"):
            Redelivery(spark=spark, path=path).run()
        lease.release()

        counts: list[int] = []
        job = Redelivery(
            spark=spark,
            path=path,
            now_ms=START_MS + HOUR_MS,
            batch_rows=15,
            task_rows=10,
            report=counts.append,
        )
        assert job.run() == 17 * 20 + 1  # all but the level of two hours
        assert counts[-1] == 17 * 20 + 1
        assert store._store.delay_offsets.all() == dict.fromkeys(range(1, 18), 20)
        bodies = store.read("orders", columns=["body"]).read_all()["body"].to_pylist()
        assert sorted(bodies) == sorted([str(1 + n % 17).encode() for n in range(340)] + [b"timed"])
        assert list((path / "rocketpy/staged").iterdir()) == []
        lease.acquire()  # it was given back
        lease.release()
        assert list(store.verify()) == []

        damage(store, level=18)
        store.append("orders", pa.table({"body": ["late"], "delay_level": [1]}))
        with pytest.raises(CorruptStoreError):
            Redelivery(spark=spark, path=path, now_ms=2 * START_MS).run()
        assert store._store.delay_offsets.all() == {**dict.fromkeys(range(2, 18), 20), 1: 21}
        lease.acquire()


def damage(store: rocketpy.Store, *, level: int) -> None:
    queue = store._store.parts.queues.get("SCHEDULE_TOPIC_XXXX", level - 1)
    at = int(queue.units(3, 4)["physical_offset"][0]) + 92
    with (store.path / "commitlog" / f"{0:020d}").open("r+b") as log:
        log.seek(at)
        log.write(b"X")
