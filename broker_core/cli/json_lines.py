"""Messages as JSON, one object per line."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa


def json_lines(batch: pa.RecordBatch) -> Iterator[bytes]:
    """Yield a line for each row; times are ms, a body that is no text is base64."""
    names = batch.schema.names
    columns = [_plain(batch.column(name)) for name in names]
    for values in zip(*columns, strict=True):
        row: dict[str, Any] = {}
        for name, value in zip(names, values, strict=True):
            if name == "body":
                row["body"], row["body_encoding"] = _text(value)
            else:
                row[name] = dict(value) if name == "properties" else value
        yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def _plain(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return list(column.to_pylist())


def _text(body: bytes) -> tuple[str, str]:
    try:
        return body.decode(), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), "base64"
