"""`df.write` and `df.writeStream` with `format("rocketpy")`: each batch whole, and once.

Tasks stage their rows; the driver's commit stores all of them, or none if this batch of this query
is the last one that was stored. The backend says how: see backend.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from rocketpy.connector.backend import Writing
from rocketpy.connector.backends import writing_of
from rocketpy.connector.options import OptionError
from rocketpy.connector.worker import tuned_task
from rocketpy.connector.write_columns import check_columns
from rocketpy.connector.write_options import WriteOptions
from rocketpy.connector.writer_names import writer_name

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
            return _stage(self._writing, self._transaction, iterator)

    def commit(self, messages: Messages) -> None:
        """Append what was staged, unless this version was written before."""
        options = self._options
        app = options.app_id
        writer = None if app is None else writer_name("app", app, options.topic)
        self._writing.commit(_parts(messages), writer, options.version)

    def abort(self, messages: Messages) -> None:  # noqa: ARG002
        """Remove what was staged."""
        self._writing.remove([self._transaction])


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
        with tuned_task():
            staged = _stage(self._writing, f"{query_id}-{batch_id}", iterator)
        staged.query_id = query_id
        return staged

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


def _stage(writing: Writing, transaction: str, batches: Iterable[pa.RecordBatch]) -> StagedRows:
    context = TaskContext.get()
    name = f"partition {context.partitionId()}" if context else "the partition"
    return StagedRows(writing.stage(transaction, batches, name), transaction)


def _staged(messages: Messages) -> Iterator[StagedRows]:
    for message in messages:
        if isinstance(message, StagedRows):
            yield message


def _parts(messages: Messages) -> list[object]:
    return [message.part for message in _staged(messages)]
