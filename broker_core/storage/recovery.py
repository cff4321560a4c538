"""Opening a store: find the end of the log, cut what a crash tore, redo what it left undone.

Replaying is one procedure for three occasions: an append that died, a writer that we do not know
(Apache's broker) since we looked last, and an unclean stop. It walks sound records, writes their
queue and index entries anew (which changes nothing where they are there already), and stops at the
first bytes that are no sound record. What lies behind is cut: made zero and synced before anything
is appended, so that it can't come back to life after a second crash.

A record that was durable and is damaged is not the trace of a crash. Then nothing is cut.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message import PhysicalOffset
from rocketpy.broker_core.storage.checkpoint import read_checkpoint
from rocketpy.broker_core.storage.commit_log import Segment, first_timestamp
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue, last_true
from rocketpy.broker_core.storage.consume_queue_ext import is_address
from rocketpy.broker_core.storage.dispatch import Dispatch, dispatches, put_all
from rocketpy.broker_core.storage.layout import CUT, QUEUE_UNIT_SIZE, file_name
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.salvage import next_sound_record
from rocketpy.broker_core.storage.tail import TailState

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]  # bytes done, bytes in all


class _QueueHole(Exception):
    """A queue lacks entries before the place where replaying began."""


@dataclass(slots=True)
class _Replay:
    """Walks the log from `start` and dispatches what is sound."""

    parts: StoreParts
    start: int
    index_from: int  # records before it are in the index
    is_whole: bool = False  # from the oldest record on: nothing is missing before it
    end: int = 0
    stored_ms: int = 0
    touched: dict[tuple[str, int], int] = field(default_factory=dict)  # queue -> end

    def run(self, progress: Progress | None = None) -> None:
        self.end = self.start
        total = sum(self.parts.log.file_size for _ in self.parts.log.files.starts())
        for segment in self.parts.log.walk(self.start):
            if segment.block is None:
                self.end = segment.end
                continue
            block = sound_prefix(segment, segment.block)
            if len(block):
                self._dispatch(block, segment.file_start)
            if len(block) < len(segment.block):
                return
            if progress is not None:
                progress(self.end - self.start, total)

    def _dispatch(self, block: RecordBlock, file_start: int) -> None:
        found = list(dispatches(block, file_start, self.parts.config))
        for dispatch in found:
            self._prepare_queues(dispatch)
        put_all(found, self.parts, index_from=self.index_from)
        self.end = file_start + int(block.starts[-1] + block.sizes[-1])
        self.stored_ms = max(self.stored_ms, int(block.store_timestamps.max()))

    def _prepare_queues(self, dispatch: Dispatch) -> None:
        """Cut each queue where replaying meets it first: what follows is written anew."""
        for queue_id, first in dispatch.first_offsets().items():
            if (dispatch.topic, queue_id) in self.touched:
                continue
            queue = self.parts.queues.get(dispatch.topic, queue_id)
            before = queue.unit(first - 1) if first else None
            if first and before is None:
                if not self.is_whole:
                    raise _QueueHole
                if first * QUEUE_UNIT_SIZE != queue.files.start_of(first * QUEUE_UNIT_SIZE):
                    queue.fill_before(first)
            self.cut_queue(queue, first)
            self.touched[dispatch.topic, queue_id] = first

    def cut_queue(self, queue: ConsumeQueue, offset: int) -> None:
        queue.cut(offset)
        ext = self.parts.queues.ext(queue.topic, queue.queue_id)
        if ext.files.starts():
            before = queue.unit(offset - 1) if offset else None
            has_address = before is not None and is_address(before.tag_code)
            ext.cut_behind(before.tag_code if before and has_address else None)


def sound_prefix(segment: Segment, block: RecordBlock) -> RecordBlock:
    """Return the records of a segment before the first that is not sound."""
    sound = block.sound() & (block.head["physical_offset"] == segment.physical_offsets())
    return block if sound.all() else block.take(np.arange(int(np.argmin(sound))))


def settle(parts: StoreParts, state: TailState | None) -> TailState:
    """Return the true end of a log in use, finishing or cutting what others left behind `state`.

    Call while holding the store's lock; the store was stopped cleanly or is open elsewhere.
    """
    start, stored_ms = (state.end, state.stored_ms) if state else _end_by_queues(parts)
    replay = _Replay(parts, start, index_from=parts.index.end_physical_offset())
    try:
        replay.run()
    except _QueueHole:
        return recover(parts, whole=True)
    _cut_log(parts, replay.end)
    settled = TailState(PhysicalOffset(replay.end), max(stored_ms, replay.stored_ms))
    parts.tail.write(settled)
    return settled


def recover(parts: StoreParts, *, whole: bool = False, progress: Progress | None = None) -> TailState:
    """Bring a store that was not stopped cleanly back to its invariants.

    Call while holding the store's lock, with the store open nowhere else.

    Raises:
        CorruptStoreError: bytes that were durable are damaged; nothing was cut.
    """
    oldest = parts.log.min_offset()
    index_from = _drop_doubtful_index_files(parts)
    start = oldest if whole else max(oldest, min(_start_by_checkpoint(parts), index_from))
    log.info("recovering %s from offset %d", parts.root, start)
    replay = _Replay(parts, start, index_from, is_whole=start == oldest)
    try:
        replay.run(progress)
    except _QueueHole:
        log.warning("%s: a queue has a hole before %d, replaying all", parts.root, start)
        return recover(parts, whole=True, progress=progress)
    _cut_log(parts, replay.end)
    for queue in parts.queues.all():
        if (queue.topic, queue.queue_id) not in replay.touched:
            _cut_dangling(replay, queue)
    stored_ms = replay.stored_ms or _end_by_queues(parts)[1]
    state = TailState(PhysicalOffset(replay.end), stored_ms)
    parts.tail.write(state)
    return state


def _cut_dangling(replay: _Replay, queue: ConsumeQueue) -> None:
    """Cut the entries of a queue that point behind the end of the log."""

    def is_inside(offset: int) -> bool:
        unit = queue.unit(offset)
        if unit is None:
            return False
        return unit.is_filler or unit.physical_offset + unit.size <= replay.end

    replay.cut_queue(queue, last_true(is_inside, queue.first_offset(), queue.end()))


def _cut_log(parts: StoreParts, end: int) -> None:
    """Make all bytes behind `end` zero, durably; keep a copy of what may have been messages."""
    if not parts.log.files.has_data_from(end):
        return
    path = parts.log.files.folder / file_name(parts.log.files.start_of(end))
    if end < parts.tail.flushed():
        reason = f"no sound record, but the log was durable up to {parts.tail.flushed()}"
        raise CorruptStoreError(path, end, reason)
    log.warning("cutting %s at %d: no sound record follows", path, end)
    if next_sound_record(parts.log, end) is not None:
        _set_aside(parts, end)
    parts.log.files.zero_from(end)
    for start in parts.log.files.starts():
        if start + parts.log.file_size > end:
            file = parts.log.files.file(start)
            assert file is not None
            file.sync()


def _set_aside(parts: StoreParts, end: int) -> None:
    """Copy what is about to be cut to rocketpy/cut/<offset>, one file per range of data."""
    parts.disk.make_folder(parts.root / CUT)
    for start in parts.log.files.starts():
        file = parts.log.files.file(start)
        if file is None or start + file.size <= end:
            continue
        for first, last in file.data_ranges(max(end - start, 0), file.size):
            data = file.view[first:last].tobytes().rstrip(b"\0")
            if data:
                parts.disk.replace(parts.root / CUT / file_name(start + first), data)
    log.warning("what was cut is kept in %s", parts.root / CUT)


def _end_by_queues(parts: StoreParts) -> tuple[PhysicalOffset, int]:
    """Return an end of the log that the queues vouch for, and the store time of the record there.

    Costs one look per queue, whatever the size of the log.
    """
    oldest = parts.log.min_offset()
    end, newest = int(oldest), None
    for queue in parts.queues.all():
        _, unit = queue.last()
        if unit is not None and not unit.is_filler and unit.physical_offset + unit.size > end:
            end, newest = unit.physical_offset + unit.size, unit.physical_offset
    if newest is None:
        return oldest, 0
    try:
        return PhysicalOffset(end), parts.log.read(newest).store_timestamp_ms
    except CorruptStoreError:
        return oldest, 0  # entries without records: the walk from the start tells


def _start_by_checkpoint(parts: StoreParts) -> int:
    """Return the start of the newest file before which all is durable in log and queues."""
    checkpoint = read_checkpoint(parts.root)
    durable_ms = min(checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp)
    for start in reversed(parts.log.files.starts()):
        first_ms = first_timestamp(parts.log, start)
        if first_ms is not None and first_ms < durable_ms:
            return start
    return 0


def _drop_doubtful_index_files(parts: StoreParts) -> int:
    """Remove index files that may lack entries; return from where on records are not indexed.

    A file is durable if the checkpoint is newer than its last entry. The others are made anew from
    the log, which has all that they had.
    """
    durable_ms = read_checkpoint(parts.root).index_msg_timestamp
    index_from = 0
    keeping = True
    for name in parts.index.names():
        header = parts.index.file(name).header() if keeping else None
        keeping = header is not None and header.count > 1 and header.end_timestamp < durable_ms
        if keeping and header is not None:
            index_from = header.end_physical_offset
        else:
            parts.index.remove(name)
    return index_from
