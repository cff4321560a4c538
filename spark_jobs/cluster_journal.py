"""The journal of replays on a cluster: commits of the audit trail, which is a Delta table.

J1  A chunk is begun by a commit without rows: its note has the positions of the dead letters. It is
    done by the commit that has its rows. Delta takes each number once, of either kind.
J2  So the chunk that is begun and not done is what a run left that died, and all of it is known.
J3  The journal is that of one group in one table: a table that is made anew has another one.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rocketpy.broker_core.errors import MessageRefusedError, ReplayRunningError
from rocketpy.broker_core.retry.journal import ReplayChunk
from rocketpy.spark_jobs.backfill.delta_log import DeltaState
from rocketpy.spark_jobs.replay_audit import SCHEMA, ReplayAudit, require_delta

_KIND = "replay begun"
# The offset id has the place in the broker's log: a topic that was made anew has other ones.
_IDENTITY = ("broker", "queue_id", "queue_offset", "msg_id")


class ClusterJournal:
    """What was replayed of one group, and what is under way. The table is made when it is asked."""

    def __init__(self, spark: SparkSession, location: str, group: str) -> None:
        require_delta(spark)
        self._spark, self.location, self._group = spark, location, group

    def without_replayed(self, letters: DataFrame) -> DataFrame:
        """Return the dead letters that were not brought back before."""
        return self._audit().without_replayed(letters) if self._exists() else letters

    @property
    def writer(self) -> str:
        """The name under which copies are written, chunk by chunk."""
        return f"replay {self._id()}"

    def last_number(self) -> int:
        """Return the number of the chunk that was begun last, -1 if there is none."""
        found = self._state().transaction(self._begun_id())
        return -1 if found is None else found

    def pending(self) -> ReplayChunk | None:
        """Return the chunk that is begun and not done.

        Raises:
            MessageRefusedError: the history of the table does not tell which messages it has.
        """
        number, done = self.last_number(), self._state().transaction(self._audit().app_id)
        if number == -1 or (done is not None and done >= number):
            return None
        note = self._note(number)
        if note is None:
            reason = "a run died, and the history of the table goes not back to what it had begun"
            remedy = "look which copies it sent (their ROCKETPY_REPLAY_RUN), and take another audit"
            raise MessageRefusedError(f"audit={self.location!r}", f"{reason}; {remedy}")
        return ReplayChunk(**note["chunk"])

    def begin(self, chunk: ReplayChunk) -> None:
        """Note, durably, what is about to be sent.

        Raises:
            ReplayRunningError: another run has begun a chunk of this number.
        """
        note = {"kind": _KIND, "journal": self._id(), "chunk": asdict(chunk)}
        try:
            self._append_nothing(
                txnAppId=self._begun_id(), txnVersion=chunk.number, userMetadata=json.dumps(note)
            )
        except PySparkException as cause:
            if not self._is_own(chunk):
                raise ReplayRunningError(self.location, self._group) from cause
        if not self._is_own(chunk):  # Delta dropped it: the number was there
            raise ReplayRunningError(self.location, self._group)

    def done(self, chunk: ReplayChunk, described: pa.Table) -> None:
        """Note that the messages of a chunk are where they were to go: the audit."""
        self._audit().append(described, chunk)

    def _is_own(self, chunk: ReplayChunk) -> bool:
        note = self._note(chunk.number)
        return note is not None and note["chunk"]["run_id"] == chunk.run_id

    def _note(self, number: int) -> dict[str, Any] | None:
        for commit in self._state().commits():
            is_ours = (commit.note.get("kind"), commit.note.get("journal")) == (_KIND, self._id())
            if is_ours and commit.note["chunk"]["number"] == number:
                return dict(commit.note)
        return None

    # --- the table --------------------------------------------------------------------------------

    def _audit(self) -> ReplayAudit:
        return ReplayAudit(self._spark, self.location, self._id(), _IDENTITY)

    def _begun_id(self) -> str:
        return f"rocketpy replay begun {self._id()}"

    def _id(self) -> str:
        return f"{self._state().id} {self._group}"

    def _exists(self) -> bool:
        from delta.tables import DeltaTable

        return bool(DeltaTable.isDeltaTable(self._spark, self.location))

    def _state(self) -> DeltaState:
        from delta.tables import DeltaTable

        if not self._exists():
            self._append_nothing()
        table: Any = DeltaTable.forPath(self._spark, self.location)
        return DeltaState(self._spark, table._jdt.deltaLog())

    def _append_nothing(self, **options: str | int) -> None:
        rows = self._spark.createDataFrame(SCHEMA.empty_table())
        writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
        writer.options(**options).save(self.location)
