"""`spark.read.format("rocketpy")`: a snapshot, fixed when the query is planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rocketpy.connector.backend import Backend
from rocketpy.connector.backends import opened
from rocketpy.connector.data_loss import readable, report
from rocketpy.connector.partitions import KeyPartition, SourcePartition, seen_in
from rocketpy.connector.planning import split
from rocketpy.connector.positions import NamedPosition, resolve
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import arrow_schema
from rocketpy.connector.topics import stored_ranges
from rocketpy.connector.view_partitions import range_partition, view_partitions, views_of
from rocketpy.connector.worker import tuned_task


class BatchReader(DataSourceReader):
    """Plans and reads a view of the backend that the options name."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options, self._schema = options.for_batch(), schema

    def partitions(self) -> list[InputPartition]:
        """Return what each task reads."""
        with opened(self._options) as backend:
            return [*seen_in(backend, self._parts(backend))]

    def _parts(self, backend: Backend) -> Iterable[SourcePartition]:
        if self._options.needs_queues:
            return self._queue_partitions(backend)
        return view_partitions(self._options, backend)

    def _queue_partitions(self, backend: Backend) -> Sequence[SourcePartition]:
        options = self._options
        assert options.start is not None
        assert options.end is not None
        stored = stored_ranges(options, backend)
        start = resolve(options.start, NamedPosition.EARLIEST, stored, backend, options.group)
        end = resolve(options.end, NamedPosition.LATEST, stored, backend, options.group)
        if options.log_start is not None:
            views = views_of(options, backend)
            report(views.lost_before(options.log_start), fail=options.fail_on_loss)
            for queue in stored:
                start[queue] = max(start[queue], views.offset_in_log(queue, options.log_start))
        if options.log_end is not None:
            views = views_of(options, backend)
            for queue in stored:
                end[queue] = min(end[queue], views.offset_in_log(queue, options.log_end))
        for queue, (_, high) in stored.items():
            if start[queue] <= high:  # else the queue was made anew, which is a loss
                end[queue] = max(start[queue], end[queue])
        ranges, losses = readable(start, end, stored)
        report(losses, fail=options.fail_on_loss)
        if options.keys and backend.has_index:
            wanted = tuple(part for part in ranges.values() if len(part))
            return [KeyPartition(wanted)] if wanted else []
        parts = split(
            ranges, min_partitions=options.min_partitions, max_rows=options.max_partition_rows
        )
        reading = range_partition(options, backend)
        return [reading((part,)) for part in parts]

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
