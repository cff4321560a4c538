"""The vectorised encoder: columns of messages to one run of records.

Header columns are built in one structured array. When the appender has added what only it knows
(queue offset, physical offset, store time), Arrow lays header, body, topic, properties and record
check sum side by side; the data buffer of that join *is* the run of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.crc import (
    Crcs,
    checksum_properties,
    joined_crcs,
    row_crcs,
    value_crcs,
)
from rocketpy.broker_core.codec.dtypes import HEADER_V4
from rocketpy.broker_core.codec.gather import Bytes, Ints, fixed_width
from rocketpy.broker_core.codec.layout import (
    CHECKSUM_SIZE,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES,
    MAX_TOPIC_V1,
)
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import Host

_EMPTY = pa.scalar(b"", pa.binary())
_POSITIVE = 0x7FFFFFFF
_WIDEST_ROW = 255  # the widest that row_crcs takes


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
    sys_flag: int = 0

    def __len__(self) -> int:
        return len(self.bodies)


class RecordRun:
    """Records back to back: their sizes first, and once they are placed in a log, `data`."""

    data: Bytes

    def __init__(
        self,
        headers: npt.NDArray[np.void],
        rest: list[pa.Array | pa.Scalar],
        rest_crcs: Crcs | None,
    ) -> None:
        self.sizes = headers["total_size"].astype(np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.headers, self.rest_crcs = headers, rest_crcs
        self._rest = rest

    @classmethod
    def of_parts(
        cls, headers: npt.NDArray[np.void], rest: Bytes, rest_crcs: Crcs | None
    ) -> RecordRun:
        """Return the run that has these parts: one that was staged and read again."""
        checksum = CHECKSUM_SIZE if rest_crcs is not None else 0
        ends = np.cumsum(headers["total_size"] - (headers.itemsize + checksum), dtype=np.int32)
        bounds = pa.py_buffer(np.concatenate([np.zeros(1, np.int32), ends]))
        buffers = [None, bounds, pa.py_buffer(rest)]
        return cls(headers, [pa.Array.from_buffers(pa.binary(), len(headers), buffers)], rest_crcs)

    def rest(self) -> Bytes:
        """Return what lies between header and check sum, of all records back to back."""
        joined = pc.binary_join_element_wise(*self._rest, _EMPTY)
        return np.frombuffer(joined.buffers()[2] or b"", np.uint8)

    def __len__(self) -> int:
        return len(self.sizes)

    def place(self, queue_offsets: Ints, physical_offsets: Ints, store_timestamp_ms: int) -> None:
        """Fill in what the log decides and the record check sums: make the records whole."""
        self.headers["queue_offset"] = queue_offsets
        self.headers["physical_offset"] = physical_offsets
        self.headers["store_timestamp"] = store_timestamp_ms
        parts = [fixed_width(self.headers), *self._rest]
        if self.rest_crcs is not None:
            rest_lengths = self.sizes - self.headers.itemsize - CHECKSUM_SIZE
            crcs = joined_crcs(row_crcs(self.headers), self.rest_crcs, rest_lengths)
            parts.append(fixed_width(checksum_properties(crcs)))
        joined = pc.binary_join_element_wise(*parts, _EMPTY)
        self.data = np.frombuffer(joined.buffers()[2] or b"", np.uint8)


class EncodedBatch(NamedTuple):
    """Records of one topic, encoded but not placed, with what queues and index keep of them."""

    topic: str
    run: RecordRun
    queue_ids: npt.NDArray[np.int32]
    tag_codes: Ints
    index_rows: Ints  # which message each index entry is of
    index_hashes: Ints
    delays_ms: Ints | None = None  # of messages that wait for a delay level

    def codes_at(self, stored_ms: int) -> Ints:
        """Return the tag codes of the queue entries; for messages that wait, their due times."""
        return self.tag_codes if self.delays_ms is None else self.delays_ms + stored_ms


def encode(columns: MessageColumns, *, checksum: bool) -> RecordRun:
    """Return the records of a batch, not yet placed.

    Raises:
        MessageRefusedError: the properties of a message do not fit into a record.
    """
    body_crcs = value_crcs(columns.bodies)
    headers = np.zeros(len(columns), HEADER_V4)
    headers["body_crc"] = body_crcs & _POSITIVE
    headers["queue_id"] = columns.queue_ids
    headers["flag"] = columns.flags
    headers["sys_flag"] = columns.sys_flag
    headers["born_timestamp"] = columns.born_timestamps
    headers["born_host"] = np.void(columns.born_host.packed())
    headers["store_host"] = np.void(columns.store_host.packed())
    headers["body_length"] = _lengths(columns.bodies)
    texts = RecordTexts(columns.topic, columns.bodies, columns.properties)
    return lay_out(headers, texts, body_crcs, checksum=checksum)


class RecordTexts(NamedTuple):
    """What follows the headers of records of one topic."""

    topic: bytes
    bodies: pa.Array
    properties: pa.Array


def lay_out(
    headers: npt.NDArray[np.void], texts: RecordTexts, body_crcs: Crcs, *, checksum: bool
) -> RecordRun:
    """Return the records of headers that lack only size and magic number, not yet placed.

    Raises:
        MessageRefusedError: the properties of a message do not fit into a record.
    """
    topic, bodies, properties = texts
    properties_lengths = _lengths(properties) + (CHECKSUM_SIZE if checksum else 0)
    longest = int(properties_lengths.max(initial=0))
    if longest > MAX_PROPERTIES:
        row = int(properties_lengths.argmax())
        raise MessageRefusedError(
            f"properties of row {row}", f"{longest} bytes in all, a record holds {MAX_PROPERTIES}"
        )
    is_v1 = len(topic) <= MAX_TOPIC_V1
    topic = len(topic).to_bytes(1 if is_v1 else 2, "big") + topic
    headers["magic"] = MAGIC_V1 if is_v1 else MAGIC_V2
    headers["total_size"] = (
        headers.itemsize + headers["body_length"] + len(topic) + 2 + properties_lengths
    )
    between = np.empty(len(headers), [("topic", f"V{len(topic)}"), ("properties_length", ">u2")])
    between["topic"] = np.void(topic)
    between["properties_length"] = properties_lengths
    rest = [bodies, fixed_width(between), properties]
    if not checksum:
        return RecordRun(headers, rest, None)
    crcs = joined_crcs(body_crcs, _between_crcs(between), np.full(len(headers), between.itemsize))
    properties_lengths -= CHECKSUM_SIZE
    crcs = joined_crcs(crcs, value_crcs(properties), properties_lengths)
    return RecordRun(headers, rest, crcs)


def _between_crcs(between: npt.NDArray[np.void]) -> Crcs:
    """Return the CRCs of topic and properties length; a topic of version 2 may be long."""
    if between.itemsize <= _WIDEST_ROW:
        return row_crcs(between)
    return value_crcs(fixed_width(between))


def _lengths(column: pa.Array) -> Ints:
    return np.asarray(pc.binary_length(column).to_numpy(zero_copy_only=False), np.int64)
