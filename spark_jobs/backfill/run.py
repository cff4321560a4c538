"""A run of a backfill: from the table's position to the end of the log, chunk by chunk.

Before each chunk the run asks the table for its position, and Delta itself drops a chunk that is
there already: so the next run goes on where a run died, at whatever point. If a chunk fails, the
run finds out why afterwards: retention, damage, or neither.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.spark_jobs.backfill.asked import check_asked
from rocketpy.spark_jobs.backfill.chunks import BackfillChunk, chunks_by_log, chunks_by_queues
from rocketpy.spark_jobs.backfill.copying import ChunkCopy
from rocketpy.spark_jobs.backfill.delta_table import BackfillTable
from rocketpy.spark_jobs.backfill.estimate import Estimate, counted, sampled
from rocketpy.spark_jobs.backfill.origin import check_origin
from rocketpy.spark_jobs.backfill.settings import BackfillReport, BackfillSettings, Stretch
from rocketpy.spark_jobs.backfill.store_log import StoreLog
from rocketpy.spark_jobs.job_errors import JobRefusedError

log = logging.getLogger(__name__)

BackfillProgress = Callable[[int, int, int], None]  # bytes of the log done, in all, rows


@dataclass(slots=True)
class BackfillRun:
    """One run; only one of a job may be under way."""

    spark: SparkSession
    path: str
    table: BackfillTable
    settings: BackfillSettings
    progress: BackfillProgress = lambda _done, _total, _rows: None
    _rows: int = 0
    _bad_rows: int = 0
    _size_bytes: int = 0
    _chunks: int = 0
    _gaps: list[Stretch] = field(default_factory=list)
    _damaged: list[Stretch] = field(default_factory=list)
    _copying: ChunkCopy = field(init=False)

    def __post_init__(self) -> None:
        place = {"path": self.path, **self.settings.selection.source_options()}
        self._copying = ChunkCopy(self.spark, place, self.table, self.settings)

    def run(self) -> BackfillReport:
        """Bring the table up to the end that the log has now."""
        began = time.monotonic()
        with closing(StoreLog(self.path, self.settings.selection)) as store_log:
            start, end = self._range(store_log)
            by_queues = self._is_by_queues(store_log, end)
            asked = {"store": self.path, "asked": self.settings.described()}
            self.table.prepare(self._copying.schema(), asked)
            position = self._go(store_log, start, end, by_queues)
            day = self._day(store_log, start, end)
        compacted = self.table.compact(day) if self.settings.compact and self._chunks else 0
        return BackfillReport(
            job=self.table.job,
            table=self.table.name,
            scan="queues" if by_queues else "commitlog",
            start=start,
            position=position,
            rows=self._rows,
            bad_rows=self._bad_rows,
            size_bytes=self._size_bytes,
            chunks=self._chunks,
            compacted_files=compacted,
            gaps=tuple(self._gaps),
            damaged=tuple(self._damaged),
            seconds=time.monotonic() - began,
        )

    def estimate(self) -> Estimate:
        """Return what a run would copy; nothing is changed."""
        with closing(StoreLog(self.path, self.settings.selection)) as store_log:
            start, end = self._range(store_log)
            by_queues = self._is_by_queues(store_log, end)
            is_exact = by_queues or store_log.queue_fault(end) is None
            count = counted if is_exact else sampled
            return Estimate(
                start=start,
                end=end,
                chunks=sum(1 for _ in self._cut(store_log, start, end, by_queues)),
                is_exact=is_exact,
                topics=count(store_log, start, end),
            )

    def _range(self, store_log: StoreLog) -> tuple[int, int]:
        """Return the part of the log that is to come into the table."""
        known, position = self.table.known(), self.table.position()
        check_asked(self.table, known, self.settings, self.path)
        begin = store_log.begin()
        log_end = store_log.end(skip_damage=self.settings.skip_damaged)
        start, end = store_log.narrowed(begin, log_end)
        if position is None:
            return start, end
        check_origin(store_log, self.table, (position, log_end), known)
        if position < start and position < begin and position < end:
            self._note_gap(position, begin)
            position = start
        return position, max(position, end)

    def _is_by_queues(self, store_log: StoreLog, end: int) -> bool:
        scan = self.settings.scan
        if scan == "commitlog" or (scan == "auto" and not self.settings.selection.topics):
            return False
        fault = store_log.queue_fault(end, is_strict=scan == "auto")
        if fault is not None and scan == "queues":
            raise JobRefusedError(self.path, f"{fault}; read the log itself: scan='commitlog'")
        if fault is not None:
            log.warning("%s: reading the log itself, because %s", self.path, fault)
        return fault is None

    def _go(self, store_log: StoreLog, start: int, end: int, by_queues: bool) -> int:
        first, position = start, self.table.position()
        self.progress(0, end - first, 0)
        while start < end:
            for chunk in self._cut(store_log, start, end, by_queues):
                if (found := self.table.position()) != position:
                    reason = f"was at {position} and is at {found} now: another run of the job"
                    raise JobRefusedError(self.table.name, f"{reason} is under way; wait for it")
                if not self._copy(store_log, chunk):
                    break
                start = position = chunk.end
                self.progress(start - first, end - first, self._rows)
            else:
                break
            start = store_log.begin()  # retention was faster
        return end if position is None else position

    def _cut(
        self, store_log: StoreLog, start: int, end: int, by_queues: bool
    ) -> Iterator[BackfillChunk]:
        cut = chunks_by_queues if by_queues else chunks_by_log
        parallel = self.spark.sparkContext.defaultParallelism
        return cut(store_log, start, end, self.settings.chunk_size(parallel))

    def _copy(self, store_log: StoreLog, chunk: BackfillChunk) -> bool:
        """Append a chunk; False if retention has deleted its begin, and that is allowed."""
        note = {
            "store": self.path,
            "from": chunk.start,
            "to": chunk.end,
            "record": store_log.record(chunk.start),
        }
        cause: Exception | None = None
        if store_log.is_boundary(chunk.start):
            try:
                self._append(chunk, note)
                return True
            except (PySparkException, Py4JError) as error:
                cause = error
        if store_log.begin() > chunk.start:
            self._note_gap(chunk.start, store_log.begin(), cause)
            return False
        damaged = self._damage(store_log, chunk, cause)
        skipped = [list(stretch) for stretch in damaged]
        self._append(chunk.by_log(), {**note, "skipped": skipped}, failOnDamage="false")
        self._damaged += damaged
        return True

    def _append(self, chunk: BackfillChunk, note: dict[str, Any], **options: str) -> None:
        rows, bad_rows = self._copying.append(chunk, note, **options)
        self._rows, self._bad_rows = self._rows + rows, self._bad_rows + bad_rows
        self._size_bytes += chunk.end - chunk.start
        self._chunks += 1

    def _damage(
        self, store_log: StoreLog, chunk: BackfillChunk, cause: Exception | None
    ) -> list[Stretch]:
        """Return the damaged stretches of a chunk that was not read, if they may be skipped."""
        is_damage = cause is None or "is corrupt at" in str(cause)
        found = store_log.damage(chunk.start, chunk.end) if is_damage else []
        if cause is not None and not found:
            raise cause
        if found and not self.settings.skip_damaged:
            at = found[0].start
            reason = f"no sound record up to {found[0].end}; skip_damaged goes on behind it"
            raise CorruptStoreError(store_log.file_of(at), at, reason) from cause
        return [Stretch(damage.start, damage.end) for damage in found]

    def _note_gap(self, start: int, end: int, cause: Exception | None = None) -> None:
        if not self.settings.allow_gaps:
            reason = (
                f"retention has deleted the log from {start} up to {end} before it was copied; "
                "allow_gaps goes on behind it"
            )
            raise JobRefusedError(self.path, reason) from cause
        log.warning("%s: the log from %d up to %d is gone, and not copied", self.path, start, end)
        self._gaps.append(Stretch(start, end))

    @staticmethod
    def _day(store_log: StoreLog, start: int, end: int) -> str:
        stored = store_log.stored_ms(start, end) or 0
        return datetime.fromtimestamp(stored / 1000, timezone.utc).strftime("%Y-%m-%d")
