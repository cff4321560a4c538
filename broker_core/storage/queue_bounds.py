"""Which offsets of a queue can be read: by its entries, the log, and what was lost of either.

Readers find the end of a queue themselves. The last entry counts only when it agrees with the
record it points at, so a store that a broker, Apache's included, writes to can be read meanwhile.
Entries of an append that is not published yet are left out.
A process that may write restores lost entries; one that may not reports them.
"""

from __future__ import annotations

import time

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message import QueueOffset
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue, QueueUnit
from rocketpy.broker_core.storage.layout import ABORT
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.published import look
from rocketpy.broker_core.storage.queue_ends import QueueEnd, ends_in
from rocketpy.broker_core.storage.recent_ranges import Range

_LOOKS, _LOOK_AGAIN_S = 10, 0.1  # for what a writer is just restoring
_NOTED_S = 600.0


class QueueBounds:
    """The offsets that one queue holds. Any thread or process may ask while others write."""

    def __init__(self, parts: StoreParts, topic: str, queue_id: int) -> None:
        self._parts, self._key = parts, (topic, queue_id)

    @property
    def queue(self) -> ConsumeQueue:
        """The queue; not kept, so that readers of many queues do not keep all their files open."""
        return self._parts.queues.get(*self._key)

    def range(self) -> Range:
        """Return the first offset that can be read and the one after the last.

        Raises:
            CorruptStoreError: entries of the queue are lost, and the store is only read.
        """
        self._parts.drop_removed()
        expected = self._parts.expected_end(self._key)
        end, last = self._published()
        if expected is not None and expected.is_lost_in(end, last):
            end, last = self._restored(expected)
        # In a store that was stopped cleanly such an entry is damaged: reading it says so.
        is_in_use = (self._parts.root / ABORT).exists
        if last is not None and not self._agrees(end - 1, last) and is_in_use():
            end = QueueOffset(first_false(self._is_readable, self.queue.first_offset(), end - 1))
        low = self._low(end)
        if self._lacks_first_entries(low, end):
            self._restore_front(low)
            low = self._low(end)
        return low, end

    def recent_range(self) -> Range:
        """Return what range() does, from memory where that is as good: see recent_ranges.py."""
        return self._parts.recent_ranges.get(self._key, self.range)

    def noted_range(self) -> Range:
        """Return what recent_range() does, with a beginning that may be some minutes old.

        For a broker that looks at all its queues time and again: it costs next to nothing while
        only this process appends. Appends of other processes of ours are seen at once; Apache's
        broker, which tells nobody, must not have the store.
        """
        self._parts.drop_removed()
        return self._parts.recent_ranges.get(self._key, self.range, within_s=_NOTED_S)

    def _published(self) -> tuple[QueueOffset, QueueUnit | None]:
        """Return the end of the queue and its last entry, without those of an append under way."""
        (end, last), limit = look(self._parts, lambda: self.queue.last(), _log_end_of)
        if limit is None:
            return end, last

        def counts(offset: int) -> bool:
            unit = self.queue.unit(offset)
            return unit is not None and (unit.is_filler or unit.physical_offset < limit)

        end = QueueOffset(first_false(counts, self.queue.first_offset(), end))
        return end, self.queue.unit(end - 1) if end else None

    def _low(self, end: int) -> QueueOffset:
        return self.queue.min_offset(self._parts.log.min_offset(), end)

    def _restored(self, expected: QueueEnd) -> tuple[QueueOffset, QueueUnit | None]:
        """Return the end of a queue that seemed to have lost entries, once it has them."""
        self.queue.files.close()  # what is open here may have been removed, and restored since
        for looks_left in reversed(range(_LOOKS)):
            end, last = self._published()
            if not expected.is_lost_in(end, last):
                return end, last
            if self._parts.restore_queue is not None:
                self._parts.restore_queue(self._key)
            elif looks_left:  # a writer may be about to restore it
                time.sleep(_LOOK_AGAIN_S)
        reason = f"the queue ends here, the log has messages of it up to {expected.next_offset - 1}"
        raise self._lost(end, reason)

    def _lacks_first_entries(self, low: int, end: int) -> bool:
        """Whether the log has messages of the queue before the first that has an entry.

        Where entries of older messages, which the log no longer has, still stand before it, no
        file is missing: so the log is walked only in the odd case.
        """
        first = self.queue.first_offset()
        unit = self.queue.unit(low) if first > self.queue.first_checked and low < end else None
        if unit is None or self.queue.skip_fillers(first, end) != low:
            return False
        removed_to = self._parts.removed_topics.read().end_of(self._key[0])
        oldest = max(int(self._parts.log.min_offset()), removed_to)
        for segment in self._parts.log.walk(oldest, unit.physical_offset):
            block = segment.block
            if block is not None and self._key in dict(ends_in(block, segment.file_start)):
                return True
        self.queue.first_checked = first
        return False

    def _restore_front(self, low: int) -> None:
        if self._parts.restore_queue is None:
            raise self._lost(low, "the queue begins here, the log has older messages of it")
        self._parts.restore_queue(self._key)

    def _lost(self, offset: int, what: str) -> CorruptStoreError:
        reason = (
            f"{what}: entries are lost. Open the store for writing, and they are written anew "
            "from the log; or run `rocketpy store repair`"
        )
        return CorruptStoreError(self.queue.files.folder, offset, reason)

    def _is_readable(self, offset: int) -> bool:
        unit = self.queue.unit(offset)
        return unit is not None and (unit.is_filler or self._agrees(offset, unit))

    def _agrees(self, offset: int, unit: QueueUnit) -> bool:
        if unit.is_filler:
            return True
        try:
            message = self._parts.log.read(unit.physical_offset)
        except CorruptStoreError:
            # Older than the oldest file: gone by retention, not by damage.
            return unit.physical_offset < self._parts.log.min_offset()
        return (
            message.queue_offset == offset
            and message.queue_id == self.queue.queue_id
            and message.topic == self.queue.topic
        )

    def timestamp(self, offset: int) -> int | None:
        """Return the store time of an entry's record; None for an entry that has none."""
        unit = self.queue.unit(offset)
        if unit is None or unit.is_filler:
            return None
        return self._parts.log.read(unit.physical_offset).store_timestamp_ms

    def offset_by_time(self, time_ms: int, *, upper: bool = False) -> QueueOffset:
        """Return the first offset stored at or after a time; `upper`: the last at or before it.

        Without such a message it is the end of the queue; with `upper`, its start.
        """
        low, end = self.range()

        def is_before(offset: int) -> bool:
            stored = self.timestamp(self.queue.skip_fillers(offset, end))
            return stored is None or (stored <= time_ms if upper else stored < time_ms)

        found = first_false(is_before, low, end)
        return QueueOffset(max(found - 1, low) if upper else found)


def _log_end_of(last: tuple[int, QueueUnit | None]) -> int:
    """Return up to where in the log a queue's last entry leads."""
    _, unit = last
    return unit.physical_offset + unit.size if unit and not unit.is_filler else 0
