"""Rows by key, by SQL filter and by time, as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.filters import SqlFilter, in_maps
from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.connector.positions import AtTime
from rocketpy.connector.read_options import ReadOptions


def with_columns(columns: Sequence[str], *needed: str) -> list[str]:
    """Return the columns and those that a filter needs."""
    return list(dict.fromkeys([*columns, *needed]))


def having_keys(batch: pa.RecordBatch, keys: Sequence[str]) -> pa.RecordBatch:
    """Return the messages that have one of the keys, or it as their unique key."""
    wanted = pa.array(keys, pa.string())
    words = pc.split_pattern(pc.fill_null(batch.column("keys"), ""), KEY_SEPARATOR)
    rows = pc.list_parent_indices(words).filter(pc.is_in(words.flatten(), wanted))
    is_meant = pc.is_in(batch.column("uniq_key"), wanted).to_numpy(zero_copy_only=False)
    is_meant = np.array(is_meant)
    is_meant[rows.to_numpy(zero_copy_only=False)] = True
    return batch.filter(pa.array(is_meant))


def passing(batch: pa.RecordBatch, sql: SqlFilter) -> pa.RecordBatch:
    """Return the messages whose properties pass a filter."""
    return batch.filter(sql.passes(in_maps(batch.column("properties")), batch.num_rows))


def columns_asked(options: ReadOptions) -> list[str]:
    """Return the columns that `matching` looks at."""
    asked = {
        "topic": options.topics or options.topic_pattern,
        "tags": options.tags is not None and not options.tags.takes_all,
        "keys": options.keys,
        "uniq_key": options.keys,
        "store_timestamp": any(isinstance(at, AtTime) for at in (options.start, options.end)),
    }
    return [column for column, is_asked in asked.items() if is_asked]


def matching(batch: pa.RecordBatch, options: ReadOptions) -> pa.RecordBatch:
    """Return the messages of any topics that the options mean, but for offsets.

    Records of one log are not quite in the order of their times: each is asked.
    """
    if options.topics or options.topic_pattern:
        names = pc.unique(batch.column("topic")).to_pylist()
        wanted = [name for name in names if options.is_wanted(name)]
        if len(wanted) < len(names):  # else a filter would only copy all of it
            is_meant = pc.is_in(batch.column("topic"), pa.array(wanted, pa.string()))
            batch = batch.filter(is_meant)
    if options.tags is not None and not options.tags.takes_all:
        wanted = pa.array(sorted(options.tags.names), pa.string())
        batch = batch.filter(pc.is_in(batch.column("tags"), wanted))
    if options.keys:
        batch = having_keys(batch, options.keys)
    if isinstance(options.start, AtTime):
        batch = batch.filter(pc.greater_equal(_stored_ms(batch), options.start.time_ms))
    if isinstance(options.end, AtTime):
        batch = batch.filter(pc.less(_stored_ms(batch), options.end.time_ms))
    return batch


def _stored_ms(batch: pa.RecordBatch) -> pa.Array:
    return batch.column("store_timestamp").cast(pa.int64())
