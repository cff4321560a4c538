"""The small views, of groups and of topics, as tables: what they have in common in all backends."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rocketpy.broker_core.metadata.names import (
    is_dead_letter_topic,
    is_reserved_topic,
    is_retry_topic,
)


def topic_kind(topic: str) -> str:
    """Return what the column `kind` says of a topic."""
    if is_retry_topic(topic):
        return "retry"
    if is_dead_letter_topic(topic):
        return "dead letter"
    return "system" if is_reserved_topic(topic) else "normal"


def table_of(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
