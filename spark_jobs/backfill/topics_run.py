"""A run of a backfill from a cluster: from where the table is to the ends of queues, in chunks.

There is no log: chunks are ranges of queues, and the table notes with the rows of each up to which
offsets they go. Else it is as run.py has it: the run asks the table for its position before each
chunk, and Delta drops a chunk that is there already.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rocketpy.connector.offsets import MessageQueue, SourceOffset
from rocketpy.connector.planning import StoredRanges
from rocketpy.spark_jobs.backfill.asked import check_asked
from rocketpy.spark_jobs.backfill.copying import ChunkCopy
from rocketpy.spark_jobs.backfill.delta_table import BackfillTable
from rocketpy.spark_jobs.backfill.estimate import Estimate, TopicEstimate, days_of
from rocketpy.spark_jobs.backfill.queue_chunks import QueueChunk, cut
from rocketpy.spark_jobs.backfill.run import BackfillProgress
from rocketpy.spark_jobs.backfill.settings import BackfillReport, BackfillSettings, QueueStretch
from rocketpy.spark_jobs.backfill.topic_queues import TopicQueues
from rocketpy.spark_jobs.job_cluster import JobCluster
from rocketpy.spark_jobs.job_errors import JobRefusedError
from rocketpy.spark_jobs.task_errors import task_error

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TopicsRun:
    """One run; only one of a job may be under way."""

    spark: SparkSession
    cluster: JobCluster
    table: BackfillTable
    settings: BackfillSettings
    progress: BackfillProgress = lambda _done, _total, _rows: None
    _rows: int = 0
    _bad_rows: int = 0
    _size_bytes: int = 0
    _chunks: int = 0
    _gaps: list[QueueStretch] = field(default_factory=list)
    _copying: ChunkCopy = field(init=False)
    _reached: SourceOffset = field(init=False)  # up to where the table holds the queues
    _number: int = field(init=False)  # of the last chunk

    def __post_init__(self) -> None:
        self.settings.of_cluster()
        self._copying = ChunkCopy(self.spark, self.cluster.options(), self.table, self.settings)

    def run(self) -> BackfillReport:
        """Bring the table up to the ends that the queues have now."""
        began, address = time.monotonic(), str(self.cluster)
        is_compacted = self.settings.compact
        with closing(TopicQueues(self.cluster, self.settings.selection)) as queues:
            ranges = self._ranges(queues)
            asked = {"store": address, "asked": self.settings.described()}
            self.table.prepare(self._copying.schema(), asked)
            day = _first_day(queues, ranges) if is_compacted else ""
            self._go(queues, ranges)
        if self._chunks:
            self.table.note_reached(self._reached.to_json())
        compacted = self.table.compact(day) if is_compacted and self._chunks else 0
        reached = self._reached.positions
        return BackfillReport(
            job=self.table.job,
            table=self.table.name,
            scan="queues",
            start=None,
            position=None,
            rows=self._rows,
            bad_rows=self._bad_rows,
            size_bytes=self._size_bytes,
            chunks=self._chunks,
            compacted_files=compacted,
            gaps=tuple(self._gaps),
            damaged=(),
            seconds=time.monotonic() - began,
            queues=tuple(
                QueueStretch(*queue, first, reached.get(queue, first))
                for queue, (first, _) in sorted(ranges.items())
            ),
        )

    def estimate(self) -> Estimate:
        """Return what a run would copy; nothing is changed."""
        with closing(TopicQueues(self.cluster, self.settings.selection)) as queues:
            ranges = self._ranges(queues)
            mean_bytes = queues.mean_bytes(ranges)
            chunks = sum(1 for _ in self._cut(ranges, mean_bytes))
            # The ranges of a run are wider: clocks are set back at times, and rows are looked at.
            exact = queues.selected(ranges, slack_ms=0)
            topics = sorted({queue.topic for queue in exact})
            return Estimate(
                start=None,
                end=None,
                chunks=chunks,
                is_exact=True,
                topics=tuple(_estimated(queues, topic, exact, mean_bytes) for topic in topics),
            )

    # --- what is to be copied ---------------------------------------------------------------------

    def _ranges(self, queues: TopicQueues) -> dict[MessageQueue, tuple[int, int]]:
        """Return the part of each queue that is to come into the table."""
        check_asked(self.table, self.table.known(), self.settings, str(self.cluster))
        reached = self.table.reached()
        self._number = self.table.position() or 0
        stored = queues.stored()
        selected = queues.selected(stored)
        before = SourceOffset({}) if reached is None else SourceOffset.from_json(reached)
        queues.check_same(before, stored)
        ranges = {}
        for queue, (first, end) in selected.items():
            at = before.positions.get(queue, first)
            if at < stored[queue][0] and at < end:
                self._note_gap(queue, at, min(stored[queue][0], end))
                at = min(stored[queue][0], end)
            ranges[queue] = at, max(at, end)
        # Of a queue that is empty as well: what comes and goes before the next run is a gap.
        starts = {queue: at for queue, (at, _) in ranges.items() if at <= stored[queue][1]}
        self._reached = queues.point({**before.positions, **starts}, before)
        return ranges

    def _cut(
        self, ranges: StoredRanges, mean_bytes: Mapping[MessageQueue, float]
    ) -> list[QueueChunk]:
        size = self.settings.chunk_size(self.spark.sparkContext.defaultParallelism)
        return [*cut(ranges, mean_bytes, size, start=self._number)]

    # --- chunk by chunk ---------------------------------------------------------------------------

    def _go(self, queues: TopicQueues, ranges: StoredRanges) -> None:
        position = self.table.position()
        mean_bytes = queues.mean_bytes(ranges)
        chunks = self._cut(ranges, mean_bytes)
        done, total = 0, sum(chunk.size_bytes for chunk in chunks)
        self.progress(done, total, 0)
        while chunks:
            chunk = chunks.pop(0)
            if (found := self.table.position()) != position:
                reason = f"was at {position} and is at {found} now: another run of the job"
                raise JobRefusedError(self.table.name, f"{reason} is under way; wait for it")
            if not self._copy(queues, chunk):
                left = self._without_lost(queues, ranges)
                chunks = self._cut(left, mean_bytes)
                continue
            position = self._number = chunk.end
            done += chunk.size_bytes
            self.progress(done, max(total, done), self._rows)

    def _copy(self, queues: TopicQueues, chunk: QueueChunk) -> bool:
        """Append a chunk; False if retention has deleted a part of it."""
        ends = {queue: end for queue, (_, end) in chunk.ranges.items()}
        after = queues.point({**self._reached.positions, **ends}, self._reached)
        note = {
            "store": str(self.cluster),
            "from": chunk.start,
            "to": chunk.end,
            "positions": after.to_json(),
        }
        try:
            rows, bad_rows = self._copying.append(chunk, note)
        except (PySparkException, Py4JError) as cause:
            ours = task_error(cause)
            if ours is not None and ours.name == "UnreachableError":
                reason = f"{ours.text}; the table is sound: run the same again to go on"
                raise JobRefusedError(str(self.cluster), reason) from cause
            if not _is_lost(chunk, queues.stored()):
                raise
            return False
        self._rows, self._bad_rows = self._rows + rows, self._bad_rows + bad_rows
        self._size_bytes += chunk.size_bytes
        self._chunks += 1
        self._reached = after
        return True

    def _without_lost(self, queues: TopicQueues, ranges: StoredRanges) -> StoredRanges:
        """Return what is left to copy of ranges, without what retention has deleted."""
        stored, left = queues.stored(), {}
        for queue, (first, end) in ranges.items():
            at = max(self._reached.positions.get(queue, first), first)
            low = min(stored[queue][0], end) if queue in stored else at
            if at < low:
                self._note_gap(queue, at, low)
            left[queue] = max(at, low), end
        return left

    def _note_gap(self, queue: MessageQueue, start: int, end: int) -> None:
        gap = QueueStretch(*queue, start, end)
        if not self.settings.allow_gaps:
            reason = (
                f"retention has deleted {gap} before it was copied; allow_gaps goes on after it"
            )
            raise JobRefusedError(str(self.cluster), reason)
        log.warning("%s: %s is gone, and not copied", self.cluster, gap)
        self._gaps.append(gap)


def _is_lost(chunk: QueueChunk, stored: StoredRanges) -> bool:
    """Whether retention has deleted a part of a chunk."""
    firsts = {queue: first for queue, (first, _) in stored.items()}
    return any(firsts.get(queue, 0) > start for queue, (start, _) in chunk.ranges.items())


def _estimated(
    queues: TopicQueues,
    topic: str,
    ranges: StoredRanges,
    mean_bytes: Mapping[MessageQueue, float],
) -> TopicEstimate:
    of_topic = {queue: each for queue, each in ranges.items() if queue.topic == topic}
    filled = [(queue, first, end) for queue, (first, end) in of_topic.items() if first < end]
    times = [queues.stored_ms(queue, at) for queue, first, end in filled for at in (first, end - 1)]
    return TopicEstimate(
        topic,
        sum(end - first for _, first, end in filled),
        int(sum((end - first) * mean_bytes[queue] for queue, first, end in filled)),
        *days_of([time for time in times if time is not None]),
    )


def _first_day(queues: TopicQueues, ranges: StoredRanges) -> str:
    """Return the day of the oldest message of some ranges."""
    times = [
        queues.stored_ms(queue, first) for queue, (first, end) in ranges.items() if first < end
    ]
    oldest_ms = min((time for time in times if time is not None), default=0)
    return datetime.fromtimestamp(oldest_ms / 1000, timezone.utc).strftime("%Y-%m-%d")
