"""What an open store holds: the doors for all who read it from outside of this folder.

Everything here reads, without a lock, while others write; nobody outside of this folder needs to
know the parts of a store. The modules that are imported here know how to find each of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.message import Message, PhysicalOffset
from rocketpy.broker_core.metadata import TopicTable
from rocketpy.broker_core.storage.commit_log import Segment
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.index_file import IndexFile
from rocketpy.broker_core.storage.lookup import (
    KeyKind,
    find_by_keys,
    offsets_of,
    read_one,
    records_at,
)
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.published import walk
from rocketpy.broker_core.storage.raw_reading import RawReader, log_bytes, record_at
from rocketpy.broker_core.storage.reading import QueueReader, is_boundary, log_end, scan
from rocketpy.broker_core.storage.salvage import next_sound_record

if TYPE_CHECKING:
    from rocketpy.broker_core.storage.verify import Problem, VerifyProgress


class StoreContents:
    """The reading side of a message store. Any thread may use it."""

    parts: StoreParts
    topics: TopicTable
    config: StoreConfig  # the settings in force: file sizes are those that the store has

    @property
    def disk(self) -> Disk:
        """What writes small files of the store durably."""
        return self.parts.disk

    # --- topics and queues ------------------------------------------------------------------------

    def topic_names(self) -> set[str]:
        """Return the names of all topics: those with settings, and those with queues on disk."""
        return {*self.topics.all(), *self.stored_topics()}

    def stored_topics(self) -> list[str]:
        """Return the topics that have queues on disk."""
        return self.parts.queues.topics()

    def stored_queue_ids(self, topic: str) -> list[int]:
        """Return the ids of a topic's queues that have files."""
        return self.parts.queues.ids(topic)

    def queue_ids(self, topic: str) -> list[int]:
        """Return the ids of a topic's queues: those with files, and those that settings give it.

        Raises:
            TopicNotFoundError: the store knows no such topic.
        """
        settings, stored = self.topics.get(topic), self.stored_queue_ids(topic)
        if settings is None and not stored:
            raise TopicNotFoundError(topic, self.topic_names())
        return sorted({*stored, *range(settings.read_queues if settings else 0)})

    def queue(self, topic: str, queue_id: int) -> QueueReader:
        """Return what reads a queue, whether or not it has files yet."""
        return QueueReader(self.parts, topic, queue_id)

    def raw_queue(self, topic: str, queue_id: int) -> RawReader:
        """Return what reads a queue's records as bytes, without decoding them."""
        return RawReader(self.parts, topic, queue_id)

    # --- the log ----------------------------------------------------------------------------------

    def log_start(self) -> PhysicalOffset:
        """Return where the log begins: retention moves it."""
        return self.parts.log.min_offset()

    def log_end(self, *, skip_damage: bool = False) -> int:
        """Return where the log ends now.

        Raises:
            CorruptStoreError: records follow after the end, and damage is not to be skipped.
        """
        return log_end(self.parts, skip_damage=skip_damage)

    def end_mark(self) -> bytes:
        """Return bytes that stay the same as long as nobody appends: a look at shared memory."""
        return self.parts.tail.end_bytes()

    def flushed_end(self) -> int:
        """Return a physical offset up to which the log is durable: it may be so further on."""
        return self.parts.tail.flushed()

    def log_bytes(self, start: int, most: int) -> memoryview:
        """Return published bytes of the log from `start` on, at most to the end of their file.

        Raises:
            CorruptStoreError: the file is missing; it may have been deleted by retention.
        """
        return log_bytes(self.parts, start, most)

    def is_boundary(self, physical_offset: int) -> bool:
        """Whether a record begins at a physical offset, or the log ends there."""
        return is_boundary(self.parts, physical_offset)

    def next_record(self, physical_offset: int) -> int | None:
        """Return the physical offset of the first sound record from a given one on."""
        return next_sound_record(self.parts.log, physical_offset)

    def walk(self, start: int, end: int | None = None) -> Iterator[Segment]:
        """Yield the records from a physical offset on, in order; they may be damaged."""
        return walk(self.parts, start, end)

    def scan(
        self,
        schema: pa.Schema,
        *,
        start: int | None = None,
        end: int | None = None,
        sql: SqlFilter | None = None,
        check: bool = True,
        decompress: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages between two physical offsets, in log order; needs no queue.

        Raises:
            CorruptStoreError: a record is damaged and not the torn end of the log.
        """
        return scan(
            self.parts,
            schema,
            start=start,
            end=end,
            sql=sql,
            check=check,
            decompress=decompress,
        )

    # --- single messages --------------------------------------------------------------------------

    def message_at(self, physical_offset: int) -> Message:
        """Return the message whose record begins at a physical offset.

        Raises:
            CorruptStoreError: no sound record begins there.
        """
        return self.parts.log.read(physical_offset)

    def record_at(self, physical_offset: int) -> memoryview:
        """Return the bytes of the record that begins at a physical offset.

        Raises:
            CorruptStoreError: no sound record begins there.
        """
        return record_at(self.parts, physical_offset)

    def offsets_of_key(
        self, topic: str, key: str, *, kind: KeyKind, start_ms: int, end_ms: int
    ) -> list[int]:
        """Return the physical offsets of messages with a key, in log order; both times count."""
        return offsets_of(self.parts, topic, key, kind, (start_ms, end_ms))

    def row_at(self, physical_offset: int, schema: pa.Schema) -> pa.RecordBatch | None:
        """Return the message at a physical offset as columns; None if no sound record is there."""
        return read_one(self.parts, physical_offset, schema)

    def rows_at(self, physical_offsets: Ints, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the messages at some physical offsets; skip those without a sound record."""
        return records_at(self.parts, physical_offsets, schema)

    def find(
        self,
        topic: str,
        keys: Sequence[str],
        schema: pa.Schema,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        decompress: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages that have one of the keys, or it as unique key; the index finds them.

        Each comes once, in log order; all were stored from `start_ms` on and before `end_ms`.
        """
        times = start_ms, end_ms
        return find_by_keys(self.parts, topic, keys, schema, *times, decompress=decompress)

    # --- files ------------------------------------------------------------------------------------

    def index_names(self) -> list[str]:
        """Return the names of the index files, the oldest first."""
        return self.parts.index.names()

    def index_file(self, name: str) -> IndexFile:
        """Return one index file.

        Raises:
            FileNotFoundError: it is not there (any more).
        """
        return self.parts.index.file(name)

    def verify(self, progress: VerifyProgress | None = None) -> Iterator[Problem]:
        """Yield every broken invariant: nothing, if the store is sound.

        `progress` is called with the bytes that were checked, and with those of all.
        """
        from rocketpy.broker_core.storage.verify import verify  # much code, which tasks never need

        return verify(self.parts, progress)
