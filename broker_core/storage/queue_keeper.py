"""Keeps queues complete: an append asks here where a queue ends, and tells what it wrote.

K1  A queue that ends before what the log has of it is restored before it gets its next message: no
    number is given twice.
K2  What is published has its entry in a file that is there. Somebody may remove the files of a
    queue at any moment, and what is written to a removed file is lost: so the files are looked at
    after each write, before the append is published.
The store's lock is held in all calls but read_ahead().
"""

from __future__ import annotations

from collections.abc import Callable

from rocketpy.broker_core.storage.lost_queues import (
    ends_by_entries,
    later_ends,
    queues_without_entries,
    queues_without_files,
    restore_queues,
)
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_bounds import QueueBounds
from rocketpy.broker_core.storage.queue_ends import NotedEnds, QueueEnd, QueueEnds, QueueKey


class QueueKeeper:
    """What one process that may write knows of the ends of queues."""

    def __init__(self, parts: StoreParts, is_deleted: Callable[[str], bool]) -> None:
        self._parts = parts
        self._is_deleted = is_deleted  # whether a topic without files was deleted on purpose
        self.ends = QueueEnds(parts.log, NotedEnds(0, {}))  # is told each append of our own

    def take_up(self, log_end: int, *, replayed: bool) -> None:
        """Learn where queues end by the log, and restore those that lost entries. At opening.

        `replayed` says that recovery has just written the entries of all that came since the note.
        """
        noted = self._parts.queue_ends.read()
        if noted is None or noted.upto > log_end:
            found = queues_without_entries(self._parts, log_end)
            lacking = {key for key in found if not self._is_deleted(key[0])}
            if lacking:
                restore_queues(self._parts, lacking, {})
            noted = NotedEnds(log_end, ends_by_entries(self._parts))
        elif replayed:
            noted = NotedEnds(log_end, later_ends(noted.ends, ends_by_entries(self._parts)))
        self.ends = QueueEnds(self._parts.log, noted)
        for key, end in self.checked(log_end).ends.items():
            unit = self._parts.queues.get(*key).unit(end.next_offset - 1)
            if unit is None or unit.physical_offset != end.physical_offset:
                self._end_of(key, end)
            if self._parts.queues.get(*key).first_offset():
                QueueBounds(self._parts, *key).range()  # restores it if its first files are lost

    def read_ahead(self) -> None:
        """Read what others appended, so that little is left to read under the lock."""
        state = self._parts.tail.glimpse()
        if state is not None:
            self.ends.read_on(state.end)

    def checked(self, log_end: int) -> NotedEnds:
        """Return where all queues end; those that lost their files are restored."""
        for key in self._parts.queues.removed():
            self._parts.queues.forget(key)
        noted = self._counting(self.ends.read_on(log_end))
        missing = set(queues_without_files(self._parts, noted.ends))
        deleted = {key for key in missing if self._is_deleted(key[0])}
        self.ends.forget(deleted)
        if missing - deleted:
            restore_queues(self._parts, missing - deleted, noted.ends)
        kept = {key: end for key, end in noted.ends.items() if key not in deleted}
        return NotedEnds(noted.upto, kept)

    def restore(self, key: QueueKey, log_end: int) -> None:
        """Write the entries of a queue anew: a reader found that some are lost."""
        expected = self._exact(key, log_end)
        restore_queues(self._parts, [key], {key: expected} if expected else {})

    def next_offset(self, key: QueueKey, log_end: int) -> int:
        """Return the queue offset that the next message of a queue gets.

        It reads what others appended. An end that is known from before does not suffice: others
        may have written entries after it that were lost again, or not finished restoring them.
        """
        return self._end_of(key, self._exact(key, log_end))

    def _exact(self, key: QueueKey, log_end: int) -> QueueEnd | None:
        found = self.ends.exact(key, log_end)
        removed_to = self._parts.removed_topics.read().end_of(key[0])
        return None if found is None or found.physical_offset < removed_to else found

    def _counting(self, noted: NotedEnds) -> NotedEnds:
        """Return the ends of queues without those that went with a topic that was deleted."""
        removed = self._parts.removed_topics.read()
        gone = {
            key
            for key, end in noted.ends.items()
            if removed.ends and end.physical_offset < removed.end_of(key[0])
        }
        if not gone:
            return noted
        self.ends.forget(gone)
        return noted._replace(ends={k: end for k, end in noted.ends.items() if k not in gone})

    def after_writing(self, key: QueueKey, start: int, end: QueueEnd) -> None:
        """See to it that entries from `start` on, just written, are in files that are there."""
        if self._parts.queues.get(*key).is_kept(start):
            return
        self._parts.queues.forget(key)
        first = max(start - 1, 0)
        units = self._parts.queues.get(*key).units(first, end.next_offset)
        if len(units) < end.next_offset - first or not units["size"].all():
            restore_queues(self._parts, [key], {key: end})

    def _end_of(self, key: QueueKey, expected: QueueEnd | None) -> int:
        """Return where a queue ends, by files that are there; if that is too early, restore it."""
        queue = self._parts.queues.get(*key)
        if queue.files.has_removed():
            self._parts.queues.forget(key)
            queue = self._parts.queues.get(*key)
        end, last = queue.last()
        if expected is not None and expected.is_lost_in(end, last):
            restore_queues(self._parts, [key], {key: expected})
            end, _ = self._parts.queues.get(*key).last()
        return end
