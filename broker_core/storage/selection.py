"""Which messages of a topic `read` is to return: by queue, offset, time, tag and filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.errors import OffsetOutOfRangeError
from rocketpy.broker_core.filters import ClassFilter, RegisteredBits, SqlFilter
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.reading import QueueReader

Offsets = int | Mapping[int, int] | None  # for all queues, by queue id, or no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The arguments of `read`, checked; times are store times in ms, ends are exclusive."""

    schema: pa.Schema
    tags: TagFilter | None
    start: Offsets
    end: Offsets
    start_time: int | None
    end_time: int | None
    check: bool
    decompress: bool
    sql: SqlFilter | None = None
    registered: RegisteredBits | None = None  # how a broker marked what passes `sql`
    where: ClassFilter | None = None

    def resolve(self, reader: QueueReader) -> tuple[int, int]:
        """Return the offsets to read of one queue, as they are now.

        Raises:
            OffsetOutOfRangeError: `start` is not (any more) in the queue.
        """
        queue = reader.queue
        low, high = reader.range()
        start, end = _of_queue(self.start, queue.queue_id), _of_queue(self.end, queue.queue_id)
        if start is not None and not low <= start <= high:
            raise OffsetOutOfRangeError(queue.topic, queue.queue_id, start, (low, high))
        first = int(low) if start is None else start
        last = int(high) if end is None else min(high, end)
        if self.start_time is not None:
            first = max(first, reader.offset_by_time(self.start_time))
        if self.end_time is not None:
            last = min(last, reader.offset_by_time(self.end_time))
        return first, last

    def batches(self, reader: QueueReader, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range; what costs least is asked first.

        First bit maps and hashes of tags in the queue, then properties, tags, and the callable.
        """
        tags = None if self.tags is None or self.tags.takes_all else self.tags
        # The entries of the schedule topic hold due times where others hold hashes.
        has_codes = tags is not None and reader.queue.topic != SCHEDULE_TOPIC
        wide = self._with_columns(*(["tags"] if tags else []))
        read = reader.batches(
            *(first, last, wide),
            tag_codes=tags.codes() if tags and has_codes else None,
            sql=self.sql,
            registered=self.registered,
            check=self.check,
            decompress=self.decompress,
        )
        for batch in read:
            if tags:
                names = pa.array(sorted(tags.names))
                batch = batch.filter(pc.is_in(batch.column("tags"), names))
            if self.where:
                batch = self.where.passing(batch)
            yield batch if wide is self.schema else batch.select(self.schema.names)

    def _with_columns(self, *needed: str) -> pa.Schema:
        """Return the schema and what filters look at."""
        asked = (*needed, *(self.where.columns if self.where else ()))
        missing = [name for name in dict.fromkeys(asked) if name not in self.schema.names]
        return pa.schema([*self.schema, *select(missing)]) if missing else self.schema


def _of_queue(offsets: Offsets, queue_id: int) -> int | None:
    return offsets.get(queue_id) if isinstance(offsets, Mapping) else offsets
