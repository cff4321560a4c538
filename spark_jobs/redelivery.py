"""Redelivery as a Spark job: the due messages of all delay levels, brought to their topics.

Tasks stage what is due (level_source.py); each batch is committed by the driver in one step with
the marks that say how far delivery has come. The store is the truth, Spark's checkpoint is not: a
run begins at the store's marks, with a checkpoint of its own that goes with it. So after a job was
killed, at any moment, no other job or service delivers a message again. While it runs it owns the
lease of delivery. Timer messages are few and are delivered by the driver.
"""

from __future__ import annotations

import json
import logging
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.delay.delivery import LEASE, Deliverer
from rocketpy.broker_core.delay.lease import DEFAULT_MS, Lease
from rocketpy.broker_core.delay.progress import StagedMove, commit_moves, level_source, publish
from rocketpy.broker_core.errors import (
    CorruptStoreError,
    DeliveryMovedError,
    StoreError,
)
from rocketpy.spark_jobs.job_cluster import folder_of
from rocketpy.spark_jobs.level_source import FORMAT, LevelSource
from rocketpy.spark_jobs.store_folder import open_folder, require_store

if TYPE_CHECKING:
    from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)

BATCH_ROWS, TASK_ROWS = 200_000, 50_000
_WATCH_S = 0.2
_MOST_MOVES = 5  # how often in a row others may get in between

RedeliveryProgress = Callable[[int], None]  # how many were delivered so far


@dataclass(slots=True, kw_only=True)
class Redelivery:
    """One job on one store.

    `now_ms` stands for the clock: what is due then is delivered. Without `once` it goes on until
    stop() is called.
    """

    spark: SparkSession
    path: Path
    once: bool = True
    now_ms: int | None = None
    interval_s: float = 0.5
    batch_rows: int = BATCH_ROWS  # of one level
    task_rows: int = TASK_ROWS
    lease_ms: int = DEFAULT_MS  # how long a dead job keeps others waiting
    report: RedeliveryProgress = lambda _: None
    delivered: int = 0
    _error: StoreError | None = None
    _damaged: dict[int, CorruptStoreError] = field(default_factory=dict)  # by level
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        instead = "its brokers deliver delayed messages and retries by themselves"
        self.path = folder_of(self.path, needs="redelivery needs", instead=instead)

    def run(self) -> int:
        """Deliver; return how many messages.

        Raises:
            LeaseHeldError: a service or another job delivers from this store.
            LeaseLostError: another took over, as this one had been silent for too long.
            CorruptStoreError: records of a level are damaged; the others were delivered.
        """
        require_store(self.path)
        self.spark.dataSource.register(LevelSource)
        store = open_folder(self.path, read_only=False)
        try:
            lease = Lease(store, LEASE, "job", self.lease_ms)
            with lease.kept():
                self._deliver(store, lease)
        except (Py4JError, PySparkException, OSError):
            if not self._stopping.is_set():  # the signal that ends the job ends the JVM, too
                raise
        finally:
            store.close()
        for damage in self._damaged.values():
            raise damage
        return self.delivered

    def stop(self) -> None:
        """End a job that goes on for ever, from another thread."""
        self._stopping.set()

    def _deliver(self, store: MessageStore, lease: Lease) -> None:
        timers = Deliverer(store, lease)
        for _ in range(_MOST_MOVES):
            with tempfile.TemporaryDirectory(prefix="rocketpy-redelivery-") as checkpoint:
                query = self._start(store, lease, checkpoint)
                is_over = self._watch(query, timers)
            if is_over:
                return
        assert self._error is not None
        raise self._error

    def _start(self, store: MessageStore, lease: Lease, checkpoint: str) -> StreamingQuery:
        options: dict[str, Any] = {
            "path": str(self.path),
            "run": uuid.uuid4().hex,
            "batchRows": self.batch_rows,
            "taskRows": self.task_rows,
        }
        if self.now_ms is not None:
            options["now"] = self.now_ms
        staged = self.spark.readStream.format(FORMAT).options(**options).load()
        self._error, self._damaged = None, {}

        def commit(frame: DataFrame, batch_id: int) -> None:  # noqa: ARG001
            moves = list(self._moves(frame.collect()))
            try:
                with store.locked():
                    lease.require()
                    commit_moves(store, moves)
                    publish(store)
            except StoreError as cause:
                self._error = cause  # Spark hands on only its text
                raise
            self.delivered += sum(move.rows for move in moves)
            self.report(self.delivered)

        trigger: dict[str, Any] = {"processingTime": f"{self.interval_s} seconds"}
        if self.once:
            trigger = {"availableNow": True}
        writer = staged.writeStream.foreachBatch(commit).option("checkpointLocation", checkpoint)
        return writer.trigger(**trigger).start()

    def _moves(self, rows: list[Row]) -> Iterator[StagedMove]:
        """Yield what was staged, level by level in order, up to what is damaged of a level."""
        for row in sorted(rows, key=lambda row: (row["level"], row["start"])):
            level = row["level"]
            if row["damage"] is not None and level not in self._damaged:
                self._damaged[level] = CorruptStoreError(*json.loads(row["damage"]))
                log.error("level %d is not delivered: %s", level, self._damaged[level])
            if level not in self._damaged:
                yield _move(row)

    def _watch(self, query: StreamingQuery, timers: Deliverer) -> bool:
        """Deliver timer messages while the query runs; return whether all is done."""
        try:
            is_over = False
            while not is_over and not self._stopping.wait(min(self.interval_s, _WATCH_S)):
                is_over = not query.isActive
                if is_over:
                    query.awaitTermination()  # raises what ended it
                now_ms = self.now_ms if self.now_ms is not None else SystemClock().now_ms()
                self.delivered += timers.deliver_due(now_ms, levels=False)
                if not timers.is_published:
                    timers.publish()
                self.report(self.delivered)
            return True
        except StreamingQueryException:
            if isinstance(self._error, DeliveryMovedError):  # Apache's broker had the store
                log.warning("beginning anew: %s", self._error)
                return False
            if self._error is not None:
                raise self._error from None
            raise
        finally:
            with suppress(Py4JError, OSError):
                query.stop()


def _move(row: Row) -> StagedMove:
    return StagedMove(
        source=level_source(row["level"]),
        start=(row["start"],),
        end=(row["end"],),
        rows=row["rows"],
        path=Path(row["path"]) if row["path"] is not None else None,
    )
