"""The columns that a DataFrame may be written with, checked before anything is run."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegralType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from rocketpy.broker_core.codec.columns import ALL_COLUMNS
from rocketpy.broker_core.errors import ColumnError


def _is_text(type_: DataType) -> bool:
    return isinstance(type_, StringType)


def _is_body(type_: DataType) -> bool:
    return isinstance(type_, (BinaryType, StringType))


def _is_whole_number(type_: DataType) -> bool:
    return isinstance(type_, IntegralType)


def _is_time(type_: DataType) -> bool:
    return isinstance(type_, (TimestampType, LongType))


def _is_keys(type_: DataType) -> bool:
    return _is_text(type_) or (isinstance(type_, ArrayType) and _is_text(type_.elementType))


def _is_properties(type_: DataType) -> bool:
    return isinstance(type_, MapType) and _is_text(type_.keyType) and _is_text(type_.valueType)


# Which types a column may have, in words and as a question.
COLUMNS = {
    "body": ("binary or string", _is_body),
    "topic": ("string", _is_text),
    "tags": ("string", _is_text),
    "keys": ("string or array<string>", _is_keys),
    "properties": ("map<string,string>", _is_properties),
    "queue_id": ("int", _is_whole_number),
    "sharding_key": ("string", _is_text),
    "flag": ("int", _is_whole_number),
    "delay_level": ("int", _is_whole_number),
    "deliver_at": ("timestamp or long", _is_time),
}


_OF_KAFKA = {
    "key": "'keys', and 'sharding_key' where it chooses the queue:"
    " df.withColumnsRenamed({'key': 'keys'})",
    "value": "'body': df.withColumnsRenamed({'value': 'body'})",
    "headers": "'properties', a map of strings",
    "partition": "'queue_id'",
    "timestamp": "decided by the store",
}


def check_columns(
    schema: StructType, *, has_topic: bool, property_columns: Sequence[str] = ()
) -> None:
    """Refuse a DataFrame that cannot be written.

    Raises:
        ColumnError: a column is missing, there twice, unknown or of a type that cannot be stored.
    """
    _refuse_unknown([name for name in schema.names if name not in property_columns])
    for name in property_columns:
        if name not in schema.names:
            raise ColumnError(name, "is named in option 'propertyColumns', but is missing")
    for field in schema.fields:
        if schema.names.count(field.name) > 1:
            raise ColumnError(field.name, "is there twice")
        types, is_right = COLUMNS.get(field.name, ("string", _is_text))
        if not is_right(field.dataType):
            found = field.dataType.simpleString()
            raise ColumnError(field.name, f"is {found}; what can be written is {types}")
    if "body" not in schema.names:
        raise ColumnError("body", f"is missing; the DataFrame has {', '.join(schema.names)}")
    if not has_topic and "topic" not in schema.names:
        raise ColumnError("topic", "is missing; give .option('topic', ...) or such a column")


def _refuse_unknown(names: list[str]) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    if not unknown:
        return
    drop = f".drop({', '.join(repr(name) for name in unknown)})"
    if set(unknown) <= set(ALL_COLUMNS.names):
        reason = f"is decided by the store when it takes a message; write df{drop}"
        raise ColumnError(unknown[0], reason)
    strange = next(name for name in unknown if name not in ALL_COLUMNS.names)
    if strange in _OF_KAFKA:
        hint = f"what Kafka calls so is {_OF_KAFKA[strange]} here."
    else:
        near = difflib.get_close_matches(strange, COLUMNS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(COLUMNS)}."
    raise ColumnError(strange, f"is not stored; {hint} To leave columns out, write df{drop}")
