"""What a backfill would copy, by topic: counted in the queues, or estimated by a sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.connector.offsets import MessageQueue
from rocketpy.spark_jobs.backfill.store_log import StoreLog

_SPOTS = 256


@dataclass(frozen=True, slots=True)
class TopicEstimate:
    """What of one topic there is to copy; days are those of store times, in UTC."""

    topic: str
    rows: int
    size_bytes: int  # as stored
    first_day: date | None
    last_day: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run would do; offsets are bytes of the log, None of a cluster."""

    start: int | None
    end: int | None
    chunks: int
    is_exact: bool  # counted, not estimated; of a cluster, sizes are estimated all the same
    topics: tuple[TopicEstimate, ...]

    @property
    def rows(self) -> int:
        """How many in all."""
        return sum(topic.rows for topic in self.topics)

    @property
    def size_bytes(self) -> int:
        """How many bytes of the log they have."""
        return sum(topic.size_bytes for topic in self.topics)


def counted(log: StoreLog, start: int, end: int) -> tuple[TopicEstimate, ...]:
    """Return what the queues count."""
    by_topic: dict[str, list[tuple[int, int, list[int]]]] = {}
    for queue, first, last in _ranges(log, start, end):
        sizes = sum(log.sizes(queue, first, last))
        times = (
            [log.stored_at(queue, offset) for offset in (first, last - 1)] if last > first else []
        )
        queues = by_topic.setdefault(queue.topic, [])
        queues.append((last - first, sizes, [time for time in times if time is not None]))
    return tuple(
        TopicEstimate(
            topic,
            sum(rows for rows, _, _ in queues),
            sum(size for _, size, _ in queues),
            *days_of([time for _, _, times in queues for time in times]),
        )
        for topic, queues in sorted(by_topic.items())
    )


def _ranges(log: StoreLog, start: int, end: int) -> Iterator[tuple[MessageQueue, int, int]]:
    selection = log.selection
    for queue, (first, last) in log.counts(start, end).items():
        if selection.since_ms is not None:
            first = max(first, log.offset_by_time(queue, selection.since_ms))
        if selection.until_ms is not None:
            last = min(last, log.offset_by_time(queue, selection.until_ms))
        if selection.offsets:
            wanted = selection.offsets.get(queue.topic, {}).get(str(queue.queue_id), (0, 0))
            first, last = max(first, wanted[0]), min(last, wanted[1])
        yield queue, first, max(first, last)


def sampled(log: StoreLog, start: int, end: int) -> tuple[TopicEstimate, ...]:
    """Return an estimate from samples all over the log; queue offsets are not looked at."""
    sample = log.sample(start, end, spots=_SPOTS)
    sampled_bytes = pc.sum(sample["store_size"]).as_py() or 0
    if not sampled_bytes:
        return ()
    stored = sample["store_timestamp"].cast(pa.int64())
    found, selection = [], log.selection
    is_wanted = pc.is_valid(stored)
    if selection.since_ms is not None:
        is_wanted = pc.and_(is_wanted, pc.greater_equal(stored, selection.since_ms))
    if selection.until_ms is not None:
        is_wanted = pc.and_(is_wanted, pc.less(stored, selection.until_ms))
    sample = sample.filter(is_wanted)
    for topic in sorted(filter(log.options.is_wanted, sample["topic"].unique().to_pylist())):
        rows = sample.filter(pc.equal(sample["topic"], topic))
        size = pc.sum(rows["store_size"]).as_py()
        share = size / sampled_bytes
        times = pc.min_max(rows["store_timestamp"].cast(pa.int64())).as_py()
        size_bytes = int((end - start) * share)
        count = round(size_bytes * rows.num_rows / size)
        found.append(TopicEstimate(topic, count, size_bytes, *days_of([*times.values()])))
    return tuple(found)


def days_of(times_ms: list[int]) -> tuple[date | None, date | None]:
    """Return the first and the last day, in UTC."""
    days = [datetime.fromtimestamp(time / 1000, timezone.utc).date() for time in times_ms]
    return (min(days), max(days)) if days else (None, None)
