"""The Delta table of a backfill: made, checked, appended to; it knows how far it is.

I1  The position of a job is the last version of its transaction in the table: of a folder the
    physical offset up to which the table holds the store, of a cluster the number of the last
    chunk. It and the rows of a chunk are one commit.
I2  What a job selects is a property of the table, set with its first run.
I3  The offsets of queues that the last chunk of a cluster goes up to are in the note of its commit;
    at the end of a run they are a property, too, as Delta forgets old commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from rocketpy.broker_core.store_path import is_uri, store_path
from rocketpy.spark_jobs.backfill.delta_log import Commit, DeltaState
from rocketpy.spark_jobs.backfill.file_settings import file_settings
from rocketpy.spark_jobs.job_errors import JobRefusedError

PARTITIONS = ("topic", "day")
COMMENTS = {
    "topic": "the topic",
    "broker": "the broker that stored it",
    "queue_id": "the queue of the topic",
    "queue_offset": "the place in the queue",
    "tags": "the tag",
    "keys": "the keys, with blanks between them",
    "body": "the body as it was sent; null where it is in value",
    "properties": "the properties of the message, the system's included",
    "born_timestamp": "when the producer made it",
    "store_timestamp": "when the broker stored it",
    "commit_log_offset": "the byte of the commit log where its record begins",
    "msg_id": "the offset id: broker and place in its log",
    "uniq_key": "the producer's id",
    "day": "the day of store_timestamp, in UTC",
    "value": "the body, typed; null where it does not fit, see cause",
    "cause": "why the body is not in value; null where it is",
}
# Of a table with many columns of bytes, statistics are made of what is asked for.
_STATISTICS = ("queue_id", "queue_offset", "store_timestamp", "born_timestamp", "commit_log_offset")
_FOLDER_IS_THERE = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"


class BackfillTable:
    """The part that one job has in a Delta table.

    `table` is a folder or its URI, or the name of a table in the catalog: a text without a slash.
    """

    def __init__(self, spark: SparkSession, table: str | Path, job: str) -> None:
        self._spark, self.job = spark, job
        text = str(table)
        self.is_path = isinstance(table, Path) or "/" in text
        self._is_local = self.is_path and (not is_uri(text) or text.lower().startswith("file:"))
        self.name = str(store_path(text).absolute()) if self._is_local else text
        if "delta" not in (spark.conf.get("spark.sql.extensions", None) or "").lower():
            reason = "this Spark session has no Delta Lake; rocketpy.local_spark() makes one that"
            raise JobRefusedError(self.name, f"{reason} has, with delta-spark installed")

    @property
    def _app_id(self) -> str:
        return f"rocketpy backfill {self.job}"

    @property
    def _property(self) -> str:
        return f"rocketpy.backfill.{self.job}"

    @property
    def _reached_property(self) -> str:
        return f"{self._property}.reached"

    def exists(self) -> bool:
        """Whether there is such a table."""
        from delta.tables import DeltaTable

        if self.is_path:
            if DeltaTable.isDeltaTable(self._spark, self.name):
                return True
            self._refuse_other_files()
            return False
        return bool(self._spark.catalog.tableExists(self.name))

    def _refuse_other_files(self) -> None:
        folder = Path(self.name)
        if not self._is_local or not folder.exists():
            return
        if not folder.is_dir():
            raise JobRefusedError(self.name, "is a file; a table is a folder: give another path")
        if any(folder.iterdir()):
            raise JobRefusedError(self.name, "has files, but is no Delta table; give another")

    def _delta(self) -> Any:
        from delta.tables import DeltaTable

        by = DeltaTable.forPath if self.is_path else DeltaTable.forName
        try:
            return by(self._spark, self.name)
        except PySparkException as cause:
            reason = "is no Delta table; give another, or the name of a new one"
            raise JobRefusedError(self.name, reason) from cause

    def rows(self) -> DataFrame:
        """Return the whole table."""
        rows: DataFrame = self._delta().toDF()
        return rows

    def state(self) -> DeltaState | None:
        """Return the table as it is now; None if there is none."""
        return DeltaState(self._spark, self._delta()._jdt.deltaLog()) if self.exists() else None

    def position(self) -> int | None:
        """Return the version of the job's last chunk (I1); None: not begun."""
        state = self.state()
        return None if state is None else state.transaction(self._app_id)

    def commits(self) -> Iterator[Commit]:
        """Yield the commits of the job, the newest first, as far as the table's history goes."""
        state, own = self.state(), ("backfill", self.job)
        for commit in state.commits() if state else ():
            if (commit.note.get("kind"), commit.note.get("job")) == own:
                yield commit

    def known(self) -> dict[str, Any] | None:
        """Return what the job selected with its first run; None if it had none."""
        state = self.state()
        text = state.property(self._property) if state else None
        return json.loads(text) if text else None

    def prepare(self, schema: StructType, asked: Mapping[str, Any]) -> None:
        """Make the table, or check that it takes such rows; note what the job selects."""
        text = json.dumps(asked, sort_keys=True)
        state = self.state()
        if state is None:
            self._create(schema, text)
            return
        self._check(state, schema)
        if state.property(self._property) is None:
            self._set_property(self._property, text)

    def _set_property(self, name: str, text: str) -> None:
        target = f"delta.`{self.name}`" if self.is_path else self.name
        value = text.replace("\\", "\\\\").replace("'", "\\'")
        self._spark.sql(f"ALTER TABLE {target} SET TBLPROPERTIES ('{name}' = '{value}')")

    # --- positions in queues: of a job that reads a cluster ---------------------------------------

    def reached(self) -> dict[str, Any] | None:
        """Return the offsets of queues up to which the table holds them; None: not begun.

        Raises:
            JobRefusedError: the table no longer tells.
        """
        number, state = self.position(), self.state()
        if number is None or state is None:
            return None
        noted = json.loads(state.property(self._reached_property) or "{}")
        of_run = [noted["positions"]] if noted.get("chunk") == number else []
        of_commits = (
            each.note["positions"] for each in self.commits() if each.note["to"] == number
        )
        found: dict[str, Any] | None = next(chain(of_run, of_commits), None)
        if found is not None:
            return found
        reason = (
            f"its history goes not back to the last commit of job {self.job!r}, which died: only "
            "that knew how far it was. DELETE the rows of the job, and begin anew by another "
            "job_name"
        )
        raise JobRefusedError(self.name, reason)

    def note_reached(self, positions: Mapping[str, Any]) -> None:
        """Keep positions of the last chunk where they stay when the history is cut."""
        text = json.dumps({"chunk": self.position(), "positions": positions}, sort_keys=True)
        self._set_property(self._reached_property, text)

    def _create(self, schema: StructType, asked: str) -> None:
        from delta.tables import DeltaTable

        builder = DeltaTable.create(self._spark)
        builder = builder.location(self.name) if self.is_path else builder.tableName(self.name)
        for field in schema.fields:
            comment = COMMENTS.get(field.name, field.name.replace("_", " "))
            builder = builder.addColumn(field.name, field.dataType, nullable=True, comment=comment)
        statistics = [name for name in _STATISTICS if name in schema.names]
        if statistics:
            builder = builder.property("delta.dataSkippingStatsColumns", ",".join(statistics))
        builder = builder.property(self._property, asked).partitionedBy(*PARTITIONS)
        try:
            builder.comment("messages of a RocketMQ store, by rocketpy backfill").execute()
        except AnalysisException as cause:
            if cause.getCondition() != _FOLDER_IS_THERE:
                raise
            reason = (
                "the catalog has no table of this name, but its folder holds one: a catalog that "
                "forgets its tables when Spark stops has made it. Give a folder (a text with a "
                "slash), or use a catalog that lasts"
            )
            raise JobRefusedError(self.name, reason) from cause

    def _check(self, state: DeltaState, schema: StructType) -> None:
        for field in schema.fields:
            if field.name not in state.schema.names:
                reason = f"it has no column {field.name!r}; leave that out, or take another table,"
                raise JobRefusedError(self.name, f"{reason} or ALTER TABLE … ADD COLUMN")
            present, given = (
                each[field.name].dataType.simpleString() for each in (state.schema, schema)
            )
            if present != given:
                reason = f"its column {field.name!r} is {present}, but messages have {given}"
                raise JobRefusedError(self.name, f"{reason}; take another table")
        if state.partition_columns != PARTITIONS:
            by = ", ".join(state.partition_columns) or "nothing"
            reason = f"it is partitioned by {by}, not by topic and day; take another table"
            raise JobRefusedError(self.name, reason)

    def append(self, rows: DataFrame, note: Mapping[str, Any], *, shuffled: bool) -> None:
        """Add the rows of a chunk that ends at note["to"], once."""
        writer = rows.write.format("delta").mode("append").partitionBy(*PARTITIONS)
        writer = writer.option("txnAppId", self._app_id).option("txnVersion", note["to"])
        writer = writer.option(
            "userMetadata", json.dumps({"kind": "backfill", "job": self.job, **note})
        )
        # Delta's own: gathers the rows of each topic and day, and makes files of a good size.
        writer = writer.option("optimizeWrite", str(shuffled).lower())
        with file_settings(self._spark):
            if self.is_path:
                writer.save(self.name)
            else:
                writer.saveAsTable(self.name)

    def compact(self, first_day: str) -> int:
        """Make few files of many, in the days from one on; return how many are gone."""
        with file_settings(self._spark):
            found = self._delta().optimize().where(f"day >= '{first_day}'").executeCompaction()
        metrics = found.select("metrics").collect()[0][0]
        return int(metrics["numFilesRemoved"] - metrics["numFilesAdded"])


def nullable(schema: StructType) -> StructType:
    """Return a schema in which all may be null: where a body does not fit, its fields are.

    Of other columns a check of each row would only cost.
    """
    return StructType.fromJson(_nullable(schema.jsonValue()))


def _nullable(node: Any) -> Any:
    if isinstance(node, dict):
        kept = {name: _nullable(each) for name, each in node.items()}
        flags = ("nullable", "containsNull", "valueContainsNull")
        return kept | {name: True for name in flags if name in kept}
    return [_nullable(each) for each in node] if isinstance(node, list) else node
