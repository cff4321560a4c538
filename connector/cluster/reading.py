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
from rocketpy.broker_core.client.range_heads import BYTES_AT_ONCE, RangeHead, pull_heads
from rocketpy.broker_core.client.range_reading import RangeReader, Unanswered
from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.errors import OffsetOutOfRangeError, RecordError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.connector.cluster.reading_together import joined, new_rows
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
        wanted = _Wanted(columns, tags, sql, decompress=decompress)
        request = PullRequest(wanted=wanted.pull_filter(part))
        for chunk in self._chunks(part, request):
            yield wanted.batch(chunk.block, part.queue.broker)
            chunk.require_whole()

    def read_together(
        self,
        parts: Sequence[QueueRange],
        columns: Sequence[str],
        *,
        tags: TagFilter | None,
        sql: SqlFilter | None,
        decompress: bool,
    ) -> tuple[list[pa.RecordBatch], list[QueueRange]]:
        """Return messages of small ranges, pulled at once, and what is left of them for read()."""
        wanted = _Wanted(columns, tags, sql, decompress=decompress)
        heads: dict[str, list[tuple[QueueRange, RangeHead]]] = {}
        for part in parts:
            request = PullRequest(wanted=wanted.pull_filter(part), most_bytes=BYTES_AT_ONCE)
            head = RangeHead(request, part.queue, part.start, part.end)
            heads.setdefault(part.queue.broker, []).append((part, head))
        every = [head for some in heads.values() for _, head in some]
        pull_heads(self._cluster, every, most=self._options.pull_batch)
        batches, rest = [], []
        for broker, some in heads.items():
            block, left = joined(some)
            if block is not None:
                batches.append(wanted.batch(block, broker))
            rest += left
        return batches, rest

    def _chunks(self, part: QueueRange, request: PullRequest) -> Iterator[_Chunk]:
        options, queue = self._options, part.queue
        reader = RangeReader(
            self._cluster, request, most=options.pull_batch, retry_s=options.retry_s
        )
        answers = _Joined(part, is_filtered=not request.wanted.takes_all)
        try:
            for pulled in reader.read(queue, part.start, part.end):
                answers.add(pulled)
                if answers.is_full:
                    yield answers.take()
        except OffsetOutOfRangeError:
            if answers.has_rows:  # those before it are there
                yield answers.take()
            raise
        except Unanswered as cause:
            reason = f"nothing came for {options.retry_s:g} s: {cause}"
            raise UnreachableError(f"{queue} ({reason})") from cause
        if answers.has_rows:
            yield answers.take()


class _Wanted:
    """What a query asks for: how it is pulled, and how it is decoded."""

    def __init__(
        self,
        columns: Sequence[str],
        tags: TagFilter | None,
        sql: SqlFilter | None,
        *,
        decompress: bool,
    ) -> None:
        self._tags = None if tags is None or tags.takes_all else tags
        self._sql, self._decompress = sql, decompress
        self._schema = select(with_columns(columns, "tags") if self._tags else columns)

    def pull_filter(self, part: QueueRange) -> PullFilter:
        """Return what the broker is told to leave out."""
        # The entries of the schedule topic hold due times where others hold hashes of tags.
        if self._tags is None or part.queue.topic == SCHEDULE_TOPIC:
            return PullFilter()
        return PullFilter.of(tags=" || ".join(sorted(self._tags.names)))

    def batch(self, block: RecordBlock, broker: str) -> pa.RecordBatch:
        """Return the messages among some records."""
        if self._sql is not None:
            block = self._sql.passing(block)
        batch = decode(block, self._schema, broker=broker, decompress=self._decompress)
        if self._tags is not None:
            names = pa.array(sorted(self._tags.names), pa.string())
            batch = batch.filter(pc.is_in(batch.column("tags"), names))
        return batch


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
        kept = new_rows(offsets, self._next, self._part.end)
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
