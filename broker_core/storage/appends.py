"""What the writer appends: drafts of single messages, or an encoded batch of one topic.

Both are numbered and placed in memory first; then the writer writes their records, and has them put
their entries into queues and index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.batch_draft import BatchDraft, BatchRun
from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.codec.encoder import EncodedBatch, RecordRun
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import BLANK_SIZE
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.dispatch import Dispatch, stable_order
from rocketpy.broker_core.storage.layout import QUEUE_UNIT, QUEUE_UNIT_STRUCT
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.queue_ends import QueueEnd, QueueKey
from rocketpy.broker_core.storage.unindexed import StoredTexts

_entry = QUEUE_UNIT_STRUCT.pack
_tuple = tuple.__new__  # makes a named tuple without a call in Python: for each message

Records = list[tuple[int, bytes | memoryview]]  # physical offset, and records that share a file


StartOf = Callable[[QueueKey], int]  # tells the number that the next message of a queue gets


class Append(Protocol):
    """Messages that are stored together: all of them, or none."""

    @property
    def count(self) -> int:
        """How many messages there are."""

    @property
    def end(self) -> int:
        """Where the log ends after them; this, `starts` and `ends` are known after place()."""

    @property
    def starts(self) -> Mapping[QueueKey, int]:
        """The queues that get entries, and the offset of the first one in each."""

    @property
    def ends(self) -> Mapping[QueueKey, QueueEnd]:
        """Where they leave their queues."""

    @property
    def puts_index(self) -> bool:
        """Whether put() writes index entries, too; else they are written later."""

    @property
    def texts(self) -> Sequence[StoredTexts] | None:
        """What the index needs of batches; None if there are other messages."""

    def place(self, start_of: StartOf, end: int, stored_ms: int, log: CommitLog) -> Records:
        """Give each message its queue offset and its physical offset; return the records.

        `end` is where the log ends before them.

        Raises:
            MessageRefusedError: a record is larger than a file of the log.
        """

    def put(self, parts: StoreParts) -> None:
        """Write the entries of what was placed."""


class PlacedOne(NamedTuple):
    """Where one message went."""

    queue_offset: int
    physical_offset: int
    stored_ms: int


Draft = RecordDraft | BatchDraft


class DraftsAppend:
    """Messages of any topics, in the order given, alone or in batches."""

    puts_index = False

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._drafts, self.count = drafts, sum([draft.count for draft in drafts])
        self.end = 0
        self.starts: dict[QueueKey, int] = {}
        self.ends: dict[QueueKey, QueueEnd] = {}
        self.placed: list[PlacedOne] = []
        self._entries: dict[QueueKey, list[bytes | memoryview]] = {}  # packed, one or more each
        self._batches: dict[BatchRun, _PlacedBatches] = {}

    def place(self, start_of: StartOf, end: int, stored_ms: int, log: CommitLog) -> Records:
        """Give each message its queue offset and its physical offset; return the records."""
        together = list[bytes | memoryview]()
        files = [(end, together)]  # what goes to each file of the log
        room_ends = log.room_end(end)
        entries, ends, placed = self._entries, self.ends, self.placed
        for draft in self._drafts:
            size = draft.size
            if end + size > room_ends:
                if size > log.largest_record:
                    raise too_large("the message", size, log.largest_record)
                end, together = room_ends + BLANK_SIZE, []
                room_ends += log.file_size
                files.append((end, together))
            if isinstance(draft, BatchDraft):
                number = self._take_batch(draft, start_of, end)
                together.append(draft.records)  # they are whole below
            else:
                number = 0
                if draft.is_queued:
                    queue = draft.queue
                    last = ends.get(queue)
                    number = self._first_of(queue, start_of) if last is None else last[0]
                    code = draft.code_at(stored_ms) if draft.delay_ms else draft.tag_code
                    entries[queue].append(_entry(end, size, code))
                    ends[queue] = _tuple(QueueEnd, (number + 1, end))
                together.append(draft.at(number, end, stored_ms))
            placed.append(_tuple(PlacedOne, (number, end, stored_ms)))
            end += size
        self.end = end
        for batches in self._batches.values():
            batches.place(stored_ms)
        return [(at, _joined(together)) for at, together in files if together]

    def _first_of(self, queue: QueueKey, start_of: StartOf) -> int:
        """Take up a queue; return the offset of its first message here."""
        number = self.starts[queue] = start_of(queue)
        self._entries[queue] = []
        return number

    def _take_batch(self, draft: BatchDraft, start_of: StartOf, end: int) -> int:
        """Take up a batch whose records begin at `end`; return its first queue offset."""
        batches = self._batches.get(draft.run)
        if batches is None:
            batches = self._batches[draft.run] = _PlacedBatches(draft.run)
        last = self.ends.get(draft.queue)
        number = self._first_of(draft.queue, start_of) if last is None else last[0]
        self._entries[draft.queue].append(batches.take(draft, number, end))
        last_at = end + draft.size - int(draft.run.sizes[draft.last - 1])
        self.ends[draft.queue] = QueueEnd(number + draft.count, last_at)
        return number

    @property
    def texts(self) -> Sequence[StoredTexts] | None:
        """What the index needs of batches; None if there are other messages."""
        if not self._batches or not all([isinstance(each, BatchDraft) for each in self._drafts]):
            return None
        return [each for batches in self._batches.values() for each in batches.texts()]

    def put(self, parts: StoreParts) -> None:
        """Write the queue entries: those of one queue at once."""
        for queue, packed in self._entries.items():
            entries = b"".join(packed)
            if parts.config.consume_queue_ext:
                entries = self._with_addresses(entries, parts, queue)
            parts.queues.get(*queue).put_packed(self.starts[queue], entries)

    def _with_addresses(self, entries: bytes, parts: StoreParts, queue: QueueKey) -> bytes:
        """Write extended units; return entries with their addresses as tag codes."""
        units = np.frombuffer(entries, QUEUE_UNIT).copy()
        times = np.full(len(units), self.placed[0].stored_ms, np.int64)
        codes = units["tag_code"].astype(np.int64)
        units["tag_code"] = parts.queues.ext(*queue).put(codes, times)
        return units.tobytes()


class _PlacedBatches:
    """The batches of one run that are stored together: all of them get their numbers at once."""

    def __init__(self, run: BatchRun) -> None:
        self._run = run
        self._units = np.empty(len(run.starts), QUEUE_UNIT)
        self._packed = self._units.view(np.uint8).data
        self._drafts: list[BatchDraft] = []
        self._numbers: list[int] = []
        self._offsets: list[int] = []

    def take(self, draft: BatchDraft, number: int, physical_offset: int) -> memoryview:
        """Take up the next batch; the offsets are those of its first message.

        Returns:
            The bytes of its queue entries, which place() fills in.
        """
        self._drafts.append(draft)
        # Less what precedes the batch in its run, so that one addition does for all its rows.
        self._numbers.append(number - draft.first)
        self._offsets.append(physical_offset - int(draft.run.starts[draft.first]))
        return self._packed[draft.first * QUEUE_UNIT.itemsize : draft.last * QUEUE_UNIT.itemsize]

    def place(self, stored_ms: int) -> None:
        """Fill in records and queue entries."""
        run, counts = self._run, [draft.count for draft in self._drafts]
        first, last = self._drafts[0].first, self._drafts[-1].last
        rows = slice(first, last)
        queue_offsets = np.arange(first, last) + np.array(self._numbers).repeat(counts)
        physical_offsets = run.starts[rows] + np.array(self._offsets).repeat(counts)
        run.place(rows, queue_offsets, physical_offsets, stored_ms)
        units = self._units[rows]
        units["physical_offset"], units["size"] = physical_offsets, run.sizes[rows]
        units["tag_code"] = run.tags[rows]
        self._physical_offsets, self._stored_ms = physical_offsets, stored_ms

    def texts(self) -> Iterator[StoredTexts]:
        """Yield what the index needs of them, once they are placed."""
        begin = self._drafts[0].first
        for (topic, is_indexed), found in groupby(self._drafts, _topic_and_kind):
            drafts = list(found)
            first, last = drafts[0].first, drafts[-1].last
            offsets = self._physical_offsets[first - begin : last - begin]
            if is_indexed:
                yield StoredTexts(topic, offsets, *self._run.text(first, last), self._stored_ms)


def _topic_and_kind(draft: BatchDraft) -> tuple[str, bool]:
    return draft.queue[0], draft.is_indexed


def _joined(records: list[bytes | memoryview]) -> bytes | memoryview:
    return records[0] if len(records) == 1 else b"".join(records)


class Placed(NamedTuple):
    """Where a batch went."""

    queue_offsets: Ints
    physical_offsets: Ints
    stored_ms: int


class BatchAppend:
    """A batch of one topic, column by column."""

    puts_index, texts = True, None

    def __init__(self, batch: EncodedBatch) -> None:
        self._batch, self.count = batch, len(batch.run)
        self.end = 0
        self.starts: dict[QueueKey, int] = {}
        self.ends: dict[QueueKey, QueueEnd] = {}
        self.placed = Placed(np.empty(0, np.int64), np.empty(0, np.int64), 0)

    def place(self, start_of: StartOf, end: int, stored_ms: int, log: CommitLog) -> Records:
        """Give each message its queue offset and its physical offset; return the records."""
        topic, run, queue_ids = self._batch.topic, self._batch.run, self._batch.queue_ids
        refuse_larger_rows(run.sizes, log.largest_record)
        ids = np.unique(queue_ids).tolist()
        self.starts = {(topic, each): start_of((topic, each)) for each in ids}
        starts = {each: self.starts[topic, each] for each in ids}
        queue_offsets = offsets_from(starts, queue_ids, number_rows(queue_ids))
        physical_offsets, pieces = log.place(run.sizes, end)
        run.place(queue_offsets, physical_offsets, stored_ms)
        self.placed = Placed(queue_offsets, physical_offsets, stored_ms)
        self.ends = last_of_each(topic, queue_ids, queue_offsets, physical_offsets)
        self.end = int(physical_offsets[-1] + run.sizes[-1])
        return pieces_of(run, physical_offsets, pieces)

    def put(self, parts: StoreParts) -> None:
        """Write the entries of queues and index."""
        batch, placed = self._batch, self.placed
        dispatch = Dispatch(
            topic=batch.topic,
            queue_ids=batch.queue_ids,
            queue_offsets=placed.queue_offsets,
            physical_offsets=placed.physical_offsets,
            sizes=batch.run.sizes,
            tag_codes=batch.codes_at(placed.stored_ms),
            timestamps=np.full(len(batch.run), placed.stored_ms, np.int64),
            sys_flags=np.zeros(len(batch.run), np.int32),
            index_rows=batch.index_rows,
            index_hashes=batch.index_hashes,
        )
        for target in parts.targets:
            target.put([dispatch])


def refuse_larger_rows(sizes: Ints, limit: int) -> None:
    """Raise if a record of a batch has more bytes; name its row."""
    row = int(sizes.argmax())
    if sizes[row] > limit:
        raise too_large(f"row {row}", int(sizes[row]), limit)


def too_large(what: str, size: int, limit: int) -> MessageRefusedError:
    """Return the error of a record that no file of the log can hold."""
    reason = f"a record of {size} bytes, a file of this commit log takes {limit}"
    return MessageRefusedError(what, reason)


def pieces_of(run: RecordRun, offsets: Ints, pieces: Iterable[tuple[int, int]]) -> Records:
    """Return the records of a run, those that share a file together."""
    view = run.data.data
    found: Records = []
    for first, last in pieces:
        start, stop = int(run.starts[first]), int(run.starts[last - 1] + run.sizes[last - 1])
        found.append((int(offsets[first]), view[start:stop]))
    return found


def last_of_each(
    topic: str, queue_ids: npt.NDArray[np.int32], queue_offsets: Ints, physical_offsets: Ints
) -> dict[QueueKey, QueueEnd]:
    """Return where rows leave each of their queues."""
    ids, last = np.unique(queue_ids[::-1], return_index=True)
    rows = len(queue_ids) - 1 - last
    return {
        (topic, int(queue_id)): QueueEnd(int(queue_offsets[row]) + 1, int(physical_offsets[row]))
        for queue_id, row in zip(ids, rows, strict=True)
    }


def number_rows(queue_ids: npt.NDArray[np.int32]) -> Ints:
    """Return the number of each row among those of its queue, in row order, from 0 on."""
    order = stable_order(queue_ids)
    sorted_ids = queue_ids[order]
    firsts = np.flatnonzero(np.diff(sorted_ids, prepend=sorted_ids[:1] - 1))
    counts = np.diff(np.append(firsts, len(order)))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(firsts, counts)
    return numbers


def offsets_from(
    starts: Mapping[int, int], queue_ids: npt.NDArray[np.int32], numbers: Ints
) -> Ints:
    """Return queue offsets: the numbers, counted from where each queue starts."""
    firsts = np.zeros(max(starts) + 1, np.int64)
    firsts[list(starts)] = list(starts.values())
    offsets: Ints = firsts[queue_ids] + numbers
    return offsets
