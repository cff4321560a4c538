"""What is in a store, told without reading its messages.

Queues tell by their ends how many messages there are; two records tell the times. The cost grows
with the number of queues and groups, not of messages. Needs no lock, and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata import is_system_topic
from rocketpy.broker_core.metadata.names import is_notes_group
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.layout import ABORT, LOCK
from rocketpy.broker_core.storage.lock import lock_of
from rocketpy.broker_core.storage.reading import QueueReader
from rocketpy.broker_core.storage.store import MessageStore

_BLOCK = 512  # what st_blocks counts in, whatever the file system's blocks are


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatistics:
    """The commit log. Times are in ms, None where no record tells them."""

    start: int
    end: int | None  # None: neither our tail nor any queue tells it
    files: int
    file_size: int
    size_on_disk: int
    first_stored_ms: int | None
    last_stored_ms: int | None
    has_checksums: bool | None  # of the newest record; older ones may differ


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """One queue holds the messages from `min_offset` up to `max_offset`."""

    queue_id: int
    min_offset: int
    max_offset: int

    @property
    def messages(self) -> int:
        """How many; after damage some may be missing in between."""
        return self.max_offset - self.min_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatistics:
    """One topic, with the queues that have files."""

    name: str
    is_system: bool
    read_queues: int | None  # by config/topics.json; None: it does not know the topic
    queues: tuple[QueueStatistics, ...]

    @property
    def messages(self) -> int:
        """How many in all queues."""
        return sum(queue.messages for queue in self.queues)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatistics:
    """How far a group has read one topic; queues that it never committed count from their start."""

    group: str
    topic: str
    committed: dict[int, int]  # queue -> next offset
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatistics:
    """The index files together."""

    files: int
    entries: int
    size_on_disk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """Whether the store is in use, or was when its process died."""

    is_clean: bool  # stopped properly: no abort file
    abort_pid: int | None  # who left the abort file
    is_abort_pid_alive: bool
    lock_holder_pid: int | None  # who appends right now, or the broker that has it for itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Sizes that every file of its kind has."""

    commit_log_file_size: int
    consume_queue_file_entries: int
    index_slots: int
    index_entries: int
    consume_queue_ext: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatistics:
    """All that is told of a store."""

    path: Path
    size_on_disk: int
    state: StoreState
    log: LogStatistics
    index: IndexStatistics
    geometry: Geometry
    topics: tuple[TopicStatistics, ...]
    groups: tuple[GroupStatistics, ...]


def statistics(store: MessageStore) -> StoreStatistics:
    """Return what is in a store."""
    config = store.parts.config
    topics = tuple(_topics(store))
    return StoreStatistics(
        path=store.root,
        size_on_disk=size_on_disk(store.root),
        state=_state(store),
        log=_log(store),
        index=_index(store),
        geometry=Geometry(
            commit_log_file_size=config.commit_log_file_size,
            consume_queue_file_entries=config.consume_queue_file_entries,
            index_slots=config.index_slots,
            index_entries=config.index_entries,
            consume_queue_ext=config.consume_queue_ext,
        ),
        topics=topics,
        groups=tuple(_groups(store, topics)),
    )


def size_on_disk(path: Path) -> int:
    """Return the bytes that all files of a folder take; holes take none."""
    files = (Path(parent) / name for parent, _, names in os.walk(path) for name in names)
    return sum(_blocks(file) for file in files) * _BLOCK


def _blocks(path: Path) -> int:
    try:
        return path.lstat().st_blocks
    except FileNotFoundError:  # deleted since it was listed
        return 0


def _log(store: MessageStore) -> LogStatistics:
    log = store.parts.log
    starts = log.files.starts()
    newest, end = _newest(store)
    tail = store.parts.tail.read()
    if tail is not None:
        end = max(end or 0, tail.end)
    first = _first_record(log, starts)
    return LogStatistics(
        start=int(log.min_offset()),
        end=end if starts else int(log.min_offset()),
        files=len(starts),
        file_size=log.file_size,
        size_on_disk=size_on_disk(log.files.folder),
        first_stored_ms=first.store_timestamp_ms if first else None,
        last_stored_ms=newest.store_timestamp_ms if newest else None,
        has_checksums=newest.has_checksum if newest else None,
    )


def _newest(store: MessageStore) -> tuple[Message | None, int | None]:
    """Return the newest message that a queue tells of, and the end of the log by the queues."""
    units = [queue.last()[1] for queue in store.parts.queues.all()]
    known = [unit for unit in units if unit is not None and not unit.is_filler]
    if not known:
        return None, None
    newest = max(known)
    return _record(store.parts.log, newest.physical_offset), newest.physical_offset + newest.size


def _first_record(log: CommitLog, starts: list[int]) -> Message | None:
    """Return the first record of the first file that begins with a sound one."""
    found = (_record(log, start) for start in starts)
    return next((message for message in found if message is not None), None)


def _record(log: CommitLog, offset: int) -> Message | None:
    try:
        return log.read(offset)
    except CorruptStoreError:
        return None  # verify tells of it; here it only means that there is nothing to tell


def _topics(store: MessageStore) -> Iterator[TopicStatistics]:
    known = store.topics.all()
    for name in sorted({*known, *store.parts.queues.topics()}):
        yield TopicStatistics(
            name=name,
            is_system=is_system_topic(name),
            read_queues=known[name].read_queues if name in known else None,
            queues=tuple(_queue(store, name, each) for each in store.parts.queues.ids(name)),
        )


def _queue(store: MessageStore, topic: str, queue_id: int) -> QueueStatistics:
    low, high = QueueReader(store.parts, topic, queue_id).range()
    return QueueStatistics(queue_id=queue_id, min_offset=int(low), max_offset=int(high))


def _groups(store: MessageStore, topics: tuple[TopicStatistics, ...]) -> Iterator[GroupStatistics]:
    queues = {topic.name: topic.queues for topic in topics}
    committed: dict[tuple[str, str], dict[int, int]] = {}
    for group, topic, queue_id, queue_offset in store.offsets.all():
        if not is_notes_group(group):
            committed.setdefault((group, topic), {})[queue_id] = queue_offset
    for (group, topic), offsets in sorted(committed.items()):
        lag = sum(
            max(queue.max_offset - max(offsets.get(queue.queue_id, 0), queue.min_offset), 0)
            for queue in queues.get(topic, ())
        )
        yield GroupStatistics(group=group, topic=topic, committed=offsets, lag=lag)


def _index(store: MessageStore) -> IndexStatistics:
    index = store.parts.index
    names = index.names()
    return IndexStatistics(
        files=len(names),
        entries=sum(index.file(name).header().count - 1 for name in names),
        size_on_disk=size_on_disk(index.folder),
    )


def _state(store: MessageStore) -> StoreState:
    abort = store.root / ABORT
    pid = _abort_pid(abort)
    return StoreState(
        is_clean=not abort.exists(),
        abort_pid=pid,
        is_abort_pid_alive=pid is not None and _is_alive(pid),
        lock_holder_pid=_lock_holder(store.root),
    )


def _abort_pid(path: Path) -> int | None:
    try:
        text = path.read_text("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _lock_holder(root: Path) -> int | None:
    """Return who holds the lock; through the process's guard, as closing a descriptor drops it."""
    if not (root / LOCK).exists():
        return None
    try:
        guard = lock_of(root)
    except OSError:  # a read-only disk, or not our file: then the system does not tell us
        return None
    try:
        return guard.holder()
    finally:
        guard.leave()
