"""`rocketpy/ledger`: which batches are in the log, so that none is appended twice.

A writer that may come again with the same batch (a streaming query, a job that is run anew) names
itself and numbers its batches. The newest number of each is kept; numbers only grow. A batch with
that number is the same one, run again. A lower number is an error: such a batch comes from an old
checkpoint, and need not have the messages that its number stood for before.

A writer may leave a note with a batch: what it has done with it. It is kept until its next note.
`pending` is the batch that is being committed: see intent.py. The file is small and replaced as a
whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rocketpy.broker_core.stale_batch import StaleBatchError
from rocketpy.broker_core.storage.checked_json import IN_ORDER, CheckedJson
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import LEDGER

MOST_WRITERS = 10_000
Note = Mapping[str, Any]  # JSON
_FILE = CheckedJson(
    key="ledger",
    form=IN_ORDER,
    noun="the ledger of batches",
    remedy="without it (remove the file, if need be) a batch that is run again comes twice",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingBatch:
    """A batch on its way into the log. It is known by its first record, which is finished last."""

    writer: str | None  # None: it cannot come again
    number: int
    begin: int  # physical offset of the first record
    size: int
    crc: int  # of the first record
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The content of the file; writers are in the order in which they committed last."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    pending: PendingBatch | None = None
    notes: Mapping[str, Note] = field(default_factory=dict)

    def last_number(self, writer: str, formerly: str | None = None) -> int:
        """Return the number of a writer's last batch, -1 if it has none.

        `formerly` is what an earlier version called the writer; that name counts until there is a
        batch of the new one.
        """
        former = -1 if formerly is None else self.numbers.get(formerly, -1)
        return self.numbers.get(writer, former)

    def is_replay(self, writer: str | None, number: int, formerly: str | None = None) -> bool:
        """Whether a batch is its writer's last one, run again; without a writer it never is.

        Raises:
            StaleBatchError: it comes before the last one.
        """
        if writer is None:
            return False
        last = self.last_number(writer, formerly)
        if number < last:
            raise StaleBatchError(writer, number, last)
        return number == last

    def without_pending(self, *, is_in_log: bool) -> Ledger:
        """Return the ledger without its pending batch, which is noted if it is in the log."""
        batch = self.pending
        if batch is None or batch.writer is None or not is_in_log:
            return replace(self, pending=None)
        others = {name: number for name, number in self.numbers.items() if name != batch.writer}
        newest = list({**others, batch.writer: batch.number}.items())[-MOST_WRITERS:]
        notes = self.notes if batch.note is None else {**self.notes, batch.writer: batch.note}
        return Ledger(dict(newest), None, notes)


def read_ledger(root: Path) -> Ledger:
    """Return the ledger; an empty one if there is no file.

    Raises:
        CorruptStoreError: it is damaged. It is never taken for empty: batches would come twice.
    """
    return _FILE.read(root / LEDGER, _ledger) or Ledger()


def write_ledger(root: Path, ledger: Ledger, disk: Disk) -> None:
    """Replace the ledger durably. Call while holding the store's lock."""
    batch = ledger.pending
    members = {name: getattr(batch, name) for name in PendingBatch.__slots__} if batch else None
    if members is not None and members["note"] is None:
        del members["note"]  # as it was before there were notes
    content: dict[str, Any] = {"numbers": dict(ledger.numbers), "pending": members}
    if ledger.notes:
        content["notes"] = dict(ledger.notes)
    _FILE.write(root / LEDGER, content, disk)


def _ledger(content: Mapping[str, Any]) -> Ledger:
    batch = content["pending"]
    pending = PendingBatch(**batch) if batch is not None else None
    return Ledger(content["numbers"], pending, content.get("notes", {}))
