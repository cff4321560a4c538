"""What the tasks of a replay do: read dead letters by position, stage copies, return which."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.retry.replay import ReplayRule
from rocketpy.broker_core.retry.stage import CopyStage
from rocketpy.spark_jobs.store_folder import SeenFolder, opened


@dataclass(frozen=True, slots=True)
class _Job:
    """What a task needs to know."""

    folder: SeenFolder
    topic: str
    transaction: str | None  # None: nothing is staged
    rule: ReplayRule


class ReplayTasks:
    """Runs the tasks of one chunk."""

    def __init__(self, spark: SparkSession, *, root: Path, topic: str, rule: ReplayRule) -> None:
        self._spark, self._root, self._topic, self._rule = spark, root, topic, rule
        self.transaction = uuid.uuid4().hex

    def staged(self, positions: Mapping[int, Ints]) -> tuple[list[Path], pa.Table | None]:
        """Stage copies; return the files, in order, and which messages they are of."""
        found = self._run(self.transaction, positions)
        return [Path(file) for file, _ in found if file], _table(found)

    def described(self, positions: Mapping[int, Ints]) -> pa.Table | None:
        """Return which messages these are; those that retention has deleted are left out."""
        stored = dict[int, Ints]()
        with opened(self._root) as store:
            for queue_id, offsets in positions.items():
                low, _ = store.queue(self._topic, queue_id).range()
                stored[queue_id] = offsets[offsets >= low]
        return _table(self._run(None, stored))

    def _run(
        self, transaction: str | None, positions: Mapping[int, Ints]
    ) -> list[tuple[str | None, bytes]]:
        context = self._spark.sparkContext
        parts = [
            (queue_id, part)
            for queue_id, offsets in sorted(positions.items())
            for part in np.array_split(offsets, context.defaultParallelism)
            if part.size
        ]
        if not parts:
            return []
        seen = SeenFolder.at(self._root)
        job = _Job(seen, self._topic, transaction, self._rule)
        return context.parallelize(parts, len(parts)).map(partial(_work, job)).collect()


def _work(job: _Job, part: tuple[int, Ints]) -> tuple[str | None, bytes]:
    """Return the staged file, and an Arrow table of which messages these are; runs in a task."""
    job.folder.require()
    queue_id, offsets = part
    tables, file = [], None
    with CopyStage(root=job.folder.path, transaction=job.transaction or "") as stage:
        for block in stage.records(job.topic, queue_id, offsets):
            tables.append(job.rule.described(block))
            if job.transaction is not None:
                for batch, queues in job.rule.copies(block):
                    stage.put(batch, queues)
        file = stage.finish()
    sink = pa.BufferOutputStream()
    table = pa.concat_tables(tables)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return str(file) if file else None, sink.getvalue().to_pybytes()


def _table(found: list[tuple[str | None, bytes]]) -> pa.Table | None:
    tables = [pa.ipc.open_stream(data).read_all() for _, data in found]
    return pa.concat_tables(tables) if tables else None
