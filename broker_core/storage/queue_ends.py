"""`rocketpy/queues`: where each queue ends by the log, so that lost queue entries are noticed.

The files of a queue may be lost while the log is whole. Nothing in a short queue tells that it was
longer once: its next message would get the number of an older one.

E1  A queue's last entry never lies before the record that is noted here as its last.
E2  What is noted here was durable, in log and queues, when it was noted: at each checkpoint.
So one look at a queue's end tells whether entries are lost: see `QueueEnd.is_lost_in`. A queue that
begins anew (Apache deletes a topic, and makes it again) has newer records, and lacks nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.decoder import topics
from rocketpy.broker_core.codec.layout import (
    HEADER_V4_SIZE,
    MAGIC_V1,
    MAGIC_V2,
    SIZE_AND_MAGIC,
)
from rocketpy.broker_core.codec.record import numbered
from rocketpy.broker_core.codec.sys_flags import is_queued, queued
from rocketpy.broker_core.storage.checked_json import IN_ORDER, CheckedJson
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.consume_queue import QueueUnit
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import QUEUE_ENDS

QueueKey = tuple[str, int]  # topic, queue id
_FILE = CheckedJson(key="queues", form=IN_ORDER)
_SAMPLED_RECORDS = 256  # of each log file
_FEW_BYTES = 4096  # of what another process sent, one by one, in between


class QueueEnd(NamedTuple):
    """The end of a queue, as the log has it."""

    next_offset: int
    physical_offset: int  # of the last record

    def is_lost_in(self, end: int, last: QueueUnit | None) -> bool:
        """Whether a queue that ends at `end`, with `last` as its last entry, has lost entries."""
        if last is None or last.is_filler:
            return end < self.next_offset
        return last.physical_offset < self.physical_offset


class NotedEnds(NamedTuple):
    """The content of the file: the ends of all queues as of a physical offset."""

    upto: int  # that offset
    ends: Mapping[QueueKey, QueueEnd]


class QueueEndsFile:
    """`rocketpy/queues`, read again only when it was replaced."""

    def __init__(self, root: Path, disk: Disk) -> None:
        self._path, self._disk = root / QUEUE_ENDS, disk
        self._seen: tuple[tuple[int, int], NotedEnds | None] = (0, 0), None

    def read(self) -> NotedEnds | None:
        """Return what was noted last; None if there is nothing, or it is damaged."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        version = status.st_ino, status.st_mtime_ns
        seen, noted = self._seen
        if seen != version:
            noted = _FILE.read_if_sound(self._path, _noted)
            self._seen = version, noted
        return noted

    def write(self, noted: NotedEnds) -> None:
        """Replace the file, durably; log and queues must be durable up to there (E2)."""
        ends: dict[str, dict[str, list[int]]] = {}
        for (topic, queue_id), end in noted.ends.items():
            ends.setdefault(topic, {})[str(queue_id)] = list(end)
        _FILE.write(self._path, {"upto": noted.upto, "ends": ends}, self._disk)


def _noted(content: Mapping[str, Any]) -> NotedEnds:
    ends = {
        (topic, int(queue_id)): QueueEnd(*end)
        for topic, queues in content["ends"].items()
        for queue_id, end in queues.items()
    }
    return NotedEnds(content["upto"], ends)


class QueueEnds:
    """The ends of all queues, followed as the log grows. Threads may share it.

    The holder of the store's lock tells it of its own appends. It reads what others appended in
    the log, when it is asked.
    """

    def __init__(self, log: CommitLog, noted: NotedEnds) -> None:
        self._log, self._upto = log, noted.upto
        self._ends = dict(noted.ends)
        self._unread: list[tuple[int, int]] = []  # stretches of the log
        self._changing = threading.Lock()  # never for longer than reading one step of the log

    def note(self, start: int, end: int, ends: Mapping[QueueKey, QueueEnd]) -> None:
        """Take up an append of our own, from `start` to `end` in the log. Hold the store's lock."""
        with self._changing:
            if self._upto < start:
                self._pass_over(start)
            self._upto = end
            self._ends.update(ends)

    def exact(self, key: QueueKey, end: int) -> QueueEnd | None:
        """Return the end of a queue as of `end`, the log's end. Hold the store's lock."""
        self._read_to(end)
        return self._ends.get(key)

    def forget(self, keys: Iterable[QueueKey]) -> None:
        """Drop queues whose topics were deleted."""
        with self._changing:
            for key in keys:
                self._ends.pop(key, None)

    def read_on(self, end: int) -> NotedEnds:
        """Return the ends of all queues as of `end`; the log is published up to there.

        Exact while the store's lock is held; else own appends of other threads may be in it.
        """
        self._read_to(end)
        with self._changing:
            return NotedEnds(end, dict(self._ends))

    def _read_to(self, end: int) -> None:
        with self._changing:
            self._pass_over(end)
        while self._read_step():
            pass

    def _pass_over(self, end: int) -> None:
        if self._upto < end:
            if len(self._unread) > 1:
                start, _ = self._unread.pop()  # the two become one, with what is ours between them
            else:
                start = self._upto
            self._unread.append((start, end))
            self._upto = end

    def _read_step(self) -> bool:
        """Read the next records of an unread stretch; return whether there were any."""
        with self._changing:
            if not self._unread:
                return False
            start, end = self._unread[0]
            few = self._log.files.read(start, end - start) if end - start <= _FEW_BYTES else b""
            if few and len(few) == end - start:
                self._take(_ends_in_few(few, start))
                self._unread.pop(0)
                return True
            # What retention deleted meanwhile is passed over.
            segment = next(self._log.walk(max(start, self._log.min_offset()), end), None)
            if segment is not None and segment.block is not None:
                self._take(ends_in(segment.block, segment.file_start))
            if segment is None or segment.end >= end:
                self._unread.pop(0)
            else:
                self._unread[0] = segment.end, end
            return True

    def _take(self, ends: Iterable[tuple[QueueKey, QueueEnd]]) -> None:
        for key, found in ends:
            known = self._ends.get(key)
            if known is None or known.physical_offset < found.physical_offset:
                self._ends[key] = found


def sampled_ends(log: CommitLog) -> dict[QueueKey, QueueEnd]:
    """Return ends that queues have at least, by the first records of each log file.

    For a store without a note: one that only Apache's broker wrote to.
    """
    found: dict[QueueKey, QueueEnd] = {}
    for start in log.files.starts():
        segment = next(log.walk(start, start + log.file_size, most=_SAMPLED_RECORDS), None)
        if segment is not None and segment.block is not None:
            found.update(ends_in(segment.block, segment.file_start))
    return found


def ends_in(block: RecordBlock, file_start: int) -> Iterator[tuple[QueueKey, QueueEnd]]:
    """Yield the end of each queue that has records in a block."""
    rows = np.flatnonzero(queued(block.sys_flags) & (block.head["queue_id"] >= 0))
    names: pa.DictionaryArray = topics(block).dictionary_encode()
    numbers = names.indices.to_numpy()[rows].astype(np.int64)
    queue_ids = block.head["queue_id"][rows].astype(np.int64)
    # np.unique gives the first of each: of the rows in reverse, the last.
    _, last = np.unique((numbers << 32 | queue_ids)[::-1], return_index=True)
    for row in (len(rows) - 1 - last).tolist():
        at = rows[row]
        key = names.dictionary[int(numbers[row])].as_py(), int(queue_ids[row])
        physical_offset = file_start + int(block.starts[at])
        yield key, QueueEnd(int(block.head["queue_offset"][at]) + 1, physical_offset)


def _ends_in_few(data: bytes, start: int) -> Iterator[tuple[QueueKey, QueueEnd]]:
    """Yield the same of a few records, one by one: columns would take longer."""
    at = 0
    while at + HEADER_V4_SIZE < len(data):
        size, magic = SIZE_AND_MAGIC.unpack_from(data, at)
        if magic not in (MAGIC_V1, MAGIC_V2) or not HEADER_V4_SIZE < size <= len(data) - at:
            return  # the blank end of a file; or damage, which is for readers to tell
        record = numbered(data, at)
        if is_queued(record.sys_flag) and record.queue_id >= 0:
            key = record.topic, record.queue_id
            yield key, QueueEnd(record.queue_offset + 1, start + at)
        at += record.size
