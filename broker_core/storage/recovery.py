"""Opening a store: find the end of the log, cut what a crash tore, redo what it left undone.

Replaying is one procedure for three occasions: an append that died, a writer that we do not know
(Apache's broker) since we looked last, and an unclean stop. It walks sound records, writes their
queue and index entries anew (which changes nothing where they are there already), and stops at the
first bytes that are no sound record. From there on the log is cut: made zero and synced before
anything is appended, so that nothing comes back to life after a second crash.

A record that was durable and is damaged is not the trace of a crash. Then nothing is cut.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message import PhysicalOffset
from rocketpy.broker_core.storage.batches.intent import settle_intent
from rocketpy.broker_core.storage.checkpoint import (
    Checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.dispatch import Dispatch, dispatches
from rocketpy.broker_core.storage.indexing import catch_up, mark_indexed
from rocketpy.broker_core.storage.layout import CUT, QUEUE_UNIT_SIZE, file_name
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_ends import QueueKey
from rocketpy.broker_core.storage.salvage import next_sound_record
from rocketpy.broker_core.storage.tail import TailState

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]  # bytes done, bytes in all
_NO_LIMIT = (1 << 63) - 1


class _QueueHole(Exception):
    """A queue lacks entries before the record where replaying began."""

    def __init__(self, key: QueueKey) -> None:
        super().__init__(key)
        self.key = key


@dataclass(slots=True)
class _Replay:
    """Walks the log from `start` and dispatches what is sound."""

    parts: StoreParts
    start: int
    index_from: int  # records before it are in the index
    is_whole: bool = False  # from the oldest record on: nothing is missing before it
    end: int = 0
    stored_ms: int = 0
    only: Collection[QueueKey] | None = None  # the queues to write; None: all, and the index
    touched: dict[QueueKey, int] = field(default_factory=dict)  # queue -> end

    def run(self, progress: Progress | None = None) -> None:
        self.end = self.start
        total = sum(self.parts.log.file_size for _ in self.parts.log.files.starts())
        for segment in self.parts.log.walk(self.start):
            if segment.block is None:
                self.end = segment.end
                continue
            block = segment.sound_prefix()
            if len(block):
                self._dispatch(block, segment.file_start)
            if len(block) < len(segment.block):
                return
            if progress is not None:
                progress(self.end - self.start, total)

    def _dispatch(self, block: RecordBlock, file_start: int) -> None:
        removed = self.parts.removed_topics.read().ends
        found = list(dispatches(block, file_start, self.parts.config, removed))
        if self.only is not None:
            found = [dispatch.narrowed(self._wanted_of(dispatch.topic)) for dispatch in found]
        for dispatch in found:
            self._prepare_queues(dispatch)
        self.parts.queue_target.put(found)
        if self.only is None:
            self.parts.index_target.put(found, since=self.index_from)
        self.end = file_start + int(block.starts[-1] + block.sizes[-1])
        self.stored_ms = max(self.stored_ms, int(block.store_timestamps.max()))

    def _wanted_of(self, topic: str) -> set[int]:
        return {queue_id for name, queue_id in self.only or () if name == topic}

    def _prepare_queues(self, dispatch: Dispatch) -> None:
        """Cut each queue where replaying meets it first: what follows is written anew."""
        for queue_id, (first, end) in dispatch.offset_ranges().items():
            queue = self.parts.queues.get(dispatch.topic, queue_id)
            written_to = self.touched.get((dispatch.topic, queue_id))
            self.touched[dispatch.topic, queue_id] = end
            if written_to is not None:
                if first > written_to:  # messages were lost before the log was repaired
                    queue.fill(written_to, first)
                continue
            before = queue.unit(first - 1) if first else None
            if first and before is None:
                if not self.is_whole:
                    raise _QueueHole((dispatch.topic, queue_id))
                if first * QUEUE_UNIT_SIZE != queue.files.start_of(first * QUEUE_UNIT_SIZE):
                    queue.fill_before(first)
            if self.only is None or self.parts.config.consume_queue_ext:
                self.parts.queues.cut((dispatch.topic, queue_id), first)


def settle(parts: StoreParts, state: TailState | None) -> TailState:
    """Return the true end of a log in use, finishing or cutting what others left after `state`.

    Call while holding the store's lock; the store was stopped cleanly or is open elsewhere.
    """
    if parts.tail.has_intent():
        settle_intent(parts)
    start, stored_ms = (state.end, state.stored_ms) if state else _end_by_queues(parts)
    parts.index.cut(start, stored_ms)
    if state is None and parts.tail.indexed() is None:
        mark_indexed(parts, start)  # another program wrote it, and its index
    catch_up(parts, TailState(start, stored_ms))
    replay = _replayed_from(parts, start, stored_ms)
    _cut_log(parts, replay.end)
    settled = TailState(PhysicalOffset(replay.end), max(stored_ms, replay.stored_ms))
    parts.tail.write_settled(settled)
    mark_indexed(parts, settled.end)
    parts.tail.sync()
    return settled


def _replayed_from(parts: StoreParts, start: int, stored_ms: int) -> _Replay:
    """Replay from `start` on; a queue that lacks entries before it is written anew first."""
    refilled: set[QueueKey] = set()
    while True:
        for key in parts.queues.removed():  # what is written to a removed file is lost
            parts.queues.forget(key)
        replay = _Replay(parts, start, index_from=start)
        try:
            replay.run()
            removed = set(parts.queues.removed())
            if removed & replay.touched.keys():
                refill(parts, removed & replay.touched.keys())
            return replay
        except _QueueHole as hole:
            if hole.key in refilled:
                folder = parts.queues.get(*hole.key).files.folder
                reason = "entries are missing, and the log does not lead to their records"
                raise CorruptStoreError(folder, 0, reason) from hole
            refilled.add(hole.key)
            refill(parts, {hole.key})
            parts.index.cut(start, stored_ms)  # what was replayed up to the hole comes again


def refill(parts: StoreParts, lost: Collection[QueueKey]) -> None:
    """Write all entries of some queues anew, as the log has them. Hold the store's lock.

    Entries that are there are written over with the same bytes: others may be reading them.
    """
    for key in lost:
        parts.queues.forget(key)  # files that are open here may have been removed
    replay = _Replay(parts, int(parts.log.min_offset()), 0, is_whole=True, only=lost)
    replay.run()
    for key, end in replay.touched.items():
        parts.queues.get(*key).cut(end)


def recover(
    parts: StoreParts, *, whole: bool = False, progress: Progress | None = None
) -> TailState:
    """Bring a store that was not stopped cleanly back to its invariants.

    Call while holding the store's lock, with the store open nowhere else.

    Raises:
        CorruptStoreError: bytes that were durable are damaged; nothing was cut.
    """
    if parts.tail.has_intent():
        settle_intent(parts)
    oldest = parts.log.min_offset()
    checkpoint = read_checkpoint(parts.root)
    if whole:
        checkpoint = Checkpoint(0, 0, 0, *checkpoint[3:])
    # Times alone do not tell: a clock may have been put back since. Where queues were noted to end,
    # log, queues and index were durable too.
    noted = parts.queue_ends.read()
    durable_to = noted.upto if noted else _NO_LIMIT
    index_from, indexed_ms, unfinished_index_files = _durable_index(parts, checkpoint, durable_to)
    durable_ms = min(checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp)
    start = min(_start_by_time(parts, durable_ms), durable_to)
    if parts.config.message_index:
        start = min(start, index_from)
    start = max(oldest, start)
    _refuse_damage(parts, start)
    # The checkpoint goes back to what is left first: a second crash must not trust the old one.
    checkpoint = checkpoint._replace(index_msg_timestamp=indexed_ms)
    write_checkpoint(parts.root, checkpoint, parts.disk, as_of_ns=0)
    if parts.config.message_index:
        mark_indexed(parts, index_from)  # should we die, whoever settles must not trust it either
    for name in unfinished_index_files:
        parts.index.remove(name)
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
    parts.tail.write_settled(state)
    mark_indexed(parts, state.end)
    parts.tail.sync()
    return state


def _cut_dangling(replay: _Replay, queue: ConsumeQueue) -> None:
    """Cut the entries of a queue that has no record where the log was replayed.

    Those before were durable. After them a crash may have left any mixture of entries and zeros,
    whose records are gone, and torn entries that happen to point at other records. It may also have
    left an extension whose queue got no file.
    """

    def is_before(offset: int) -> bool:
        unit = queue.unit(offset)
        return unit is not None and (unit.is_filler or unit.physical_offset < replay.start)

    first, starts = queue.first_offset(), queue.files.starts()
    room = starts[-1] + queue.files.file_size if starts else 0
    end = first_false(is_before, first, room // QUEUE_UNIT_SIZE)
    while end > first and not _has_record(replay.parts, queue, end - 1):
        end -= 1
    replay.parts.queues.cut((queue.topic, queue.queue_id), end)


def _has_record(parts: StoreParts, queue: ConsumeQueue, offset: int) -> bool:
    """Whether an entry points at a record of its queue and number, or at one that is deleted."""
    unit = queue.unit(offset)
    if unit is None or unit.is_filler or unit.physical_offset < parts.log.min_offset():
        return unit is not None
    try:
        message = parts.log.read(unit.physical_offset)
    except CorruptStoreError:
        return False
    found = message.topic, message.queue_id, message.queue_offset
    return found == (queue.topic, queue.queue_id, offset)


def _cut_log(parts: StoreParts, end: int) -> None:
    """Make all bytes after `end` zero, durably; keep a copy of what may have been messages."""
    _require_durable(parts, end)
    if parts.log.files.has_data_from(end):
        path = parts.log.files.folder / file_name(parts.log.files.start_of(end))
        log.warning("cutting %s at %d: no sound record follows", path, end)
        if next_sound_record(parts.log, end) is not None:
            _set_aside(parts, end)
    parts.log.cut(end)


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
    """Return where the log ends by the last entries of queues, and the store time of the newest.

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


def _start_by_time(parts: StoreParts, durable_ms: int) -> int:
    """Return the start of the newest file before which all records are older than a time."""
    for start in reversed(parts.log.files.starts()):
        try:
            if parts.log.read(start).store_timestamp_ms < durable_ms:
                return start
        except CorruptStoreError:
            continue  # torn or empty: an older file is to tell
    return 0


def _durable_index(
    parts: StoreParts, checkpoint: Checkpoint, durable_to: int
) -> tuple[int, int, list[str]]:
    """Tell which index files may lack entries.

    A file is durable if it is full and its last entry is older than the checkpoint, by its time and
    by its physical offset. A file that is not full may have been written to since, in any order:
    its slots may name entries that were lost. Such files are made anew from the log, which has all
    that they had.

    Returns:
        The physical offset from which on records are not indexed; the newest store time that is;
        the names of the files that may lack entries.
    """
    durable_ms = checkpoint.index_msg_timestamp
    names = parts.index.names() if parts.config.message_index else []
    index_from, kept_ms = 0, 0
    while names:
        try:
            header = parts.index.file(names[0]).header()
        except CorruptStoreError:
            break
        is_newer = header.end_timestamp >= durable_ms or header.end_physical_offset >= durable_to
        if header.count < parts.config.index_entries or is_newer:
            break
        index_from, kept_ms = header.end_physical_offset, header.end_timestamp
        names.pop(0)
    if not names:
        start = min(_start_by_time(parts, durable_ms), durable_to)
        index_from, kept_ms = max(index_from, start), durable_ms
    return index_from, kept_ms, names


def _refuse_damage(parts: StoreParts, start: int) -> None:
    """Raise, before anything is changed, if bytes that were durable are no sound records."""
    flushed = parts.tail.flushed()
    position = start
    for segment in parts.log.walk(start, max(flushed, start)):
        if segment.block is not None:
            sound = segment.sound_prefix()
            if len(sound) < len(segment.block):
                position = segment.file_start + int(segment.block.starts[len(sound)])
                break
        position = segment.end
    _require_durable(parts, position)


def _require_durable(parts: StoreParts, end: int) -> None:
    """Raise if sound records end before what was durable: no crash explains that."""
    flushed = parts.tail.flushed()
    if end < flushed:
        path = parts.log.files.folder / file_name(parts.log.files.start_of(end))
        reason = f"no sound record, but the log was durable up to {flushed}"
        raise CorruptStoreError(path, end, reason)
