"""One chunk: read, made into rows of the table, appended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rocketpy.connector.schema import spark_schema
from rocketpy.spark_jobs.backfill.bodies import with_value
from rocketpy.spark_jobs.backfill.delta_table import BackfillTable, nullable
from rocketpy.spark_jobs.backfill.settings import BackfillSettings
from rocketpy.spark_jobs.job_errors import JobRefusedError

_FEW_TOPICS = 4  # have their rows written without a shuffle: so many files a task
# The day in UTC, whatever time zone the session has.
DAY = "date_from_unix_date(cast(floor(unix_millis(store_timestamp) / 86400000) as int))"


class Chunk(Protocol):
    """What is one commit of the table. `end` is its version in the transaction of the job."""

    @property
    def start(self) -> int:
        """The version that it follows."""

    @property
    def end(self) -> int:
        """Its own version."""

    @property
    def topics(self) -> int:
        """How many topics it has messages of, about."""

    def tasks(self, file_bytes: int) -> int:
        """Return how many tasks shall write it, so that files are large enough."""

    def source_options(self) -> dict[str, str]:
        """Return the options of format 'rocketpy' that read it."""

    def after(self, position: int) -> str:
        """Return how another job goes on after a position of this one."""


@dataclass(frozen=True, slots=True)
class ChunkCopy:
    """Copies chunks into one table. `place` are the options that say where messages are."""

    spark: SparkSession
    place: Mapping[str, str]
    table: BackfillTable
    settings: BackfillSettings

    def append(self, chunk: Chunk, note: dict[str, Any], **options: str) -> tuple[int, int]:
        """Copy a chunk; return how many rows it has, and how many of them with a bad body.

        `options` are further ones of the source.
        """
        is_shuffled = chunk.topics > _FEW_TOPICS
        rows = self._frame(self._read(chunk, is_shuffled=is_shuffled, **options))
        seen = Observation()
        if self.settings.body is not None:
            rows = rows.observe(seen, F.count("cause").alias("bad"))
        if not is_shuffled:
            rows = rows.coalesce(chunk.tasks(self.settings.file_bytes))
        self.table.append(rows, note, shuffled=is_shuffled)
        commits = self.table.commits()
        commit, before = next(commits, None), next(commits, None)
        if commit is None or commit.note["to"] != chunk.end:  # Delta had it: nothing was run
            return 0, 0
        if before is not None and before.note["to"] > chunk.start:
            # Delta's RESTORE does not take back how far a transaction is: hence another job.
            reason = (
                f"another run of the job wrote up to {before.note['to']} at the same moment: rows "
                f"from {chunk.start} on are there twice; RESTORE the table to version "
                f"{commit.version - 1}, and go on by another job_name with "
                f"{chunk.after(before.note['to'])}"
            )
            raise JobRefusedError(self.table.name, reason)
        return commit.rows, seen.get["bad"] if self.settings.body is not None else 0

    def _read(self, chunk: Chunk, *, is_shuffled: bool, **options: str) -> DataFrame:
        settings = self.settings
        tasks = chunk.tasks(settings.file_bytes)
        if is_shuffled:
            tasks = max(tasks, self.spark.sparkContext.defaultParallelism)
        asked = {
            **self.place,
            "columns": ",".join(settings.columns_read()),
            "minPartitions": str(tasks),
            **chunk.source_options(),
            **options,
        }
        return self.spark.read.format("rocketpy").options(**asked).load()

    def _frame(self, messages: DataFrame) -> DataFrame:
        """Return messages as rows of the table."""
        settings = self.settings
        condition = settings.selection.condition()
        if condition is not None:
            messages = messages.where(condition)
        messages = messages.withColumn("day", F.expr(DAY))
        if settings.body is not None:
            messages = with_value(messages, settings.body)
        return messages.select(*settings.columns_written())

    def schema(self) -> StructType:
        """Return the columns of the table."""
        read = spark_schema("messages", ",".join(self.settings.columns_read()))
        return nullable(self._frame(self.spark.createDataFrame([], read)).schema)
