"""The vectorised encoder: columns of messages to one run of records.

Header columns are built in one structured array. Arrow lays header, body, topic, properties and
record check sum side by side; the data buffer of that join *is* the run of records. It has zeros
where only the appender knows what comes there (queue offset, physical offset, store time): these
are filled in later, and change a check sum by what is written over the zeros alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.crc import (
    DIGITS_AT,
    EMPTY_CHECKSUM,
    Crcs,
    changed_crcs,
    checksum_digits,
    joined_crcs,
    shortened_crcs,
    value_crcs,
)
from rocketpy.broker_core.codec.dtypes import HEADER_V4, STORE_TIMESTAMP
from rocketpy.broker_core.codec.gather import Bytes, Ints, fixed_width, put_at, rows_at
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
_NO_DIGITS = pa.scalar(EMPTY_CHECKSUM, pa.binary())
_POSITIVE = 0x7FFFFFFF
# What the log decides: two fields that are side by side, and one that follows the born host.
_OFFSETS = np.dtype([(name, HEADER_V4[name]) for name in ("queue_offset", "physical_offset")])
_OFFSETS_AT = HEADER_V4.fields["queue_offset"][1] if HEADER_V4.fields else 0


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
    """Records back to back: whole, but for zeros that place() writes over.

    `header` is the type of their headers. `crcs` are those of each record up to its check sum, with
    these zeros; None if records have no check sums.
    """

    def __init__(
        self, data: Bytes, sizes: Ints, header: np.dtype[np.void], crcs: Crcs | None
    ) -> None:
        self.data, self.sizes, self.header, self.crcs = data, sizes, header, crcs
        self.starts = np.cumsum(sizes) - sizes

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def headers(self) -> npt.NDArray[Any]:
        """The headers, copied."""
        return rows_at(self.data, self.starts, self.header)

    def place(self, queue_offsets: Ints, physical_offsets: Ints, store_timestamp_ms: int) -> None:
        """Fill in what the log decides and the record check sums: make the records whole."""
        offsets = np.empty(len(self), _OFFSETS)
        offsets["queue_offset"] = queue_offsets
        offsets["physical_offset"] = physical_offsets
        stored = np.array([store_timestamp_ms], STORE_TIMESTAMP)
        assert self.header.fields is not None
        stored_at = self.header.fields["store_timestamp"][1]
        # As plain types: numpy copies rows of a structured one field by field.
        put_at(self.data, self.starts + _OFFSETS_AT, offsets.view(f"V{offsets.itemsize}"))
        put_at(self.data, self.starts + stored_at, stored.view(f"V{stored.itemsize}"))
        if self.crcs is None:
            return
        size = self.header.itemsize
        changes = changed_crcs(offsets, size - _OFFSETS_AT - offsets.itemsize)
        changes ^= changed_crcs(stored, size - stored_at - stored.itemsize)
        crcs = joined_crcs(changes, self.crcs, self.sizes - (size + CHECKSUM_SIZE))
        digits_at = self.starts + (self.sizes - (CHECKSUM_SIZE - DIGITS_AT))
        put_at(self.data, digits_at, checksum_digits(crcs))


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
    headers = np.zeros(len(columns), HEADER_V4)
    headers["body_crc"] = value_crcs(columns.bodies) & _POSITIVE
    headers["queue_id"] = columns.queue_ids
    headers["flag"] = columns.flags
    headers["sys_flag"] = columns.sys_flag
    headers["born_timestamp"] = columns.born_timestamps
    headers["born_host"] = np.void(columns.born_host.packed())
    headers["store_host"] = np.void(columns.store_host.packed())
    headers["body_length"] = _lengths(columns.bodies)
    texts = RecordTexts(columns.topic, columns.bodies, columns.properties)
    return lay_out(headers, texts, checksum=checksum)


class RecordTexts(NamedTuple):
    """What follows the headers of records of one topic."""

    topic: bytes
    bodies: pa.Array
    properties: pa.Array


def lay_out(headers: npt.NDArray[np.void], texts: RecordTexts, *, checksum: bool) -> RecordRun:
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
    sizes = headers.itemsize + headers["body_length"] + len(topic) + 2 + properties_lengths
    headers["magic"] = MAGIC_V1 if is_v1 else MAGIC_V2
    headers["total_size"] = sizes
    for decided_by_log in ("queue_offset", "physical_offset", "store_timestamp"):
        headers[decided_by_log] = 0  # copies have those of their originals
    between = np.empty(len(headers), [("topic", f"V{len(topic)}"), ("properties_length", ">u2")])
    between["topic"] = np.void(topic)
    between["properties_length"] = properties_lengths
    parts = [fixed_width(headers), bodies, fixed_width(between), properties]
    parts += [_NO_DIGITS] if checksum else []
    records = pc.binary_join_element_wise(*parts, _EMPTY)
    crcs = shortened_crcs(value_crcs(records), EMPTY_CHECKSUM) if checksum else None
    data = np.frombuffer(records.buffers()[2] or b"", np.uint8)
    return RecordRun(data, sizes.astype(np.int64), headers.dtype, crcs)


def _lengths(column: pa.Array) -> Ints:
    return np.asarray(pc.binary_length(column).to_numpy(zero_copy_only=False), np.int64)
