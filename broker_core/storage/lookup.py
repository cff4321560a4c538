"""Finding messages by key through the index, and by their physical offset.

However many there are, they are decoded and handed out in batches of bounded size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.columns import ALL_COLUMNS
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.codec.gather import Ints, rows_at
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.java_hash import index_key_hash
from rocketpy.broker_core.storage.indexing import offsets_of_key
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.published import look

_BATCH_ROWS, _BATCH_BYTES = 16_384, 16 << 20  # of records that are decoded together
_SIZE = np.dtype(">i4")  # what a record begins with


def find_by_keys(
    parts: StoreParts,
    topic: str,
    keys: Sequence[str],
    schema: pa.Schema,
    start_ms: int | None = None,
    end_ms: int | None = None,
    *,
    decompress: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the messages that have one of the keys, or it as unique key: each once, in log order.

    Index files only know hashes and seconds: each record is asked whether it is really meant.
    Memory: the physical offsets of all hits, and a batch of records.
    """
    wanted = pa.array(keys, pa.string())
    needed = [
        name
        for name in ("topic", "keys", "uniq_key", "store_timestamp")
        if name not in schema.names
    ]
    wide = pa.schema([*schema, *(ALL_COLUMNS.field(name) for name in needed)])
    for batch in records_at(parts, _hits(parts, topic, keys), wide, decompress):
        words = pc.split_pattern(pc.fill_null(batch.column("keys"), ""), " ")
        rows = pc.list_parent_indices(words).filter(pc.is_in(words.flatten(), wanted))
        is_meant = np.zeros(batch.num_rows, bool)
        is_meant[rows.to_numpy(zero_copy_only=False)] = True
        is_unique = pc.is_in(batch.column("uniq_key"), wanted)
        is_meant |= is_unique.to_numpy(zero_copy_only=False)
        is_meant &= pc.equal(batch.column("topic"), topic).to_numpy(zero_copy_only=False)
        stored = batch.column("store_timestamp").cast(pa.int64()).to_numpy()
        is_meant &= (stored >= (start_ms or 0)) & (end_ms is None or stored < end_ms)
        yield batch.filter(pa.array(is_meant)).select(schema.names)


class KeyKind(Enum):
    """What a text is a key of, by Apache's index types."""

    ANY = ""  # a key or the unique key
    KEY = "K"
    UNIQUE = "U"
    TAG = "T"


def offsets_of(
    parts: StoreParts, topic: str, key: str, kind: KeyKind, times_ms: tuple[int, int]
) -> list[int]:
    """Return where the messages of a topic are that have a key and were stored between two times.

    The times count themselves. In the order of the log; each record was asked whether it is meant.
    """
    columns = ("topic", "keys", "uniq_key", "tags", "store_timestamp", "commit_log_offset")
    schema = pa.schema([ALL_COLUMNS.field(name) for name in columns])
    hits, found = _hits(parts, topic, [f"T#{key}" if kind is KeyKind.TAG else key]), []
    for batch in records_at(parts, hits, schema, decompress=False):
        for row in batch.set_column(4, "store_timestamp", batch[4].cast(pa.int64())).to_pylist():
            is_in_time = times_ms[0] <= row["store_timestamp"] <= times_ms[1]
            if is_in_time and row["topic"] == topic and _has_key(row, key, kind):
                found.append(row["commit_log_offset"])
    return found


def _has_key(row: dict[str, str | None], key: str, kind: KeyKind) -> bool:
    if kind is KeyKind.TAG:
        return row["tags"] == key
    is_key = key in (row["keys"] or "").split(" ")
    is_unique = row["uniq_key"] == key
    if kind is KeyKind.ANY:
        return is_key or is_unique
    return is_unique if kind is KeyKind.UNIQUE else is_key


def _hits(parts: StoreParts, topic: str, keys: Sequence[str]) -> Ints:
    """Return the physical offsets of records that may have one of the keys, in log order."""
    hashes = [index_key_hash(f"{topic}#{key}") for key in keys]

    def find() -> Ints:
        found = set[int]().union(*(offsets_of_key(parts, each) for each in hashes))
        return np.sort(np.fromiter(found, np.int64, len(found)))

    offsets, limit = look(parts, find, lambda hits: int(hits[-1]) + 1 if hits.size else 0)
    upto = limit if limit is not None else np.iinfo(np.int64).max
    return offsets[(offsets >= parts.log.min_offset()) & (offsets < upto)]


def read_one(parts: StoreParts, offset: int, schema: pa.Schema) -> pa.RecordBatch | None:
    """Return the record at a physical offset; None if no sound one begins there."""
    if offset < parts.log.min_offset():
        return None

    def read() -> pa.RecordBatch | None:
        return next(records_at(parts, np.array([offset], np.int64), schema), None)

    found, limit = look(parts, read, lambda seen: offset + 1 if seen is not None else 0)
    return found if limit is None else None


def records_at(
    parts: StoreParts, offsets: Ints, schema: pa.Schema, decompress: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the sound records at these offsets, file by file, in batches of bounded size."""
    starts = offsets - offsets % parts.log.file_size
    for start in np.unique(starts).tolist():
        data = parts.log.data_at(start)
        if data is None:
            continue
        positions = offsets[starts == start] - start
        for some in _cut(data, positions):
            block = _block_of_sound(data, some, start)
            if block is not None:
                broker = parts.config.broker_name
                yield decode(block, schema, broker=broker, decompress=decompress)


def _cut(data: np.ndarray, positions: Ints) -> Iterator[Ints]:
    """Yield positions, so many at a time that their records and their bytes are bounded."""
    positions = positions[positions + _SIZE.itemsize <= data.size]
    sizes = rows_at(data, positions, _SIZE).astype(np.int64)
    # Bytes that are no record may say any size: an impossible one counts 0. They are dropped later.
    ends = np.cumsum(np.where((sizes >= 0) & (sizes <= data.size), sizes, 0))
    number = ends // _BATCH_BYTES + np.arange(len(positions)) // _BATCH_ROWS
    yield from np.split(positions, np.flatnonzero(np.diff(number)) + 1)


def _block_of_sound(data: np.ndarray, positions: Ints, file_start: int) -> RecordBlock | None:
    while positions.size:
        try:
            block = RecordBlock(data, positions)
        except RecordError as broken:
            positions = positions[positions != broken.at]
            continue
        sound = block.sound() & (block.head["physical_offset"] == positions + file_start)
        return block.take(np.flatnonzero(sound)) if sound.any() else None
    return None
