"""From records to queues and index: what a consume queue and the index keep of each message.

Append, catch-up, recovery and repair all use it, so that they agree. For single messages
`intake/gate.py` does the same; a property test holds them equal.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.decoder import topics
from rocketpy.broker_core.codec.gather import Ints, packed
from rocketpy.broker_core.codec.sys_flags import indexed, queued
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.java_hash import (
    index_key_hash,
    string_hash,
    string_hashes,
)
from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.property_names import DELAY, KEYS, TAGS, UNIQ_KEY
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.layout import QUEUE_UNIT
from rocketpy.broker_core.storage.queue_table import QueueTable, is_folder_name

log = logging.getLogger(__name__)

REMOVED_QUEUE = -2  # of records whose topic was deleted since: they are in no queue
_NOTHING: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """Messages of one topic that are in the log but not yet in queues and index."""

    topic: str
    queue_ids: npt.NDArray[np.int32]
    queue_offsets: Ints
    physical_offsets: Ints
    sizes: Ints
    tag_codes: Ints
    timestamps: Ints
    sys_flags: npt.NDArray[np.int32]
    index_rows: Ints  # which message each index entry is of
    index_hashes: Ints
    slot_by_slot: Ints | None = None  # the order of the index entries' slots, if it is known

    def put_units(self, queues: QueueTable) -> None:
        """Write the queue entries."""
        units = np.empty(len(self.sizes), QUEUE_UNIT)
        units["physical_offset"], units["size"] = self.physical_offsets, self.sizes
        units["tag_code"] = self.tag_codes
        plain = units.view(f"V{units.itemsize}")  # numpy copies rows of a plain type as a whole
        for queue, rows in self.by_queue(queues):
            chosen = plain[rows].view(QUEUE_UNIT)
            if queues.has_extensions:
                ext = queues.ext(self.topic, queue.queue_id)
                chosen["tag_code"] = ext.put(self.tag_codes[rows], self.timestamps[rows])
            _put_units(queue, self.queue_offsets[rows], chosen)

    def index_columns(self, index_from: int = 0) -> tuple[Ints, Ints, Ints]:
        """Return hash, physical offset and time of the entries of records from `index_from` on."""
        wanted = (self.physical_offsets >= index_from) & indexed(self.sys_flags)
        rows, hashes = self.index_rows, self.index_hashes
        if not wanted.all():
            keep = wanted[rows]
            rows, hashes = rows[keep], hashes[keep]
        return hashes, self.physical_offsets[rows], self.timestamps[rows]

    def by_queue(self, queues: QueueTable) -> Iterator[tuple[ConsumeQueue, npt.NDArray[np.intp]]]:
        """Yield each queue that has messages here, with their rows in order."""
        is_queued = queued(self.sys_flags) & (self.queue_ids >= 0)
        if is_queued.all():  # the usual case
            order = stable_order(self.queue_ids)
        else:
            rows = np.flatnonzero(is_queued)
            order = rows[stable_order(self.queue_ids[rows])]
        ids = self.queue_ids[order]
        for part in np.split(order, np.flatnonzero(np.diff(ids)) + 1):
            if part.size:
                yield queues.get(self.topic, int(self.queue_ids[part[0]])), part

    def narrowed(self, queue_ids: Collection[int]) -> Dispatch:
        """Return the messages of some queues alone, without index entries."""
        rows = np.flatnonzero(np.isin(self.queue_ids, list(queue_ids)))
        return Dispatch(
            topic=self.topic,
            queue_ids=self.queue_ids[rows],
            queue_offsets=self.queue_offsets[rows],
            physical_offsets=self.physical_offsets[rows],
            sizes=self.sizes[rows],
            tag_codes=self.tag_codes[rows],
            timestamps=self.timestamps[rows],
            sys_flags=self.sys_flags[rows],
            index_rows=self.index_rows[:0],
            index_hashes=self.index_hashes[:0],
        )

    def offset_ranges(self) -> dict[int, tuple[int, int]]:
        """Return the first queue offset of each queue id and the one after the last."""
        rows = np.flatnonzero(queued(self.sys_flags) & (self.queue_ids >= 0))
        ids, first, inverse = np.unique(
            self.queue_ids[rows], return_index=True, return_inverse=True
        )
        offsets = self.queue_offsets[rows]
        last = np.zeros(len(ids), np.intp)
        last[inverse] = np.arange(len(rows))
        return {
            int(queue_id): (int(offsets[start]), int(offsets[stop]) + 1)
            for queue_id, start, stop in zip(ids, first, last, strict=True)
        }


_COLUMNS = {each.name for each in fields(Dispatch)} - {"topic", "slot_by_slot"}


def index_columns(found: Sequence[Dispatch], index_from: int = 0) -> tuple[Ints, Ints, Ints]:
    """Return the columns of the index entries of records that follow each other in the log.

    They are in log order, whatever the topics: the header of an index file tells by its last entry
    up to where the log is indexed.
    """
    columns = [dispatch.index_columns(index_from) for dispatch in found]
    if len(columns) == 1:
        return columns[0]
    merged = [np.concatenate(column) for column in zip(*columns, strict=True)]
    order = np.argsort(merged[1], kind="stable")
    return merged[0][order], merged[1][order], merged[2][order]


def _put_units(queue: ConsumeQueue, offsets: Ints, units: npt.NDArray[np.void]) -> None:
    """Write entries to a queue; between those whose offsets leave some out, fillers."""
    runs = np.flatnonzero(np.diff(offsets) != 1) + 1  # one run, unless messages were lost
    for first, last in zip([0, *runs], [*runs, len(offsets)], strict=True):
        if first and offsets[first] > offsets[first - 1]:
            queue.fill(int(offsets[first - 1]) + 1, int(offsets[first]))
        queue.put(int(offsets[first]), units[first:last])


def merged(found: Sequence[Dispatch]) -> list[Dispatch]:
    """Return dispatches as one for each topic, with its messages in the order given."""
    topics = dict.fromkeys(dispatch.topic for dispatch in found)
    if len(topics) == len(found):
        return list(found)
    return [_merged_of([each for each in found if each.topic == topic]) for topic in topics]


def _merged_of(found: list[Dispatch]) -> Dispatch:
    """Return some dispatches of one topic as one."""
    firsts = np.cumsum([0, *(len(each.sizes) for each in found)])[:-1]
    columns = {
        name: np.concatenate([getattr(each, name) for each in found])
        for name in _COLUMNS - {"index_rows"}
    }
    index_rows = np.concatenate(
        [each.index_rows + first for each, first in zip(found, firsts, strict=True)]
    )
    return Dispatch(topic=found[0].topic, index_rows=index_rows, **columns)


def stable_order(queue_ids: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """Return the rows queue by queue, each queue's in their order."""
    small = queue_ids.astype(np.int16)  # numpy sorts 16 bits by radix
    return np.argsort(small if np.array_equal(small, queue_ids) else queue_ids, kind="stable")


def dispatches(
    block: RecordBlock,
    file_start: int,
    config: StoreConfig,
    removed: Mapping[str, int] = _NOTHING,
) -> Iterator[Dispatch]:
    """Yield what is to be written for the records of a block, topic by topic.

    A topic names a folder: records whose topic cannot be one are damaged or hostile, and have no
    queue to go to. `removed` tells of deleted topics: records of one before its physical offset
    have no queue either, only their index entries.
    """
    column = topics(block)
    names = pc.unique(column).to_pylist()
    for name in names:
        if not is_folder_name(name):
            log.warning("no queue for records of topic %r: not a name that RocketMQ takes", name)
            continue
        part = (
            block
            if len(names) == 1
            else block.take(np.flatnonzero(pc.equal(column, name).to_numpy(zero_copy_only=False)))
        )
        found = _dispatch_of(part, name, file_start, config)
        yield _without_removed(found, removed[name]) if name in removed else found


def _without_removed(dispatch: Dispatch, end: int) -> Dispatch:
    is_removed = dispatch.physical_offsets < end
    if not is_removed.any():
        return dispatch
    queue_ids = np.where(is_removed, np.int32(REMOVED_QUEUE), dispatch.queue_ids)
    return replace(dispatch, queue_ids=queue_ids)


def _dispatch_of(block: RecordBlock, topic: str, file_start: int, config: StoreConfig) -> Dispatch:
    properties = block.properties
    tags, keys = properties.get(TAGS), properties.get(KEYS)
    codes = tag_codes(tags)
    if topic == SCHEDULE_TOPIC:
        codes = _due_times(properties.get(DELAY), block.store_timestamps, codes, config)
    rows, hashes = index_entries(topic, unique=properties.get(UNIQ_KEY), keys=keys, tags=tags)
    return Dispatch(
        topic=topic,
        queue_ids=block.head["queue_id"].astype(np.int32),
        queue_offsets=block.head["queue_offset"].astype(np.int64),
        physical_offsets=block.starts + file_start,
        sizes=block.sizes,
        tag_codes=codes,
        timestamps=block.store_timestamps,
        sys_flags=block.sys_flags,
        index_rows=rows,
        index_hashes=hashes,
    )


def tag_codes(tags: pa.Array) -> Ints:
    """Return the tag code of each message: the tag's hash, 0 without one."""
    encoded = tags.dictionary_encode()  # tags are few: each is hashed once
    names = encoded.dictionary.to_pylist()
    hashes = np.array([string_hash(tag) for tag in names] + [0], np.int64)
    codes: Ints = hashes[pc.fill_null(encoded.indices, len(names)).to_numpy(zero_copy_only=False)]
    return codes


def _due_times(levels: pa.Array, stored: Ints, codes: Ints, config: StoreConfig) -> Ints:
    """Return the tag codes of the schedule topic: the times of delivery."""
    encoded = levels.dictionary_encode()
    delays = [level_delay_ms(text, config) for text in encoded.dictionary.to_pylist()]
    rows = pc.fill_null(encoded.indices, len(delays)).to_numpy(zero_copy_only=False)
    waits = np.array([*delays, 0], np.int64)[rows]
    return np.where(waits > 0, stored + waits, codes)


def level_delay_ms(text: str | None, config: StoreConfig) -> int:
    """Return how long the level that a property DELAY names lasts, 0 for none or nonsense."""
    level = _delay_level(text)
    return config.delay_ms(level) if level else 0


def _delay_level(text: str | None) -> int:
    """Return the delay level that a property says, 0 for none or nonsense."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if text and is_number else 0


def index_entries(
    topic: str, *, unique: pa.Array | None, keys: pa.Array | None, tags: pa.Array | None
) -> tuple[Ints, Ints]:
    """Return the index entries of messages as (row, hash), in the order Apache inserts them."""
    parts: list[tuple[Ints, Ints]] = []
    if _has_any(unique):
        parts.append(_hashed(unique, f"{topic}#"))
    if _has_any(keys):
        parts.append(_hashed_words(keys, f"{topic}#"))
    if _has_any(tags):
        parts.append(_hashed_tags(tags, f"{topic}#T#"))
    if parts and all(len(part[0]) == len(parts[0][0]) for part in parts):
        rows = parts[0][0]
        if all(np.array_equal(part[0], rows) for part in parts[1:]):
            hashes = np.empty((len(rows), len(parts)), np.int64)
            for column, part in enumerate(parts):
                hashes[:, column] = part[1]
            return np.repeat(rows, len(parts)), hashes.ravel()
    rows = np.concatenate([part[0] for part in parts] or [np.zeros(0, np.int64)])
    hashes = np.concatenate([part[1] for part in parts] or [np.zeros(0, np.int64)])
    order = np.argsort(rows, kind="stable")
    return rows[order], hashes[order]


def _has_any(column: pa.Array | None) -> TypeGuard[pa.Array]:
    return column is not None and column.null_count < len(column)


def _hashed(column: pa.Array, prefix: str) -> tuple[Ints, Ints]:
    filled = pc.fill_null(pc.greater(pc.binary_length(column), 0), False)
    rows = np.flatnonzero(filled.to_numpy(zero_copy_only=False))
    present = column if len(rows) == len(column) else column.take(pa.array(rows))
    hashes = np.abs(string_hashes(present, prefix).astype(np.int64))
    hashes[hashes == 1 << 31] = 0  # Math.abs(Integer.MIN_VALUE) is negative in Java
    return rows, hashes


def _hashed_words(keys: pa.Array, prefix: str) -> tuple[Ints, Ints]:
    if not (packed(keys)[0] == ord(KEY_SEPARATOR)).any():
        return _hashed(keys, prefix)
    words = pc.split_pattern(pc.fill_null(keys, ""), KEY_SEPARATOR)
    parents = pc.list_parent_indices(words).to_numpy(zero_copy_only=False)
    rows, hashes = _hashed(words.flatten(), prefix)
    return parents[rows], hashes


def _hashed_tags(tags: pa.Array, prefix: str) -> tuple[Ints, Ints]:
    encoded = tags.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    hashes = np.array([index_key_hash(prefix + name) for name in names] + [0], np.int64)
    codes = pc.fill_null(encoded.indices, len(names)).to_numpy(zero_copy_only=False)
    present = np.array([bool(name) for name in names] + [False])
    rows = np.flatnonzero(present[codes])
    return rows, hashes[codes[rows]]
