"""Bodies that are Avro: the bare datum of a record, without a file's header or a registry's."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import StructType

from rocketpy.spark_jobs.backfill.decoding import Decode, decoded
from rocketpy.spark_jobs.job_errors import JobRefusedError


@dataclass(frozen=True, slots=True)
class AvroBodies:
    """Bodies of one Avro schema, given as JSON."""

    schema: str
    keep: bool = False

    def __post_init__(self) -> None:
        try:
            _parsed(self.schema)
        except ImportError as cause:
            reason = "Avro needs the package fastavro, here and where tasks run"
            raise JobRefusedError(
                "body", f"{reason}: pip install 'rocketpy-spark[avro]'"
            ) from cause
        except Exception as cause:  # fastavro has many
            raise JobRefusedError("body schema", f"is no Avro schema: {cause}") from cause
        document = json.loads(self.schema)
        if not isinstance(document, dict) or document.get("type") != "record":
            raise JobRefusedError("body schema", "is no record; bodies are columns of a record")

    def described(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"format": "avro", "schema": json.loads(self.schema), "keep": self.keep}

    def typed(self, body: Column) -> Column:
        """Return value and cause."""
        return decoded(body, _spark_type(self.schema), _decoder(self.schema))


def _spark_type(schema: str) -> StructType:
    """Return the columns that Spark has for a schema, as Spark itself says."""
    session = SparkSession.active()
    assert session._jvm is not None
    apache = session._jvm.org.apache
    parsed = apache.avro.Schema.Parser().parse(schema)
    found = apache.spark.sql.avro.SchemaConverters.toSqlType(parsed).dataType().json()
    return StructType.fromJson(json.loads(found))


def _decoder(schema: str) -> Callable[[], Decode]:
    def make() -> Decode:
        import fastavro

        parsed = _parsed(schema)

        def decode(body: bytes) -> Any:
            stream = io.BytesIO(body)
            value = fastavro.schemaless_reader(stream, parsed, None)
            if (rest := len(body) - stream.tell()) > 0:
                raise ValueError(f"{rest} bytes behind the datum")
            return _plain(value)

        return decode

    return make


@lru_cache(maxsize=8)
def _parsed(schema: str) -> Any:
    import fastavro

    return fastavro.parse_schema(json.loads(schema))


def _plain(value: Any) -> Any:
    """Return what Arrow takes: a UUID is a text."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, UUID) else value
