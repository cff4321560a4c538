"""`spark.readStream.format("rocketpy")`: what is new, micro-batch by micro-batch.

Offsets are committed to the consumer group when Spark says that a batch is done (`commit`), and
when it asks what comes behind a batch (`latestOffset`): only that is called after the last batch of
AvailableNow. Which queues are read, and how far the group is: see consumer.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

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

from rocketpy.broker_core.errors import StoreError
from rocketpy.broker_core.lazy import lazy_property
from rocketpy.connector.batch_reader import read_partition
from rocketpy.connector.consumer import Consumer, consumer_of
from rocketpy.connector.data_loss import lost_queues, readable, report
from rocketpy.connector.offsets import MessageQueue, Positions, SourceOffset
from rocketpy.connector.partitions import QueuePartition
from rocketpy.connector.planning import (
    QueueRange,
    at_most_bytes,
    at_most_rows,
    split,
    tasks,
    total,
    waiting_ranges,
)
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.store_backend import StoreBackend
from rocketpy.connector.topics import held_ranges
from rocketpy.connector.worker import make_ready

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_ATTEMPTS, _PAUSE_S = 5, 0.2
_OPEN = ("_backend", "_consumer")  # what stays in the process that plans


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the micro-batches of one query, in a process of its own beside the driver."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options, self._schema = options.for_stream(), schema
        self._target: Positions | None = None  # where AvailableNow ends
        self._waiting_since = time.monotonic()
        make_ready()

    def __getstate__(self) -> dict[str, Any]:
        # Tasks get a copy: nothing that is open may travel with it.
        return {name: value for name, value in vars(self).items() if name not in _OPEN}

    @lazy_property
    def _backend(self) -> StoreBackend:
        return StoreBackend(self._options.path)

    @lazy_property
    def _consumer(self) -> Consumer:
        return consumer_of(self._options, self._backend)

    def _held(self) -> dict[MessageQueue, tuple[int, int]]:
        return _patiently(lambda: held_ranges(self._options, self._backend, must_exist=False))

    # --- how far -------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        held = _patiently(lambda: held_ranges(self._options, self._backend))
        return SourceOffset.initial(self._consumer.initial(held)).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return a limit, so that Spark hands one in: then those of the options hold, all of them.

        A read limit of Spark's cannot say more than one thing.
        """
        options = self._options
        if options.max_rows is not None:
            return ReadMaxRows(options.max_rows)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        return ReadMinRows(options.min_rows) if options.min_rows > 1 else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember what is there now: the query ends when it has read this."""
        self._target = {queue: end for queue, (_, end) in self._held().items()}

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return what is there now, for the progress of the query."""
        held = self._consumer.own(self._held())
        ends = {queue: end for queue, (_, end) in held.items()}
        return SourceOffset(ends, began=self._consumer.standing()).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch; `start` itself if there is none yet."""
        begin = SourceOffset.from_json(start)
        held = self._held()
        losses = lost_queues(self._consumer.reading(begin.positions), held)
        report(losses, fail=self._options.fail_on_loss)
        positions, own = self._consumer.follow(begin, held)
        waiting = waiting_ranges(positions, own, self._target)
        if not isinstance(limit, ReadAllAvailable):
            waiting = self._admitted(waiting)
        if not total(waiting) and not losses:
            if self._target is not None:
                self._consumer.finish(begin)
            return start
        self._waiting_since = time.monotonic()
        gained = {queue: at for queue, at in positions.items() if begin.positions.get(queue) != at}
        ends = {queue: part.end for queue, part in waiting.items()}
        return begin.advanced(ends, gained).to_json()

    def _admitted(self, waiting: dict[MessageQueue, QueueRange]) -> dict[MessageQueue, QueueRange]:
        """Return what of it the options let into one batch."""
        options = self._options
        if total(waiting) < options.min_rows and self._target is None:
            waited_s = time.monotonic() - self._waiting_since
            if waited_s < options.max_delay_s:
                return {queue: part.first(0) for queue, part in waiting.items()}
        if options.max_rows is not None:
            waiting = at_most_rows(waiting, options.max_rows)
        if options.max_bytes is not None:
            waiting = at_most_bytes(waiting, options.max_bytes, self._backend.sizes)
        return waiting

    # --- what each task reads -------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the ranges between two offsets, cut into tasks."""
        begin, stop = SourceOffset.from_json(start), SourceOffset.from_json(end)
        held = self._held()
        self._consumer.arrive(held)
        origin = self._consumer.origin(begin.origin_of(stop), stop.positions)
        ranges, losses = readable(origin, stop.positions, held)
        report(losses, fail=self._options.fail_on_loss)
        options = self._options
        parts = split(
            ranges, min_partitions=options.min_partitions, max_rows=options.max_partition_rows
        )
        if options.min_partitions or options.max_partition_rows:
            return [QueuePartition((part,)) for part in parts]
        return [QueuePartition(few) for few in tasks(parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition. Runs in a task."""
        return read_partition(partition, self._options, self._schema)

    # --- what is done ---------------------------------------------------------------------------

    def commit(self, end: dict[str, Any]) -> None:
        """Note for the group that a batch is done."""
        self._consumer.commit(SourceOffset.from_json(end).positions)


def _patiently(look: Callable[[], _Result]) -> _Result:
    """Return what a look finds; an error that may be over in a moment must not end the query."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return look()
        except (StoreError, OSError) as cause:
            log.warning("looking again in %s s: %s", _PAUSE_S, cause)
            time.sleep(_PAUSE_S)
    return look()
