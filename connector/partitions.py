"""What one task reads: made on the driver, pickled, and read in a worker.

Each kind knows how to read itself; files are opened there and then, so that nothing open travels.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from rocketpy.broker_core.errors import CorruptStoreError, OffsetOutOfRangeError
from rocketpy.broker_core.storage.identity import StoreIdentity, identity_of, require_same
from rocketpy.connector import store_views
from rocketpy.connector.data_loss import Loss, report
from rocketpy.connector.filters import (
    columns_asked,
    having_keys,
    matching,
    passing,
    with_columns,
)
from rocketpy.connector.planning import QueueRange
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.store_backend import StoreBackend

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class SourcePartition(InputPartition):
    """A part of a view of the store that the planner saw."""

    store: StoreIdentity | None = None

    @abstractmethod
    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield its rows; columns may come in any order, and with others between them."""

    def open(self, options: ReadOptions) -> AbstractContextManager[StoreBackend]:
        """Open the store, in a task.

        Raises:
            OtherStoreError: it is not the one that the planner saw: the path is not shared.
        """
        if self.store is not None:
            require_same(Path(options.path), self.store)
        return closing(StoreBackend(options.path))


_Partition = TypeVar("_Partition", bound=SourcePartition)


def of_store(backend: StoreBackend, parts: Iterable[_Partition]) -> list[_Partition]:
    """Return what tasks are to read, with the store in which they are to find it."""
    identity = identity_of(backend.store.root)
    return [replace(part, store=identity) for part in parts]


@dataclass
class QueuePartition(SourcePartition):
    """Ranges of queues, one after the other: messages, or queue entries."""

    ranges: tuple[QueueRange, ...]

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all ranges."""
        with self.open(options) as backend:
            for part in self.ranges:
                yield from _read(backend, part, options, columns)


def _read(
    backend: StoreBackend, part: QueueRange, options: ReadOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range; go on behind messages that retention deletes meanwhile."""
    if options.view == "queues":
        yield from store_views.queue_entries(backend, part, options.tags)
        return
    wide = with_columns(columns, "keys", "uniq_key") if options.keys else columns
    while len(part):
        read = backend.read(
            part,
            wide,
            tags=options.tags,
            sql=options.sql,
            group=options.group,
            decompress=options.decompress,
        )
        try:
            for batch in read:
                yield having_keys(batch, options.keys) if options.keys else batch
            return
        except (OffsetOutOfRangeError, CorruptStoreError) as cause:
            low, _ = backend.range(part.queue)
            if low <= part.start or not backend.is_deleted(cause):
                raise
            lost = Loss(part.queue, part.start, min(low, part.end), f"the oldest held is {low}")
            report([lost], fail=options.fail_on_loss)
            part = QueueRange(part.queue, low, part.end)


@dataclass
class KeyPartition(SourcePartition):
    """The messages with some keys in ranges of queues, found through the index."""

    ranges: tuple[QueueRange, ...]

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield them topic by topic, in log order."""
        place = ("queue_id", "queue_offset")
        wide = with_columns(columns, *place, "tags", *(["properties"] if options.sql else []))
        with self.open(options) as backend:
            for topic in sorted({part.queue.topic for part in self.ranges}):
                is_meant = self._is_meant(topic, options)
                found = backend.find(topic, options.keys, wide, decompress=options.decompress)
                for batch in found:
                    passed = passing(batch, options.sql) if options.sql else batch
                    yield passed.filter(is_meant)

    def _is_meant(self, topic: str, options: ReadOptions) -> pc.Expression:
        meant = pc.scalar(False)
        for part in self.ranges:
            if part.queue.topic == topic:
                meant |= (
                    (pc.field("queue_id") == part.queue.queue_id)
                    & (pc.field("queue_offset") >= part.start)
                    & (pc.field("queue_offset") < part.end)
                )
        if options.tags is not None and not options.tags.takes_all:
            meant &= pc.field("tags").isin(sorted(options.tags.names))
        return meant


@dataclass
class LogPartition(SourcePartition):
    """A stretch of the commit log: the records that begin in it."""

    start: int
    end: int
    log_end: int  # when the read was planned

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield them in log order; go on behind what retention deletes meanwhile."""
        wide = with_columns(columns, *columns_asked(options))
        start, log_end = self.start, self.log_end
        with self.open(options) as backend:
            while start < self.end:
                lost = backend.lost_before(start, self.end)
                report(lost, fail=options.fail_on_loss)
                start = max(start, backend.log_start()) if lost else start
                try:
                    read = backend.scan(
                        *(start, self.end, log_end, wide),
                        sql=options.sql,
                        decompress=options.decompress,
                    )
                    for batch in read:
                        yield matching(batch, options)
                    return
                except CorruptStoreError as cause:
                    if backend.is_deleted(cause):
                        start = cause.offset
                    elif options.fail_on_damage:
                        raise
                    else:
                        log.warning("passed over: %s", cause)
                        start = backend.next_record(cause.offset + 1, log_end)


@dataclass
class IndexPartition(SourcePartition):
    """One index file."""

    name: str

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield its entries."""
        with self.open(options) as backend:
            yield from store_views.index_entries(backend, self.name)


@dataclass
class TablePartition(SourcePartition):
    """All of a small view."""

    view: str

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield it as one batch."""
        with self.open(options) as backend:
            yield store_views.TABLES[self.view](backend)
