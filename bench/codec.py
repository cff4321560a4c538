"""Decoding a million records to Arrow, beside a plain struct loop over the same bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from measure import Figure, cpu_seconds
from workload import TOPIC, table

from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.intake.table import Intake
from rocketpy.broker_core.storage.reading import BATCH_ROWS

ROWS = 1_000_000
LOOP_ROWS = 100_000
_HEADER = struct.Struct(">iIIiiqqiq8sq8siqi")


def records(rows: int) -> npt.NDArray[np.uint8]:
    """Return records back to back, as a commit log holds them."""
    intake = Intake(TOPIC, 4, StoreConfig())
    parts = []
    for first in range(0, rows, 100_000):
        for batch in intake.batches(table(min(100_000, rows - first), first), 1_700_000_000_000):
            count = len(batch.run)
            batch.run.place(np.arange(count), np.arange(count), 1_700_000_000_000)
            parts.append(batch.run.data)
    return np.concatenate(parts)


def decode_all(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], check: bool) -> int:
    schema = select(None)
    rows = 0
    for first in range(0, len(starts), BATCH_ROWS):
        block = RecordBlock(data, starts[first : first + BATCH_ROWS])
        if check:
            assert block.sound().all()
        rows += decode(block, schema, broker="bench").num_rows
    return rows


def filter_all(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sql: SqlFilter) -> int:
    """Ask a filter of every record, and decode nothing."""
    rows = 0
    for first in range(0, len(starts), BATCH_ROWS):
        block = RecordBlock(data, starts[first : first + BATCH_ROWS])
        rows += int(np.count_nonzero(sql.passes(block.properties.get, len(block))))
    return rows


def struct_loop(data: memoryview, rows: int) -> pa.Table:
    """What one writes first: unpack record after record, then make a table."""
    found = list(_each(data, rows))
    names = select(None).names
    columns = zip(*found, strict=True)
    return pa.table(
        [
            pa.array(list(column), field.type)
            for column, field in zip(columns, select(None), strict=True)
        ],
        names=names,
    )


def _each(data: memoryview, rows: int) -> Iterator[tuple[object, ...]]:
    at = 0
    for _ in range(rows):
        head = _HEADER.unpack_from(data, at)
        size, queue_id, queue_offset, born, stored, body_length = (
            head[0], head[3], head[5], head[8], head[10], head[14],
        )  # fmt: skip
        body_at = at + _HEADER.size
        topic_at = body_at + body_length + 1
        topic_end = topic_at + data[topic_at - 1]
        text = bytes(data[topic_end + 2 : at + size]).decode()
        properties = dict(entry.split("\x01", 1) for entry in text.split("\x02") if entry)
        yield (
            bytes(data[topic_at:topic_end]).decode(), "bench", queue_id, queue_offset,
            properties.get("TAGS"), properties.get("KEYS"),
            bytes(data[body_at : body_at + body_length]), list(properties.items()), born, stored,
        )  # fmt: skip
        at += size


def figures() -> Iterator[Figure]:
    data = records(ROWS)
    starts = np.array(record_starts(data, 0, data.size, ROWS)[0], np.int64)
    assert len(starts) == ROWS
    ours = cpu_seconds(lambda: decode_all(data, starts, check=False))
    loop = cpu_seconds(lambda: struct_loop(memoryview(data), LOOP_ROWS)) * ROWS / LOOP_ROWS
    checked = cpu_seconds(lambda: decode_all(data, starts, check=True))
    sql = SqlFilter("tenant = 't7' OR KEYS ENDSWITH '9999'")
    filtered = cpu_seconds(lambda: filter_all(data, starts, sql))
    yield Figure("decode, ten columns", ours, "CPU-s per million", "<= 0.5")
    yield Figure("the same in a struct loop", loop, "CPU-s per million")
    yield Figure("loop / decode", loop / ours, "times", ">= 6")
    yield Figure("decode, check sums compared", checked, "CPU-s per million")
    yield Figure("SQL filter over two properties", filtered, "CPU-s per million", "<= 0.5")
