"""Batches that this process stored and has not indexed yet: what the index needs of them.

To read them from the log once more would take as long as storing them did.

U1  What is known here is used only if it is all that lacks index entries: every record from the
    mark up to the end of the log. Else the log is read.
U2  It is forgotten when it is indexed, when anything else is appended, or when it is too much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.properties import PropertyColumn
from rocketpy.broker_core.property_names import KEYS, TAGS, UNIQ_KEY
from rocketpy.broker_core.storage.dispatch import index_entries

_MOST_BYTES = 16 << 20  # of the log: property strings are a part of it
_ZERO: Ints = np.zeros(1, np.int64)

IndexColumns = tuple[Ints, Ints, Ints]  # hash, physical offset and store time of entries


class StoredTexts(NamedTuple):
    """Messages of one topic that were stored together."""

    topic: str
    physical_offsets: Ints
    text: bytes  # the property string of each, one after the other
    lengths: Ints  # of these
    stored_ms: int


class UnindexedBatches:
    """A stretch of the log that has nothing but batches. Used by the holder of the store's lock."""

    def __init__(self) -> None:
        self._begin = self._end = 0
        self._texts: list[StoredTexts] = []

    def forget(self) -> None:
        """Know nothing."""
        self._begin, self._end, self._texts = self._end, self._end, []

    def add(self, begin: int, end: int, texts: Sequence[StoredTexts] | None) -> None:
        """Take up an append, from `begin` to `end` in the log; None if it had other messages."""
        if begin != self._end or texts is None or end - self._begin > _MOST_BYTES:
            self._begin, self._texts = end if texts is None else begin, []
        self._texts += texts or ()
        self._end = end

    def columns(self, begin: int, end: int) -> IndexColumns | None:
        """Return the index entries of a stretch of the log; None if it is not what is known."""
        if not self._texts or (begin, end) != (self._begin, self._end):
            return None
        by_topic = defaultdict[str, list[StoredTexts]](list)
        for each in self._texts:
            by_topic[each.topic].append(each)
        columns = [_columns(topic, texts) for topic, texts in by_topic.items()]
        if len(columns) == 1:
            return columns[0]
        hashes, offsets, times = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(offsets, kind="stable")  # entries are in the order of the log
        return hashes[order], offsets[order], times[order]


def _columns(topic: str, texts: Sequence[StoredTexts]) -> IndexColumns:
    lengths = np.concatenate([_ZERO, *(each.lengths for each in texts)])
    data = pa.py_buffer(b"".join([each.text for each in texts]))
    bounds = pa.py_buffer(np.cumsum(lengths, dtype=np.int32))
    properties = PropertyColumn(
        pa.Array.from_buffers(pa.binary(), len(lengths) - 1, [None, bounds, data])
    )
    rows, hashes = index_entries(
        topic,
        unique=properties.get(UNIQ_KEY),
        keys=properties.get(KEYS),
        tags=properties.get(TAGS),
    )
    offsets = np.concatenate([each.physical_offsets for each in texts])
    times = np.repeat([each.stored_ms for each in texts], [len(each.lengths) for each in texts])
    return hashes, offsets[rows], times[rows]
