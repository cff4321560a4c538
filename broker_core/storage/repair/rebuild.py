"""Rebuilding consume queues and index from the records of a mended log.

A queue's entries keep their numbers. Where messages are missing, fillers stand in; the gaps and the
free room of the log are noted, so that placeholders can be written there (placeholders.py).

Records whose header cannot be true are found out here, because only neighbours tell: without a
record check sum nothing covers a header. Such a record contradicts both the one before it and the
one after it in its queue; it becomes padding like any other damage, so that nobody dispatches it
later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import MIN_RECORD_SIZE
from rocketpy.broker_core.codec.sys_flags import indexed, queued
from rocketpy.broker_core.errors import CorruptStoreError, TopicNameError
from rocketpy.broker_core.metadata.names import RETRY_TOPIC_NAME_LIMIT, check_topic_name
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.dispatch import REMOVED_QUEUE, Dispatch, dispatches
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.recovery import Progress
from rocketpy.broker_core.storage.repair.mend import LogMender
from rocketpy.broker_core.storage.repair.padding import is_padding_topic
from rocketpy.broker_core.storage.repair.placeholders import Gap, LostOffsets, Room

_MOST_UNEXPLAINED = 1 << 20  # missing messages that two records in a row confirm


@dataclass(slots=True)
class Rebuild:
    """Writes the queues and the index of a store that has none."""

    parts: StoreParts
    mender: LogMender
    records: int = 0
    stored_ms: int = 0
    topics: dict[str, int] = field(default_factory=dict)  # messages in queues
    ends: dict[tuple[str, int], int] = field(default_factory=dict)  # queue -> next offset
    gaps: list[Gap] = field(default_factory=list)
    rooms: list[Room] = field(default_factory=list)  # free bytes, in log order
    repeated: int = 0  # offsets that a later message took over, as in a topic made anew
    _last_offsets: dict[tuple[str, int], int] = field(default_factory=dict)  # physical ones
    _missing_bytes: int = 0

    def run(self, end: int, progress: Progress | None = None) -> None:
        """Dispatch all records up to `end`."""
        oldest = int(self.parts.log.min_offset())
        self._missing_bytes = sum(skipped.size for skipped in self.mender.skipped)
        position = oldest
        for segment in self.parts.log.walk(oldest, end):
            if segment.block is not None:
                self._dispatch(segment.block, segment.file_start)
            else:
                self.rooms.append(Room(position, segment.end, ends_file=True))
            position = segment.end
            if progress is not None:
                progress(min(position, end) - oldest, end - oldest)
        if position < end:
            folder = self.parts.log.files.folder
            raise CorruptStoreError(folder, position, "the log was changed while it was repaired")

    def _dispatch(self, block: RecordBlock, file_start: int) -> None:
        removed = self.parts.removed_topics.read().ends
        found = list(dispatches(block, file_start, self.parts.config, removed))
        self._note_padding(found)
        strays = dict(_nameless(block, file_start, found))
        for dispatch in found:
            strays.update(self._strays(dispatch))
        if strays:
            self.mender.stored_ms = int(np.median(block.store_timestamps))
            self._replace(strays)
            kept = ~np.isin(block.starts + file_start, list(strays))
            block = block.take(np.flatnonzero(kept))
            found = list(dispatches(block, file_start, self.parts.config, removed))
        for dispatch in found:
            self._begin_queues(dispatch)
        for target in self.parts.targets:
            target.put(found)
        for dispatch in found:
            self._close_queues(dispatch)
        self.records += sum(int((~_is_padding(dispatch)).sum()) for dispatch in found)
        self.stored_ms = max(self.stored_ms, int(block.store_timestamps.max(initial=0)))

    def _note_padding(self, found: list[Dispatch]) -> None:
        spans: list[tuple[int, int]] = []
        for dispatch in found:
            rows = np.flatnonzero(_is_padding(dispatch))
            starts, sizes = dispatch.physical_offsets[rows], dispatch.sizes[rows]
            spans += zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        self._missing_bytes += sum(end - start for start, end in spans)
        self.rooms += [Room(start, end, ends_file=False) for start, end in sorted(spans)]

    # --- which records to believe ---------------------------------------------------------------

    def _strays(self, dispatch: Dispatch) -> Iterator[tuple[int, int]]:
        """Yield physical offset and size of the records that cannot be what they say."""
        for queue_id, rows in _rows_by_queue(dispatch):
            offsets = dispatch.queue_offsets[rows]
            if queue_id < 0 or not _is_topic(dispatch.topic):
                wrong = np.ones(len(rows), bool)
            else:
                wrong = self._wrong(self.ends.get((dispatch.topic, queue_id)), offsets)
            for row in rows[wrong]:
                yield int(dispatch.physical_offsets[row]), int(dispatch.sizes[row])

    def _wrong(self, due: int | None, offsets: Ints) -> npt.NDArray[np.bool_]:
        wrong = np.zeros(len(offsets), bool)
        if offsets[0] == (due or 0) and (np.diff(offsets) == 1).all():
            return wrong
        following = [*offsets[1:].tolist(), None]
        for row, offset in enumerate(offsets.tolist()):
            if self._is_credible(due, offset, following[row]):
                due = offset + 1
            else:
                wrong[row] = True
        return wrong

    def _is_credible(self, due: int | None, offset: int, following: int | None) -> bool:
        """Whether a message may have an offset, by those before and after it in its queue."""
        if offset < 0:
            return False
        if due is None:  # the queue's first message: what was before may be gone with old files
            due = 0 if self.parts.log.min_offset() == 0 else offset
        gap, explained = offset - due, self._missing_bytes // MIN_RECORD_SIZE
        if gap == 0:
            return True
        if following == offset + 1:
            return gap <= max(explained, _MOST_UNEXPLAINED)
        if following in (due, due + 1):
            return False
        return offset == 0 or 0 < gap <= explained

    def _replace(self, strays: Mapping[int, int]) -> None:
        for at, size in strays.items():
            self.mender.replace(at, at + size, "a record whose queue contradicts it")
            self.rooms.append(Room(at, at + size, ends_file=False))
            self._missing_bytes += size

    # --- queues and index -----------------------------------------------------------------------

    def _begin_queues(self, dispatch: Dispatch) -> None:
        for queue_id, (first, _) in dispatch.offset_ranges().items():
            if (dispatch.topic, queue_id) not in self.ends:
                self._begin(self.parts.queues.get(dispatch.topic, queue_id), first)

    def _close_queues(self, dispatch: Dispatch) -> None:
        for queue_id, rows in _rows_by_queue(dispatch):
            queue = self.parts.queues.get(dispatch.topic, queue_id)
            self._close_gaps(queue, dispatch, rows)
            self.topics[queue.topic] = self.topics.get(queue.topic, 0) + len(rows)

    def _begin(self, queue: ConsumeQueue, first: int) -> None:
        """Begin a queue; in a log that was never shortened each begins at 0."""
        key = queue.topic, queue.queue_id
        oldest = self.parts.log.min_offset()
        self.ends[key] = first if oldest else 0
        self._last_offsets[key] = oldest
        if first and oldest:
            queue.fill_before(first)

    def _close_gaps(
        self, queue: ConsumeQueue, dispatch: Dispatch, rows: npt.NDArray[np.intp]
    ) -> None:
        """Put fillers where offsets were left out, and cut what offsets that went back left."""
        key = queue.topic, queue.queue_id
        offsets, physical = dispatch.queue_offsets[rows], dispatch.physical_offsets[rows]
        due = np.append(self.ends[key], offsets[:-1] + 1)
        before = np.append(self._last_offsets[key], physical[:-1])
        for row in np.flatnonzero(offsets > due):
            lost = LostOffsets(*key, int(due[row]), int(offsets[row]))
            queue.fill(lost.start, lost.end)
            stored_ms = int(dispatch.timestamps[rows[row]])
            self.gaps.append(Gap(lost, int(before[row]), int(physical[row]), stored_ms))
        back = due - offsets
        if (back > 0).any():
            self.repeated += int(back[back > 0].sum())
            queue.cut(int(offsets[-1]) + 1)
        self.ends[key], self._last_offsets[key] = int(offsets[-1]) + 1, int(physical[-1])


def _nameless(
    block: RecordBlock, file_start: int, found: list[Dispatch]
) -> Iterator[tuple[int, int]]:
    """Yield physical offset and size of records whose topic is no name."""
    if sum(len(dispatch.sizes) for dispatch in found) == len(block):
        return
    physical = block.starts + file_start
    known = [dispatch.physical_offsets for dispatch in found]
    named = np.isin(physical, np.concatenate([np.zeros(0, np.int64), *known]))
    for row in np.flatnonzero(~named & indexed(block.sys_flags)):
        yield int(physical[row]), int(block.sizes[row])


def _is_padding(dispatch: Dispatch) -> npt.NDArray[np.bool_]:
    return is_padding_topic(dispatch.topic) & ~indexed(dispatch.sys_flags)


def _rows_by_queue(dispatch: Dispatch) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    rows = np.flatnonzero(queued(dispatch.sys_flags) & (dispatch.queue_ids != REMOVED_QUEUE))
    for queue_id in np.unique(dispatch.queue_ids[rows]).tolist():
        yield queue_id, rows[dispatch.queue_ids[rows] == queue_id]


def _is_topic(name: str) -> bool:
    try:
        check_topic_name(name, limit=RETRY_TOPIC_NAME_LIMIT)
    except TopicNameError:
        return False
    return True
