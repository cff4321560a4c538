"""A run of a replay, chunk by chunk.

The journal notes which messages are to come (broker_core/retry/journal.py), tasks stage copies, the
driver commits them and appends the audit. The store's ledger knows whether a chunk is in the log;
the journal knows which messages it has, until the audit knows them too. So the next run finishes a
run that died, even between commit and audit, before it looks for more.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.errors import MessageRefusedError, StoreError, TopicNotFoundError
from rocketpy.broker_core.retry.journal import ReplayChunk, ReplayJournal
from rocketpy.broker_core.retry.replay import ReplayRule
from rocketpy.spark_jobs.dead_letters import DeadLetters
from rocketpy.spark_jobs.replay_audit import ReplayAudit, without_trail
from rocketpy.spark_jobs.replay_result import ReplayProgress
from rocketpy.spark_jobs.replay_tasks import ReplayTasks
from rocketpy.spark_jobs.store_folder import (
    commit_staged,
    last_number,
    opened,
    remove_transactions,
)

log = logging.getLogger(__name__)

CHUNK_ROWS = 50_000
CHUNK_S = 5  # of a limited rate: so many seconds' worth at once


@dataclass(slots=True)
class ReplayRun:
    """One run, which has the journal locked."""

    spark: SparkSession
    letters: DeadLetters
    journal: ReplayJournal
    audit: ReplayAudit
    to: str | None
    command: str
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def _writer(self) -> str:
        return f"replay {self.letters.group}"

    def finish_earlier(self) -> int:
        """Finish the chunk that an earlier run left; return how many messages it had in the log."""
        chunk = self.journal.content.pending
        if chunk is None:
            return 0
        count = 0
        if last_number(self.letters.root, self._writer) >= chunk.number:
            described = self._tasks(chunk, {}).described(chunk.positions())
            if described is not None:
                self.audit.append(described, chunk)
                count = described.num_rows
            log.warning("%d messages of run %s were replayed, not noted", count, chunk.run_id)
        self.journal.done()
        return count

    def go(self, limit: int | None, rate: float | None, progress: ReplayProgress) -> dict[str, int]:
        """Replay what was asked for, chunk by chunk; return how many went to which topic."""
        selected = self._selected(limit)
        total, done = selected.num_rows, 0
        queues = self._queues(selected)
        size = CHUNK_ROWS if rate is None else max(1, min(CHUNK_ROWS, int(rate * CHUNK_S)))
        began = time.monotonic()
        progress(done, total)
        for chunk in self._chunks(selected, size):
            if rate is not None:
                time.sleep(max(0.0, began + done / rate - time.monotonic()))
            self._replay(chunk, queues)
            done += sum(map(len, chunk.positions().values()))
            progress(done, total)
        counts = selected["to_topic"].value_counts().to_pylist()
        return {each["values"]: each["counts"] for each in counts}

    def _selected(self, limit: int | None) -> pa.Table:
        """Return positions and targets, in order: a few bytes a message."""
        where = F.coalesce(F.lit(self.to), "first_topic").alias("to_topic")
        found = self.letters.frame(self.spark)
        found = without_trail(self.spark, found, self.letters.root, self.letters.group)
        letters = self.audit.without_replayed(found)
        table = letters.select("queue_id", "queue_offset", where).toArrow()
        table = table.sort_by([("queue_id", "ascending"), ("queue_offset", "ascending")])
        return table if limit is None else table.slice(0, limit)

    def _queues(self, selected: pa.Table) -> dict[str, int]:
        """Return how many queues each topic has that messages go to; all must take messages."""
        with opened(self.letters.root) as store:
            known = store.topics.all()
        names = selected["to_topic"].unique().to_pylist()
        for topic in names:
            if topic is None:
                reason = "some do not tell their first topic; say where they are to go"
                raise MessageRefusedError(f"dead letters of {self.letters.group!r}", reason)
            if topic not in known:
                raise TopicNotFoundError(topic, known)
            if not known[topic].is_writable:
                reason = f"its permission is {known[topic].perm}: not to write"
                raise MessageRefusedError(f"topic {topic!r}", reason)
        return {topic: known[topic].write_queues for topic in names}

    def _chunks(self, selected: pa.Table, size: int) -> Iterator[ReplayChunk]:
        known = last_number(self.letters.root, self._writer)
        number = max(known, self.audit.last_chunk())
        queue_ids, offsets = (
            selected[name].to_numpy().astype(np.int64) for name in ("queue_id", "queue_offset")
        )
        for first in range(0, len(offsets), size):
            number += 1
            rows = slice(first, first + size)
            yield ReplayChunk(
                run_id=self.run_id,
                command=self.command,
                number=number,
                to=self.to,
                at_ms=SystemClock().now_ms(),
                ranges=ReplayChunk.ranges_of(queue_ids[rows], offsets[rows]),
            )

    def _replay(self, chunk: ReplayChunk, queues: dict[str, int]) -> None:
        tasks = self._tasks(chunk, queues)
        self.journal.begin(chunk)
        try:
            files, described = tasks.staged(chunk.positions())
            root, number = self.letters.root, chunk.number
            if not commit_staged(root, files, writer=self._writer, number=number):
                raise StoreError(f"chunk {chunk.number} of {self._writer!r} is in the log already")
        finally:
            remove_transactions(self.letters.root, [tasks.transaction])
        self.audit.append(described, chunk)
        self.journal.done()

    def _tasks(self, chunk: ReplayChunk, queues: dict[str, int]) -> ReplayTasks:
        with opened(self.letters.root) as store:
            config = store.config
        rule = ReplayRule(run_id=chunk.run_id, config=config, queues=queues, to=chunk.to)
        return ReplayTasks(self.spark, root=self.letters.root, topic=self.letters.topic, rule=rule)
