"""Messages of a cluster, in a task: pulled, joined and decoded, some thousand at a time.

C1  The broker leaves out other tags by their hash; tags are compared here once more. SQL filters
    run here alone: not every broker takes them.
C2  Messages that are missing between others are found, unless the broker leaves some out by tag.
C3  No loop over messages: pulls are joined, and decoded as columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.pulled import Pulled, PullFilter, PullRequest
from rocketpy.broker_core.client.range_reading import RangeReader, Unanswered
from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.errors import OffsetOutOfRangeError, RecordError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.filters import with_columns
from rocketpy.connector.planning import QueueRange
from rocketpy.connector.topics import UnreachableError

_BATCH_ROWS, _BATCH_BYTES = 16_384, 8 << 20  # what is decoded at once, about


class ClusterMessages:
    """Reads ranges of queues. One thread."""

    def __init__(self, cluster: Cluster, options: ClusterOptions) -> None:
        self._cluster, self._options = cluster, options

    def read(
        self,
        part: QueueRange,
        columns: Sequence[str],
        *,
        tags: TagFilter | None,
        sql: SqlFilter | None,
        decompress: bool,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range.

        Raises:
            OffsetOutOfRangeError: messages are not there (any more), from `asked` on.
            UnreachableError: the broker does not answer.
            RecordError: what it gave is damaged.
        """
        wanted = None if tags is None or tags.takes_all else tags
        schema = select(with_columns(columns, "tags") if wanted else columns)
        request = PullRequest(wanted=_pull_filter(part, wanted))
        for chunk in self._chunks(part, request):
            block = chunk.block
            if sql is not None:
                block = sql.passing(block)
            batch = decode(block, schema, broker=part.queue.broker, decompress=decompress)
            if wanted is not None:
                names = pa.array(sorted(wanted.names), pa.string())
                batch = batch.filter(pc.is_in(batch.column("tags"), names))
            yield batch
            chunk.require_whole()

    def _chunks(self, part: QueueRange, request: PullRequest) -> Iterator[_Chunk]:
        options, queue = self._options, part.queue
        reader = RangeReader(
            self._cluster, request, most=options.pull_batch, retry_s=options.retry_s
        )
        joined = _Joined(part, is_filtered=not request.wanted.takes_all)
        try:
            for pulled in reader.read(queue, part.start, part.end):
                joined.add(pulled)
                if joined.is_full:
                    yield joined.take()
        except OffsetOutOfRangeError:
            if joined.has_rows:  # those before it are there
                yield joined.take()
            raise
        except Unanswered as cause:
            reason = f"nothing came for {options.retry_s:g} s: {cause}"
            raise UnreachableError(f"{queue} ({reason})") from cause
        if joined.has_rows:
            yield joined.take()


def _pull_filter(part: QueueRange, tags: TagFilter | None) -> PullFilter:
    # The entries of the schedule topic hold due times where others hold hashes of tags.
    if tags is None or part.queue.topic == SCHEDULE_TOPIC:
        return PullFilter()
    return PullFilter.of(tags=" || ".join(sorted(tags.names)))


class _Chunk:
    """Some records of a range, and whether any is missing between them."""

    def __init__(self, block: RecordBlock, missing: OffsetOutOfRangeError | None) -> None:
        self.block, self._missing = block, missing

    def require_whole(self) -> None:
        """Raise if records are missing after those of the block."""
        if self._missing is not None:
            raise self._missing


class _Joined:
    """Answers of pulls, until they are worth decoding."""

    def __init__(self, part: QueueRange, *, is_filtered: bool) -> None:
        self._part, self._is_filtered = part, is_filtered
        self._next = part.start  # up to where it was given
        self._begin()

    def _begin(self) -> None:
        self._pieces: list[bytes | memoryview] = []
        self._bytes = self._offsets = 0
        self._covered = self._next

    def add(self, pulled: Pulled) -> None:
        """Take an answer that follows the last one."""
        self._pieces.append(pulled.records)
        self._bytes += len(pulled.records)
        self._covered = pulled.next_offset
        self._end = pulled.end

    @property
    def is_full(self) -> bool:
        """Whether there is enough to decode."""
        return self._bytes >= _BATCH_BYTES or self._covered - self._next >= _BATCH_ROWS

    @property
    def has_rows(self) -> bool:
        """Whether anything waits."""
        return self._bytes > 0

    def take(self) -> _Chunk:
        """Return the records that wait, each once, checked, without those beyond the range."""
        data = np.frombuffer(b"".join(self._pieces), np.uint8)
        queue = self._part.queue
        starts, end = record_starts(data, 0, data.size, data.size)
        if end != data.size:
            raise RecordError(end, f"{queue}: its broker gave bytes that are no record")
        block = RecordBlock(data, np.array(starts, np.int64))
        offsets = block.head["queue_offset"].astype(np.int64)
        kept = self._kept(offsets)
        if not kept.all():
            block, offsets = block.take(np.flatnonzero(kept)), offsets[kept]
        sound = block.sound()
        if not sound.all():
            row = int(np.argmin(sound))
            reason = f"{queue} at offset {offsets[row]}: it does not match its check sum"
            raise RecordError(int(block.starts[row]), reason)
        missing = None if self._is_filtered else self._missing(offsets)
        if missing is not None:
            block = block.take(np.flatnonzero(offsets < missing.asked))
        self._next = self._covered
        self._begin()
        return _Chunk(block, missing)

    def _kept(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which records are new: neighbouring pulls may both give some."""
        kept = (offsets >= self._next) & (offsets < self._part.end)
        if offsets.size:
            highest = np.maximum.accumulate(offsets)
            kept[1:] &= offsets[1:] > highest[:-1]
        return kept

    def _missing(self, offsets: npt.NDArray[np.int64]) -> OffsetOutOfRangeError | None:
        """Return what is missing first; a broker passes over what it deletes at that moment."""
        end = min(self._covered, self._part.end)
        if offsets.size == end - self._next:
            return None
        expected = np.arange(self._next, self._next + offsets.size)
        wrong = np.flatnonzero(offsets != expected)
        row = int(wrong[0]) if wrong.size else offsets.size
        following = int(offsets[row]) if wrong.size else end
        queue = self._part.queue
        held = (following, self._end)
        return OffsetOutOfRangeError(queue.topic, queue.queue_id, self._next + row, held)
