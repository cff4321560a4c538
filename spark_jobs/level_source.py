"""The stream of the redelivery job: what is due in the delay levels, staged by the tasks.

A task reads its range of a level, makes of it the records that are to be delivered, writes them to
a staged file of the store, and gives Spark one small row: the messages never pass through the JVM.
The driver, which gets the rows, commits the files. Offsets are the next entry of each level.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.delay.levels import LevelRange, due_ranges, stage_range
from rocketpy.broker_core.delay.progress import level_source, read_marks
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.lazy import lazy_property
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.connector.worker import make_ready
from rocketpy.spark_jobs.store_folder import SeenFolder, open_folder

if TYPE_CHECKING:
    from rocketpy.broker_core.storage.store import MessageStore

FORMAT = "rocketpy-levels"
_SCHEMA = "level int, start bigint, end bigint, rows bigint, path string, damage string"
_STAGED = pa.schema(
    [
        ("level", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("rows", pa.int64()),
        ("path", pa.string()),
        ("damage", pa.string()),  # JSON: where and how the level cannot be read
    ]
)

Offset = dict[str, Any]


class LevelSource(DataSource):
    """The due messages of a store's delay levels.

    Options: `path`, `run` (a name that no other run has), `batchRows` (of a level in a batch),
    `taskRows`, and `now` (ms), which stands for the system's clock.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of what was staged."""
        return _SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002
        """Return the reader of one run."""
        options = self.options
        now = options.get("now")
        return LevelReader(
            path=options["path"],
            run=options["run"],
            batch_rows=int(options["batchrows"]),
            task_rows=int(options["taskrows"]),
            now_ms=int(now) if now is not None else None,
        )


@dataclass(frozen=True)
class RangePartition(InputPartition):
    """What one task stages."""

    range: LevelRange
    folder: SeenFolder


class LevelReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches of what is due, a task for each level, and more for a deep one."""

    def __init__(
        self, *, path: str, run: str, batch_rows: int, task_rows: int, now_ms: int | None
    ) -> None:
        self._path, self._run, self._now_ms = path, run, now_ms
        self._batch_rows, self._task_rows = batch_rows, task_rows
        make_ready()

    def __getstate__(self) -> dict[str, Any]:
        # Tasks get a copy: nothing that is open may travel with it.
        return {name: value for name, value in vars(self).items() if name != "_store"}

    @lazy_property
    def _store(self) -> MessageStore:
        return open_folder(Path(self._path))

    def _now(self) -> int:
        return self._now_ms if self._now_ms is not None else SystemClock().now_ms()

    def initialOffset(self) -> Offset:
        """Return where the store's own marks are: each run has a new checkpoint."""
        marks = read_marks(self._store)
        levels = [queue_id + 1 for queue_id in self._store.stored_queue_ids(SCHEDULE_TOPIC)]
        return {str(level): marks.get(level_source(level), (0,))[0] for level in levels}

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember what is due now: the query ends when this is delivered."""
        self._now_ms = self._now()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002
        """Return the end of the next batch; `start` itself if nothing is due."""
        marks = {level_source(int(level)): (at,) for level, at in start.items()}
        due = due_ranges(self._store, marks, now_ms=self._now(), most_rows=self._batch_rows)
        ends = {**start, **{str(part.level): part.end for part in due}}
        return {level: ends[level] for level in sorted(ends, key=int)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the ranges between two offsets, those of deep levels cut."""
        seen = SeenFolder.at(self._store.root)
        return [RangePartition(part, seen) for part in cut(start, end, self._task_rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Stage one range. Runs in a task."""
        assert isinstance(partition, RangePartition)
        partition.folder.require()
        context = TaskContext.get()
        batch = context.getLocalProperty("streaming.sql.batchId") if context else None
        row: dict[str, Any] = {**partition.range._asdict(), "rows": 0}
        try:
            staged = stage_range(self._store, partition.range, f"{self._run}-{batch}")
        except CorruptStoreError as damage:  # of this level: the others are delivered
            row["damage"] = json.dumps([str(damage.path), damage.offset, damage.reason])
        else:
            row["rows"] = staged.rows
            row["path"] = str(staged.path) if staged.path is not None else None
        yield pa.RecordBatch.from_pylist([row], _STAGED)

    def commit(self, end: Offset) -> None:
        """Do nothing: the store knows how far it is."""


def cut(start: Mapping[str, int], end: Mapping[str, int], task_rows: int) -> list[LevelRange]:
    """Return the ranges between two offsets, none with more rows than a task is to have."""
    ranges = []
    for level, stop in end.items():
        first = start.get(level, 0)
        if stop < first:  # so that its task says what is wrong
            ranges.append(LevelRange(int(level), first, stop))
        for at in range(first, stop, task_rows):
            ranges.append(LevelRange(int(level), at, min(at + task_rows, stop)))
    return ranges
