"""Bodies through a decoder of Python's, column by column, with the cause of each that fails.

Spark's own readers of Avro and Protobuf come in JARs of their own, and say of a bad body only that
it is one. The libraries used here decode one message at a time: hence the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructType

Decode = Callable[[bytes], Any]  # raises an exception whose text says what is wrong
_BAD_VALUE = (pa.ArrowException, TypeError, ValueError, OverflowError)


def decoded(body: Column, value: StructType, decoder: Callable[[], Decode]) -> Column:
    """Return a struct of `value` and `cause`; `decoder` is called in each task, for its batches."""
    result = StructType().add("value", value).add("cause", StringType())

    def decode(bodies: pa.Array) -> pa.Array:
        # Spark wants times with the zone that it gives itself.
        return decode_all(bodies, decoder(), to_arrow_type(value, timezone="UTC"))

    make: Any = arrow_udf  # its stubs know of no struct
    column: Column = make(decode, result)(body)
    return column


def decode_all(bodies: pa.Array, decode: Decode, type_: pa.DataType) -> pa.Array:
    """Return value and cause of each body."""
    values, causes = [], []
    for body in bodies.to_pylist():
        value, cause = None, None
        if body is None:
            cause = "there is no body"
        else:
            try:
                value = decode(body)
            except Exception as error:  # whatever a decoder raises of bytes that are not its own
                cause = f"{type(error).__name__}: {error}".rstrip(": ")
        values.append(value)
        causes.append(cause)
    column = _column(values, causes, type_)
    return pa.StructArray.from_arrays([column, pa.array(causes, pa.string())], ["value", "cause"])


def _column(values: list[Any], causes: list[str | None], type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type_)
    except _BAD_VALUE:
        pass
    for row, value in enumerate(values):
        try:
            pa.array([value], type_)
        except _BAD_VALUE as error:
            values[row], causes[row] = None, f"a value that Spark cannot hold: {error}"
    return pa.array(values, type_)
