"""The columns of a message as Spark sees them: those of the codec, times in microseconds."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from rocketpy.broker_core.codec.columns import select

_SPARK_TIMESTAMP = pa.timestamp("us", tz="UTC")


def spark_schema(columns: Sequence[str] | str | None) -> StructType:
    """Return the Spark schema of the asked-for columns: None for the ten default ones."""
    fields = [
        field.with_type(_SPARK_TIMESTAMP) if pa.types.is_timestamp(field.type) else field
        for field in select(columns)
    ]
    return from_arrow_schema(pa.schema(fields))


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema that Spark expects of batches with these columns."""
    return to_arrow_schema(spark_schema(columns), timezone="UTC")
