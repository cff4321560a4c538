"""Writing to brokers that have no staging: each row once, but a batch not at once.

W1  Tasks send acknowledged batches of messages. A batch is visible while it is being written, and
    what a failed one has sent stays.
W2  A run of a batch sends those rows that no earlier run has stored, whatever failed between: rows
    are known by their keys (row_keys.py), which are read back from where the batch began
    (batch_notes.py, landed.py). Equal rows are as many in the topic as in the batch.
W3  The commit sends rows of which no task could know whether they are there (task_sending.py, T2),
    and notes the batch as done: if it comes again, it is dropped.

Not covered: a task that Spark has given up, and that goes on sending after its rows were looked
for. docs/guarantees.md says what follows.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector.backend import WritingTask
from rocketpy.connector.cluster.batch_notes import BatchNotes
from rocketpy.connector.cluster.landed import NO_KEYS, LandedRows, ends_of
from rocketpy.connector.cluster.row_keys import RowKeys, batch_token
from rocketpy.connector.cluster.task_sending import (
    SETTLE_S,
    EarlierRows,
    TaskSending,
    WriteRun,
)
from rocketpy.connector.cluster.undecided import Undecided, send_missing
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.write_options import WriteOptions
from rocketpy.connector.writer_names import WriterName

log = logging.getLogger(__name__)

_earlier: dict[tuple[int, bytes], EarlierRows] = {}  # of the last run in this process


@dataclass(frozen=True, slots=True)
class SentPart:
    """What one task did."""

    rows: int
    is_done: bool  # the batch was in the topic before: nothing was sent
    run: WriteRun
    begins: Mapping[MessageQueue, int]
    undecided: Undecided


@dataclass(frozen=True, slots=True)
class DirectWriting:
    """Writes to a topic of a cluster. Made on the driver, goes to tasks."""

    options: WriteOptions
    cluster: ClusterOptions
    run: WriteRun

    def stage(self, task: WritingTask, batches: Iterable[pa.RecordBatch]) -> SentPart:
        """Send the rows of one partition, in a task.

        Raises:
            MessageRefusedError: a row cannot be stored; says which and why.
            StaleBatchError: a later batch of the writer is in the topic.
            ServerUnreachableError, NoBrokerError, ServerRefusedError: a broker takes none.
        """
        with self.cluster.access.connect() as cluster:
            return self._stage(cluster, task, batches)

    def _stage(
        self, cluster: Cluster, task: WritingTask, batches: Iterable[pa.RecordBatch]
    ) -> SentPart:
        run = self.run
        notes = BatchNotes(cluster, _noted_name(task.writer, run.topic), [*run.ends])
        begins: Mapping[MessageQueue, int] = run.ends
        undecided = Undecided(task.partition)
        if task.writer is not None:
            noted = notes.read()
            if noted.is_done(task.writer.name, task.number):
                for _ in batches:  # Spark wants them to be read
                    pass
                return SentPart(0, True, run, {}, undecided)
            if noted.begins:
                begins = noted.begins
            else:
                notes.begin_first(run.ends)
        is_again = notes.has_begun(task.partition, run.token) or task.attempt > 0
        batch = _batch(task.writer, task.number, run)
        landed = LandedRows(cluster, batch, retry_s=self.cluster.retry_s)
        sending = TaskSending(
            cluster=cluster,
            run=run,
            landed=landed,
            row_keys=RowKeys(batch, task.partition),
            earlier=_earlier_rows(landed, run, batch, begins),
            is_again=is_again,
            name=task.name,
            retry_s=self.cluster.retry_s,
            property_columns=self.options.property_columns,
        )
        sending.send(batches)
        undecided = Undecided(task.partition, sending.left.packed(), sending.unclaimed())
        return SentPart(sending.rows, False, run, begins, undecided)

    def commit(self, staged: Sequence[object], writer: WriterName | None, number: int) -> None:
        """Send what no task could decide, and note the batch as done.

        Raises:
            ServerUnreachableError, NoBrokerError, ServerRefusedError: a broker takes nothing.
        """
        parts = [part for part in staged if isinstance(part, SentPart)]
        if any(part.is_done for part in parts):
            log.warning("%s: batch %d of %s is there already", self.run.topic, number, writer)
            return
        if not parts:
            return
        run = parts[0].run
        with self.cluster.access.connect() as cluster:
            batch = _batch(writer, number, run)
            landed = LandedRows(cluster, batch, retry_s=self.cluster.retry_s)
            undecided = [part.undecided for part in parts]
            if any(each.rows is not None for each in undecided):
                earlier = landed.between(parts[0].begins, run.ends)
                send_missing(cluster, run, landed, earlier, undecided, retry_s=self.cluster.retry_s)
            if writer is not None:
                notes = BatchNotes(cluster, _noted_name(writer, run.topic), [*run.ends])
                notes.done(number, landed.ends([*run.ends]))

    def remove(self, transactions: Iterable[str]) -> None:
        """Say that what was sent stays: brokers take nothing back."""
        for transaction in transactions:
            log.warning(
                "%s: rows of %s that were sent stay in the topic; run again, a batch of a query or "
                "of a txnAppId sends the others only",
                self.run.topic,
                transaction,
            )


def direct_writing(cluster: Cluster, options: WriteOptions) -> DirectWriting:
    """Return what writes to a topic of a cluster.

    Raises:
        TopicNotFoundError, NoBrokerError: the topic is not there, or takes no messages.
    """
    assert options.cluster is not None
    assert options.topic is not None  # see writing.py
    route = cluster.route(options.topic)
    queues = sorted({*route.readable(), *route.writable()})
    run = WriteRun(
        # It fits into an offset, and grows, as brokers note offsets that go back in their logs.
        token=(time.time_ns() // 1000 << 10) | secrets.randbelow(1 << 10),
        topic=options.topic,
        queues=tuple(route.writable()),
        ends=ends_of(cluster, queues, timeout_s=options.cluster.retry_s),
    )
    return DirectWriting(options, options.cluster, run)


def _noted_name(writer: WriterName | None, topic: str) -> str:
    # Plain writes note only which tasks have begun, and share one name: their runs differ.
    return writer.name if writer is not None else f"any topic {topic}"


def _batch(writer: WriterName | None, number: int, run: WriteRun) -> bytes:
    name = writer.name if writer is not None else f"run {run.token}"
    return batch_token(f"{name}\n{run.topic}", number)


def _earlier_rows(
    landed: LandedRows, run: WriteRun, batch: bytes, begins: Mapping[MessageQueue, int]
) -> EarlierRows:
    """Return what earlier runs left; tasks of one process read it once."""
    known = _earlier.get((run.token, batch))
    if known is None:
        _earlier.clear()
        keys, late = landed.between(begins, run.ends), NO_KEYS
        if len(keys):
            log.warning("%s: %d rows of this batch are there already", run.topic, len(keys))
            time.sleep(SETTLE_S)
            late = landed.after(run.ends)
        known = EarlierRows(keys, late)
        _earlier[run.token, batch] = known
    return known
