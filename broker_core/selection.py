"""Which messages of a topic `read` is to return: by queue, offset, time and tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.errors import OffsetOutOfRangeError
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.reading import QueueReader
from rocketpy.broker_core.tags import TagFilter

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
        """Yield the messages of a range; a tag filter asks hashes first, then the tags."""
        read = partial(reader.batches, first, last, check=self.check, decompress=self.decompress)
        if self.tags is None or self.tags.takes_all:
            yield from read(self.schema)
            return
        has_tags = "tags" in self.schema.names
        wide = self.schema if has_tags else self.schema.append(select(["tags"]).field("tags"))
        names = pa.array(sorted(self.tags.names))
        # The entries of the schedule topic hold due times where others hold hashes.
        codes = None if reader.queue.topic == SCHEDULE_TOPIC else self.tags.codes()
        for batch in read(wide, tag_codes=codes):
            kept = batch.filter(pc.is_in(batch.column("tags"), names))
            yield kept if has_tags else kept.select(self.schema.names)


def _of_queue(offsets: Offsets, queue_id: int) -> int | None:
    return offsets.get(queue_id) if isinstance(offsets, Mapping) else offsets
