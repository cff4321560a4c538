"""Copies of stored messages on their way: read by position, staged in one file by one task.

Nothing of it can be read before the batch is committed: see intake/staged.py. A task may die at
any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.encoder import EncodedBatch
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import QueueNotFoundError
from rocketpy.broker_core.storage.batches.staging import StagedFile
from rocketpy.broker_core.storage.store import MessageStore


@dataclass(slots=True, kw_only=True)
class CopyStage:
    """Reads messages of a store and stages copies; a context that closes what it opened."""

    root: Path
    transaction: str
    store: MessageStore = field(init=False)
    _file: StagedFile | None = None

    def __post_init__(self) -> None:
        self.store = MessageStore(self.root, StoreConfig(), clock=SystemClock(), read_only=True)

    def __enter__(self) -> CopyStage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._file is not None:
            self._file.discard()
        self.store.close()

    def records(self, topic: str, queue_id: int, offsets: Ints) -> Iterator[RecordBlock]:
        """Yield the records of some offsets of a queue, which ascend.

        Raises:
            TopicNotFoundError, QueueNotFoundError, OffsetOutOfRangeError: there is none.
        """
        if queue_id not in (ids := self.store.queue_ids(topic)):
            raise QueueNotFoundError(topic, queue_id, len(ids))
        yield from self.store.queue(topic, queue_id).blocks_at(offsets)

    def put(self, batch: EncodedBatch, queues: int) -> None:
        """Stage copies; `queues` is how many their topic has, or is to get."""
        if self._file is None:
            self._file = StagedFile(self.root, self.transaction, self.store.config.index_slots)
        self._file.put(batch, queues)

    def finish(self) -> Path | None:
        """Return the staged file, if there is anything in it."""
        if self._file is None:
            return None
        self._file.finish()
        path, self._file = self._file.path, None
        return path
