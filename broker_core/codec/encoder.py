"""The vectorised encoder: columns of messages to one run of records.

Header columns are built in one structured array and Arrow lays header, body, topic and properties
side by side; the data buffer of that join *is* the run of records. What only the appender knows
(queue offset, physical offset, store time) and what covers it (the record check sum) is patched
into the run afterwards, column by column.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.gather import Bytes, Ints
from rocketpy.broker_core.codec.layout import (
    CHECKSUM_DIGITS,
    CHECKSUM_SIZE,
    HEADER_V4,
    HEADER_V4_SIZE,
    MAGIC_V1,
    MAX_PROPERTIES,
)
from rocketpy.broker_core.codec.record import CHECKSUM_HEAD
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import Host

_EMPTY = pa.scalar(b"", pa.binary())
_POSITIVE = 0x7FFFFFFF
# "0000", "1000", "2000", ...: each number below 10,000 with its digits reversed, as one word
_FOUR_DIGITS = np.array([f"{n:04d}"[::-1].encode() for n in range(10_000)], "S4").view("<u4")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageColumns:
    """Messages of one topic, column by column, checked and typed; no column has nulls.

    `bodies` and `properties` are binary; `properties` holds whole property strings.
    """

    topic: bytes
    bodies: pa.Array
    properties: pa.Array
    queue_ids: npt.NDArray[np.int32]
    flags: npt.NDArray[np.int32]
    born_timestamps: Ints
    born_host: Host
    store_host: Host

    def __len__(self) -> int:
        return len(self.bodies)


class RecordRun:
    """Records back to back, ready to be placed in a log; `data` is theirs alone and writable."""

    def __init__(
        self, data: Bytes, headers: npt.NDArray[np.void], starts: Ints, *, has_checksum: bool
    ) -> None:
        self.data, self.starts = data, starts
        self.sizes = headers["total_size"].astype(np.int64)
        self._headers, self._has_checksum = headers, has_checksum

    def __len__(self) -> int:
        return len(self.starts)

    def place(self, queue_offsets: Ints, physical_offsets: Ints, store_timestamp_ms: int) -> None:
        """Write in what the log decides, then the record check sums."""
        self._headers["queue_offset"] = queue_offsets
        self._headers["physical_offset"] = physical_offsets
        self._headers["store_timestamp"] = store_timestamp_ms
        self._put(self.starts, self._headers.view(f"V{HEADER_V4_SIZE}"))
        if self._has_checksum:
            self._seal()

    def _put(self, at: Ints, values: npt.NDArray[np.void]) -> None:
        size = values.dtype.itemsize
        windows = np.ndarray((self.data.size - size + 1,), values.dtype, self.data, strides=(1,))
        windows[at] = values

    def _seal(self) -> None:
        ends = self.starts + self.sizes - CHECKSUM_SIZE
        view, crc32 = self.data.data, zlib.crc32
        pairs = zip(self.starts.tolist(), ends.tolist(), strict=True)
        crcs = np.fromiter((crc32(view[a:b]) for a, b in pairs), np.int64, len(self))
        self._put(ends + len(CHECKSUM_HEAD), _reversed_digits(crcs & _POSITIVE))


def _reversed_digits(numbers: Ints) -> npt.NDArray[np.void]:
    """Return ten decimal digits of each number, the least significant first."""
    text = np.empty(len(numbers), [("low", "<u4"), ("middle", "<u4"), ("high", "<u2")])
    text["low"] = _FOUR_DIGITS[numbers % 10_000]
    text["middle"] = _FOUR_DIGITS[numbers // 10_000 % 10_000]
    text["high"] = _FOUR_DIGITS[numbers // 100_000_000] & 0xFFFF
    return text.view(f"V{CHECKSUM_DIGITS}")


def encode(columns: MessageColumns, *, checksum: bool) -> RecordRun:
    """Return the records of a batch, not yet placed.

    Raises:
        MessageRefusedError: the properties of a message do not fit into a record.
    """
    count = len(columns)
    body_lengths = _lengths(columns.bodies)
    properties_lengths = _lengths(columns.properties) + (CHECKSUM_SIZE if checksum else 0)
    longest = int(properties_lengths.max(initial=0))
    if longest > MAX_PROPERTIES:
        row = int(properties_lengths.argmax())
        raise MessageRefusedError(
            f"properties of row {row}", f"{longest} bytes in all, a record holds {MAX_PROPERTIES}"
        )
    topic = len(columns.topic).to_bytes(1, "big") + columns.topic
    sizes = HEADER_V4_SIZE + body_lengths + len(topic) + 2 + properties_lengths
    headers = _headers(columns, sizes, body_lengths)
    parts = [
        _fixed(headers, HEADER_V4_SIZE),
        columns.bodies,
        pa.scalar(topic, pa.binary()),
        _fixed(properties_lengths.astype(">u2"), 2),
        columns.properties,
    ]
    if checksum:
        parts.append(pa.scalar(CHECKSUM_HEAD + b"0" * CHECKSUM_DIGITS + b"\x02", pa.binary()))
    joined = pc.binary_join_element_wise(*parts, _EMPTY)
    data = np.frombuffer(joined.buffers()[2], np.uint8) if count else np.zeros(0, np.uint8)
    starts = np.cumsum(sizes) - sizes
    return RecordRun(data, headers, starts, has_checksum=checksum)


def _headers(columns: MessageColumns, sizes: Ints, body_lengths: Ints) -> npt.NDArray[np.void]:
    header = np.zeros(len(columns), HEADER_V4)
    header["total_size"] = sizes
    header["magic"] = MAGIC_V1
    header["body_crc"] = _body_crcs(columns.bodies)
    header["queue_id"] = columns.queue_ids
    header["flag"] = columns.flags
    header["born_timestamp"] = columns.born_timestamps
    header["born_host"] = np.void(columns.born_host.packed())
    header["store_host"] = np.void(columns.store_host.packed())
    header["body_length"] = body_lengths
    return header


def _body_crcs(bodies: pa.Array) -> Ints:
    """One zlib call a body: 0.2 CPU-s a million, faster than any numpy table walk."""
    objects = bodies.to_numpy(zero_copy_only=False)
    crcs = np.fromiter(map(zlib.crc32, objects), np.int64, len(bodies))
    return crcs & _POSITIVE


def _lengths(column: pa.Array) -> Ints:
    return np.asarray(pc.binary_length(column).to_numpy(zero_copy_only=False), np.int64)


def _fixed(rows: npt.NDArray[np.generic], width: int) -> pa.Array:
    """Return rows of `width` bytes as a binary column, without a copy."""
    ends = np.arange(len(rows) + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(
        pa.binary(), len(rows), [None, pa.py_buffer(ends), pa.py_buffer(rows)]
    )
