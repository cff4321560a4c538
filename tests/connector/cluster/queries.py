"""Batches and streams as Spark runs them, without Spark: plans go through JSON, tasks are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector.batch_reader import BatchReader
from rocketpy.connector.cluster.keeping import close_kept
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import spark_schema
from rocketpy.connector.stream_reader import StreamReader

COLUMNS = "topic,broker,queue_id,queue_offset,body"
SCHEMA = spark_schema("messages", COLUMNS)

Rows = list[tuple[MessageQueue, int, str]]  # queue, offset and body of each message

_planning: list[StreamReader] = []


def parsed(given: Mapping[str, object]) -> ReadOptions:
    named = {"columns": COLUMNS, **given}
    return ReadOptions.parse({name: str(value) for name, value in named.items()})


def rows_of(reader: BatchReader | StreamReader, parts: Any) -> Rows:
    """Return what tasks read, sorted; each yields its own in the order of the queue."""
    return sorted(
        (MessageQueue(row["topic"], row["broker"], row["queue_id"]), row["queue_offset"], body)
        for part in parts
        for batch in reader.read(part)
        for row in batch.to_pylist()
        for body in [row["body"].decode()]
    )


def batch(given: Mapping[str, object]) -> Rows:
    """Return what a batch reads."""
    reader = BatchReader(parsed(given), SCHEMA)
    return rows_of(reader, reader.partitions())


class Query:
    """A stream: what is planned and read is in processes that share nothing."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self.given = {"startingOffsets": "earliest", **given}
        self.restart()
        self.at: dict[str, Any] = self.reader.initialOffset()

    def restart(self) -> None:
        """Go on in a new process, from the checkpoint."""
        self.reader = StreamReader(parsed(self.given), SCHEMA)
        _planning.append(self.reader)

    def next_end(self, limit: int | None = None) -> dict[str, Any]:
        """Return the end of the next batch, as the checkpoint has it."""
        asked = ReadAllAvailable() if limit is None else ReadMaxRows(limit)
        planned: dict[str, Any] = json.loads(json.dumps(self.reader.latestOffset(self.at, asked)))
        return planned

    def run(self, limit: int | None = None) -> Rows:
        """Run a batch, if there is one; Spark says that it is done when it plans the next one."""
        end = self.next_end(limit)
        if end == self.at:
            return []
        found = rows_of(self.reader, self.reader.partitions(self.at, end))
        self.at = end
        return found

    def available_now(self, limit: int | None = None) -> list[Rows]:
        """Run batches until all that was there is read; return those that had something."""
        self.reader.prepareForTriggerAvailableNow()
        batches = []
        while rows := self.run(limit):
            batches.append(rows)
        return batches


def end_planning() -> None:
    """Let go of what Spark ends with its processes."""
    while _planning:
        _planning.pop()._backend.close()
    close_kept()


def texts(rows: Rows) -> list[str]:
    """Return the bodies, sorted."""
    return sorted(body for _, _, body in rows)
