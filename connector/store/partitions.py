"""What tasks read of a store alone: queue entries, its log, index files and small tables."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.connector.data_loss import report
from rocketpy.connector.filters import columns_asked, matching, with_columns
from rocketpy.connector.partitions import SourcePartition
from rocketpy.connector.planning import QueueRange
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.store import views
from rocketpy.connector.store.backend import StoreBackend, open_store

log = logging.getLogger(__name__)

_LOG_STRETCH = 128 << 20  # bytes of the commit log a task, as Spark cuts files


def store_partitions(options: ReadOptions, backend: StoreBackend) -> Iterable[SourcePartition]:
    """Return what tasks read of a view that needs no queue."""
    if options.scans_log:
        start = backend.log_start() if options.log_start is None else options.log_start
        end = backend.boundary(options.log_end, skip_damage=not options.fail_on_damage)
        return _stretches(start, end, options.min_partitions or 1)
    if options.view == "index":
        return [IndexPartition(name) for name in backend.store.index_names()]
    return [TablePartition(options.view)]


def _stretches(start: int, end: int, at_least: int) -> Iterator[LogPartition]:
    length = max(end - start, 0)
    count = max(at_least, -(-length // _LOG_STRETCH))
    bounds = [start + length * index // count for index in range(count + 1)]
    for first, last in pairwise(bounds):
        yield LogPartition(first, last, end)


class StorePartition(SourcePartition):
    """A part of a view of a store."""

    def open(self, options: ReadOptions) -> AbstractContextManager[StoreBackend]:
        """Open the store, in a task.

        Raises:
            OtherStoreError: it is not the one that the planner saw: the path is not shared.
        """
        return closing(open_store(options.path, self.seen))


@dataclass
class EntryPartition(StorePartition):
    """Queue entries in ranges of queues, one after the other."""

    ranges: tuple[QueueRange, ...]

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield the entries of all ranges."""
        with self.open(options) as backend:
            for part in self.ranges:
                yield from views.queue_entries(backend, part, options.tags)


@dataclass
class LogPartition(StorePartition):
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
class IndexPartition(StorePartition):
    """One index file."""

    name: str

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield its entries."""
        with self.open(options) as backend:
            yield from views.index_entries(backend, self.name)


@dataclass
class TablePartition(StorePartition):
    """All of a small view."""

    view: str

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield it as one batch."""
        with self.open(options) as backend:
            yield views.TABLES[self.view](backend)
