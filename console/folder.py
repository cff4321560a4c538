"""A store's folder, looked into: files are read, no lock is taken, nothing is changed.

Whoever serves the folder, or nobody: pages show the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.doctor.store_checks import check_store
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.errors import (
    CorruptStoreError,
    OffsetOutOfRangeError,
    RocketPyError,
    TopicNotFoundError,
)
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import is_notes_group
from rocketpy.broker_core.metrics.facts import Facts, ScrapeOptions
from rocketpy.broker_core.metrics.folder_source import FolderSource
from rocketpy.broker_core.protocol.message_trace import MessageTrace
from rocketpy.broker_core.rebalance.generation import read_generation
from rocketpy.broker_core.rebalance.membership import read_members
from rocketpy.broker_core.rebalance.records import GroupRecord
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.console.answers import (
    ConnectedMember,
    ConnectedProducer,
    GroupQueueLine,
    Heard,
    MessageFilter,
    PlaceKind,
    QueueLine,
    QueueSize,
    StoredMessage,
    TopicLine,
    Trouble,
)
from rocketpy.console.reader import Ranges
from rocketpy.console.rows import COLUMNS, messages_of
from rocketpy.console.sharing import SharedGroup, shared_of
from rocketpy.console.sizes import size_of_entries


class FolderReader:
    """Looks into one store directory. Any thread may ask."""

    kind: PlaceKind = "folder"

    def __init__(self, path: Path) -> None:
        """Open the store to be read.

        Raises:
            StoreNotFoundError, UnsupportedStoreError, CorruptStoreError
        """
        self.title = str(path)
        self._path, self._clock = path, SystemClock()
        messages = MessageStore(path, StoreConfig(), clock=self._clock, read_only=True)
        self._messages = messages
        self._store, self._source = Store(messages), FolderSource(messages)
        self._broker = messages.config.broker_name

    def look(self) -> Facts:
        """Return what files tell."""
        return self._source.look(ScrapeOptions())

    def check(self) -> Sequence[Finding]:
        """Return what the doctor finds; it reads every byte of a store that is not large."""
        return [*check_store(self._path, self._clock)]

    def topics(self) -> Heard[Mapping[str, TopicLine]]:
        """Return all topics."""
        brokers = (self._broker,)
        return Heard(
            {
                name: TopicLine(name, each.read_queues, each.write_queues, each.perm, brokers)
                for name, each in self._store.topics().items()
            }
        )

    def own_topics(self) -> frozenset[str]:
        """Return nothing: a folder needs no topics of brokers."""
        return frozenset()

    def queues(
        self, topics: Iterable[TopicLine], *, with_first: bool = False
    ) -> Heard[Mapping[str, Sequence[QueueLine]]]:
        """Return the queues of topics."""
        found: dict[str, Sequence[QueueLine]] = {}
        troubles = []
        for topic in topics:
            try:
                found[topic.name] = [
                    self._queue(topic.name, queue_id, *bounds, with_first=with_first)
                    for queue_id, bounds in self._store.queues(topic.name).items()
                ]
            except RocketPyError as error:  # of this topic alone
                troubles.append(Trouble(topic.name, str(error)))
        return Heard(found, tuple(troubles))

    def _queue(
        self, topic: str, queue_id: int, first: int, end: int, *, with_first: bool
    ) -> QueueLine:
        is_empty = first >= end
        return QueueLine(
            broker=self._broker,
            queue_id=queue_id,
            first=first,
            end=end,
            first_ms=None if is_empty or not with_first else self._time(topic, queue_id, first),
            last_ms=None if is_empty else self._time(topic, queue_id, end - 1),
            size=self._size(topic, queue_id, first, end) if with_first else None,
        )

    def _size(self, topic: str, queue_id: int, first: int, end: int) -> QueueSize:
        if first >= end:
            return QueueSize(0, False)
        return size_of_entries(self._messages.queue(topic, queue_id).queue, first, end)

    def _time(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        try:
            return self._store.stored_ms(topic, queue_id, queue_offset)
        except CorruptStoreError:  # retention took it meanwhile, or it is damaged: the doctor tells
            return None

    def groups(self) -> Heard[Sequence[str]]:
        """Return all groups."""
        read = {row.group for row in self._store.group_offsets.all()}
        return Heard(sorted(self._store.groups().keys() | read))

    def groups_of(self, topic: str) -> Heard[Sequence[str]]:
        """Return the groups that committed something in a topic."""
        rows = self._store.group_offsets.all()
        return Heard(
            sorted(
                {row.group for row in rows if row.topic == topic and not is_notes_group(row.group)}
            )
        )

    def progress(self, group: str) -> Heard[Sequence[GroupQueueLine]]:
        """Return how far a group is; queues that it never committed count from their first."""
        topics = sorted(
            {row.topic for row in self._store.group_offsets.all() if row.group == group}
        )
        found: list[GroupQueueLine] = []
        troubles = []
        for topic in topics:
            try:
                found += self._progress(group, topic)
            except RocketPyError as error:
                troubles.append(Trouble(topic, str(error)))
        return Heard(found, tuple(troubles))

    def _progress(self, group: str, topic: str) -> list[GroupQueueLine]:
        committed, now_ms = self._store.committed(group, topic), int(time.time() * 1000)
        found = []
        for queue_id, (first, end) in self._store.queues(topic).items():
            at = max(committed.get(queue_id, first), first)
            stored_ms = self._time(topic, queue_id, at) if at < end else None
            age_ms = 0 if at >= end else stored_ms and max(now_ms - stored_ms, 0)
            found.append(GroupQueueLine(topic, self._broker, queue_id, at, end, age_ms))
        return found

    def members(self, group: str) -> Heard[Sequence[ConnectedMember] | None]:
        """Return None: files do not tell who is connected."""
        del group
        return Heard(None)

    def shared(self, group: str) -> Heard[SharedGroup | None]:
        """Return the members that share the queues of a group."""
        try:
            record = GroupRecord(
                read_members(self._path, group), read_generation(self._path, group)
            )
        except RocketPyError as error:
            return Heard(None, (Trouble(group, str(error)),))
        return Heard(shared_of(record, self._clock.now_ms()))

    def producers(self, topic: TopicLine) -> Heard[Sequence[ConnectedProducer] | None]:
        """Return None: files do not tell who is connected."""
        del topic
        return Heard(None)

    def ranges(self, topic: str, since_ms: int | None, until_ms: int | None) -> Heard[Ranges]:
        """Return the offsets that queues hold between two times."""
        found = {}
        for queue_id, (first, end) in self._store.queues(topic).items():
            if since_ms is not None:
                first = max(first, self._store.offset_by_time(topic, queue_id, since_ms))
            if until_ms is not None:
                end = min(end, self._store.offset_by_time(topic, queue_id, until_ms))
            found[MessageQueue(topic, self._broker, queue_id)] = (first, max(first, end))
        return Heard(found)

    def read(
        self, queue: MessageQueue, start: int, end: int, wanted: MessageFilter
    ) -> Sequence[StoredMessage]:
        """Return messages of a queue; none if they are not there, or no more."""
        try:
            batches = self._store.read(
                queue.topic,
                columns=COLUMNS.names,
                queue_id=queue.queue_id,
                start=start,
                end=end,
                tags=wanted.tag,
                sql=wanted.sql,
            )
        except OffsetOutOfRangeError:
            return ()
        return [*messages_of(batches)]

    def with_key(
        self, topic: str, key: str, *, is_unique: bool = False
    ) -> Heard[Sequence[StoredMessage]]:
        """Return messages by the index."""
        try:
            table = self._store.query(topic, key=key, columns=COLUMNS.names)
        except TopicNotFoundError:
            return Heard(())
        return Heard(
            [
                each
                for each in messages_of(table.to_batches())
                if (each.uniq_key == key if is_unique else key in each.keys)
            ]
        )

    def trace(self, uniq_key: str) -> MessageTrace | None:
        """Return a trace by the index."""
        try:
            return self._store.trace(uniq_key)
        except TopicNotFoundError:
            return None

    def by_id(self, msg_id: str) -> StoredMessage:
        """Return a message by its offset id."""
        (message,) = messages_of(self._store.get(msg_id, columns=COLUMNS.names).to_batches())
        return message

    def interrupt(self) -> None:
        """Do nothing: files do not keep one waiting."""

    def close(self) -> None:
        """Close the store."""
        self._store.close()
