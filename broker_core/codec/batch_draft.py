"""Many records of one queue as one draft: what draft.py is for a single one, column by column.

The records are laid out side by side when a draft is made, with gaps for what only the log knows.
Once they are placed the gaps are filled, and each record gets its check sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.crc import checksum_properties
from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.draft import HEADER_STRUCTS, topic_field
from rocketpy.broker_core.codec.dtypes import HEADERS
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import ANY_HOST_V6, CHECKSUM_SIZE, MAX_PROPERTIES
from rocketpy.broker_core.errors import MessageRefusedError

_POSITIVE = 0x7FFFFFFF
_LENGTH = np.dtype(">u2")  # of the properties
_CHECKSUM = np.dtype(f"V{CHECKSUM_SIZE}")


class BatchDraft:
    """Records of messages that were sent together. Their sizes are known."""

    __slots__ = (
        *("queue", "count", "size", "starts", "sizes", "tag_codes"),
        *("_header", "_records", "_has_checksum"),
    )
    is_queued, delay_ms = True, 0

    def __init__(
        self,
        topic: str,
        queue_id: int,
        bodies: Sequence[bytes],
        properties: Sequence[bytes],
        *,
        flags: npt.NDArray[np.int32],
        tag_codes: Ints,
        born_host: bytes,
        store_host: bytes,
        born_ms: int,
        sys_flag: int,
        reconsume_times: int,
        has_checksum: bool,
    ) -> None:
        """Take the fields of records; each property string is empty, or closed by a separator.

        Raises:
            MessageRefusedError: the properties of one are too long for a record.
        """
        self.queue, self.count, self.tag_codes = (topic, queue_id), len(bodies), tag_codes
        self._has_checksum = has_checksum
        magic, name = topic_field(topic)
        layout, host_flags = HEADER_STRUCTS[len(born_host), len(store_host)]
        self._header, sys_flag = HEADERS[host_flags], sys_flag & ~ANY_HOST_V6 | host_flags
        # What all of them share; the zeros are set below, and by at().
        shared = layout.pack(
            *(0, magic, 0, queue_id, 0, 0, 0, sys_flag, born_ms, born_host, 0, store_host),
            *(reconsume_times, 0, 0),
        )
        self._lay_out(shared, bodies, name, properties)
        self._put_field("flag", flags)

    def _lay_out(
        self, shared: bytes, bodies: Sequence[bytes], name: bytes, properties: Sequence[bytes]
    ) -> None:
        """Put headers that share their bytes, bodies and what follows them side by side."""
        after = bytes(CHECKSUM_SIZE if self._has_checksum else 0)
        body_lengths = np.fromiter(map(len, bodies), np.int64, self.count)
        lengths = np.fromiter(map(len, properties), np.int64, self.count) + len(after)
        if int(lengths.max()) > MAX_PROPERTIES:
            reason = f"{lengths.max()} bytes in all, a record holds {MAX_PROPERTIES}"
            raise MessageRefusedError("properties", reason)
        parts = [shared, b"", name + bytes(_LENGTH.itemsize), b"", after] * self.count
        parts[1::5], parts[3::5] = bodies, properties
        self._records = bytearray(b"".join(parts))
        self.size = len(self._records)
        lengths_at = len(shared) + body_lengths + len(name)
        self.sizes = lengths_at + _LENGTH.itemsize + lengths
        self.starts = np.cumsum(self.sizes) - self.sizes  # of each record, from the first one on
        self._put(self.starts + lengths_at, lengths.astype(_LENGTH))
        crcs = np.fromiter(map(crc32, bodies), np.uint32, self.count)
        self._put_field("total_size", self.sizes)
        self._put_field("body_crc", crcs & _POSITIVE)
        self._put_field("body_length", body_lengths)

    def at(self, queue_offset: int, physical_offset: int, stored_ms: int) -> memoryview:
        """Return the records; the offsets are those of the first."""
        records = memoryview(self._records)
        self._put_field("queue_offset", np.arange(queue_offset, queue_offset + self.count))
        self._put_field("physical_offset", self.starts + physical_offset)
        self._put_field("store_timestamp", np.array([stored_ms]))
        if self._has_checksum:
            ends = self.starts + self.sizes - CHECKSUM_SIZE
            bounds = zip(self.starts.tolist(), ends.tolist(), strict=True)
            crcs = np.array([crc32(records[start:end]) for start, end in bounds], np.uint32)
            self._put(ends, checksum_properties(crcs).view(_CHECKSUM))
        return records

    def _put_field(self, name: str, values: npt.NDArray[Any]) -> None:
        """Write a field of the headers."""
        fields = self._header.fields
        assert fields is not None
        dtype, offset = fields[name][:2]
        self._put(self.starts + offset, values.astype(dtype))

    def _put(self, positions: Ints, values: npt.NDArray[Any]) -> None:
        """Write one value to each position, or one value to all."""
        count = len(self._records) - values.itemsize + 1
        target = np.ndarray((count,), values.dtype, self._records, strides=(1,))
        target[positions] = values
