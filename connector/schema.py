"""The columns of each view: as Arrow for the readers, as Spark's types with microseconds."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from rocketpy.broker_core.codec.columns import ALL_COLUMNS, DEFAULT_COLUMNS, TIMESTAMP, choose
from rocketpy.broker_core.errors import ColumnError
from rocketpy.connector.options import OptionError

QUEUE_COLUMNS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("broker", pa.string(), nullable=False),
        pa.field("queue_id", pa.int32(), nullable=False),
        pa.field("queue_offset", pa.int64(), nullable=False),
        pa.field("commit_log_offset", pa.int64(), nullable=False),
        pa.field("store_size", pa.int32(), nullable=False),
        pa.field("tag_code", pa.int64(), nullable=False),
    ]
)
INDEX_COLUMNS = pa.schema(
    [
        pa.field("index_file", pa.string(), nullable=False),
        pa.field("entry", pa.int32(), nullable=False),
        pa.field("key_hash", pa.int32(), nullable=False),
        pa.field("commit_log_offset", pa.int64(), nullable=False),
        pa.field("store_timestamp", TIMESTAMP, nullable=False),
    ]
)
GROUP_COLUMNS = pa.schema(
    [
        pa.field("consumer_group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("broker", pa.string(), nullable=False),
        pa.field("queue_id", pa.int32(), nullable=False),
        pa.field("committed_offset", pa.int64(), nullable=False),
        pa.field("min_offset", pa.int64()),
        pa.field("end_offset", pa.int64()),
        pa.field("lag", pa.int64()),
        pa.field("lag_seconds", pa.float64()),
    ]
)
TOPIC_COLUMNS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("queues", pa.int32(), nullable=False),
        pa.field("is_readable", pa.bool_(), nullable=False),
        pa.field("is_writable", pa.bool_(), nullable=False),
        pa.field("messages", pa.int64(), nullable=False),
        pa.field("oldest_timestamp", TIMESTAMP),
        pa.field("newest_timestamp", TIMESTAMP),
    ]
)
MEMBER_COLUMNS = pa.schema(  # of no view: reports have it
    [
        pa.field("consumer_group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("member", pa.string(), nullable=False),
    ]
)
VIEW_COLUMNS = {
    "messages": ALL_COLUMNS,
    "queues": QUEUE_COLUMNS,
    "index": INDEX_COLUMNS,
    "groups": GROUP_COLUMNS,
    "topics": TOPIC_COLUMNS,
}
_SPARK_TIMESTAMP = pa.timestamp("us", tz="UTC")


def spark_schema(view: str, columns: str | None) -> StructType:
    """Return the asked-for columns of a view; None for its default ones.

    Raises:
        OptionError: there is no such column.
    """
    default = ",".join(DEFAULT_COLUMNS) if view == "messages" else "*"
    try:
        chosen = choose(columns or default, VIEW_COLUMNS[view])
    except ColumnError as cause:
        raise OptionError("columns", str(cause)) from cause
    return from_arrow_schema(pa.schema([_with_spark_type(field) for field in chosen]))


def _with_spark_type(field: pa.Field) -> pa.Field:
    return field.with_type(_SPARK_TIMESTAMP) if pa.types.is_timestamp(field.type) else field


def check_schema(view: str, wanted: StructType) -> None:
    """Raise unless a schema of the user's names columns of the view, with their types."""
    known = spark_schema(view, "*")
    for field in wanted:
        if field.name not in known.names:
            choose([field.name], VIEW_COLUMNS[view])  # says the nearest name
        own = known[field.name].dataType
        if own.simpleString() != field.dataType.simpleString():
            given = field.dataType.simpleString()
            raise ColumnError(
                field.name, f"the schema says {given}, but the column is {own.simpleString()}"
            )
        if known[field.name].nullable and not field.nullable:
            reason = "the schema says NOT NULL, but messages may have none; leave NOT NULL out"
            raise ColumnError(field.name, reason)


def arrow_schema(wanted: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects of batches."""
    return to_arrow_schema(wanted, timezone="UTC")
