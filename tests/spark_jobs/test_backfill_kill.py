"""kill -9 of a backfill at random points: the table equals the store, row by row."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from tests.crash.test_spark_kill import kill_session
from tests.spark_jobs.test_backfill import copied, held

import rocketpy

IS_SOAK = os.environ.get("ROCKETPY_SOAK") == "1"
ROWS, KILLS, CHUNKS = (2_000_000, 10, 150) if IS_SOAK else (20_000, 2, 20)


def commits(table: Path) -> int:
    return len([*table.glob("_delta_log/*.json")])


def killed_run(store: Path, table: Path, chunk_bytes: int, seed: int) -> None:
    """Run in a process of its own; kill it, and all it started, amid its first chunks or so."""
    choose = random.Random(seed)
    wanted = commits(table) + choose.choice((0, 1, 1, 2, 3))
    log = table.parent / "driver.log"
    words = ["-m", "tests.spark_jobs.backfill_driver", str(store), str(table), str(chunk_bytes)]
    with log.open("ab") as output:
        driver = subprocess.Popen(
            [sys.executable, *words],
            cwd=Path(__file__).parents[2],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while commits(table) < wanted:
            assert driver.poll() is None, log.read_text()[-4000:]
            time.sleep(0.01)
        time.sleep(choose.random() * 3)  # as Spark starts, reads, writes or commits
    finally:
        kill_session(driver)


@pytest.mark.crash
@pytest.mark.soak
@pytest.mark.parametrize("has_queues", [True, False])
def test_a_backfill_that_is_killed_and_run_again_is_the_store(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path, has_queues: bool
) -> None:
    for topic in ("orders", "parcels"):
        store.create_topic(topic, 4)
    for first in range(0, ROWS, 50_000):
        bodies = [f"{number:0100d}" for number in range(first, min(first + 50_000, ROWS))]
        store.append(("orders", "parcels")[first // 50_000 % 2], pa.table({"body": bodies}))
    size = sum(file.stat().st_blocks * 512 for file in (store.path / "commitlog").iterdir())
    source = store.path
    if not has_queues:
        shutil.copytree(store.path, tmp_path / "bare")
        source = tmp_path / "bare"
        shutil.rmtree(source / "consumequeue")
    table = tmp_path / "table"
    for seed in range(KILLS):
        killed_run(source, table, size // CHUNKS, seed)
    left = rocketpy.backfill(spark, source, table)
    assert 0 < left.rows < ROWS
    found = copied(spark, table)
    expected = held(spark, store.path).to(found.schema)
    assert found.count() == ROWS
    # Rows as texts, a map included, and none of them more or fewer times; then a part in full.
    texts = [frame.selectExpr("to_json(struct(*)) AS row") for frame in (found, expected)]
    assert texts[0].exceptAll(texts[1]).isEmpty()
    assert texts[1].exceptAll(texts[0]).isEmpty()
    assert_df_equality(found.limit(20_000), expected.limit(20_000), ignore_nullable=True)
