"""Typed columns of bodies: `value` where a body is what it should be, `cause` where it is not.

Every message stays a row: a body that does not fit is kept as it came, with the reason beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from rocketpy.spark_jobs.job_errors import JobRefusedError

FORMATS = ("json", "avro", "protobuf")
_CORRUPT = "_rocketpy_corrupt"
_DDL = "DDL like 'id BIGINT, at TIMESTAMP'"


class BodyFormat(Protocol):
    """How bodies are written, as a part of a job's identity."""

    @property
    def keep(self) -> bool:
        """Whether `body` is kept where `value` has it."""

    def described(self) -> dict[str, Any]:
        """Return it as JSON."""

    def typed(self, body: Column) -> Column:
        """Return a struct of `value` and `cause`: one of them is null, the other is not."""


def with_value(frame: DataFrame, format_: BodyFormat) -> DataFrame:
    """Return rows with `value` and `cause`; their `body` is null where value says the same."""
    frame = frame.withColumn("_typed", format_.typed(F.col("body")))
    value, cause = F.col("_typed.value"), F.col("_typed.cause")
    body = F.col("body") if format_.keep else F.when(cause.isNotNull(), F.col("body"))
    columns = {"value": value, "cause": cause, "body": body}
    return frame.withColumns(columns).drop("_typed")


@dataclass(frozen=True, slots=True)
class JsonBodies:
    """Bodies that are JSON objects; `schema` is a DDL text. Fields that it does not name go."""

    schema: str
    keep: bool = False

    def __post_init__(self) -> None:
        self._struct()

    def _struct(self) -> StructType:
        try:
            struct = StructType.fromDDL(self.schema)
        except PySparkException as cause:
            first = str(cause).strip().partition("\n")[0]
            raise JobRefusedError("body schema", f"{first}; give {_DDL}") from cause
        if not isinstance(struct, StructType):
            raise JobRefusedError("body schema", f"is one type; give columns: {_DDL}")
        return struct

    def described(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"format": "json", "schema": self._struct().simpleString(), "keep": self.keep}

    def typed(self, body: Column) -> Column:
        """Return value and cause."""
        struct = self._struct()
        marked = StructType([*struct.fields]).add(_CORRUPT, StringType())
        text = body.cast("string")
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        parsed = F.from_json(text, marked, options)
        is_object = F.ltrim(text).startswith("{")
        cause = (
            F.when(body.isNull(), F.lit("there is no body"))
            .when(~is_object, F.lit("the body is no JSON object"))
            .when(parsed[_CORRUPT].isNull(), F.lit(None).cast("string"))
            .when(~F.is_valid_utf8(text), F.lit("the body is not UTF-8"))
            .when(F.try_parse_json(text).isNull(), F.lit("the body is no valid JSON"))
            .otherwise(_misfits(parsed, text, struct))
        )
        value = F.struct(*(parsed[field.name].alias(field.name) for field in struct.fields))
        return F.struct(F.when(cause.isNull(), value).alias("value"), cause.alias("cause"))


def _misfits(parsed: Column, text: Column, struct: StructType) -> Column:
    """Say which fields a JSON object has that are not of their type."""
    named = [
        F.when(
            parsed[field.name].isNull() & F.get_json_object(text, f"$['{field.name}']").isNotNull(),
            F.lit(f"{field.name} {field.dataType.simpleString()}"),
        )
        for field in struct.fields
    ]
    found = F.concat_ws(", ", *named)
    inner = F.lit("something inside its fields does not fit the schema")
    return F.when(found == "", inner).otherwise(F.concat(F.lit("does not fit: "), found))


def body_format(
    kind: str, schema: str | Path, *, message: str | None = None, keep: bool = False
) -> BodyFormat:
    """Return the format that the options name; a schema is a text, or a file that has it.

    Raises:
        JobRefusedError: there is no such format, or the schema is none.
    """
    if kind not in FORMATS:
        raise JobRefusedError("body", f"is {kind!r}; give {', '.join(FORMATS)}")
    if kind == "protobuf":
        from rocketpy.spark_jobs.backfill.protobuf_bodies import ProtobufBodies

        if message is None:
            raise JobRefusedError("body", "of Protobuf which message? give its full name")
        return ProtobufBodies(_content(schema), message, keep)
    if message is not None:
        raise JobRefusedError("message", f"is for Protobuf, not for {kind}; leave it out")
    text = _content(schema).decode() if Path(schema).is_file() else str(schema)
    if kind == "avro":
        from rocketpy.spark_jobs.backfill.avro_bodies import AvroBodies

        return AvroBodies(text, keep)
    return JsonBodies(text.strip(), keep)


def _content(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as cause:
        raise JobRefusedError("body schema", f"{path} cannot be read: {cause}") from cause
