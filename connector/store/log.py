"""The commit log of a store, as a backend reads it: where it begins and ends, and what is between.

It needs no queues. Damage is an error, or is passed over on request. What retention deleted is a
loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.connector.data_loss import Loss


class LogBackend:
    """The log's side of a backend."""

    store: MessageStore

    def log_start(self) -> int:
        """Return where the commit log begins."""
        return self.store.log_start()

    def lost_before(self, start: int, end: int | None = None) -> list[Loss]:
        """Return what is gone of a stretch of the log, by retention."""
        low = self.log_start()
        if start >= low:
            return []
        upto = low if end is None else min(low, end)
        return [Loss("the commit log", start, upto, f"it begins at {low}")]

    def next_record(self, physical_offset: int, default: int) -> int:
        """Return where the first sound record at or after a physical offset begins."""
        found = self.store.next_record(physical_offset)
        return default if found is None else found

    def boundary(self, physical_offset: int | None, *, skip_damage: bool = False) -> int:
        """Return the end of the records that begin before an offset; None: the end of the log."""
        if physical_offset is None:
            return self.log_end(skip_damage=skip_damage)
        if self.store.is_boundary(physical_offset):
            return physical_offset
        end = self.log_end(skip_damage=skip_damage)
        return min(self.next_record(physical_offset, end), end)

    def log_end(self, *, skip_damage: bool = False) -> int:
        """Return where the commit log ends now.

        Raises:
            CorruptStoreError: records follow after the end, and damage is not to be skipped.
        """
        return self.store.log_end(skip_damage=skip_damage)

    def scan(
        self,
        start: int,
        end: int,
        log_end: int,
        columns: Sequence[str],
        *,
        sql: SqlFilter | None,
        decompress: bool,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages whose records begin from `start` on and before `end`."""
        store = self.store
        # A stretch may begin amid a record, which belongs to the stretch before. Both stretches ask
        # for the next record in the same way, so that each record is read by exactly one.
        first = start if start == store.log_start() else store.next_record(start)
        last = end if end == log_end else store.next_record(end) or log_end
        if first is not None and first < end:
            schema = select(columns)
            yield from store.scan(schema, start=first, end=last, sql=sql, decompress=decompress)
