"""A batch of messages from many tasks: staged by each of them, committed by one.

For a store directory that tasks and committer share. A task needs no lock and may die at any time;
nothing of a batch can be read before all of it is committed. The batch of a named writer is stored
once, however often it is staged and committed.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.clock import Clock, SystemClock
from rocketpy.broker_core.codec.encoder import EncodedBatch
from rocketpy.broker_core.codec.layout import BLANK_SIZE
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import ColumnError, MessageRefusedError, StoreError
from rocketpy.broker_core.intake.chunks import RowChunks
from rocketpy.broker_core.intake.destination import refuse_system_topic
from rocketpy.broker_core.intake.table import Intake
from rocketpy.broker_core.intake.waiting import system_queues
from rocketpy.broker_core.metadata import ConfigFile, TopicTable
from rocketpy.broker_core.metadata.names import check_topic_name
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.batches.staging import StagedFile, remove_staged
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.existing import adapt
from rocketpy.broker_core.storage.layout import CONFIG
from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class TaskStage:
    """Stages the rows of one task: Arrow batches in, a staged file out.

    Columns are those of table.py, and `topic` unless all rows are of one.
    """

    root: Path
    transaction: str
    topic: str | None = None
    queues: int | None = None  # of topics that are yet to be made
    compress: str | None = None
    property_columns: tuple[str, ...] = ()
    name: str = "the table"  # what rows are counted in, for errors
    clock: Clock = field(default_factory=SystemClock)
    config: StoreConfig | None = None  # None: what the store has
    _config: StoreConfig = field(init=False)
    _topics: TopicTable = field(init=False)
    _intakes: dict[str, Intake] = field(default_factory=dict)
    _declared: set[str] = field(default_factory=set)
    _chunks: RowChunks = field(init=False)
    _file: StagedFile | None = None

    def __post_init__(self) -> None:
        self._chunks = RowChunks(self.name)
        self._config = self.config or adapt(self.root, StoreConfig())
        self._topics = TopicTable(ConfigFile(self.root / CONFIG / TopicTable.FILE_NAME, Disk()))

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch; small ones wait for others to be encoded together.

        Raises:
            MessageRefusedError: a row cannot be stored; says which and why.
        """
        self._stage(self._chunks.add(batch))

    def finish(self) -> tuple[Path | None, int]:
        """Return the staged file, if there were rows, and how many."""
        self._stage(self._chunks.rest())
        if self._file is None:
            return None, 0
        self._file.finish()
        return self._file.path, self._file.rows

    def discard(self) -> None:
        """Remove what was staged."""
        if self._file is not None:
            self._file.discard()

    def _stage(self, chunks: Iterator[pa.RecordBatch]) -> None:
        for chunk in chunks:
            self._put(self._chunks.encoded(chunk, lambda rows: [*self._encode(rows)]))

    def _put(self, encoded: list[tuple[EncodedBatch, int]]) -> None:
        for part, queues in encoded:
            if self._file is None:
                slots = self._config.index_slots
                self._file = StagedFile(self.root, self.transaction, slots)
            self._file.put(part, queues)
        stored = {part.topic for part, _ in encoded}
        for topic, intake in self._intakes.items():
            if self._file is not None and topic not in stored | self._declared:
                self._file.declare(topic, intake.queues)  # its messages wait elsewhere
                self._declared.add(topic)

    def _encode(self, batch: pa.RecordBatch) -> Iterator[tuple[EncodedBatch, int]]:
        if batch.column("body").null_count:
            raise ColumnError("body", "is null; a message may have an empty body, but has one")
        limit = self._config.commit_log_file_size - BLANK_SIZE
        for topic, part in self._by_topic(batch):
            intake = self._intake(topic)
            for encoded in intake.batches(part, self.clock.now_ms()):
                size = int(encoded.run.sizes.max())
                if size > limit:
                    reason = f"{size} bytes, a file of this commit log takes {limit}"
                    raise MessageRefusedError("a record", reason)
                is_waiting = encoded.topic != topic
                queues = system_queues(encoded.topic, self._config) if is_waiting else intake.queues
                yield encoded, queues

    def _by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        has_column = "topic" in batch.schema.names
        rest = batch.drop_columns("topic") if has_column else batch
        if self.topic is not None:
            yield self.topic, rest
            return
        topics = batch.column("topic").dictionary_encode()
        if topics.null_count:
            raise ColumnError("topic", "is null")
        names = topics.dictionary.to_pylist()
        for number, name in enumerate(names):
            yield name, rest if len(names) == 1 else rest.filter(pc.equal(topics.indices, number))

    def _intake(self, topic: str) -> Intake:
        intake = self._intakes.get(topic)
        if intake is None:
            check_topic_name(topic, limit=self._config.max_topic_length)
            refuse_system_topic(topic)
            known = self._topics.get(topic)
            if known is not None and not known.is_writable:
                raise MessageRefusedError(
                    f"topic {topic!r}", f"its permission is {known.perm}: not to write"
                )
            wanted = self.queues or self._config.default_topic_queues
            queues = known.write_queues if known is not None else wanted
            turn = random.randrange(queues)
            intake = Intake(topic, queues, self._config, turn, self.compress, self.property_columns)
            self._intakes[topic] = intake
        return intake


def commit(
    root: Path,
    batch: StagedBatch,
    *,
    topics: Mapping[str, int] | None = None,
    lock_timeout_s: float | None = None,
) -> bool:
    """Store what was staged, whole, durably and once; return whether it was new.

    The store is made if it is missing, as are further topics, given with their numbers of queues.
    What was staged is removed.

    Raises:
        StoreLockedError: another process kept the store's lock for longer than the time-out.
        StaleBatchError: a later batch of its writer is in the store.
    """
    config = StoreConfig()
    if lock_timeout_s is not None:
        config = replace(config, lock_timeout_s=lock_timeout_s)
    store = MessageStore(root, config, clock=SystemClock())
    try:
        for topic, queues in (topics or {}).items():
            store.create_topic(topic, queues)
        is_new = store.commit_batch(batch)
    finally:
        try:
            store.close()
        except (OSError, StoreError):  # what was committed is durable, and what was not, is not
            log.exception("%s was not closed cleanly; the next who opens it recovers it", root)
    remove_staged(root, {path.parent.name for path in batch.files})
    return is_new
