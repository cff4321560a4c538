"""Views of a store that touch no bodies: queue entries, index entries, groups, topics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rocketpy.broker_core.errors import CorruptStoreError, TopicNotFoundError
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.metadata.names import is_notes_group
from rocketpy.broker_core.storage.layout import FILLER_SIZE
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.planning import QueueRange
from rocketpy.connector.schema import (
    GROUP_COLUMNS,
    INDEX_COLUMNS,
    MEMBER_COLUMNS,
    QUEUE_COLUMNS,
    TOPIC_COLUMNS,
)
from rocketpy.connector.tables import table_of, topic_kind

if TYPE_CHECKING:
    from rocketpy.connector.store.backend import StoreBackend

_ROWS = 65_536  # entries are small: larger batches than of messages


def queue_entries(
    backend: StoreBackend, part: QueueRange, tags: TagFilter | None
) -> Iterator[pa.RecordBatch]:
    """Yield the consume queue's entries of a range; a tag filter compares hashes alone."""
    queue, reader = part.queue, backend.reader(part.queue)
    codes = None if tags is None or tags.takes_all else tags.codes()
    for first in range(part.start, part.end, _ROWS):
        last = min(part.end, first + _ROWS)
        units = reader.queue.units(first, last)
        if len(units) < last - first:
            missing = first + len(units)
            folder = reader.queue.files.folder
            raise CorruptStoreError(folder, missing, "the queue has no such entry")
        tag_codes = reader.tag_codes(units)
        wanted = units["size"] != FILLER_SIZE
        if codes is not None:
            wanted &= np.isin(tag_codes, codes)
        rows = np.flatnonzero(wanted)
        yield _batch(
            QUEUE_COLUMNS,
            _same(queue.topic, len(rows)),
            _same(queue.broker, len(rows)),
            np.full(len(rows), queue.queue_id, np.int32),
            first + rows,
            units["physical_offset"][rows].astype(np.int64),
            units["size"][rows].astype(np.int32),
            tag_codes[rows],
        )


def members(backend: StoreBackend) -> pa.RecordBatch:
    """Return the members of groups that live, a row for each of their topics."""
    registry = backend.registry()
    rows = [
        (group, topic, member.name)
        for group in registry.groups()
        for member in registry.members(group).values()
        for topic in member.topics
    ]
    return table_of(rows, MEMBER_COLUMNS)


def index_entry_count(backend: StoreBackend, name: str) -> int:
    """Return how many entries an index file has; none if it is gone meanwhile."""
    with suppress(FileNotFoundError):
        return backend.store.index_file(name).header().count - 1
    return 0


def index_entries(backend: StoreBackend, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the entries of one index file; none if it is gone meanwhile."""
    try:
        file = backend.store.index_file(name)
    except FileNotFoundError:
        return
    header = file.header()
    for first in range(1, header.count, _ROWS):
        entries = file.read_entries(first, min(header.count, first + _ROWS))
        times = header.begin_timestamp + entries["seconds"].astype(np.int64) * 1000
        yield _batch(
            INDEX_COLUMNS,
            _same(name, len(entries)),
            np.arange(first, first + len(entries), dtype=np.int32),
            entries["key_hash"].astype(np.int32),
            entries["physical_offset"].astype(np.int64),
            times,
        )


def groups(backend: StoreBackend, now_ms: float | None = None) -> pa.RecordBatch:
    """Return what each group committed, and its lag; ages count up to `now_ms`, or to now."""
    rows = []
    now_ms = time.time() * 1000 if now_ms is None else now_ms
    stored: dict[str, dict[MessageQueue, tuple[int, int]]] = {}
    for group, topic, queue_id, committed in backend.store.offsets.all():
        if is_notes_group(group):
            continue
        queue = MessageQueue(topic, backend.broker, queue_id)
        if topic not in stored:
            try:
                stored[topic] = backend.ranges([topic])
            except TopicNotFoundError:  # deleted; what was committed is still there
                stored[topic] = {}
        low, end = stored[topic].get(queue, (None, None))
        lag = None if end is None else max(end - committed, 0)
        seconds = _waiting_s(backend, queue, max(committed, low or 0), now_ms) if lag else lag
        rows.append((group, *queue, committed, low, end, lag, seconds))
    return table_of(rows, GROUP_COLUMNS)


def _waiting_s(backend: StoreBackend, queue: MessageQueue, offset: int, now_ms: float) -> float:
    """Return how long the message at an offset has been waiting."""
    stored = backend.reader(queue).timestamp(offset)
    return 0.0 if stored is None else max(now_ms - stored, 0) / 1000


def topics(backend: StoreBackend) -> pa.RecordBatch:
    """Return all topics with what they hold."""
    rows = []
    for topic in backend.topics():
        config = backend.store.topic(topic)
        stored = backend.ranges([topic])
        filled = {queue: bounds for queue, bounds in stored.items() if bounds[0] < bounds[1]}
        times = [
            (backend.reader(queue).timestamp(low), backend.reader(queue).timestamp(end - 1))
            for queue, (low, end) in filled.items()
        ]
        oldest = [first for first, _ in times if first is not None]
        newest = [last for _, last in times if last is not None]
        rows.append(
            (
                topic,
                topic_kind(topic),
                len(stored),
                config is None or config.is_readable,
                config is None or config.is_writable,
                sum(end - low for low, end in filled.values()),
                min(oldest, default=None),
                max(newest, default=None),
            )
        )
    return table_of(rows, TOPIC_COLUMNS)


def _same(text: str, count: int) -> pa.Array:
    """Return a column that says the same in each row."""
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _batch(schema: pa.Schema, *columns: object) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
