"""The driver's look at a store: what there is, which way to read it, where to cut it.

It only reads, without locks, while others write. It finds damage and retention by what is there;
a look costs a few records, not the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.errors import CorruptStoreError, TopicNotFoundError
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata import TopicTable
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.layout import COMMIT_LOG, CONFIG, QUEUE_UNIT_SIZE, file_name
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.store.backend import StoreBackend
from rocketpy.connector.topics import subscribed
from rocketpy.spark_jobs.backfill.selection import CLOCK_SLACK_MS, BackfillSelection

log = logging.getLogger(__name__)

_DISPATCH_LOOKS, _DISPATCH_PAUSE_S = 5, 0.05
_SAMPLED_SIZES = 1_000
_SAMPLED, _SAMPLE_BYTES = ("topic", "store_timestamp", "store_size"), 64 << 10


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of the log without a sound record."""

    start: int
    end: int
    reason: str


class StoreLog:
    """Looks at one store for one selection. Close it; not to be pickled.

    Raises:
        TopicNotFoundError: the store does not know a topic that is named.
    """

    def __init__(self, path: str, selection: BackfillSelection) -> None:
        self.path, self.selection = path, selection
        self._backend = StoreBackend(path)
        self.options = ReadOptions.parse({"path": path, **selection.source_options()})
        # Without this file no topics are known; with it, an unknown name is a slip of the pen.
        if (Path(path) / CONFIG / TopicTable.FILE_NAME).exists():
            known = self._backend.topics()
            for topic in selection.topics:
                if topic not in known:
                    self.close()
                    raise TopicNotFoundError(topic, known)

    def close(self) -> None:
        """Let go of all files."""
        self._backend.close()

    def file_of(self, physical_offset: int) -> str:
        """Return the file of the log that has a physical offset."""
        size = self._backend.store.config.commit_log_file_size
        return f"{self.path}/{COMMIT_LOG}/{file_name(physical_offset - physical_offset % size)}"

    def begin(self) -> int:
        """Return where the log begins now."""
        return self._backend.log_start()

    def end(self, *, skip_damage: bool = False) -> int:
        """Return up to where the log is committed now."""
        return self._backend.log_end(skip_damage=skip_damage)

    def record(self, physical_offset: int) -> int | None:
        """Return the check sum of the record that begins there; None if none does (any more)."""
        message = self._message(physical_offset)
        if message is None:
            return None
        head = f"{message.topic}/{message.queue_id}/{message.queue_offset}/"
        return crc32(f"{head}{message.store_timestamp_ms}/".encode() + message.stored_body)

    def is_boundary(self, physical_offset: int) -> bool:
        """Whether a record begins at a physical offset, or the log ends there."""
        return self._backend.store.is_boundary(physical_offset)

    def stored_ms(self, physical_offset: int, end: int) -> int | None:
        """Return the store time of the first sound record at or after a physical offset."""
        message = self._message(self._backend.next_record(physical_offset, end))
        return None if message is None else message.store_timestamp_ms

    def _message(self, physical_offset: int) -> Message | None:
        try:
            return self._backend.store.message_at(physical_offset)
        except CorruptStoreError:
            return None

    def narrowed(self, start: int, end: int) -> tuple[int, int]:
        """Return the part of the log that the selection is about, cut between records."""
        selection = self.selection
        if selection.since_ms is not None:
            start = max(start, self._at_time(selection.since_ms - CLOCK_SLACK_MS, start, end))
        if selection.until_ms is not None:
            end = min(end, self._at_time(selection.until_ms + CLOCK_SLACK_MS, start, end))
        if selection.log_start is not None and selection.log_start > start:
            start = self._backend.next_record(selection.log_start, end)
        if selection.log_end is not None and selection.log_end < end:
            end = self._backend.next_record(selection.log_end, end)
        return min(start, end), end

    def _at_time(self, time_ms: int, start: int, end: int) -> int:
        def is_before(at: int) -> bool:
            stored = self.stored_ms(at, end)
            return stored is not None and stored < time_ms

        return self._backend.next_record(first_false(is_before, start, end), end)

    # --- queues -----------------------------------------------------------------------------------

    def topics(self) -> list[str]:
        """Return the topics that are selected, as they are known now."""
        return subscribed(self.options, self._backend)

    def queues(self) -> list[MessageQueue]:
        """Return the queues of the selected topics that have files."""
        backend = self._backend
        return [
            MessageQueue(topic, backend.broker, queue_id)
            for topic in self.topics()
            for queue_id in backend.store.stored_queue_ids(topic)
        ]

    def queue_fault(self, end: int, *, is_strict: bool = True) -> str | None:
        """Return why the queues may lack messages before `end`; None if they have all.

        A queue without files may be empty, or lost: that is a fault if it `is_strict`.
        """
        for topic in self.topics():
            reason = self._topic_fault(topic, is_strict)
            if reason is not None:
                return reason
        for _ in range(_DISPATCH_LOOKS):  # a writer may be between the log and its queues
            dispatched = self._dispatched()
            if all(part.block is None for part in self._backend.store.walk(dispatched, end)):
                return None
            time.sleep(_DISPATCH_PAUSE_S)
        return f"queues end at {dispatched} of the log, which ends at {end}"

    def _topic_fault(self, topic: str, is_strict: bool) -> str | None:
        store = self._backend.store
        config, ids = store.topic(topic), store.stored_queue_ids(topic)
        wanted = {*range(config.read_queues)} if config and is_strict else {*ids}
        if not ids or not wanted <= {*ids}:
            return f"topic {topic!r} has queues without files"
        for queue_id in ids:
            reason = _gap(store.queue(topic, queue_id).queue, self._backend.log_start())
            if reason is not None:
                return f"queue {queue_id} of topic {topic!r} {reason}"
        return None

    def _dispatched(self) -> int:
        """Return the physical offset up to which the queues have entries."""
        ends = [self.begin()]
        store = self._backend.store
        for topic in store.stored_topics():
            for queue_id in store.stored_queue_ids(topic):
                _, unit = store.queue(topic, queue_id).queue.last()
                if unit is not None and not unit.is_filler:
                    ends.append(unit.physical_offset + unit.size)
        return max(ends)

    def counts(self, start: int, end: int) -> dict[MessageQueue, tuple[int, int]]:
        """Return the offsets of each queue whose records begin in a stretch of the log."""
        offsets = self._backend.offset_in_log
        return {queue: (offsets(queue, start), offsets(queue, end)) for queue in self.queues()}

    def offset_by_time(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the first offset of a queue stored at a time or later; its end without one."""
        return self._backend.offset_by_time(queue, time_ms)

    def stored_at(self, queue: MessageQueue, queue_offset: int) -> int | None:
        """Return the store time of a message, in ms."""
        return self._backend.reader(queue).timestamp(queue_offset)

    def mean_size(self, queue: MessageQueue, first: int) -> float:
        """Return how many bytes a message of a queue has, by a few of them."""
        sizes = self._backend.sizes(queue, first, first + _SAMPLED_SIZES)
        return float(np.mean(sizes)) if sizes.size else 0.0

    def sizes(self, queue: MessageQueue, first: int, last: int) -> Iterator[int]:
        """Yield the bytes of a queue's messages, some at a time."""
        while first < last:
            sizes = self._backend.sizes(queue, first, last)
            if not sizes.size:
                return
            yield int(sizes.sum())
            first += sizes.size

    # --- the log itself ---------------------------------------------------------------------------

    def next_record(self, physical_offset: int, end: int) -> int:
        """Return where the first sound record at or after a physical offset begins, or `end`."""
        return min(self._backend.next_record(physical_offset, end), end)

    def sample(self, start: int, end: int, *, spots: int) -> pa.Table:
        """Return topic, store_timestamp and store_size of messages all over a part of the log."""
        store, schema = self._backend.store, select(_SAMPLED)
        found = []
        for spot in range(spots):
            at = self.next_record(start + (end - start) * spot // spots, end)
            segment = next(store.walk(at, min(at + _SAMPLE_BYTES, end)), None)
            if segment is not None and segment.block is not None:
                block = segment.sound_prefix()
                found.append(decode(block, schema, broker=store.config.broker_name))
        return pa.Table.from_batches(found, schema)

    def damage(self, start: int, end: int) -> list[Damage]:
        """Return where a stretch of the log has no sound record; reads all of it."""
        store, found, at = self._backend.store, list[Damage](), start
        while at < end:
            for segment in store.walk(at, end):
                if segment.block is None:
                    at = segment.end
                    continue
                sound = segment.sound_prefix()
                if len(sound):
                    at = segment.file_start + int(sound.starts[-1] + sound.sizes[-1])
                if len(sound) < len(segment.block):
                    break
            if at < end:
                following = self.next_record(at + 1, end)
                found.append(Damage(at, following, "no sound record"))
                at = following
        return found


def _gap(queue: ConsumeQueue, log_start: int) -> str | None:
    """Return what a queue's files lack."""
    starts, size = queue.files.starts(), queue.files.file_size
    if starts != [*range(starts[0], starts[0] + len(starts) * size, size)]:
        return "lacks a file between others"
    first = starts[0] // QUEUE_UNIT_SIZE
    unit = queue.unit(first)
    # Retention keeps the file whose entries are of the oldest records that are left.
    if first and unit is not None and not unit.is_filler and unit.physical_offset > log_start:
        return "lacks its first files"
    return None
