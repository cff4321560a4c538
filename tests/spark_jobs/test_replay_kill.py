"""kill -9 of a replay: what was replayed, noted or not, is never replayed again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash.test_spark_kill import kill_session
from tests.spark_jobs.replay_driver import CHUNK_ROWS

import rocketpy
from rocketpy.spark_jobs.dead_letters import DeadLetters
from rocketpy.spark_jobs.replay import replay

LETTERS = 200
IS_SOAK = os.environ.get("ROCKETPY_SOAK") == "1"


def end(store: rocketpy.Store) -> int:
    return store.queues("t")[0][1]


def killed_run(store: rocketpy.Store, more: int, log: Path) -> None:
    """Replay in a process of its own, and kill it, and all it started, amid its chunks."""
    wanted = end(store) + more
    with log.open("ab") as output:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark_jobs.replay_driver", str(store.path)],
            cwd=Path(__file__).parents[2],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while end(store) < wanted:
            assert driver.poll() is None, log.read_text()[-4000:]
            time.sleep(0.02)
        time.sleep(random.Random(more).random() / 2)  # before its audit, in it, or behind
    finally:
        kill_session(driver)


@pytest.mark.crash
@pytest.mark.soak
def test_a_replay_that_is_killed_and_run_again_brings_each_message_back_once(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path
) -> None:
    store.create_topic("t", 1)
    for number in range(LETTERS):
        store.send_back(store.send("t", str(number)), group="g", delay_level=-1)
    for more in (30, 10, 20, 50, 10) if IS_SOAK else (20,):
        killed_run(store, more, tmp_path / "log")
    before = end(store) - LETTERS
    assert CHUNK_ROWS <= before < LETTERS

    letters = DeadLetters(path=store.path, group="g")
    result = replay(spark, letters)
    assert result.replayed == LETTERS - before
    bodies = store.read("t", columns="body").read_all()["body"].to_pylist()
    assert Counter(bodies) == {str(number).encode(): 2 for number in range(LETTERS)}
    assert [int(body) for body in bodies[LETTERS:]] == list(range(LETTERS))  # in their order
    audit = spark.read.format("delta").load(result.audit).select("queue_offset").collect()
    assert sorted(row[0] for row in audit) == list(range(LETTERS))
