"""The columns of a message as Arrow sees them: names, types, the default ten."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pyarrow as pa

from rocketpy.broker_core.errors import ColumnError

TIMESTAMP = pa.timestamp("ms", tz="UTC")

ALL_COLUMNS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("broker", pa.string(), nullable=False),
        pa.field("queue_id", pa.int32(), nullable=False),
        pa.field("queue_offset", pa.int64(), nullable=False),
        pa.field("tags", pa.string()),
        pa.field("keys", pa.string()),
        pa.field("body", pa.binary()),
        pa.field("properties", pa.map_(pa.string(), pa.string())),
        pa.field("born_timestamp", TIMESTAMP),
        pa.field("store_timestamp", TIMESTAMP),
        pa.field("born_host", pa.string()),
        pa.field("store_host", pa.string()),
        pa.field("msg_id", pa.string()),
        pa.field("uniq_key", pa.string()),
        pa.field("reconsume_times", pa.int32()),
        pa.field("flag", pa.int32()),
        pa.field("sys_flag", pa.int32()),
        pa.field("commit_log_offset", pa.int64()),
        pa.field("store_size", pa.int32()),
        pa.field("body_crc", pa.int32()),
        pa.field("prepared_transaction_offset", pa.int64()),
    ]
)
DEFAULT_COLUMNS: tuple[str, ...] = tuple(ALL_COLUMNS.names[:10])


def select(columns: Sequence[str] | str | None) -> pa.Schema:
    """Return the schema of the asked-for columns: None for the ten default ones, "*" for all.

    Raises:
        ColumnError: there is no such column.
    """
    return choose(DEFAULT_COLUMNS if columns is None else columns, ALL_COLUMNS)


def choose(columns: Sequence[str] | str, known: pa.Schema) -> pa.Schema:
    """Return the schema of some columns, given as a list or with commas, "*" for all.

    Raises:
        ColumnError: there is no such column.
    """
    if columns == "*":
        return known
    names = columns.split(",") if isinstance(columns, str) else columns
    names = [name.strip() for name in names]
    if not names or len(set(names)) < len(names):
        raise ColumnError(",".join(names), "name each column once, and at least one")
    for name in names:
        if name not in known.names:
            near = difflib.get_close_matches(name, known.names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known.names)}"
            raise ColumnError(name, f"no such column; {hint}")
    return pa.schema([known.field(name) for name in names])
