"""Every sound record of the log as compact columns: what queues and index are held against.

Some 60 bytes a message: 1 GiB of messages of 1 KB takes 60 MB.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.decoder import topics
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.sys_flags import indexed, queued
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.java_hash import index_key_hash
from rocketpy.broker_core.message import TAGS
from rocketpy.broker_core.storage.dispatch import Dispatch, dispatches

NO_ROW = -1
NO_QUEUE = -1  # of a record whose topic cannot be one
_COLUMNS: dict[str, Any] = {
    "physical_offsets": np.int64,
    "sizes": np.int32,
    "queues": np.int32,  # a number per queue, see RecordTable.queue_numbers
    "queue_offsets": np.int64,
    "tag_codes": np.int64,
    "timestamps": np.int64,
    "is_queued": np.bool_,
    "keys": np.int64,  # of all records: row << 32 | hash, ascending, each once
    "tag_keys": np.int64,  # those of `keys` that stand for a tag
}


@dataclass(slots=True)
class RecordTable:
    """Collects records in log order; its columns are whole after finish()."""

    config: StoreConfig
    log_start: int  # the oldest byte that the log still has
    settled_end: int = (1 << 63) - 1  # from here on an append may be under way: entries come later
    indexed_end: int = (1 << 63) - 1  # from here on index entries come later
    queue_numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    end: int = 0  # of the log; 0 until the walk has ended
    columns: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    _parts: dict[str, list[npt.NDArray[Any]]] = field(default_factory=dict)
    _rows: int = 0

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        return self.columns[column]

    def add(self, block: RecordBlock, file_start: int) -> None:
        """Take up sound records that lie behind all others."""
        places = block.starts + file_start
        new: dict[str, npt.NDArray[Any]] = {
            "queues": np.full(len(block), NO_QUEUE, np.int32),
            "tag_codes": np.zeros(len(block), np.int64),
        }
        keys = [np.zeros(0, np.int64)]
        for dispatch in dispatches(block, file_start, self.config):
            rows = np.searchsorted(places, dispatch.physical_offsets)
            new["queues"][rows] = self._numbers_of(dispatch)
            new["tag_codes"][rows] = dispatch.tag_codes
            keys.append((rows[dispatch.index_rows] + self._rows) << 32 | dispatch.index_hashes)
        new["physical_offsets"], new["sizes"] = places, block.sizes.astype(np.int32)
        new["queue_offsets"] = block.head["queue_offset"].astype(np.int64)
        new["timestamps"], new["is_queued"] = block.store_timestamps, queued(block.sys_flags)
        is_indexed = indexed(block.sys_flags)
        for name, found in (("keys", np.concatenate(keys)), ("tag_keys", self._tag_keys(block))):
            new[name] = np.unique(found[is_indexed[(found >> 32) - self._rows]])
        for name, values in new.items():
            self._parts.setdefault(name, []).append(values)
        self._rows += len(block)

    def _numbers_of(self, dispatch: Dispatch) -> npt.NDArray[np.int32]:
        ids, inverse = np.unique(dispatch.queue_ids, return_inverse=True)
        numbers = [
            self.queue_numbers.setdefault((dispatch.topic, queue_id), len(self.queue_numbers))
            for queue_id in ids.tolist()
        ]
        return np.array(numbers, np.int32)[inverse]

    def _tag_keys(self, block: RecordBlock) -> Ints:
        """Return the keys that stand for tags: brokers before 5.4 do not index them."""
        tags = pc.fill_null(block.properties.get(TAGS), "").dictionary_encode()
        names = topics(block).dictionary_encode()
        tag_list, name_list = tags.dictionary.to_pylist(), names.dictionary.to_pylist()
        pairs = names.indices.to_numpy().astype(np.int64) * len(tag_list) + tags.indices.to_numpy()
        distinct, inverse = np.unique(pairs, return_inverse=True)
        hashes = [
            index_key_hash(f"{name_list[pair // len(tag_list)]}#T#{tag_list[pair % len(tag_list)]}")
            for pair in distinct.tolist()
        ]
        rows = np.flatnonzero(pc.not_equal(tags.cast("string"), "").to_numpy(zero_copy_only=False))
        return (rows + self._rows) << 32 | np.array(hashes, np.int64)[inverse[rows]]

    def finish(self, end: int) -> None:
        """Make the columns whole; the log ends at `end`."""
        self.end = end
        for name, dtype in _COLUMNS.items():
            parts = self._parts.pop(name, [])
            self.columns[name] = np.concatenate(parts) if parts else np.zeros(0, dtype)

    def rows_of(self, physical_offsets: Ints) -> Ints:
        """Return the row of the record at each place, NO_ROW where no sound record begins."""
        known = self.columns["physical_offsets"]
        if not known.size:
            return np.full(len(physical_offsets), NO_ROW, np.int64)
        rows = np.minimum(np.searchsorted(known, physical_offsets), known.size - 1)
        return np.where(known[rows] == physical_offsets, rows, NO_ROW)

    def values(self, column: str, rows: Ints) -> npt.NDArray[Any]:
        """Return a column's values at rows; whatever it may be where there is NO_ROW."""
        values = self.columns[column]
        return values[rows] if values.size else np.zeros(len(rows), values.dtype)
