"""A store directory as a backend: read without locks, only group offsets are written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.clock import Clock, SystemClock
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import (
    CorruptStoreError,
    OffsetOutOfRangeError,
    StoreNotFoundError,
    TopicNotFoundError,
)
from rocketpy.broker_core.filters import RegisteredBits, SqlFilter
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.rebalance.broadcast import (
    read_broadcast_offsets,
    write_broadcast_offsets,
)
from rocketpy.broker_core.rebalance.observer import Observer
from rocketpy.broker_core.rebalance.records import StoreRecords
from rocketpy.broker_core.rebalance.registry import Registry
from rocketpy.broker_core.storage.existing import is_store
from rocketpy.broker_core.storage.identity import StoreIdentity, identity_of, require_same
from rocketpy.broker_core.storage.layout import COMMIT_LOG, FILLER_SIZE
from rocketpy.broker_core.storage.lock import locked
from rocketpy.broker_core.storage.reading import QueueReader
from rocketpy.broker_core.storage.selection import Selection
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.connector.offsets import MessageQueue, Positions
from rocketpy.connector.planning import QueueRange
from rocketpy.connector.store import views
from rocketpy.connector.store.log import LogBackend

_MOST_SIZES = 1 << 20  # of one look: 20 MiB of queue entries
_COMMIT_WAIT_S = 1.0  # writers hold the lock for moments; a broker keeps it


def open_store(path: str, seen: object = None) -> StoreBackend:
    """Open a store, in a task or to plan; `seen` is the one that the planner saw.

    Raises:
        OtherStoreError: it is another one: the path is not shared.
    """
    if isinstance(seen, StoreIdentity):
        require_same(Path(path), seen)
    return StoreBackend(path)


class StoreBackend(LogBackend):
    """Reads a store directory. One per process and task; not to be pickled."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._folders: dict[Path, tuple[int, int]] = {}
        self._open()

    def _open(self) -> None:
        self.store = MessageStore(self._path, StoreConfig(), clock=SystemClock(), read_only=True)
        self.broker = self.store.config.broker_name

    def close(self) -> None:
        """Let go of all files."""
        self.store.close()

    def identity(self) -> StoreIdentity:
        """Return which store it is."""
        return identity_of(self.store.root)

    def members(self) -> StoreBackend:
        """Return what keeps the members of groups: the store itself."""
        return self

    def tables(self) -> StoreBackend:
        """Return what makes the small views: the store itself."""
        return self

    def views(self) -> StoreBackend:
        """Return what there is to read besides messages: the store itself."""
        return self

    @property
    def clock(self) -> Clock:
        """The clock by which members are judged."""
        return self.store.clock

    def topics(self) -> Sequence[str]:
        """Return the names of all topics.

        Raises:
            StoreNotFoundError: the store is not there (any more): a folder that is not mounted.
        """
        self._require_folder()
        return sorted(self.store.topic_names())

    def _require_folder(self) -> None:
        if not is_store(self._path):
            raise StoreNotFoundError(self._path)

    def ranges(self, topics: Sequence[str]) -> dict[MessageQueue, tuple[int, int]]:
        """Return the range of offsets stored in each queue of some topics: first, and end."""
        queues = [queue for topic in topics for queue in self._queues(topic)]
        folders = [self.reader(queue).queue.files.folder for queue in queues]
        if self._have_changed([self.store.root / COMMIT_LOG, *folders]):
            self.close()
            self._open()
        return {queue: self.range(queue) for queue in queues}

    def out_of_reach(self, brokers: Collection[str]) -> Mapping[str, str]:  # noqa: ARG002
        """Return none: a folder has one broker's queues, and no other's."""
        return {}

    def _have_changed(self, folders: Sequence[Path]) -> bool:
        """Whether files were added or removed since the last look.

        Files that stay open show nothing of a topic, or a store, that is made anew instead of
        theirs; and those that retention deleted still take room on the disk.
        """
        now = {
            folder: (status.st_ino, status.st_mtime_ns)
            for folder in folders
            if (status := _status(folder)) is not None
        }
        changed = any(self._folders.get(folder, seen) != seen for folder, seen in now.items())
        self._folders |= now  # one that is gone now may come back
        return changed

    def _queues(self, topic: str) -> list[MessageQueue]:
        try:
            ids = self.store.queue_ids(topic)
        except TopicNotFoundError:
            self._require_folder()  # without it no topic is known
            raise
        return [MessageQueue(topic, self.broker, queue_id) for queue_id in ids]

    def range(self, queue: MessageQueue) -> tuple[int, int]:
        """Return the range of offsets stored in a queue: first, and end."""
        return self.reader(queue).range()

    def reader(self, queue: MessageQueue) -> QueueReader:
        """Return the reader of one queue."""
        return self.store.queue(queue.topic, queue.queue_id)

    def physical_offset(self, queue: MessageQueue, queue_offset: int) -> int | None:
        """Return where in the log a message of a queue lies; None if there is no such entry."""
        unit = self.reader(queue).queue.unit(queue_offset)
        return None if unit is None or unit.is_filler else unit.physical_offset

    def look_up(self, messages: Collection[tuple[MessageQueue, int]]) -> None:
        """Do nothing: entries are at hand."""

    def offset_by_time(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the first offset stored at or after a time; the end if there is none."""
        return self.reader(queue).offset_by_time(time_ms)

    def sizes(self, queue: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        """Return how many bytes each message of a range has, of its first million."""
        units = self.reader(queue).queue.units(start, min(end, start + _MOST_SIZES))
        return np.where(units["size"] == FILLER_SIZE, 0, units["size"]).astype(np.int64)

    def committed(self, group: str, topics: Sequence[str]) -> dict[MessageQueue, int]:
        """Return the next offset to read of each queue that a group committed."""
        return {
            MessageQueue(topic, self.broker, queue_id): offset
            for topic in topics
            for queue_id, offset in self.store.offsets.committed(group, topic).items()
        }

    def locked(self) -> AbstractContextManager[None]:
        """Hold the store's lock; it may nest.

        Raises:
            StoreLockedError: another process, such as a broker, keeps it.
        """
        return locked(self.store.root, _COMMIT_WAIT_S)

    def registry(self, observer: Observer | None = None) -> Registry:
        """Return the members and generations of the groups."""
        return Registry(StoreRecords(self.store, self.locked), observer)

    def commit(self, group: str, positions: Mapping[MessageQueue, int]) -> None:
        """Note the next offset to read of some queues, durably."""
        with self.locked():
            for topic, queues in groupby(sorted(positions), key=lambda queue: queue.topic):
                offsets = {queue.queue_id: positions[queue] for queue in queues}
                self.store.offsets.commit(group, topic, offsets)

    def consumers(self, group: str) -> set[str]:  # noqa: ARG002
        """Return none: who consumes is known to a broker, and a folder has none."""
        return set()

    def broadcast_offsets(
        self,
        group: str,
        member: str,
        topics: Sequence[str],  # noqa: ARG002  one file has all
    ) -> dict[MessageQueue, int]:
        """Return the next offset to read of each queue that a broadcasting member committed."""
        return read_broadcast_offsets(self.store.root, group, member)

    def commit_broadcast(self, group: str, member: str, positions: Positions) -> None:
        """Note for one broadcasting member the next offset to read of some queues, durably."""
        root, disk = self.store.root, self.store.disk
        with self.locked():
            offsets = read_broadcast_offsets(root, group, member) | dict(positions)
            write_broadcast_offsets(root, (group, member), offsets, disk)

    def read(
        self,
        part: QueueRange,
        columns: Sequence[str],
        *,
        tags: TagFilter | None,
        sql: SqlFilter | None,
        group: str | None,
        decompress: bool,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range; bit maps of the group's filter are used, if it is `sql`.

        Raises:
            OffsetOutOfRangeError: the start is not stored (any more).
        """
        selection = Selection(
            schema=select(columns),
            tags=tags,
            sql=sql,
            registered=self._registered(part.queue.topic, group, sql),
            start=part.start,
            end=part.end,
            start_time=None,
            end_time=None,
            check=True,
            decompress=decompress,
        )
        reader = self.reader(part.queue)
        yield from selection.batches(reader, *selection.resolve(reader))

    def read_together(
        self,
        parts: Sequence[QueueRange],
        columns: Sequence[str],  # noqa: ARG002
        *,
        tags: TagFilter | None,  # noqa: ARG002
        sql: SqlFilter | None,  # noqa: ARG002
        decompress: bool,  # noqa: ARG002
    ) -> tuple[list[pa.RecordBatch], list[QueueRange]]:
        """Return all ranges for read(): there is no way to a server to be saved."""
        return [], [*parts]

    def _registered(
        self, topic: str, group: str | None, sql: SqlFilter | None
    ) -> RegisteredBits | None:
        if group is None or sql is None:
            return None
        return self.store.filters.bits_of(topic, group, sql.text)

    def is_deleted(self, error: OffsetOutOfRangeError | CorruptStoreError) -> bool:
        """Whether a read failed because of retention, not of damage."""
        if isinstance(error, OffsetOutOfRangeError):
            return error.asked < error.held[0]
        return error.offset < self.store.log_start()

    def find(
        self, topic: str, keys: Sequence[str], columns: Sequence[str], *, decompress: bool
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a topic that have one of the keys, each once, in log order."""
        return self.store.find(topic, keys, select(columns), decompress=decompress)

    def at(self, physical_offsets: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return the sound records that begin at these offsets of the log, in any order."""
        schema = select(columns)
        return pa.Table.from_batches(self.store.rows_at(physical_offsets, schema), schema)

    @property
    def has_index(self) -> bool:
        """Whether keys can be looked up."""
        return bool(self.store.index_names())

    def queue_entries(self, part: QueueRange, tags: TagFilter | None) -> Iterator[pa.RecordBatch]:
        """Yield the entries of a range of a queue; a tag filter compares hashes alone."""
        return views.queue_entries(self, part, tags)

    def index_names(self) -> Sequence[str]:
        """Return the names of the index files, the oldest first."""
        return self.store.index_names()

    def index_size(self) -> int:
        """Return how many entries all index files have."""
        return sum(views.index_entry_count(self, name) for name in self.index_names())

    def index_entries(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield the entries of one index file; none if it is gone meanwhile."""
        return views.index_entries(self, name)

    def table(self, view: str, now_ms: float | None = None) -> pa.RecordBatch:
        """Return one of the small views; ages count up to `now_ms`, or to now."""
        if view == "members":
            return views.members(self)
        return views.groups(self, now_ms) if view == "groups" else views.topics(self)

    def group_names(self, topic: str | None = None) -> set[str]:
        """Return the groups that committed offsets, of a topic or of any."""
        committed = self.store.offsets.all()
        return {group for group, of, *_ in committed if topic in (None, of)}

    def offset_in_log(self, queue: MessageQueue, physical_offset: int) -> int:
        """Return the first offset of a queue whose record begins there in the log, or later."""
        low, end = self.range(queue)
        units = self.reader(queue).queue

        def is_before(offset: int) -> bool:
            unit = units.unit(units.skip_fillers(offset, end))
            return unit is not None and unit.physical_offset < physical_offset

        return first_false(is_before, low, end)


def _status(folder: Path) -> os.stat_result | None:
    try:
        return folder.stat()
    except FileNotFoundError:
        return None
