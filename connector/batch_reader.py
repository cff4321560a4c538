"""`spark.read.format("rocketpy")`: a snapshot, fixed when the query is planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rocketpy.connector.data_loss import readable, report
from rocketpy.connector.partitions import (
    IndexPartition,
    KeyPartition,
    LogPartition,
    QueuePartition,
    SourcePartition,
    TablePartition,
    of_store,
)
from rocketpy.connector.planning import split
from rocketpy.connector.positions import Place, resolve
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import arrow_schema
from rocketpy.connector.store_backend import StoreBackend
from rocketpy.connector.topics import held_ranges
from rocketpy.connector.worker import tuned_task

_LOG_STRETCH = 128 << 20  # bytes of the commit log a task, as Spark cuts files


class BatchReader(DataSourceReader):
    """Plans and reads a view of a store."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options, self._schema = options.for_batch(), schema

    def partitions(self) -> list[InputPartition]:
        """Return what each task reads."""
        with closing(StoreBackend(self._options.path)) as backend:
            return [*of_store(backend, self._parts(backend))]

    def _parts(self, backend: StoreBackend) -> Iterable[SourcePartition]:
        if self._options.scans_log:
            return self._log_partitions(backend)
        if self._options.view == "index":
            return [IndexPartition(name) for name in backend.store.parts.index.names()]
        if self._options.view in ("groups", "topics"):
            return [TablePartition(self._options.view)]
        return self._queue_partitions(backend)

    def _log_partitions(self, backend: StoreBackend) -> Iterator[LogPartition]:
        options = self._options
        start = backend.log_start() if options.log_start is None else options.log_start
        end = backend.boundary(options.log_end, skip_damage=not options.fail_on_damage)
        return _stretches(start, end, options.min_partitions or 1)

    def _queue_partitions(self, backend: StoreBackend) -> Sequence[SourcePartition]:
        options = self._options
        assert options.start is not None
        assert options.end is not None
        held = held_ranges(options, backend)
        start = resolve(options.start, Place.EARLIEST, held, backend, options.group)
        end = resolve(options.end, Place.LATEST, held, backend, options.group)
        if options.log_start is not None:
            report(backend.lost_before(options.log_start), fail=options.fail_on_loss)
            for queue in held:
                start[queue] = max(start[queue], backend.offset_in_log(queue, options.log_start))
        if options.log_end is not None:
            for queue in held:
                end[queue] = min(end[queue], backend.offset_in_log(queue, options.log_end))
        for queue, (_, high) in held.items():
            if start[queue] <= high:  # else the queue was made anew, which is a loss
                end[queue] = max(start[queue], end[queue])
        ranges, losses = readable(start, end, held)
        report(losses, fail=options.fail_on_loss)
        if options.keys and backend.has_index:
            wanted = tuple(part for part in ranges.values() if len(part))
            return [KeyPartition(wanted)] if wanted else []
        parts = split(
            ranges, min_partitions=options.min_partitions, max_rows=options.max_partition_rows
        )
        return [QueuePartition((part,)) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition."""
        return read_partition(partition, self._options, self._schema)


def read_partition(
    partition: InputPartition, options: ReadOptions, schema: StructType
) -> Iterator[pa.RecordBatch]:
    """Yield rows as Spark wants them; a plan without partitions has a single, empty one."""
    if isinstance(partition, SourcePartition):
        target = arrow_schema(schema)
        with tuned_task():
            for batch in partition.batches(options, schema.names):
                if batch.num_rows:
                    yield batch.select(schema.names).cast(target)


def _stretches(start: int, end: int, at_least: int) -> Iterator[LogPartition]:
    length = max(end - start, 0)
    count = max(at_least, -(-length // _LOG_STRETCH))
    bounds = [start + length * index // count for index in range(count + 1)]
    for first, last in pairwise(bounds):
        yield LogPartition(first, last, end)
