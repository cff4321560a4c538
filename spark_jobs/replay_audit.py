"""The audit trail of replays: a Delta table, a row for each message that was brought back.

The rows of a chunk are one transaction, and Delta takes each number once: so a chunk whose audit is
written again after a crash is in the table once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.property_names import REPLAY_RUN, REPLAYED_FROM
from rocketpy.broker_core.retry.journal import ReplayChunk
from rocketpy.broker_core.retry.trail import trail_of

_TIME = pa.timestamp("us", tz="UTC")
# Each column, its type, and what it says; a test compares docs/retry.md with it.
COLUMNS: tuple[tuple[str, pa.DataType, str], ...] = (
    ("replayed_at", _TIME, "when its chunk was begun"),
    ("run_id", pa.string(), f"the run; copies have it in `{REPLAY_RUN}`"),
    ("command", pa.string(), "by what: the command line, or the call"),
    ("topic", pa.string(), "the dead letters' topic"),
    ("queue_id", pa.int32(), "its queue there"),
    ("queue_offset", pa.int64(), f"its offset there; copies have all three in `{REPLAYED_FROM}`"),
    ("msg_id", pa.string(), "the id of the dead letter"),
    ("origin_msg_id", pa.string(), "the id of the message that failed first"),
    ("uniq_key", pa.string(), "the producer's id, the same in all copies"),
    ("keys", pa.string(), "its keys"),
    ("tags", pa.string(), "its tag"),
    ("cause", pa.string(), "why it was given up"),
    ("reconsume_times", pa.int32(), "how often it had been tried again"),
    ("died_at", _TIME, "when it was given up"),
    ("to_topic", pa.string(), "where it went"),
    ("chunk", pa.int64(), "which messages were committed together"),
    ("journal", pa.string(), "the journal of the store and group that it is of"),
    ("broker", pa.string(), "of a cluster: the broker that has it"),
)
SCHEMA = pa.schema([(name, type_) for name, type_, _ in COLUMNS])


def require_delta(spark: SparkSession) -> None:
    """Raise unless a session can write an audit trail.

    Raises:
        MessageRefusedError: it has no Delta Lake.
    """
    if "delta" not in (spark.conf.get("spark.sql.extensions", None) or "").lower():
        reason = "this Spark session has no Delta Lake; rocketpy.local_spark() makes one that"
        raise MessageRefusedError("the audit trail", f"{reason} has, with delta-spark installed")


def without_trail(spark: SparkSession, letters: DataFrame, root: Path, group: str) -> DataFrame:
    """Return the dead letters that the console, or a program, did not bring back one by one.

    Of those that were begun when a process died nobody knows: they count as brought back.
    """
    trail = trail_of(root, group).read()
    went = [place for place, entry in trail.items() if entry.phase != "failed"]
    if not went:
        return letters
    identity = ["queue_id", "queue_offset", "msg_id"]
    columns = zip(identity, zip(*(place[1:] for place in went), strict=True), strict=True)
    rows = pa.table({name: pa.array(values) for name, values in columns})
    return letters.join(F.broadcast(spark.createDataFrame(rows)), identity, "anti")


class ReplayAudit:
    """The part of an audit table that one journal wrote."""

    def __init__(
        self,
        spark: SparkSession,
        location: str,
        journal_id: str,
        identity: Sequence[str] = ("queue_id", "queue_offset"),
    ) -> None:
        """Have its rows known by `identity`: the columns that tell one dead letter from another."""
        self._spark, self.location, self._journal_id = spark, location, journal_id
        self._identity = [*identity]
        require_delta(spark)

    @property
    def app_id(self) -> str:
        """The name of the transaction whose versions are the chunks."""
        return f"rocketpy replay {self._journal_id}"

    def _rows(self) -> DataFrame | None:
        from delta.tables import DeltaTable

        if not DeltaTable.isDeltaTable(self._spark, self.location):
            return None
        rows = self._spark.read.format("delta").load(self.location)
        return rows.where(F.col("journal") == self._journal_id)

    def without_replayed(self, letters: DataFrame) -> DataFrame:
        """Return the dead letters that were not brought back before."""
        rows = self._rows()
        if rows is None:
            return letters
        if "broker" not in rows.columns:  # an earlier version made the table
            rows = rows.withColumn("broker", F.lit(None).cast("string"))
        return letters.join(rows.select(*self._identity), self._identity, "anti")

    def last_chunk(self) -> int:
        """Return the number of the newest chunk, -1 if there is none."""
        rows = self._rows()
        newest = rows.agg(F.max("chunk")).collect()[0][0] if rows is not None else None
        return -1 if newest is None else int(newest)

    def append(self, described: pa.Table, chunk: ReplayChunk) -> None:
        """Add the rows of a chunk, once."""
        at = datetime.fromtimestamp(chunk.at_ms / 1000, timezone.utc)
        constants = {
            "replayed_at": pa.scalar(at, _TIME),
            "run_id": pa.scalar(chunk.run_id),
            "command": pa.scalar(chunk.command),
            "chunk": pa.scalar(chunk.number),
            "journal": pa.scalar(self._journal_id),
        }
        rows = described
        if "broker" not in rows.column_names:
            constants["broker"] = pa.scalar(None, pa.string())
        for name, value in constants.items():
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
        rows = rows.select(SCHEMA.names).cast(SCHEMA)
        writer = self._spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append")
        writer = writer.option("txnAppId", self.app_id).option("mergeSchema", "true")
        writer.option("txnVersion", chunk.number).save(self.location)
