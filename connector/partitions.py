"""What one task reads: made on the driver, pickled, and read in a worker.

Each kind knows how to read itself; files are opened there and then, so that nothing open travels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from rocketpy.broker_core.errors import CorruptStoreError, OffsetOutOfRangeError
from rocketpy.connector.backend import Backend
from rocketpy.connector.backends import opened, opened_for_task
from rocketpy.connector.data_loss import Loss, report
from rocketpy.connector.filters import (
    having_keys,
    passing,
    with_columns,
)
from rocketpy.connector.planning import TASK_ROWS, QueueRange
from rocketpy.connector.read_options import ReadOptions

_TOGETHER = 16  # ranges: what is in flight is bounded


@dataclass(kw_only=True)
class SourcePartition(InputPartition):
    """A part of what the planner saw."""

    seen: object = None  # the identity of the backend

    @abstractmethod
    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield its rows; columns may come in any order, and with others between them."""


_Partition = TypeVar("_Partition", bound=SourcePartition)


def seen_in(backend: Backend, parts: Iterable[_Partition]) -> list[_Partition]:
    """Return what tasks are to read, with the backend in which they are to find it."""
    identity = backend.identity()
    return [replace(part, seen=identity) for part in parts]


@dataclass
class QueuePartition(SourcePartition):
    """Messages in ranges of queues, one after the other."""

    ranges: tuple[QueueRange, ...]

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all ranges."""
        wide = with_columns(columns, "keys", "uniq_key") if options.keys else columns
        with opened_for_task(options, self.seen) as backend:
            for batch in _read_all(backend, self.ranges, options, wide):
                yield having_keys(batch, options.keys) if options.keys else batch


def _read_all(
    backend: Backend, parts: Sequence[QueueRange], options: ReadOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ranges, of several small ones together."""
    small = [part for part in parts if len(part) <= TASK_ROWS]
    for part in parts:
        if len(part) > TASK_ROWS:
            yield from _read(backend, part, options, columns)
    for first in range(0, len(small), _TOGETHER):
        some = small[first : first + _TOGETHER]
        if len(some) > 1:
            batches, some = backend.read_together(
                some,
                columns,
                tags=options.tags,
                sql=options.sql,
                decompress=options.decompress,
            )
            yield from batches
        for part in some:
            yield from _read(backend, part, options, columns)


def _read(
    backend: Backend, part: QueueRange, options: ReadOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range; go on after messages that retention deletes meanwhile."""
    while len(part):
        read = backend.read(
            part,
            columns,
            tags=options.tags,
            sql=options.sql,
            group=options.group,
            decompress=options.decompress,
        )
        try:
            yield from read
            return
        except (OffsetOutOfRangeError, CorruptStoreError) as cause:
            low, _ = backend.range(part.queue)
            first = part.start
            if isinstance(cause, OffsetOutOfRangeError):
                # A broker may say a lower one for a while than what it gives.
                first, low = max(first, cause.asked), max(low, cause.held[0])
            if low <= first or not backend.is_deleted(cause):
                raise
            lost = Loss(part.queue, first, min(low, part.end), f"the oldest held is {low}")
            report([lost], fail=options.fail_on_loss)
            part = QueueRange(part.queue, low, part.end)


@dataclass
class KeyPartition(SourcePartition):
    """The messages with some keys in ranges of queues, found through the index."""

    ranges: tuple[QueueRange, ...]

    def batches(self, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield them topic by topic, in log order."""
        position = ("broker", "queue_id", "queue_offset")
        wide = with_columns(columns, *position, "tags", *(["properties"] if options.sql else []))
        with opened(options, self.seen) as backend:
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
                    (pc.field("broker") == part.queue.broker)
                    & (pc.field("queue_id") == part.queue.queue_id)
                    & (pc.field("queue_offset") >= part.start)
                    & (pc.field("queue_offset") < part.end)
                )
        if options.tags is not None and not options.tags.takes_all:
            meant &= pc.field("tags").isin(sorted(options.tags.names))
        return meant
