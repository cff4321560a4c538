"""The commit log from end to end for `dump --scan`, past damaged bytes if that is wished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.storage.store import MessageStore


@dataclass(slots=True)
class SkippingScan:
    """Reads records in log order, and notes what it skipped."""

    store: Store
    opened: MessageStore  # the same one
    columns: Sequence[str]
    skip_damage: bool
    damage: list[str] = field(default_factory=list)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all records.

        Raises:
            CorruptStoreError: a record is damaged, and damage is not to be skipped.
        """
        start: int | None = None
        while True:
            try:
                yield from self.store.scan(columns=self.columns, start=start)
                return
            except CorruptStoreError as damage:
                if not self.skip_damage:
                    raise
                start = self._next(damage.offset)
                if start is None:
                    return

    def _next(self, damaged_at: int) -> int | None:
        found = self.opened.next_record(damaged_at + 1)
        where = f"{found - damaged_at} bytes" if found is not None else "all bytes"
        self.damage.append(f"skipped {where} from {damaged_at} on: no sound record")
        return found
