"""The sink of a store's folder without Spark: rows staged as by tasks, and their commit."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from measure import Figure
from spark.messages import BATCH_ROWS, QUEUES, TOPIC, tables

import rocketpy
from rocketpy import StoreConfig
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.intake.staged import TaskStage
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.store import MessageStore

ROWS, TASKS, ROUNDS = 500_000, 2, 3
PLAIN = ("body", "keys", "tags", "region")
MAP = ("body", "keys", "tags", "properties")
_CONFIG = StoreConfig(retention_hours=None)


def stage(root: Path, batches: Sequence[pa.RecordBatch], columns: tuple[str, ...]) -> list[Path]:
    """Stage batches as some tasks would, one task after the other."""
    files = []
    for number in range(TASKS):
        task = TaskStage(
            root=root,
            transaction="bench",
            topic=TOPIC,
            property_columns=("region",) if "region" in columns else (),
        )
        for batch in batches[number * len(batches) // TASKS : (number + 1) * len(batches) // TASKS]:
            task.add(batch.select(columns))
        file, _ = task.finish()
        assert file is not None
        files.append(file)
    return files


def commit(root: Path, files: list[Path]) -> tuple[float, float]:
    """Commit to a store that is open; return seconds and CPU-seconds."""
    store = MessageStore(root, _CONFIG, clock=SystemClock())
    try:
        start, start_cpu = time.perf_counter(), time.process_time()
        assert store.commit_batch(StagedBatch(files=files, writer="bench"))
        return time.perf_counter() - start, time.process_time() - start_cpu
    finally:
        store.close()


def figures() -> Iterator[Figure]:
    """Yield CPU-seconds a million, and how long a commit holds the lock: nearly all of its time."""
    batches = [
        batch for each in tables(ROWS) for batch in each.to_batches(max_chunksize=BATCH_ROWS)
    ]
    spent: dict[tuple[str, ...], list[float]] = {PLAIN: [], MAP: []}
    walls, commits = [], []
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-"))
    try:
        for columns in (PLAIN, MAP) * ROUNDS:
            root = folder / "store"
            with rocketpy.open(root, config=_CONFIG) as store:
                store.create_topic(TOPIC, QUEUES)
            start = time.process_time()
            files = stage(root, batches, columns)
            spent[columns].append(time.process_time() - start)
            wall, cpu = commit(root, files)
            walls.append(wall)
            commits.append(cpu)
            shutil.rmtree(root)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    scale = 1_000_000 / ROWS
    unit = "CPU-s per million"
    yield Figure("sink: rows staged, property as a column", min(spent[PLAIN]) * scale, unit)
    yield Figure("sink: rows staged, property in a map", min(spent[MAP]) * scale, unit)
    yield Figure("sink: commit of what was staged", min(commits) * scale, unit)
    yield Figure("sink: lock held by a commit", min(walls) * scale, "s per million", "<= 0.25")
