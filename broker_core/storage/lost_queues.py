"""Queues that lost entries: found without reading the log, and written anew from it.

Where ends are noted (queue_ends.py), one look at each queue tells. Where they are not, as in a
store that only Apache's broker wrote to, sizes tell: the entries of all queues that point into a
log file have to add up to what is in it. Only files where they do not are walked.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from rocketpy.broker_core.codec.layout import BLANK_SIZE, MAGIC_BLANK, SIZE_AND_MAGIC
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.dispatch import dispatches
from rocketpy.broker_core.storage.file_sequence import file_starts
from rocketpy.broker_core.storage.layout import FILLER_SIZE, QUEUE_UNIT_SIZE
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_ends import QueueEnd, QueueKey
from rocketpy.broker_core.storage.recovery import refill

log = logging.getLogger(__name__)

_ENTRIES_AT_ONCE = 1 << 18


def ends_by_entries(parts: StoreParts) -> dict[QueueKey, QueueEnd]:
    """Return where queues end by their own entries."""
    ends = {}
    for queue in parts.queues.all():
        end, last = queue.last()
        if last is not None:
            ends[queue.topic, queue.queue_id] = QueueEnd(end, last.physical_offset)
    return ends


def later_ends(
    some: Mapping[QueueKey, QueueEnd], others: Mapping[QueueKey, QueueEnd]
) -> dict[QueueKey, QueueEnd]:
    """Return the end of each queue that either knows; of both, the later one in the log."""
    found = dict(some)
    for key, end in others.items():
        if key not in found or found[key].physical_offset < end.physical_offset:
            found[key] = end
    return found


def queues_without_files(
    parts: StoreParts, ends: Mapping[QueueKey, QueueEnd]
) -> Iterator[QueueKey]:
    """Yield the queues that lack the file of their last entry, or one before it.

    That their first file is missing is for queue_bounds.py to find: retention deletes it as well.
    """
    file_size = parts.config.consume_queue_file_entries * QUEUE_UNIT_SIZE
    for (topic, queue_id), end in ends.items():
        at = (end.next_offset - 1) * QUEUE_UNIT_SIZE
        last = at - at % file_size
        starts = file_starts(parts.queues.folder / topic / str(queue_id))
        wanted = range(starts[0], last + 1, file_size) if starts else ()
        if last not in wanted or not set(wanted) <= {*starts}:
            yield topic, queue_id


def queues_without_entries(parts: StoreParts, end: int) -> set[QueueKey]:
    """Return the queues that lack entries of records before `end`: reads all queues, no bodies."""
    lacking: set[QueueKey] = set()
    removed = parts.removed_topics.read().ends
    for start in _uncovered_files(parts, end):
        for segment in parts.log.walk(start, min(end, start + parts.log.file_size)):
            if segment.block is None:
                continue
            found = dispatches(segment.block, segment.file_start, parts.config, removed)
            for dispatch in found:
                for queue, rows in dispatch.by_queue(parts.queues):
                    physical = dispatch.physical_offsets[rows]
                    if not _has_entries(queue, dispatch.queue_offsets[rows], physical):
                        lacking.add((queue.topic, queue.queue_id))
    return lacking


def _uncovered_files(parts: StoreParts, end: int) -> Iterator[int]:
    """Yield the starts of log files that hold records which no entry points at."""
    size, starts = parts.log.file_size, parts.log.files.starts()
    if not starts:
        return
    oldest, count = starts[0], max(end - starts[0], 0) // size + 1
    covered, tops = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for queue in parts.queues.all():
        first, stop = int(queue.first_offset()), int(queue.end())
        for begin in range(first, stop, _ENTRIES_AT_ONCE):
            units = queue.units(begin, min(stop, begin + _ENTRIES_AT_ONCE))
            physical, sizes = units["physical_offset"].astype(np.int64), units["size"]
            counts = (sizes != FILLER_SIZE) & (physical >= oldest) & (physical < end)
            physical, lengths = physical[counts], sizes[counts].astype(np.int64)
            files = (physical - oldest) // size
            np.add.at(covered, files, lengths)
            np.maximum.at(tops, files, physical + lengths)
    for number, (bytes_covered, top) in enumerate(zip(covered, tops, strict=True)):
        start = oldest + number * size
        if start < end and bytes_covered != _filled_to(parts, start, int(top), end) - start:
            yield start


def _filled_to(parts: StoreParts, start: int, top: int, end: int) -> int:
    """Return where the records of a file end: before its blank record, or at the end of the log."""
    following = start + parts.log.file_size
    if end < following:
        return end
    head = parts.log.files.read(max(top, start), BLANK_SIZE)
    if len(head) == BLANK_SIZE:
        length, magic = SIZE_AND_MAGIC.unpack(head)
        if magic == MAGIC_BLANK and length == following - max(top, start):
            return max(top, start)
    return following


def _has_entries(queue: ConsumeQueue, offsets: np.ndarray, physical: np.ndarray) -> bool:
    first, last = int(offsets.min()), int(offsets.max())
    units = queue.units(first, last + 1)
    if len(units) <= last - first:
        return False
    return bool((units["physical_offset"][offsets - first] == physical).all())


def restore_queues(
    parts: StoreParts, lost: Collection[QueueKey], ends: Mapping[QueueKey, QueueEnd]
) -> None:
    """Write the entries of queues anew from the log. Call while holding the store's lock.

    Numbers of messages that the log no longer has are kept by fillers: none is given twice.

    Raises:
        CorruptStoreError: the log lacks messages that it should have.
    """
    names = ", ".join(f"{topic}/{queue_id}" for topic, queue_id in sorted(lost)[:10])
    log.warning(
        "%s: %d queues have lost entries (%s%s); writing them anew from the log",
        *(parts.root, len(lost), names, ", …" if len(lost) > 10 else ""),
    )
    refill(parts, lost)
    for key in lost:
        queue, expected = parts.queues.get(*key), ends.get(key)
        end, last = queue.last()
        if expected is None or not expected.is_lost_in(end, last):
            continue
        if expected.physical_offset >= parts.log.min_offset():
            reason = (
                f"the queue ends here, but had {expected.next_offset} messages, and the log does "
                "not lead to the last of them: run `rocketpy store repair`"
            )
            raise CorruptStoreError(queue.files.folder, end, reason)
        at = (expected.next_offset - 1) * QUEUE_UNIT_SIZE
        queue.fill(max(end, queue.files.start_of(at) // QUEUE_UNIT_SIZE), expected.next_offset)
