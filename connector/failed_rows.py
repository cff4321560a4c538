"""`rocketpy.send_back`: rows that a query could not deal with go back to their group.

Tasks read the original messages by their position and stage copies; the driver commits all of them
at once, and a batch that Spark runs again once only (storage/batches/ledger.py). The rules are
those of broker_core/retry: retry topic with a growing delay, in the end the dead letters.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import IntegralType, StringType

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import ColumnError, MessageRefusedError
from rocketpy.broker_core.intake.staged import commit
from rocketpy.broker_core.retry.rules import CAUSE_LIMIT, RetryRule
from rocketpy.broker_core.retry.settings import group_settings
from rocketpy.broker_core.retry.stage import CopyStage
from rocketpy.broker_core.retry.tables import stage_sent_back
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.batches.ledger import read_ledger
from rocketpy.broker_core.storage.batches.staging import remove_staged
from rocketpy.broker_core.storage.identity import StoreIdentity, identity_of, require_same
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.store_path import store_path
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
    root = store_path(path).absolute()
    rule = _rule(root, group, delay_level)
    call = _Call.of(df.sparkSession, group, app_id, batch_id)
    call.refuse_twice()
    if read_ledger(root).is_replay(call.writer, call.number):
        sent = SentBackRows(0, 0)
    else:
        job = _Job(root, identity_of(root), uuid.uuid4().hex, rule)
        try:
            sent = _send_back(_positions(df, cause), job, call)
        finally:
            remove_staged(root, [job.transaction])
    call.note()
    return sent


def _send_back(positions: DataFrame, job: _Job, call: _Call) -> SentBackRows:
    staged = [json.loads(row[0]) for row in _staged(positions, job).collect()]
    files = [Path(each["path"]) for each in staged]
    retried, dead = (sum(each[name] for each in staged) for name in ("retried", "dead"))
    topics = {job.rule.retry_topic: job.rule.group.retry_queues} if retried else {}
    batch = StagedBatch(files=files, writer=call.writer, number=call.number)
    is_new = bool(files) and commit(job.root, batch, topics=topics)
    return SentBackRows(retried, dead) if is_new else SentBackRows(0, 0)


def _check_columns(df: DataFrame) -> None:
    for name, type_ in POSITION.items():
        if name not in df.columns:
            reason = "is missing: it takes topic, queue_id and queue_offset to find a message"
            raise ColumnError(name, f"{reason}; keep them from the source on")
        if not isinstance(df.schema[name].dataType, type_):
            found = df.schema[name].dataType.simpleString()
            raise ColumnError(name, f"is {found}; keep it as the source gives it")


def _rule(root: Path, group: str, delay_level: int) -> RetryRule:
    reading = MessageStore(root, StoreConfig(), clock=SystemClock(), read_only=True)
    settings, config = reading.groups.get(group), reading.config
    reading.close()
    if settings is None:
        store = MessageStore(root, StoreConfig(), clock=SystemClock())
        try:
            settings = group_settings(store, group)
        finally:
            store.close()
    return RetryRule(group=settings, config=config, delay_level=delay_level)


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
        """Raise at a second call: a run of a query has a batch once, only its next run again."""
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
    told = cause
    if not isinstance(told, Column):
        told = F.col(f"`{told}`") if told in df.columns else F.lit(told)
    text = F.substring(told.cast("string"), 1, 2 * CAUSE_LIMIT)
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

    root: Path
    store: StoreIdentity
    transaction: str
    rule: RetryRule


def _staged(positions: DataFrame, job: _Job) -> DataFrame:
    """Stage copies in few tasks, all rows of a message in one; tell of each what it staged.

    An aggregate, for tasks get all their rows as Arrow arrays and give one text back; mapInArrow
    would do as well, but wants pandas.
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

    # Its kind is told by the hints above, of which PySpark's own stubs do not know.
    stage = arrow_udf(staged, "string")  # type: ignore[call-overload]
    return rows.groupBy("part").agg(stage(*_COLUMNS).alias("staged")).select("staged")


def _stage(job: _Job, *columns: pa.Array) -> str:
    """Stage copies of the messages that the rows name; runs in a task."""
    require_same(job.root, job.store)
    with tuned_task(), CopyStage(root=job.root, transaction=job.transaction) as stage:
        table = pa.table(list(columns), names=_COLUMNS)
        retried, dead = stage_sent_back(stage, job.rule, table)
        file = stage.finish()
    return json.dumps({"path": str(file), "retried": retried, "dead": dead})
