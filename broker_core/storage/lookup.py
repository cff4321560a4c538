"""Finding messages by key through the index, and by their place in the log."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.columns import ALL_COLUMNS
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.java_hash import index_key_hash
from rocketpy.broker_core.storage.indexing import places_of
from rocketpy.broker_core.storage.parts import StoreParts


def find_by_key(
    parts: StoreParts,
    topic: str,
    key: str,
    schema: pa.Schema,
    start_ms: int | None = None,
    end_ms: int | None = None,
    *,
    decompress: bool = True,
) -> list[pa.RecordBatch]:
    """Return the messages that have a key or unique key, in log order.

    Index files only know hashes and seconds: each record is asked whether it is really meant.
    """
    hits = places_of(parts, index_key_hash(f"{topic}#{key}"))
    oldest = parts.log.min_offset()
    offsets = np.array(sorted(offset for offset in hits if offset >= oldest), np.int64)
    needed = [
        name
        for name in ("topic", "keys", "uniq_key", "store_timestamp")
        if name not in schema.names
    ]
    wide = pa.schema([*schema, *(ALL_COLUMNS.field(name) for name in needed)])
    found = []
    for batch in records_at(parts, offsets, wide, decompress):
        words = pc.split_pattern(pc.fill_null(batch.column("keys"), ""), " ")
        rows = pc.list_parent_indices(words).filter(pc.equal(words.flatten(), key))
        is_meant = np.zeros(batch.num_rows, bool)
        is_meant[rows.to_numpy(zero_copy_only=False)] = True
        is_unique = pc.fill_null(pc.equal(batch.column("uniq_key"), key), False)
        is_meant |= is_unique.to_numpy(zero_copy_only=False)
        is_meant &= pc.equal(batch.column("topic"), topic).to_numpy(zero_copy_only=False)
        stored = batch.column("store_timestamp").cast(pa.int64()).to_numpy()
        is_meant &= (stored >= (start_ms or 0)) & (end_ms is None or stored < end_ms)
        found.append(batch.filter(pa.array(is_meant)).select(schema.names))
    return found


def read_one(parts: StoreParts, offset: int, schema: pa.Schema) -> pa.RecordBatch | None:
    """Return the record at a physical offset; None if no sound one begins there."""
    if offset < parts.log.min_offset():
        return None
    batches = records_at(parts, np.array([offset], np.int64), schema)
    return batches[0] if batches else None


def records_at(
    parts: StoreParts, offsets: Ints, schema: pa.Schema, decompress: bool = True
) -> list[pa.RecordBatch]:
    """Return the sound records among these places, a batch per file."""
    batches = []
    starts = offsets - offsets % parts.log.file_size
    for start in np.unique(starts).tolist():
        data = parts.log.data_at(start)
        if data is None:
            continue
        places = offsets[starts == start] - start
        block = _block_of_sound(data, places, start)
        if block is not None:
            broker = parts.config.broker_name
            batches.append(decode(block, schema, broker=broker, decompress=decompress))
    return batches


def _block_of_sound(data: np.ndarray, places: Ints, file_start: int) -> RecordBlock | None:
    while places.size:
        try:
            block = RecordBlock(data, places)
        except RecordError as broken:
            places = places[places != broken.at]
            continue
        sound = block.sound() & (block.head["physical_offset"] == places + file_start)
        return block.take(np.flatnonzero(sound)) if sound.any() else None
    return None
