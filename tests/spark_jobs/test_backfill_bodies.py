"""Typed bodies: what fits becomes columns, what does not stays with its cause."""

from __future__ import annotations

import io
import json
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory, timestamp_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from pyspark.sql import SparkSession

import rocketpy
from rocketpy.spark_jobs.backfill import JobRefusedError, backfill, body_format
from rocketpy.spark_jobs.backfill.bodies import BodyFormat

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "lines", "type": {"type": "array", "items": "string"}},
    ],
}
AT = datetime(2026, 11, 16, 12, 30, tzinfo=timezone.utc)


def avro(**value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(AVRO), value)
    return stream.getvalue()


def descriptors() -> bytes:
    """Return what protoc makes of a file with a message Order."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto",
        package="shop",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NEW", number=0)
    kind.value.add(name="PAID", number=1)
    order = file.message_type.add(name="Order")
    tree = file.message_type.add(name="Tree")
    tree.field.add(
        name="child", number=1, type=field.TYPE_MESSAGE, label=field.LABEL_OPTIONAL,
        type_name=".shop.Tree",
    )  # fmt: skip
    entry = order.nested_type.add(name="StockEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    for number, (name, type_, repeated, type_name) in enumerate(
        [
            ("id", field.TYPE_INT64, False, None),
            ("size", field.TYPE_UINT64, False, None),
            ("kind", field.TYPE_ENUM, False, ".shop.Kind"),
            ("lines", field.TYPE_STRING, True, None),
            ("at", field.TYPE_MESSAGE, False, ".google.protobuf.Timestamp"),
            ("stock", field.TYPE_MESSAGE, True, ".shop.Order.StockEntry"),
        ],
        start=1,
    ):
        label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
        order.field.add(name=name, number=number, type=type_, label=label, type_name=type_name)
    times = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(times)
    return bytes(descriptor_pb2.FileDescriptorSet(file=[times, file]).SerializeToString())


def protobuf(**value: Any) -> bytes:
    pool = DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors()).file:
        pool.Add(file)
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    return bytes(order(**value).SerializeToString())


def copied(
    spark: SparkSession, store: rocketpy.Store, bodies: list[bytes], format_: BodyFormat
) -> tuple[list[dict[str, Any]], int]:
    """Return value, cause and body of each message, and how many the report calls bad."""
    store.create_topic("orders", 1)
    store.append("orders", pa.table({"body": pa.array(bodies, pa.binary())}))
    table = store.path.parent / "table"
    report = backfill(spark, store.path, table, topics="orders", body=format_)
    rows = spark.read.format("delta").load(str(table)).sort("queue_offset").collect()
    assert report.rows == len(rows) == len(bodies)
    found = [row.asDict(recursive=True) for row in rows]
    return [
        {name: row[name] for name in ("value", "cause", "body")} for row in found
    ], report.bad_rows


def test_json_that_does_not_fit_is_kept_with_its_cause(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    format_ = body_format("json", "id BIGINT, amount DOUBLE, lines ARRAY<STRING>")
    good = b'{"id": 1, "amount": 2.5, "lines": ["a"], "more": null}'
    bad = {
        b'{"id": "one", "amount": "x"}': "does not fit: id bigint, amount double",
        b'{"id": 1, ': "the body is no valid JSON",
        b"[1]": "the body is no JSON object",
        b"": "the body is no JSON object",
        b"\xff\xfe": "the body is no JSON object",
        b'{"id": 1.5}': "does not fit: id bigint",
    }
    rows, count = copied(spark, store, [good, b'{"id": null}', *bad], format_)
    assert rows[0]["value"] == {"id": 1, "amount": 2.5, "lines": ["a"]}
    assert rows[1]["value"] == {"id": None, "amount": None, "lines": None}
    assert [(row["cause"], row["body"]) for row in rows[:2]] == [(None, None)] * 2
    assert {bytes(row["body"]): row["cause"] for row in rows[2:]} == bad
    assert {row["value"] is None for row in rows[2:]} == {True}
    assert count == len(bad)


@pytest.mark.further
def test_avro_that_does_not_fit_is_kept_with_its_cause(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path
) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO))
    value = {"id": 7, "note": None, "at": AT, "lines": ["a", "b"]}
    good = avro(**value)
    rows, count = copied(
        spark,
        store,
        [good, good + b"xyz", good[:-2], b""],
        body_format("avro", tmp_path / "order.avsc", keep=True),
    )
    at = rows[0]["value"].pop("at")
    assert at.astimezone(timezone.utc) == AT
    assert rows[0]["value"] == {"id": 7, "note": None, "lines": ["a", "b"]}
    assert bytes(rows[0]["body"]) == good  # kept on request
    assert rows[1]["cause"] == "ValueError: 3 bytes behind the datum"
    assert all(row["cause"].startswith("EOFError") for row in rows[2:])
    assert [row["value"] for row in rows[1:]] == [None] * 3
    assert count == 3


@pytest.mark.further
def test_protobuf_that_does_not_fit_is_kept_with_its_cause(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path
) -> None:
    (tmp_path / "shop.desc").write_bytes(descriptors())
    good = protobuf(id=7, size=2**64 - 1, kind="PAID", lines=["a"], at=AT, stock={"x": 3})
    rows, count = copied(
        spark,
        store,
        [good, protobuf(), b"\xff\xff\xff"],
        body_format("protobuf", tmp_path / "shop.desc", message="shop.Order"),
    )
    at = rows[0]["value"].pop("at")
    assert at.astimezone(timezone.utc) == AT
    expected = {
        "id": 7,
        "size": Decimal(2**64 - 1),
        "kind": "PAID",
        "lines": ["a"],
        "stock": {"x": 3},
    }
    assert rows[0]["value"] == expected
    empty = {"id": 0, "size": Decimal(0), "kind": "NEW", "lines": [], "at": None, "stock": {}}
    assert (rows[1]["value"], rows[1]["cause"]) == (empty, None)
    assert (rows[2]["value"], bytes(rows[2]["body"])) == (None, b"\xff\xff\xff")
    assert "DecodeError" in rows[2]["cause"]
    assert count == 1


def test_a_wrong_schema_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    (tmp_path / "shop.desc").write_bytes(descriptors())
    for words, arguments, message in (
        ("body: is 'xml'; give json, avro, protobuf", ("xml", "x"), None),
        ("body schema: .*give DDL like", ("json", "id BIGINT,,"), None),
        ("message: is for Protobuf", ("json", "id BIGINT"), "Order"),
        ("is no Avro schema", ("avro", "{}"), None),
        ("is no record", ("avro", '"string"'), None),
        ("which message", ("protobuf", tmp_path / "shop.desc"), None),
        ("'Order' is not in the schema", ("protobuf", tmp_path / "shop.desc"), "Order"),
        ("shop.Tree holds itself", ("protobuf", tmp_path / "shop.desc"), "shop.Tree"),
        ("cannot be read", ("protobuf", tmp_path / "none"), "shop.Order"),
    ):
        with pytest.raises(JobRefusedError, match=words):
            body_format(*arguments, message=message)
