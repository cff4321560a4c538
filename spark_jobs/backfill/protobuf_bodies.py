"""Bodies that are Protobuf messages, by a descriptor set: `protoc --descriptor_set_out
--include_imports`.

A field that is not set is null if its type can say so: messages and `optional` fields can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.sql import Column
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.spark_jobs.backfill.decoding import Decode, decoded
from rocketpy.spark_jobs.job_errors import JobRefusedError

_TIMESTAMP = "google.protobuf.Timestamp"
# By the names of FieldDescriptor's types.
_TYPES: dict[str, DataType] = {
    **dict.fromkeys(("INT32", "SINT32", "SFIXED32"), IntegerType()),
    **dict.fromkeys(("UINT32", "FIXED32", "INT64", "SINT64", "SFIXED64"), LongType()),
    **dict.fromkeys(("UINT64", "FIXED64"), DecimalType(20, 0)),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "BOOL": BooleanType(),
    "STRING": StringType(),
    "BYTES": BinaryType(),
    "ENUM": StringType(),
}


@dataclass(frozen=True, slots=True)
class ProtobufBodies:
    """Bodies of one message type, by its full name in a descriptor set."""

    descriptors: bytes
    message: str
    keep: bool = False

    def __post_init__(self) -> None:
        try:
            kind = _message_class(self.descriptors, self.message)
        except ImportError as cause:
            reason = "Protobuf needs the package protobuf, here and where tasks run"
            raise JobRefusedError(
                "body", f"{reason}: pip install 'rocketpy-spark[protobuf]'"
            ) from cause
        except KeyError as cause:
            raise JobRefusedError("message", f"{self.message!r} is not in the schema") from cause
        except Exception as cause:  # protobuf has many
            reason = f"is no descriptor set: {cause}; make one with protoc --descriptor_set_out"
            raise JobRefusedError("body schema", f"{reason} --include_imports") from cause
        _struct(kind.DESCRIPTOR, ())

    def described(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "format": "protobuf",
            "schema": crc32(self.descriptors),
            "message": self.message,
            "keep": self.keep,
        }

    def typed(self, body: Column) -> Column:
        """Return value and cause."""
        kind = _message_class(self.descriptors, self.message)
        return decoded(body, _struct(kind.DESCRIPTOR, ()), _decoder(self.descriptors, self.message))


@lru_cache(maxsize=8)
def _message_class(descriptors: bytes, name: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _struct(descriptor: Any, above: tuple[str, ...]) -> StructType:
    if descriptor.full_name in above:
        reason = f"{descriptor.full_name} holds itself, which a table cannot"
        raise JobRefusedError("message", reason)
    above = (*above, descriptor.full_name)
    struct = StructType()
    for field in descriptor.fields:
        type_ = _type(field, above)
        is_list = field.is_repeated and not isinstance(type_, MapType)
        struct = struct.add(field.name, ArrayType(type_) if is_list else type_)
    return struct


def _type(field: Any, above: tuple[str, ...]) -> DataType:
    inner = field.message_type
    if inner is None:
        return _TYPES[_type_name(field)]
    if inner.GetOptions().map_entry:
        key, value = inner.fields
        return MapType(_type(key, above), _type(value, above))
    return TimestampType() if inner.full_name == _TIMESTAMP else _struct(inner, above)


def _type_name(field: Any) -> str:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_")


def _decoder(descriptors: bytes, name: str) -> Callable[[], Decode]:
    def make() -> Decode:
        kind = _message_class(descriptors, name)

        def decode(body: bytes) -> Any:
            return _plain(kind.FromString(body))

        return decode

    return make


def _plain(message: Any) -> dict[str, Any]:
    found = dict[str, Any]()
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            inner = field.message_type
            if inner is not None and inner.GetOptions().map_entry:
                entry = inner.fields_by_name["value"]
                found[field.name] = [(key, _one(entry, value[key])) for key in value]
            else:
                found[field.name] = [_one(field, each) for each in value]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _one(field, value)
    return found


def _one(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            from datetime import timezone

            return value.ToDatetime(tzinfo=timezone.utc)
        return _plain(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named else str(value)  # of a newer schema
    return value
