"""`df.write` and `df.writeStream` with `format("rocketpy")`: each batch whole, and once.

Tasks stage their rows; the driver's commit stores all of them, or none if this batch of this query
is the last one that was stored. The backend says how, and whether it can: see backend.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.connector.backend import Writing, WritingTask
from rocketpy.connector.backends import writing_of
from rocketpy.connector.options import OptionError
from rocketpy.connector.worker import tuned_task
from rocketpy.connector.write_columns import check_columns
from rocketpy.connector.write_options import WriteOptions
from rocketpy.connector.writer_names import WriterName, writer_name

Messages = Sequence[WriterCommitMessage | None]


class OutputModeError(RocketPyError):
    """Is raised for a mode of writing that would have to remove messages."""

    def __init__(self, advice: str) -> None:
        super().__init__(advice)
        self.advice = advice

    def __str__(self) -> str:
        return f"messages of a topic are only ever added to; {self.advice}"


@dataclass
class StagedRows(WriterCommitMessage):
    """What a task tells the driver: what it staged, in which transaction, and of which query."""

    part: object
    transaction: str
    query_id: str | None = None


class BatchSink(DataSourceArrowWriter):
    """Writes a DataFrame: all of it, or nothing if a task fails."""

    def __init__(self, options: WriteOptions, writing: Writing) -> None:
        self._options, self._writing = options, writing
        self._transaction = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition."""
        with tuned_task():
            task = _task(self._transaction, self._writer(), self._options.version)
            return StagedRows(self._writing.stage(task, iterator), self._transaction)

    def commit(self, messages: Messages) -> None:
        """Append what was staged, unless this version was written before."""
        self._writing.commit(_parts(messages), self._writer(), self._options.version)

    def abort(self, messages: Messages) -> None:  # noqa: ARG002
        """Remove what was staged."""
        self._writing.remove([self._transaction])

    def _writer(self) -> WriterName | None:
        app = self._options.app_id
        return None if app is None else writer_name("app", app, self._options.topic)


class StreamSink(DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query: each once, however often Spark runs it."""

    def __init__(self, options: WriteOptions, writing: Writing) -> None:
        if options.app_id is not None:
            reason = "is for batch writes; a streaming query is known by its checkpoint"
            raise OptionError("txnAppId", reason)
        self._options, self._writing = options, writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition of one batch."""
        context = TaskContext.get()
        assert context is not None
        # Spark tells a writer's task which batch it is for, but not the writer.
        query_id = context.getLocalProperty("sql.streaming.queryId")
        batch_id = context.getLocalProperty("streaming.sql.batchId")
        assert query_id is not None, "Spark did not tell the id of the query"
        assert batch_id is not None, "Spark did not tell the number of the batch"
        writer = writer_name("query", query_id, self._options.topic)
        task = _task(f"{query_id}-{batch_id}", writer, int(batch_id))
        with tuned_task():
            return StagedRows(self._writing.stage(task, iterator), task.transaction, query_id)

    def commit(self, messages: Messages, batchId: int) -> None:
        """Append what was staged, unless this batch was appended before a restart."""
        query_id = next((message.query_id for message in _staged(messages)), None)
        assert query_id is not None, "Spark ran no task"
        writer = writer_name("query", query_id, self._options.topic)
        self._writing.commit(_parts(messages), writer, batchId)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: ARG002
        """Remove what was staged; the batch's next commit removes what dead tasks left."""
        self._writing.remove({message.transaction for message in _staged(messages)})


def batch_sink(options: Mapping[str, str], schema: StructType, overwrite: bool) -> BatchSink:
    """Return the writer of a DataFrame; what cannot be written is refused here, on the driver."""
    if overwrite:
        raise OutputModeError("write with .mode('append')")
    return BatchSink(*_checked(options, schema))


def stream_sink(options: Mapping[str, str], schema: StructType, overwrite: bool) -> StreamSink:
    """Return the writer of a streaming query; what cannot be written is refused here."""
    if overwrite:
        raise OutputModeError("write with .outputMode('append'), or inside foreachBatch")
    return StreamSink(*_checked(options, schema))


def _checked(options: Mapping[str, str], schema: StructType) -> tuple[WriteOptions, Writing]:
    """Return what was asked for, and what writes it."""
    parsed = WriteOptions.parse(options)
    check_columns(
        schema, has_topic=parsed.topic is not None, property_columns=parsed.property_columns
    )
    return parsed, writing_of(parsed)


def _task(transaction: str, writer: WriterName | None, number: int) -> WritingTask:
    context = TaskContext.get()
    assert context is not None
    return WritingTask(transaction, context.partitionId(), context.attemptNumber(), writer, number)


def _staged(messages: Messages) -> Iterator[StagedRows]:
    for message in messages:
        if isinstance(message, StagedRows):
            yield message


def _parts(messages: Messages) -> list[object]:
    return [message.part for message in _staged(messages)]
