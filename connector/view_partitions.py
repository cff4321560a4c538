"""What tasks read of a backend besides messages: queue entries, log, index files, small tables.

Only a backend with the files of a store has these: see Views in backend.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.connector.backend import Backend, Tables, Views
from rocketpy.connector.backends import opened
from rocketpy.connector.data_loss import report
from rocketpy.connector.filters import columns_asked, matching, with_columns
from rocketpy.connector.options import OptionError
from rocketpy.connector.partitions import QueuePartition, SourcePartition
from rocketpy.connector.planning import QueueRange
from rocketpy.connector.read_options import ReadOptions

log = logging.getLogger(__name__)

_LOG_STRETCH = 128 << 20  # bytes of the commit log a task, as Spark cuts files


def views_of(options: ReadOptions, backend: Backend) -> Views:
    """Return what there is to read besides messages in the backend that the options name.

    Raises:
        OptionError: an option asks for it, and this backend has none.
    """
    views = backend.views()
    if views is None:
        raise _without_files(options)
    return views


def tables_of(options: ReadOptions, backend: Backend) -> Tables:
    """Return what makes the small views of the backend that the options name.

    Raises:
        OptionError: this backend has none.
    """
    tables = backend.tables()
    if tables is None:
        raise _without_files(options)
    return tables


def _without_files(options: ReadOptions) -> OptionError:
    reason = "needs the files of a store, which this place does not have"
    return OptionError(_asking(options), f"{reason}; give the 'path' of one, or leave it out")


def _asking(options: ReadOptions) -> str:
    """Return the option that asks for more than messages."""
    if options.scans_log:
        return "scan"
    if options.view != "messages":
        return "view"
    if options.log_start is not None:
        return "startingLogOffset"
    return "endingLogOffset" if options.log_end is not None else "path"


def range_partition(
    options: ReadOptions, backend: Backend
) -> type[QueuePartition] | type[EntryPartition]:
    """Return what reads ranges of queues: their messages, or their entries.

    Raises:
        OptionError: entries are asked for, and this backend has none.
    """
    if options.view != "queues":
        return QueuePartition
    views_of(options, backend)
    return EntryPartition


def view_partitions(options: ReadOptions, backend: Backend) -> Iterable[SourcePartition]:
    """Return what tasks read of a view that needs no queue.

    Raises:
        OptionError: this backend does not have it.
    """
    if not options.scans_log and options.view != "index":
        tables_of(options, backend)
        return [TablePartition(options.view)]
    views = views_of(options, backend)
    if options.scans_log:
        start = views.log_start() if options.log_start is None else options.log_start
        end = views.boundary(options.log_end, skip_damage=not options.fail_on_damage)
        return _stretches(start, end, options.min_partitions or 1)
    return [IndexPartition(name) for name in views.index_names()]


def _stretches(start: int, end: int, at_least: int) -> Iterator[LogPartition]:
    length = max(end - start, 0)
    count = max(at_least, -(-length // _LOG_STRETCH))
    bounds = [start + length * index // count for index in range(count + 1)]
    for first, last in pairwise(bounds):
        yield LogPartition(first, last, end)


@dataclass
class EntryPartition(SourcePartition):
    """Queue entries in ranges of queues, one after the other."""

    ranges: tuple[QueueRange, ...]

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield the entries of all ranges."""
        with opened_views(options, self.seen) as views:
            for part in self.ranges:
                yield from views.queue_entries(part, options.tags)


@dataclass
class LogPartition(SourcePartition):
    """A stretch of the commit log: the records that begin in it."""

    start: int
    end: int
    log_end: int  # when the read was planned

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield them in log order; go on after what retention deletes meanwhile."""
        wide = with_columns(columns, *columns_asked(options))
        start, log_end = self.start, self.log_end
        with opened(options, self.seen) as backend:
            views = views_of(options, backend)
            while start < self.end:
                lost = views.lost_before(start, self.end)
                report(lost, fail=options.fail_on_loss)
                start = max(start, views.log_start()) if lost else start
                try:
                    read = views.scan(
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
                        start = views.next_record(cause.offset + 1, log_end)


@dataclass
class IndexPartition(SourcePartition):
    """One index file."""

    name: str

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield its entries."""
        with opened_views(options, self.seen) as views:
            yield from views.index_entries(self.name)


@dataclass
class TablePartition(SourcePartition):
    """All of a small view."""

    view: str

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield it as one batch."""
        with opened(options, self.seen) as backend:
            yield tables_of(options, backend).table(self.view)


@contextmanager
def opened_views(options: ReadOptions, seen: object = None) -> Iterator[Views]:
    """Open a backend for what it has besides messages; `seen` is the one that the planner saw.

    Raises:
        OptionError: the backend that the options name has none.
    """
    with opened(options, seen) as backend:
        yield views_of(options, backend)
