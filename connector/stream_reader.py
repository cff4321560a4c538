"""`spark.readStream.format("rocketpy")`: what is new, micro-batch by micro-batch.

Offsets are committed to the consumer group when Spark says that a batch is done (`commit`), and
when it asks what comes after a batch (`latestOffset`): only that is called after the last batch of
AvailableNow. Which queues are read, and how far the group is: see consumer.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from rocketpy.broker_core.lazy import lazy_property
from rocketpy.connector.backend import Backend
from rocketpy.connector.backends import open_backend
from rocketpy.connector.batch_reader import read_partition
from rocketpy.connector.consumer import Consumer, consumer_of
from rocketpy.connector.hang_up import expect_hang_up
from rocketpy.connector.offsets import READER, READER_MEMBERS, SourceOffset
from rocketpy.connector.partitions import seen_in
from rocketpy.connector.planner import Planner
from rocketpy.connector.planning import split, tasks
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.view_partitions import range_partition
from rocketpy.connector.worker import make_ready

_STAYS = ("_backend", "_consumer", "_planner")  # these stay in the process that plans


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the micro-batches of one query, in a process of its own beside the driver."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._given, self._schema = options, schema
        make_ready()

    def __getstate__(self) -> dict[str, Any]:
        # Tasks get a copy: nothing that is open may travel with it.
        return {name: value for name, value in vars(self).items() if name not in _STAYS}

    @lazy_property
    def _options(self) -> ReadOptions:
        # Not in __init__: PySpark would replace an error from there by one of its own.
        return self._given.for_stream()

    @lazy_property
    def _backend(self) -> Backend:
        return open_backend(self._options)

    @lazy_property
    def _consumer(self) -> Consumer:
        return consumer_of(self._options, self._backend)

    @lazy_property
    def _planner(self) -> Planner:
        return Planner(self._options, self._backend, self._consumer)

    # --- how far -------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        return self._planner.initial().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return some limit: Spark then gives it to latestOffset, where all options apply.

        One read limit of Spark's cannot say all that the options can.
        """
        options = self._options
        if options.max_rows is not None:
            return ReadMaxRows(options.max_rows)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        return ReadMinRows(options.min_rows) if options.min_rows > 1 else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember what is there now: the query ends when it has read this."""
        self._planner.fix_target()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return what is there now, for the progress of the query, and who it is that reads."""
        options = self._options
        place = options.path if options.cluster is None else str(options.cluster.access.address)
        told = (place, options.group, options.member.name if options.member is not None else None)
        reader = {name: value for name, value in zip(READER_MEMBERS, told, strict=True) if value}
        return {**self._planner.latest().to_json(), READER: reader}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch; `start` itself if there is none yet."""
        is_limited = not isinstance(limit, ReadAllAvailable)
        end = self._planner.next_end(SourceOffset.from_json(start), is_limited=is_limited)
        return start if end is None else end.to_json()

    # --- what each task reads -------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the ranges between two offsets, cut into tasks."""
        begin, stop = SourceOffset.from_json(start), SourceOffset.from_json(end)
        ranges = self._planner.ranges(begin, stop)
        options = self._options
        parts = split(
            ranges, min_partitions=options.min_partitions, max_rows=options.max_partition_rows
        )
        is_cut = options.min_partitions or options.max_partition_rows
        if not is_cut:
            # Where tasks run is not told here. In a local session it is this machine.
            of_tasks = tasks(parts, begin.places_up_to(stop), os.cpu_count() or 1)
        else:
            of_tasks = [(part,) for part in parts]
        reading = range_partition(options, self._backend)
        return seen_in(self._backend, [reading(some) for some in of_tasks])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition. Runs in a task."""
        return read_partition(partition, self._options, self._schema)

    # --- what is done ---------------------------------------------------------------------------

    def commit(self, end: dict[str, Any]) -> None:
        """Note for the group that a batch is done."""
        self._consumer.commit(SourceOffset.from_json(end).positions)

    def stop(self) -> None:
        """End without a word: the query was stopped, or this process is no longer needed."""
        expect_hang_up()
