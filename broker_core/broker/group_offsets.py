"""How far groups have read, as the clients of a broker commit it: in memory, saved now and then.

G1  What was committed is read at once, by any thread, and is in `config/consumerOffset.json` after
    the next save: a crash loses the commits since the last one, as with Apache's broker.
G2  Others commit to the same file by path. Only what clients committed since the last save is held
    here; the rest is read from the file, and a save changes nothing else in it.
G3  A save that fails loses nothing: the next one tries again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rocketpy.broker_core.metadata.consumer_offsets import CommittedOffset
from rocketpy.broker_core.metadata.names import (
    RETRY_TOPIC_NAME_LIMIT,
    check_group_name,
    check_topic_name,
)
from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)

_Key = tuple[str, str]  # group and topic
_Commits = dict[_Key, dict[int, int]]


class BrokerOffsets:
    """The committed offsets of a broker's groups. Any thread may use it."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._lock = threading.Lock()  # of the tables; held for moments only
        self._writing = threading.RLock()  # of whoever changes the file; taken before the store's
        self._unsaved: _Commits = {}
        self._being_saved: _Commits = {}
        self._pulled: _Commits = {}

    # --- committing -------------------------------------------------------------------------------

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Set the next offset that a group reads in a queue. Never waits for a disk.

        Raises:
            ValueError: the queue or the offset is negative.
            GroupNameError, TopicNameError: it is no such name.
        """
        if queue_id < 0 or queue_offset < 0:
            what = f"offset {queue_offset} of {topic!r:.150} queue {queue_id}"
            raise ValueError(f"{what}: neither may be negative")
        key = group, topic
        if key not in self._unsaved:  # one bad name would spoil the save of all
            check_group_name(group)
            check_topic_name(topic, limit=RETRY_TOPIC_NAME_LIMIT)
        with self._lock:
            self._unsaved.setdefault(key, {})[queue_id] = queue_offset

    def note_pulled(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Note from where a group pulled last; for statistics only, and not saved."""
        with self._lock:
            self._pulled.setdefault((group, topic), {})[queue_id] = queue_offset

    # --- reading ----------------------------------------------------------------------------------

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the next offset that a group reads in a queue; None if it never committed one."""
        with self._lock:
            for table in (self._unsaved, self._being_saved):
                found = table.get((group, topic), {}).get(queue_id)
                if found is not None:
                    return found
        return self._store.offsets.committed(group, topic).get(queue_id)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return the next offset by queue; queues that were never committed are absent."""
        with self._lock:
            newer = self._newer((group, topic))
        return self._store.offsets.committed(group, topic) | newer

    def pulled(self, group: str, topic: str) -> dict[int, int]:
        """Return from where a group pulled last, by queue."""
        with self._lock:
            return dict(self._pulled.get((group, topic), {}))

    def all(self) -> list[CommittedOffset]:
        """Return every committed offset."""
        with self._lock:
            newer = {key: self._newer(key) for key in {*self._being_saved, *self._unsaved}}
        found = {(row.group, row.topic, row.queue_id): row for row in self._store.offsets.all()}
        for (group, topic), queues in newer.items():
            for queue_id, queue_offset in queues.items():
                row = CommittedOffset(group, topic, queue_id, queue_offset)
                found[group, topic, queue_id] = row
        return list(found.values())

    def topics_of(self, group: str) -> list[str]:
        """Return the topics in which a group committed offsets, by name."""
        return sorted({row.topic for row in self.all() if row.group == group})

    def groups_of(self, topic: str) -> list[str]:
        """Return the groups that committed offsets in a topic, by name."""
        return sorted({row.group for row in self.all() if row.topic == topic})

    def _newer(self, key: _Key) -> dict[int, int]:
        return self._being_saved.get(key, {}) | self._unsaved.get(key, {})

    # --- the file ---------------------------------------------------------------------------------

    def save(self) -> None:
        """Write what was committed since the last save: durable on return. May wait for the lock.

        Raises:
            StoreLockedError: another has the store's lock for long; the next save tries again.
            MetadataError: the file cannot be understood.
        """
        with self._writing:
            self._save()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store's lock to change offsets together with something else."""
        with self._writing, self._store.locked():
            yield

    def _save(self) -> None:
        with self._lock:
            self._being_saved, self._unsaved = self._unsaved, {}
        if not self._being_saved:
            return
        try:
            with self._store.locked():
                self._store.offsets.commit_many(self._being_saved)
        except BaseException:
            with self._lock:
                for key in self._being_saved:
                    self._unsaved[key] = self._newer(key)
                self._being_saved = {}
            raise
        with self._lock:
            self._being_saved = {}

    def set(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Set offsets of some queues, durably: going back is meant. May wait for the lock.

        Raises:
            StoreLockedError: another has the store's lock for long.
        """
        with self.locked():
            self._store.offsets.commit(group, topic, offsets)
            with self._lock:
                unsaved = self._unsaved.get((group, topic), {})
                for queue_id in offsets:
                    unsaved.pop(queue_id, None)

    def delete(self, group: str, topic: str | None = None) -> bool:
        """Forget a group's offsets, all or those in one topic; tell whether there were any.

        Durable on return. May wait for the lock.

        Raises:
            StoreLockedError: another has the store's lock for long.
        """
        with self.locked():
            was_there = self._store.offsets.delete(group, topic)
            with self._lock:
                dropped = [self._drop(table, group, topic) for table in self._held()]
            return was_there or any(dropped)

    def delete_topic(self, topic: str) -> None:
        """Forget the offsets of all groups in a topic, as the topic is deleted. May wait.

        Raises:
            StoreLockedError: another has the store's lock for long.
        """
        with self.locked():
            self._store.offsets.delete_topic(topic)
            with self._lock:
                for table in self._held():
                    for key in [key for key in table if key[1] == topic]:
                        del table[key]

    def _held(self) -> tuple[_Commits, ...]:
        return self._unsaved, self._pulled  # nothing is being saved while `_writing` is held

    @staticmethod
    def _drop(table: _Commits, group: str, topic: str | None) -> bool:
        meant = [key for key in table if key[0] == group and topic in (None, key[1])]
        return any([bool(table.pop(key)) for key in meant])
