"""Dead letters of a cluster on their way back: read by position, sent through the sink.

R1  Which messages a chunk has is noted before one of them is sent (cluster_journal.py). A run that
    died is finished by the next one first: the chunk is sent again under its number.
R2  A chunk goes to one topic, by one task, in the order in which messages were given up. The sink
    sends a numbered batch once: to brokers of ours by their ledgers, to Apache's by looking which
    of its rows are in the topic (connector/cluster/direct_writing.py, W2). So a copy has a unique
    key of its own there; that of the dead letter is in the audit.
R3  Not covered: two runs for one group at a time. The second is refused when it begins a chunk that
    the first has begun; but if it finds one under way it takes its run for dead.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.errors import MessageRefusedError, TopicNotFoundError
from rocketpy.broker_core.property_names import (
    CAUSE,
    ORIGIN_MESSAGE_ID,
    REPLAY_RUN,
    REPLAYED_FROM,
)
from rocketpy.broker_core.retry.journal import ReplayChunk
from rocketpy.broker_core.retry.replay import SENT_LEFT_OUT
from rocketpy.broker_core.store_path import is_uri
from rocketpy.connector.offsets import MessageQueue, parse_queue
from rocketpy.connector.registration import register
from rocketpy.spark_jobs.cluster_journal import ClusterJournal
from rocketpy.spark_jobs.dead_letters import DeadLetters
from rocketpy.spark_jobs.queue_ranges import range_options
from rocketpy.spark_jobs.replay_result import ReplayProgress, ReplayResult, would_replay
from rocketpy.spark_jobs.replay_run import CHUNK_ROWS, CHUNK_S

log = logging.getLogger(__name__)

_POSITION = ["broker", "queue_id", "queue_offset"]
_ORDER = ["died_at", *_POSITION]
_READ = ("topic", *_POSITION, "msg_id", "uniq_key", "keys", "tags", "reconsume_times",
         "store_timestamp", "properties", "flag", "body")  # fmt: skip
_DESCRIBED = ("topic", "broker", "queue_id", "queue_offset", "msg_id", "uniq_key", "keys", "tags",
              "reconsume_times", "died_at", "cause", "origin_msg_id")  # fmt: skip


def check_cluster(letters: DeadLetters) -> None:
    """Raise unless the group has dead letters.

    Raises:
        TopicNotFoundError: the cluster has no topic of them.
        OptionError, UnreachableError: the cluster cannot be asked.
    """
    known = _topics(letters)
    if letters.topic not in known:
        raise TopicNotFoundError(letters.topic, known)


def _topics(letters: DeadLetters) -> set[str]:
    assert letters.cluster is not None
    return letters.cluster.topics()


def replay_on_cluster(
    spark: SparkSession,
    letters: DeadLetters,
    *,
    to: str | None,
    limit: int | None,
    rate: float | None,
    audit: str | None,
    dry_run: bool,
    command: str,
    progress: ReplayProgress,
) -> ReplayResult:
    """Bring dead letters of a cluster back; arguments and errors are those of replay()."""
    if audit is None:
        reason = "is not given, and a cluster has no folder to keep the audit trail in"
        raise MessageRefusedError("audit", f"{reason}; give one for it, the same each time")
    register(spark)
    location = audit if is_uri(audit) else str(Path(audit).absolute())
    journal = ClusterJournal(spark, location, letters.group)
    if dry_run:
        found = journal.without_replayed(letters.frame(spark))
        return would_replay(location, found, to, limit, _ORDER)
    run = _ClusterReplay(spark, letters, journal, to, command)
    finished = run.finish_earlier()
    topics = run.go(limit, rate, progress)
    return ReplayResult(
        run_id=run.run_id,
        audit=location,
        selected=sum(topics.values()),
        replayed=sum(topics.values()),
        topics=topics,
        finished=finished,
    )


@dataclass(slots=True)
class _ClusterReplay:
    """One run."""

    spark: SparkSession
    letters: DeadLetters
    journal: ClusterJournal
    to: str | None
    command: str
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def finish_earlier(self) -> int:
        """Finish the chunk that an earlier run left; return how many messages it has."""
        chunk = self.journal.pending()
        if chunk is None:
            return 0
        count = self._send(chunk)
        log.warning("%d messages of run %s were begun, and are replayed now", count, chunk.run_id)
        return count

    def go(self, limit: int | None, rate: float | None, progress: ReplayProgress) -> dict[str, int]:
        """Replay what was asked for, chunk by chunk; return how many went to which topic."""
        selected = self._selected(limit)
        total, done = selected.num_rows, 0
        size = CHUNK_ROWS if rate is None else max(1, min(CHUNK_ROWS, int(rate * CHUNK_S)))
        began = time.monotonic()
        progress(done, total)
        for chunk, rows in self._chunks(selected, size):
            if rate is not None:
                time.sleep(max(0.0, began + done / rate - time.monotonic()))
            self.journal.begin(chunk)
            self._send(chunk)
            done += rows
            progress(done, total)
        counts = selected["to_topic"].value_counts().to_pylist()
        return {each["values"]: each["counts"] for each in counts}

    def _selected(self, limit: int | None) -> pa.Table:
        """Return positions and targets, in order: a few bytes a message."""
        where = F.coalesce(F.lit(self.to), "first_topic").alias("to_topic")
        letters = self.journal.without_replayed(self.letters.frame(self.spark))
        table = letters.select(*_ORDER, where).toArrow()
        table = table.sort_by([(name, "ascending") for name in _ORDER])
        table = table if limit is None else table.slice(0, limit)
        known = _topics(self.letters) if table.num_rows else set()
        for topic in table["to_topic"].unique().to_pylist():
            if topic is None:
                reason = "some do not tell their first topic; say where they are to go"
                raise MessageRefusedError(f"dead letters of {self.letters.group!r}", reason)
            if topic not in known:
                raise TopicNotFoundError(topic, known)
        return table

    def _chunks(self, selected: pa.Table, size: int) -> Iterator[tuple[ReplayChunk, int]]:
        """Yield chunks, each of one topic, and how many messages they have."""
        number = self.journal.last_number()
        for topic in selected["to_topic"].unique().to_pylist():
            rows = selected.filter(pc.equal(selected["to_topic"], topic))
            for first in range(0, rows.num_rows, size):
                number += 1
                part = rows.slice(first, size)
                chunk = ReplayChunk(
                    run_id=self.run_id,
                    command=self.command,
                    number=number,
                    to=topic,
                    at_ms=SystemClock().now_ms(),
                    ranges=_ranges(part),
                )
                yield chunk, part.num_rows

    def _send(self, chunk: ReplayChunk) -> int:
        """Send the copies of a chunk that are not there yet, and note them all in the audit."""
        topic, letters = chunk.to, self._read(chunk).persist()  # what is sent is what is noted
        assert topic is not None
        try:
            described = letters.select(*_DESCRIBED, F.lit(topic).alias("to_topic")).toArrow()
            writer = _copies(letters, chunk.run_id).write.format("rocketpy").mode("append")
            numbered = {"txnAppId": self.journal.writer, "txnVersion": str(chunk.number)}
            writer.options(**self.letters.source_options(), topic=topic, **numbered).save()
        finally:
            letters.unpersist()
        self.journal.done(chunk, described)
        return int(described.num_rows)

    def _read(self, chunk: ReplayChunk) -> DataFrame:
        """Return the dead letters of a chunk, in order, by one task; some may be gone by now."""
        wanted = {
            parse_queue(self.letters.topic, key): ranges for key, ranges in chunk.ranges.items()
        }
        around = {queue: (ranges[0][0], ranges[-1][1]) for queue, ranges in wanted.items()}
        options = self.letters.source_options() | range_options(around)
        reader = self.spark.read.format("rocketpy").options(**options, failOnDataLoss="false")
        rows = reader.option("columns", ",".join(_READ)).load()
        if any(len(ranges) > 1 for ranges in wanted.values()):
            positions = self.spark.createDataFrame(_positions(wanted))
            rows = rows.join(F.broadcast(positions), _POSITION, "left_semi")
        properties = F.col("properties")
        found = rows.withColumnRenamed("store_timestamp", "died_at").withColumns(
            {"cause": properties[CAUSE], "origin_msg_id": properties[ORIGIN_MESSAGE_ID]}
        )
        return found.coalesce(1).sortWithinPartitions(*_ORDER)


def _copies(letters: DataFrame, run_id: str) -> DataFrame:
    """Return what the sink takes: keys, tags, sharding keys and the rest are properties."""
    place = F.concat_ws(":", "broker", "queue_id")
    told = F.create_map(
        F.lit(REPLAYED_FROM),
        F.concat_ws("/", "topic", place, "queue_offset"),
        F.lit(REPLAY_RUN),
        F.lit(run_id),
    )
    kept = F.map_filter("properties", lambda name, _: ~name.isin(*SENT_LEFT_OUT))
    return letters.select("body", "flag", F.map_concat(kept, told).alias("properties"))


def _ranges(rows: pa.Table) -> dict[str, list[list[int]]]:
    """Return positions as ranges of queues, which are called broker:id."""
    places = pc.binary_join_element_wise(rows["broker"], rows["queue_id"].cast(pa.string()), ":")
    encoded = places.combine_chunks().dictionary_encode()
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    found = ReplayChunk.ranges_of(numbers, rows["queue_offset"].to_numpy().astype(np.int64))
    return {encoded.dictionary[int(number)].as_py(): ranges for number, ranges in found.items()}


def _positions(wanted: Mapping[MessageQueue, Sequence[Sequence[int]]]) -> pa.Table:
    """Return a row for each position."""
    parts = [
        pa.table(
            {
                "broker": pa.repeat(pa.scalar(queue.broker), end - start),
                "queue_id": pa.repeat(pa.scalar(queue.queue_id, pa.int32()), end - start),
                "queue_offset": pa.array(np.arange(start, end)),
            }
        )
        for queue, ranges in wanted.items()
        for start, end in ranges
    ]
    return pa.concat_tables(parts)
