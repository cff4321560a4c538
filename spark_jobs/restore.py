"""Messages of a Delta table back into topics of a store: each once, in order, as fast as allowed.

The table is read at one version, in the order of a column that grows (`commit_log_offset` of a
backfill). With each batch the store's ledger notes up to which value of that column it goes: the
same call goes on where a run died. See docs/backfill.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.property_names import CHECKSUM
from rocketpy.connector.registration import register
from rocketpy.connector.writer_names import WriterName, writer_name
from rocketpy.spark_jobs.backfill.delta_table import BackfillTable
from rocketpy.spark_jobs.job_cluster import JobPlace, folder_of
from rocketpy.spark_jobs.job_errors import JobRefusedError
from rocketpy.spark_jobs.restore_settings import (
    RestoreOptions,
    RestoreReport,
    RestoreSettings,
    check_target,
    settings_of,
)
from rocketpy.spark_jobs.store_folder import last_number

if TYPE_CHECKING:  # of `typing` from Python 3.11 on
    from typing_extensions import Unpack

_TO_CLUSTER = "write the rows with Spark, to format 'rocketpy' with 'namesrvAddr' and 'topic'"
_KEPT = ("body", "tags", "keys", "flag")

__all__ = ["RestoreOptions", "RestoreReport", "RestoreSettings", "restore"]

RestoreProgress = Callable[[int, int], None]  # rows done, in all


def restore(
    spark: SparkSession,
    table: str | Path,
    store: JobPlace,
    *,
    version: int | None = None,
    dry_run: bool = False,
    progress: RestoreProgress = lambda _done, _total: None,
    settings: RestoreSettings | None = None,
    **named: Unpack[RestoreOptions],
) -> RestoreReport:
    """Write rows of a Delta table to topics of a store, which is made when missing.

    `table` is a folder, or the name of a table in the catalog: a text without a slash; it is read
    at `version`, the newest one if none is given. Settings are given by name, too:
    `to_topic="orders-2"`, `where="day >= '2026-11-01'"`, `rate=5000`.

    Raises:
        JobRefusedError: an argument is wrong, or the table lacks what messages need.
    """
    asked = settings or settings_of(named)
    folder = folder_of(store, needs="a restore needs", instead=_TO_CLUSTER)
    register(spark)
    source = BackfillTable(spark, table, "restore")
    state = source.state()
    if state is None:
        raise JobRefusedError(source.name, "there is no such table")
    pinned = state.version if version is None else version
    job = _Restore(spark, source, folder, asked, pinned)
    return job.run(dry_run=dry_run, progress=progress)


@dataclass(slots=True)
class _Restore:
    spark: SparkSession
    source: BackfillTable
    store: Path
    settings: RestoreSettings
    version: int
    _queues: dict[str, int] = field(default_factory=dict)

    def run(self, *, dry_run: bool, progress: RestoreProgress) -> RestoreReport:
        began, settings = time.monotonic(), self.settings
        job = settings.job(self.source.name)
        position = self._position(writer_name("app", _app_id(job), settings.to_topic))
        order = F.col(settings.order_by)
        rows = self._rows().where((order >= position) | order.isNull())
        topics, first, last = self._census(rows)
        batches = self._batches(rows, first, last, sum(topics.values()))
        if not dry_run and batches:
            self._make_topics(rows)
            self._write(rows, batches, job, progress)
        return RestoreReport(
            job=job,
            table=self.source.name,
            version=self.version,
            rows=sum(topics.values()),
            topics=topics,
            batches=len(batches),
            position=position if dry_run or not batches else batches[-1][1],
            is_dry=dry_run,
            seconds=time.monotonic() - began,
        )

    def _position(self, writer: WriterName) -> int:
        return max(last_number(self.store, *writer), 0)

    def _rows(self) -> DataFrame:
        """Return the rows that are asked for, with `to_topic`."""
        settings = self.settings
        reader = self.spark.read.format("delta").option("versionAsOf", self.version)
        name = self.source.name
        rows = reader.load(name) if self.source.is_path else reader.table(name)
        for needed in ("body", settings.order_by, *(() if settings.to_topic else ("topic",))):
            if needed not in rows.columns:
                raise JobRefusedError(name, f"has no column {needed!r}, which messages need")
        if not isinstance(rows.schema[settings.order_by].dataType, IntegralType):
            raise JobRefusedError("order_by", f"{settings.order_by!r} has no whole numbers")
        if settings.where is not None:
            try:
                rows = rows.where(settings.where)
            except PySparkException as cause:
                first = str(cause).strip().partition("\n")[0]
                raise JobRefusedError("where", f"{settings.where!r}: {first}") from cause
        target = F.lit(settings.to_topic) if settings.to_topic else F.col("topic")
        return rows.withColumn("to_topic", target)

    def _census(self, rows: DataFrame) -> tuple[dict[str, int], int, int]:
        """Return how many rows go to which topic, and the ends of the column that orders."""
        order = self.settings.order_by
        found = rows.groupBy("to_topic").agg(
            F.count(F.lit(1)).alias("rows"),
            F.count_if(F.col("body").isNull()).alias("without"),
            F.count_if(F.col(order).isNull()).alias("unordered"),
            F.min(order).alias("first"),
            F.max(order).alias("last"),
            *([F.max("queue_id").alias("queues")] if "queue_id" in rows.columns else []),
        )
        counted = found.collect()
        for row in counted:
            if row["without"]:
                reason = f"{row['without']:,} rows have no body: it was typed without keep_body"
                raise JobRefusedError(self.source.name, f"{reason}; choose others with 'where'")
            if row["unordered"]:
                reason = f"{row['unordered']:,} rows have no {order}; choose others with 'where'"
                raise JobRefusedError(self.source.name, reason)
            if row["to_topic"] is None:
                raise JobRefusedError(self.source.name, "rows have no topic; give to_topic")
            check_target(row["to_topic"])
            if "queue_id" in rows.columns:
                self._queues[row["to_topic"]] = (row["queues"] or 0) + 1
        counts = {row["to_topic"]: row["rows"] for row in sorted(counted)}
        if not counted:
            return counts, 0, -1
        return counts, min(row["first"] for row in counted), max(row["last"] for row in counted)

    def _batches(
        self, rows: DataFrame, first: int, last: int, total: int
    ) -> list[tuple[int, int, int]]:
        """Return (start, end, rows) of stretches of the column that orders, about equally long."""
        if total == 0:
            return []
        width = max(1, -(-(last + 1 - first) * self.settings.size() // total))
        order = F.col(self.settings.order_by)
        bucket = F.floor((order - first) / width).alias("bucket")
        counts = rows.groupBy(bucket).count().collect()
        return [
            # Nothing is after the last row yet: what comes there later is for a later run.
            (first + number * width, min(first + (number + 1) * width, last + 1), count)
            for number, count in sorted((int(row[0]), int(row[1])) for row in counts)
        ]

    def _make_topics(self, rows: DataFrame) -> None:
        """Make missing topics with as many queues as the rows need; look up those of the others."""
        if "queue_id" not in rows.columns:
            return
        with open_store(self.store) as opened:
            known = opened.topics()
            for topic, queues in self._queues.items():
                if topic in known:
                    self._queues[topic] = known[topic].write_queues
                else:
                    opened.create_topic(topic, queues)

    def _write(
        self,
        rows: DataFrame,
        batches: list[tuple[int, int, int]],
        job: str,
        progress: RestoreProgress,
    ) -> None:
        settings, order = self.settings, F.col(self.settings.order_by)
        began, done, total = time.monotonic(), 0, sum(count for _, _, count in batches)
        progress(done, total)
        for start, end, count in batches:
            if settings.rate is not None:
                time.sleep(max(0.0, began + done / settings.rate - time.monotonic()))
            part = rows.where((order >= start) & (order < end)).coalesce(1)
            part = part.sortWithinPartitions(settings.order_by)
            writer = self._messages(part).write.format("rocketpy").mode("append")
            if settings.to_topic is not None:
                writer = writer.option("topic", settings.to_topic)
            writer = writer.option("txnAppId", _app_id(job)).option("txnVersion", end)
            writer.save(str(self.store))
            done += count
            progress(done, total)

    def _messages(self, rows: DataFrame) -> DataFrame:
        """Return what the sink takes; a queue keeps its order, and its number if there is one."""
        columns = [F.col(name) for name in _KEPT if name in rows.columns]
        if "properties" in rows.columns:
            made = F.lit(CHECKSUM)  # by each store for itself
            kept = F.map_filter("properties", lambda name, _: name != made)
            columns.append(kept.alias("properties"))
        if self.settings.to_topic is None:
            columns.append(F.col("topic"))
        if "queue_id" in rows.columns:
            columns.append(_fold(self._queues).alias("queue_id"))
        return rows.select(*columns)


def _app_id(job: str) -> str:
    return f"restore {job}"


def _fold(queues: Mapping[str, int]) -> Column:
    pairs = [part for topic, count in queues.items() for part in (F.lit(topic), F.lit(count))]
    return F.pmod("queue_id", F.create_map(*pairs)[F.col("to_topic")])
