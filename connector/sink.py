"""`df.write` and `df.writeStream` with `format("rocketpy")`: each batch whole, and once.

Tasks stage their rows in the store's folder; the driver's commit appends all of them or, if this
batch of this query is the last one in the store already, none. See broker_core/intake/staged.py.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.storage.existing import refuse_unsupported
from rocketpy.broker_core.storage.identity import StoreIdentity, make_identity, require_same
from rocketpy.connector.options import OptionError
from rocketpy.connector.worker import tuned_task
from rocketpy.connector.write_columns import check_columns
from rocketpy.connector.write_options import WriteOptions
from rocketpy.connector.writer_names import WriterName, writer_name

log = logging.getLogger(__name__)

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
    """What a task tells the driver: where its rows are, if it had any, and of which query."""

    path: Path | None
    rows: int
    store: StoreIdentity  # that the task saw
    query_id: str | None = None


class BatchSink(DataSourceArrowWriter):
    """Writes a DataFrame: all of it, or nothing if a task fails."""

    def __init__(self, options: WriteOptions, store: StoreIdentity) -> None:
        self._options, self._store = options, store
        self._transaction = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition."""
        with tuned_task():
            return _stage(self._options, self._store, self._transaction, iterator)

    def commit(self, messages: Messages) -> None:
        """Append what was staged, unless this version was written before."""
        options = self._options
        app = options.app_id
        writer = None if app is None else writer_name("app", app, options.topic)
        _commit(options, messages, writer, options.version)

    def abort(self, messages: Messages) -> None:  # noqa: ARG002
        """Remove what was staged."""
        _remove(self._options, [self._transaction])


class StreamSink(DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query: each once, however often Spark runs it."""

    def __init__(self, options: WriteOptions, store: StoreIdentity) -> None:
        if options.app_id is not None:
            reason = "is for batch writes; a streaming query is known by its checkpoint"
            raise OptionError("txnAppId", reason)
        self._options, self._store = options, store

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition of one batch."""
        context = TaskContext.get()
        assert context is not None
        # A writer is not told which batch it is for, but its task knows.
        query_id = context.getLocalProperty("sql.streaming.queryId")
        batch_id = context.getLocalProperty("streaming.sql.batchId")
        assert query_id is not None, "Spark did not tell the id of the query"
        with tuned_task():
            staged = _stage(self._options, self._store, f"{query_id}-{batch_id}", iterator)
        staged.query_id = query_id
        return staged

    def commit(self, messages: Messages, batchId: int) -> None:
        """Append what was staged, unless this batch was appended before a restart."""
        query_id = next((message.query_id for message in _staged(messages)), None)
        assert query_id is not None, "Spark ran no task"
        writer = writer_name("query", query_id, self._options.topic)
        _commit(self._options, messages, writer, batchId)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: ARG002
        """Remove what was staged; what tasks left that died goes with the batch's next commit."""
        _remove(self._options, {path.parent.name for path in _files(messages)})


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


def _checked(options: Mapping[str, str], schema: StructType) -> tuple[WriteOptions, StoreIdentity]:
    """Return what was asked for, and the store that driver and tasks must see, which is marked."""
    parsed = WriteOptions.parse(options)
    check_columns(
        schema, has_topic=parsed.topic is not None, property_columns=parsed.property_columns
    )
    refuse_unsupported(Path(parsed.path))
    return parsed, make_identity(Path(parsed.path), parsed.lock_timeout_s)


def _stage(
    options: WriteOptions,
    store: StoreIdentity,
    transaction: str,
    batches: Iterable[pa.RecordBatch],
) -> StagedRows:
    from rocketpy.broker_core.intake.staged import TaskStage

    require_same(Path(options.path), store)
    context = TaskContext.get()
    stage = TaskStage(
        root=Path(options.path),
        transaction=transaction,
        topic=options.topic,
        queues=options.queues,
        compress=options.compress,
        property_columns=options.property_columns,
        name=f"partition {context.partitionId()}" if context else "the partition",
    )
    try:
        for batch in batches:
            stage.add(batch)
        return StagedRows(*stage.finish(), store)
    except BaseException:
        stage.discard()
        raise


def _staged(messages: Messages) -> Iterator[StagedRows]:
    for message in messages:
        if isinstance(message, StagedRows):
            yield message


def _files(messages: Messages) -> list[Path]:
    return [message.path for message in _staged(messages) if message.path is not None]


def _commit(
    options: WriteOptions, messages: Messages, writer: WriterName | None, number: int
) -> None:
    from rocketpy.broker_core.intake.staged import commit
    from rocketpy.broker_core.storage.batches.commit import StagedBatch

    files, root = _files(messages), Path(options.path)
    for seen in {staged.store for staged in _staged(messages)}:
        require_same(root, seen)
    name, former = writer or (None, None)
    batch = StagedBatch(files=files, writer=name, number=number, formerly=former)
    if files and not commit(root, batch, lock_timeout_s=options.lock_timeout_s):
        log.warning("%s: batch %d of %s is there already", options.path, number, name)


def _remove(options: WriteOptions, transactions: Iterable[str]) -> None:
    from rocketpy.broker_core.storage.batches.staging import remove_staged

    remove_staged(Path(options.path), transactions)
