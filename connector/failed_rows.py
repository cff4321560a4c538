"""`rocketpy.send_back`: rows that a query could not deal with go back to their group.

Tasks read the original messages by their position and stage copies; the driver commits all of them
at once, and a batch that Spark runs again only once. The backend knows where the messages are and
by which rules they are sent back: see SendingBack in backend.py.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import IntegralType, StringType

from rocketpy.broker_core.errors import ColumnError, MessageRefusedError
from rocketpy.broker_core.retry.rules import CAUSE_LIMIT
from rocketpy.connector.backend import SendingBack, StagedCopies
from rocketpy.connector.backends import sending_back_of
from rocketpy.connector.worker import tuned_task

POSITION = {"topic": StringType, "queue_id": IntegralType, "queue_offset": IntegralType}

_COLUMNS = [*POSITION, "broker", "cause"]

_last_calls: dict[tuple[str, str], int] = {}  # the newest batch of each run and writer
_calls_lock = threading.Lock()


class SentBackRows(NamedTuple):
    """What `send_back` returns; rows of a batch that was sent back before count as none."""

    retried: int
    dead: int


def send_back(
    df: DataFrame,
    *,
    group: str,
    path: str | os.PathLike[str],
    cause: str | Column | None = None,
    delay_level: int = 0,
    app_id: str | None = None,
    batch_id: int | None = None,
) -> SentBackRows:
    """Send the messages of some rows back to their group: tried again later, or dead letters.

    `df` has the columns topic, queue_id and queue_offset as they were read, each message once or
    more. `cause` is a column, the name of one, or a text. In `foreachBatch` a batch that Spark runs
    again is sent back once: call it once a batch and group, or name each call by `app_id`. For
    other DataFrames `app_id` and `batch_id` do the same; without them each call counts.

    Raises:
        ColumnError: a column is missing or of another type.
        GroupNameError, MessageRefusedError: the group cannot send back, or a call came twice.
        StaleBatchError: a later batch was sent back before, so that this is no replay.
        StoreNotFoundError: there is no store at `path`.
    """
    _check_columns(df)
    sending = sending_back_of(path, group=group, delay_level=delay_level)
    call = _Call.of(df.sparkSession, group, app_id, batch_id)
    call.refuse_twice()
    if sending.is_done(call.writer, call.number):
        sent = SentBackRows(0, 0)
    else:
        job = _Job(sending, uuid.uuid4().hex)
        try:
            sent = _send_back(_positions(df, cause), job, call)
        finally:
            sending.remove(job.transaction)
    call.note()
    return sent


def _send_back(positions: DataFrame, job: _Job, call: _Call) -> SentBackRows:
    staged = [StagedCopies(*json.loads(row[0])) for row in _staged(positions, job).collect()]
    if not job.sending.commit(staged, call.writer, call.number):
        return SentBackRows(0, 0)
    return SentBackRows(sum(each.retried for each in staged), sum(each.dead for each in staged))


def _check_columns(df: DataFrame) -> None:
    for name, type_ in POSITION.items():
        if name not in df.columns:
            reason = "is missing: it takes topic, queue_id and queue_offset to find a message"
            raise ColumnError(name, f"{reason}; keep them from the source on")
        if not isinstance(df.schema[name].dataType, type_):
            found = df.schema[name].dataType.simpleString()
            raise ColumnError(name, f"is {found}; keep it as the source gives it")


@dataclass(frozen=True, slots=True)
class _Call:
    """What tells whether a batch was sent back before."""

    writer: str | None
    number: int
    run_id: str | None  # of the streaming query that calls

    @classmethod
    def of(cls, spark: SparkSession, group: str, app_id: str | None, batch_id: int | None) -> _Call:
        """Ask the streaming query that calls us, if one does, or take what the caller says."""
        context = spark.sparkContext
        query = context.getLocalProperty("sql.streaming.queryId")
        if query is None and (app_id is None) != (batch_id is None):
            missing = "app_id" if app_id is None else "batch_id"
            raise MessageRefusedError("send_back", f"{missing} is missing; give both, or neither")
        if query is None and app_id is None:
            return cls(None, 0, None)
        name = f"query {query}" if query else "app"
        writer = f"{name}{f' {app_id}' if app_id else ''} sends back to {group}"
        number = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        run_id = context.getLocalProperty("spark.jobGroup.id") if query else None
        return cls(writer, number if batch_id is None else batch_id, run_id)

    def refuse_twice(self) -> None:
        """Raise at a second call: within one run of a query each batch comes once."""
        if self.run_id is None or self.writer is None:
            return
        with _calls_lock:
            if _last_calls.get((self.run_id, self.writer)) == self.number:
                reason = f"batch {self.number} was sent back before; join the rows by union(), "
                raise MessageRefusedError("send_back", reason + "or give each call an app_id")

    def note(self) -> None:
        """Remember a call that was done."""
        if self.run_id is not None and self.writer is not None:
            with _calls_lock:
                _last_calls[self.run_id, self.writer] = self.number


def _positions(df: DataFrame, cause: str | Column | None) -> DataFrame:
    """Return where the messages are, and why they are sent back."""
    reason = cause
    if not isinstance(reason, Column):
        reason = F.col(f"`{reason}`") if reason in df.columns else F.lit(reason)
    text = F.substring(reason.cast("string"), 1, 2 * CAUSE_LIMIT)
    broker = F.col("broker") if "broker" in df.columns else F.lit(None).cast("string")
    return df.select(
        F.col("topic"),
        F.col("queue_id").cast("int"),
        F.col("queue_offset").cast("long"),
        broker.alias("broker"),
        text.alias("cause"),
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """What a task needs to know."""

    sending: SendingBack
    transaction: str


def _staged(positions: DataFrame, job: _Job) -> DataFrame:
    """Stage copies in few tasks, all rows of a message in one; return what each task staged.

    This is an aggregate: tasks get all their rows as Arrow arrays and give one text back.
    mapInArrow would do as well, but needs pandas.
    """
    tasks = positions.sparkSession.sparkContext.defaultParallelism
    part = F.pmod(F.hash(*POSITION), F.lit(tasks)).alias("part")
    rows = positions.withColumn("part", part).repartition(tasks, "part")

    def staged(
        topic: pa.Array,
        queue_id: pa.Array,
        queue_offset: pa.Array,
        broker: pa.Array,
        cause: pa.Array,
    ) -> str:
        return _stage(job, topic, queue_id, queue_offset, broker, cause)

    # PySpark takes its kind from the type hints above; its own stubs do not know of that.
    stage = arrow_udf(staged, "string")  # type: ignore[call-overload]
    return rows.groupBy("part").agg(stage(*_COLUMNS).alias("staged")).select("staged")


def _stage(job: _Job, *columns: pa.Array) -> str:
    """Stage copies of the messages that the rows name; runs in a task."""
    with tuned_task():
        staged = job.sending.stage(job.transaction, pa.table(list(columns), names=_COLUMNS))
    return json.dumps(staged)
