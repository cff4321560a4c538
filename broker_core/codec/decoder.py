"""A block of records as an Arrow record batch: one small function per column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.columns import TIMESTAMP
from rocketpy.broker_core.codec.compression import inflate
from rocketpy.broker_core.codec.gather import as_text, equal, rows_at, slices
from rocketpy.broker_core.codec.layout import HOST_V4_SIZE, HOST_V6_SIZE, SysFlag
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.message import Host
from rocketpy.broker_core.property_names import KEYS, TAGS, UNIQ_KEY

_HEX_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)


def decode(
    block: RecordBlock, schema: pa.Schema, *, broker: str, decompress: bool = True
) -> pa.RecordBatch:
    """Return the columns of `schema` (see columns.select) for the records of a block.

    Raises:
        RecordError: a compressed body cannot be unfolded.
    """

    def column(name: str) -> pa.Array:
        if name == "broker":
            return pa.repeat(pa.scalar(broker, pa.string()), len(block))
        if name == "body":
            return _bodies(block, decompress)
        return _COLUMNS[name](block)

    return pa.RecordBatch.from_arrays([column(name) for name in schema.names], schema=schema)


def topics(block: RecordBlock) -> pa.Array:
    """Return each record's topic; a block of one topic, the usual case, is compared, not copied."""
    if block.common_topic is not None:
        return _repeated(block.common_topic, len(block))
    if len(block) and (block.topic_lengths == block.topic_lengths[0]).all():
        at = int(block.topic_at[0])
        first = bytes(block.data[at : at + int(block.topic_lengths[0])])
        if equal(block.data, block.topic_at, first).all():
            return _repeated(first, len(block))
    return as_text(slices(block.data, block.topic_at, block.topic_lengths))


def _repeated(text: bytes, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text.decode("utf-8", "replace"), pa.string()), count)


def _bodies(block: RecordBlock, decompress: bool) -> pa.Array:
    stored = block.stored_bodies
    packed_rows = np.flatnonzero(block.sys_flags & SysFlag.COMPRESSED) if decompress else ()
    if not len(packed_rows):
        return stored
    bodies = stored.to_pylist()
    for row in packed_rows:
        try:
            bodies[row] = inflate(bodies[row], int(block.sys_flags[row]))
        except RecordError as cause:
            raise RecordError(int(block.starts[row]), cause.reason) from cause
    return pa.array(bodies, pa.binary())


def _hosts(block: RecordBlock, v6_bit: int) -> pa.Array:
    at, is_v6 = block.hosts(v6_bit)
    texts = np.empty(len(block), object)
    for size, rows in (
        (HOST_V4_SIZE, np.flatnonzero(~is_v6)),
        (HOST_V6_SIZE, np.flatnonzero(is_v6)),
    ):
        raw = rows_at(block.data, at[rows], np.dtype(f"V{size}"))
        distinct, inverse = np.unique(raw, return_inverse=True)
        names = np.array([str(Host.unpack(bytes(host))) for host in distinct], object)
        if rows.size:
            texts[rows] = names[inverse]
    return pa.array(texts, pa.string())


def _msg_ids(block: RecordBlock) -> pa.Array:
    at, is_v6 = block.hosts(SysFlag.STORE_HOST_V6)
    if is_v6.any():
        both = [_hex_ids(block, at, np.flatnonzero(rows)) for rows in (~is_v6, is_v6)]
        order = np.argsort(np.concatenate([np.flatnonzero(~is_v6), np.flatnonzero(is_v6)]))
        return pa.concat_arrays(both).take(pa.array(order))
    return _hex_ids(block, at, np.arange(len(block)))


def _hex_ids(block: RecordBlock, at: np.ndarray, rows: np.ndarray) -> pa.Array:
    """Store host and physical offset in hexadecimal; `rows` are all of one address family."""
    if not rows.size:
        return pa.array([], pa.string())
    _, is_v6 = block.hosts(SysFlag.STORE_HOST_V6)
    size = HOST_V6_SIZE if is_v6[rows[0]] else HOST_V4_SIZE
    hosts = rows_at(block.data, at[rows], np.dtype(f"V{size}")).view(np.uint8).reshape(-1, size)
    offsets = np.ascontiguousarray(block.head["physical_offset"][rows])
    raw = np.hstack([hosts, offsets.view(np.uint8).reshape(-1, 8)])
    digits = np.empty((rows.size, raw.shape[1] * 2), np.uint8)
    digits[:, 0::2] = _HEX_DIGITS[raw >> 4]
    digits[:, 1::2] = _HEX_DIGITS[raw & 15]
    ends = np.arange(rows.size + 1, dtype=np.int32) * digits.shape[1]
    return pa.Array.from_buffers(
        pa.string(), rows.size, [None, pa.py_buffer(ends), pa.py_buffer(digits)]
    )


def _from_head(field: str, dtype: npt.DTypeLike) -> Callable[[RecordBlock], pa.Array]:
    return lambda block: pa.array(block.head[field].astype(dtype))


def _from_foot(field: str, dtype: npt.DTypeLike) -> Callable[[RecordBlock], pa.Array]:
    return lambda block: pa.array(block.foot[field].astype(dtype))


def _timestamps(values: np.ndarray) -> pa.Array:
    return pa.array(values.astype(np.int64)).view(TIMESTAMP)


_COLUMNS: dict[str, Callable[[RecordBlock], pa.Array]] = {
    "topic": topics,
    "queue_id": _from_head("queue_id", np.int32),
    "queue_offset": _from_head("queue_offset", np.int64),
    "tags": lambda block: block.properties.get(TAGS),
    "keys": lambda block: block.properties.get(KEYS),
    "properties": lambda block: block.properties.as_map(),
    "born_timestamp": lambda block: _timestamps(block.head["born_timestamp"]),
    "store_timestamp": lambda block: _timestamps(block.store_timestamps),
    "born_host": lambda block: _hosts(block, SysFlag.BORN_HOST_V6),
    "store_host": lambda block: _hosts(block, SysFlag.STORE_HOST_V6),
    "msg_id": _msg_ids,
    "uniq_key": lambda block: block.properties.get(UNIQ_KEY),
    "reconsume_times": _from_foot("reconsume_times", np.int32),
    "flag": _from_head("flag", np.int32),
    "sys_flag": _from_head("sys_flag", np.int32),
    "commit_log_offset": _from_head("physical_offset", np.int64),
    "store_size": _from_head("total_size", np.int32),
    "body_crc": _from_head("body_crc", np.int32),
    "prepared_transaction_offset": _from_foot("prepared_transaction_offset", np.int64),
}
