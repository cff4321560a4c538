"""What writes to a store: tasks stage rows in its folder, a commit appends all of them or none.

See broker_core/intake/staged.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from rocketpy.broker_core.storage.existing import refuse_unsupported
from rocketpy.broker_core.storage.identity import StoreIdentity, make_identity, require_same
from rocketpy.connector.backend import WritingTask
from rocketpy.connector.write_options import WriteOptions
from rocketpy.connector.writer_names import WriterName

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagedPart:
    """What one task staged."""

    path: Path | None  # None: it had no rows
    rows: int
    store: StoreIdentity  # that the task saw


@dataclass(frozen=True, slots=True)
class StoreWriting:
    """Writes to the store that the options name. Made on the driver, goes to tasks."""

    root: Path
    options: WriteOptions
    seen: StoreIdentity  # that driver and tasks must see

    def stage(self, task: WritingTask, batches: Iterable[pa.RecordBatch]) -> StagedPart:
        """Stage the rows of one partition, in a task.

        Raises:
            OtherStoreError: it is not the store that the driver saw: the path is not shared.
        """
        from rocketpy.broker_core.intake.staged import TaskStage

        options = self.options
        require_same(self.root, self.seen)
        stage = TaskStage(
            root=self.root,
            transaction=task.transaction,
            topic=options.topic,
            queues=options.queues,
            compress=options.compress,
            property_columns=options.property_columns,
            name=task.name,
        )
        try:
            for batch in batches:
                stage.add(batch)
            return StagedPart(*stage.finish(), self.seen)
        except BaseException:
            stage.discard()
            raise

    def commit(self, staged: Sequence[object], writer: WriterName | None, number: int) -> None:
        """Append what was staged; nothing if this batch of this writer is there already."""
        from rocketpy.broker_core.intake.staged import commit
        from rocketpy.broker_core.storage.batches.commit import StagedBatch

        parts = [part for part in staged if isinstance(part, StagedPart)]
        root, options = self.root, self.options
        for store in {part.store for part in parts}:
            require_same(root, store)
        files = [part.path for part in parts if part.path is not None]
        name, former = writer or (None, None)
        batch = StagedBatch(files=files, writer=name, number=number, formerly=former)
        if files and not commit(root, batch, lock_timeout_s=options.lock_timeout_s):
            log.warning("%s: batch %d of %s is there already", root, number, name)

    def remove(self, transactions: Iterable[str]) -> None:
        """Remove what was staged in some transactions."""
        from rocketpy.broker_core.storage.batches.staging import remove_staged

        remove_staged(self.root, transactions)


def store_writing(options: WriteOptions) -> StoreWriting:
    """Return what writes to a store, which is marked so that tasks can tell it from others."""
    assert options.path is not None  # see backends.py
    root = Path(options.path)
    refuse_unsupported(root)
    return StoreWriting(root, options, make_identity(root, options.lock_timeout_s))
