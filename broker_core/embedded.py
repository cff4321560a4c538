"""The embedded store: `rocketpy.open(path)`. A directory is the queue, no server is needed.

Any number of processes may open one store and append to it; readers take no locks. What `send`
and `append` return under flush="sync" survives a power loss; under flush="async", RocketMQ's
default, it survives the death of the process, and a power loss but for the last half second.
"""

from __future__ import annotations

import os
import random
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from rocketpy.broker_core.clock import Clock, SystemClock
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.composing import check_limits, message_properties, stored_body
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import (
    MessageNotFoundError,
    MessageRefusedError,
    OffsetOutOfRangeError,
    QueueNotFoundError,
    ReadOnlyStoreError,
    TopicNotFoundError,
)
from rocketpy.broker_core.intake import Intake, queue_of
from rocketpy.broker_core.message import Message, offset_id, parse_offset_id
from rocketpy.broker_core.metadata import OffsetTable, TopicConfig
from rocketpy.broker_core.selection import Offsets, Selection
from rocketpy.broker_core.storage.lookup import find_by_key, read_one
from rocketpy.broker_core.storage.reading import QueueReader, is_boundary, scan
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.storage.verify import Problem, verify
from rocketpy.broker_core.tags import TagFilter


class Receipt(NamedTuple):
    """What `send` returns: where the message is."""

    msg_id: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    stored_ms: int


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What `append` returns: how many messages, and which offsets of each queue they took."""

    count: int
    queues: dict[int, tuple[int, int]]  # queue id -> first offset, offset behind the last


def open(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    flush: Literal["sync", "async"] = "async",
    config: StoreConfig | None = None,
    clock: Clock | None = None,
) -> Store:
    """Open a store directory; one that is missing is made, unless it is only to be read.

    Raises:
        StoreNotFoundError: it is to be read, and is not there.
        StoreLockedError: a broker has it open for itself.
        UnsupportedStoreError: it holds messages that we could not read.
        CorruptStoreError: it was damaged in a way that no crash explains.
    """
    if flush not in ("sync", "async"):
        raise MessageRefusedError(f"flush={flush!r}", "give 'sync' or 'async'")
    store = MessageStore(
        Path(path),
        config or StoreConfig(),
        read_only=read_only,
        sync_flush=flush == "sync",
        clock=clock or SystemClock(),
    )
    return Store(store)


class Store:
    """An open store: send, append, read, scan, query, commit. Threads may share it."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._turns: dict[str, int] = {}
        # Runs at garbage collection and at the interpreter's exit, so that a store that nobody
        # closed still stops cleanly.
        self._finalizer = weakref.finalize(self, store.close)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        mode = "read only" if self._store.read_only else "open"
        return f"<rocketpy store {self.path} ({mode})>"

    @property
    def path(self) -> Path:
        """The store's directory."""
        return self._store.root

    @property
    def config(self) -> StoreConfig:
        """The settings in force: file sizes are those that the store has."""
        return self._store.parts.config

    def close(self) -> None:
        """Make everything durable and let go of the store. Closing twice is fine."""
        self._finalizer()

    def flush(self) -> None:
        """Return when all that was appended is durable."""
        self._store.flush()

    # --- topics ---------------------------------------------------------------------------------

    def create_topic(self, name: str, queues: int | None = None) -> TopicConfig:
        """Make a topic; one that exists keeps its queues, and gets more if more are asked for."""
        return self._store.create_topic(name, queues)

    def topics(self) -> dict[str, TopicConfig]:
        """Return all topics by name, system topics included."""
        return self._store.topics.all()

    def queues(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return the offsets that each queue of a topic holds: first, and behind the last."""
        return {
            queue_id: QueueReader(self._store.parts, topic, queue_id).range()
            for queue_id in self._queue_ids(topic)
        }

    def _queue_ids(self, topic: str) -> list[int]:
        self._store.require_open()
        config = self._store.topics.get(topic)
        on_disk = self._store.parts.queues.ids(topic)
        if config is None and not on_disk:
            known = {*self._store.topics.all(), *self._store.parts.queues.topics()}
            raise TopicNotFoundError(topic, known)
        return sorted({*on_disk, *range(config.read_queues if config else 0)})

    # --- in -------------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        body: bytes | str,
        *,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        sharding_key: str | None = None,
        flag: int = 0,
        compress: Literal["zlib", "lz4", "zstd"] | None = None,
    ) -> Receipt:
        """Store one message; messages of one sharding key go to one queue, in order.

        Raises:
            TopicNotFoundError, QueueNotFoundError, MessageRefusedError: nothing was stored.
            DiskFullError: there is no room; nothing was stored.
        """
        self._require_writable("send")
        config = self._writable_topic(topic)
        stored, sys_flag = stored_body(body, compress)
        message = Message(
            topic=topic,
            stored_body=stored,
            properties=message_properties(tags, keys, properties, sharding_key),
            queue_id=self._choose_queue(config, queue_id, sharding_key),
            flag=flag,
            sys_flag=sys_flag,
            born_timestamp_ms=self._store.clock.now_ms(),
            store_host=self.config.store_host,
            has_checksum=self.config.record_checksum,
        )
        check_limits(message, self.config)
        placed = self._store.append_one(message)
        msg_id = offset_id(message.store_host, placed.physical_offset)
        return Receipt(msg_id, message.queue_id, *placed[:3])

    def append(self, topic: str, data: object) -> AppendResult:
        """Store the rows of an Arrow table: the bulk path. Columns are those of intake.py.

        Rows are stored in order, some thousand at a time; each such batch whole or not at all. Rows
        with neither `queue_id` nor `sharding_key` go round the queues.
        """
        self._require_writable("append")
        config = self._writable_topic(topic)
        turn = self._turns.setdefault(topic, random.randrange(config.write_queues))
        intake = Intake(topic, config.write_queues, self.config, turn)
        count, queues = 0, dict[int, tuple[int, int]]()
        for batch in intake.batches(data, self._store.clock.now_ms()):
            placed = self._store.append(batch)
            count += len(batch.run)
            for queue_id in np.unique(batch.queue_ids).tolist():
                offsets = placed.queue_offsets[batch.queue_ids == queue_id]
                first = queues.get(queue_id, (int(offsets[0]), 0))[0]
                queues[queue_id] = first, int(offsets[-1]) + 1
        self._turns[topic] = intake.turn
        self._store.acknowledge()
        return AppendResult(count, queues)

    def _require_writable(self, action: str) -> None:
        self._store.require_open()
        if self._store.read_only:
            raise ReadOnlyStoreError(self.path, action)

    def _writable_topic(self, name: str) -> TopicConfig:
        config = self._store.topic(name)
        if config is None:
            raise TopicNotFoundError(name, self._store.topics.all())
        if not config.is_writable:
            raise MessageRefusedError(
                f"topic {name!r}", f"its permission is {config.perm}: not to write"
            )
        return config

    def _choose_queue(
        self, config: TopicConfig, queue_id: int | None, sharding_key: str | None
    ) -> int:
        if queue_id is not None:
            if not 0 <= queue_id < config.write_queues:
                raise QueueNotFoundError(config.name, queue_id, config.write_queues)
            return queue_id
        if sharding_key is not None:
            return queue_of(sharding_key, config.write_queues)
        turn = self._turns.get(config.name)
        if turn is None:
            turn = random.randrange(config.write_queues)
        self._turns[config.name] = (turn + 1) % config.write_queues
        return turn

    # --- out ------------------------------------------------------------------------------------

    def read(
        self,
        topic: str,
        *,
        columns: Sequence[str] | str | None = None,
        tags: str | None = None,
        queue_id: int | None = None,
        start: Offsets = None,
        end: Offsets = None,
        start_time: int | None = None,
        end_time: int | None = None,
        check: bool = True,
        decompress: bool = True,
    ) -> pa.RecordBatchReader:
        """Return the messages of a topic, queue after queue, in queue order.

        `start` and `end` are queue offsets, for all queues or by queue id, `end` exclusive. Times
        are store times in ms: from `start_time` on, before `end_time`. The end is fixed when the
        call is made. `check=False` leaves out the check sums and only compares what queue and
        record say of each other.

        Raises:
            OffsetOutOfRangeError: `start` is not (any more) in the queue.
            CorruptStoreError: while reading, a record is not what it should be.
        """
        selection = Selection(
            schema=select(columns),
            tags=TagFilter.parse(tags) if tags is not None else None,
            start=start,
            end=end,
            start_time=start_time,
            end_time=end_time,
            check=check,
            decompress=decompress,
        )
        ids = self._queue_ids(topic)
        if queue_id is not None:
            if queue_id not in ids:
                raise QueueNotFoundError(topic, queue_id, len(ids))
            ids = [queue_id]
        readers = [QueueReader(self._store.parts, topic, one) for one in ids]
        ranges = [(reader, *selection.resolve(reader)) for reader in readers]
        batches = (batch for each in ranges for batch in selection.batches(*each))
        return pa.RecordBatchReader.from_batches(selection.schema, batches)

    def scan(
        self,
        *,
        columns: Sequence[str] | str | None = None,
        start: int | None = None,
        end: int | None = None,
        check: bool = True,
        decompress: bool = True,
    ) -> pa.RecordBatchReader:
        """Return all messages of all topics in the order of the commit log; needs no queue.

        `start` and `end` are physical offsets; `start` must be where a record begins.
        """
        self._store.require_open()
        schema = select(columns)
        if start is not None and not is_boundary(self._store.parts, start):
            raise MessageNotFoundError(f"start={start}", "no record of the commit log begins there")
        batches = scan(
            self._store.parts, schema, start=start, end=end, check=check, decompress=decompress
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def query(
        self,
        topic: str,
        *,
        key: str,
        columns: Sequence[str] | str | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> pa.Table:
        """Return the messages of a topic that have a key, or a unique key, through the index."""
        self._store.require_open()
        schema = select(columns)
        found = find_by_key(self._store.parts, topic, key, schema, start_time, end_time)
        return pa.Table.from_batches(found, schema)

    def get(self, msg_id: str, *, columns: Sequence[str] | str | None = "*") -> pa.Table:
        """Return the message that an offset id (`msg_id`) names, as a table of one row."""
        self._store.require_open()
        _, offset = parse_offset_id(msg_id)
        schema = select(columns)
        batch = read_one(self._store.parts, offset, schema)
        if batch is None:
            raise MessageNotFoundError(msg_id, f"the log has no record at {offset}")
        return pa.Table.from_batches([batch], schema)

    def offset_by_time(
        self,
        topic: str,
        queue_id: int,
        time_ms: int,
        *,
        boundary: Literal["lower", "upper"] = "lower",
    ) -> int:
        """Return the first offset stored at or after a time; "upper": the last at or before it."""
        if boundary not in ("lower", "upper"):
            raise MessageRefusedError(f"boundary={boundary!r}", "give 'lower' or 'upper'")
        if queue_id not in self._queue_ids(topic):
            raise QueueNotFoundError(topic, queue_id, len(self._queue_ids(topic)))
        reader = QueueReader(self._store.parts, topic, queue_id)
        return reader.offset_by_time(time_ms, upper=boundary == "upper")

    # --- groups ---------------------------------------------------------------------------------

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return the next offset to read of each queue that a group committed."""
        self._store.require_open()
        return self._store.offsets.committed(group, topic)

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Note the next offset to read of some queues, durably."""
        self._require_writable("commit")
        held = self.queues(topic)
        for queue_id, offset in offsets.items():
            if queue_id not in held:
                raise QueueNotFoundError(topic, queue_id, len(held))
            if not 0 <= offset <= held[queue_id][1]:
                raise OffsetOutOfRangeError(topic, queue_id, offset, held[queue_id])
        with self._store.locked():
            self._store.offsets.commit(group, topic, dict(offsets))

    @property
    def group_offsets(self) -> OffsetTable:
        """All committed offsets of all groups; to be read."""
        return self._store.offsets

    # --- care -----------------------------------------------------------------------------------

    def verify(self) -> Iterable[Problem]:
        """Yield every broken invariant of the store: nothing when it is sound."""
        self._store.require_open()
        return verify(self._store.parts)

    def clean(self) -> list[Path]:
        """Delete files whose retention is over, as the store does by itself; return which."""
        self._require_writable("clean")
        return self._store.clean()
