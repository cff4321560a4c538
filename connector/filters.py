"""Rows by key and by time, as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.connector.positions import AtTime, Position


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


def at_times(batch: pa.RecordBatch, start: Position | None, end: Position | None) -> pa.RecordBatch:
    """Return the messages stored from a start time on and before an end time, if these are times.

    Records of one log are not quite in the order of their times: each is asked.
    """
    stored = batch.column("store_timestamp").cast(pa.int64())
    if isinstance(start, AtTime):
        batch = batch.filter(pc.greater_equal(stored, start.time_ms))
        stored = batch.column("store_timestamp").cast(pa.int64())
    if isinstance(end, AtTime):
        batch = batch.filter(pc.less(stored, end.time_ms))
    return batch
