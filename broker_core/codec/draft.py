"""A record but for what the log decides: its queue offset, physical offset and store time.

Made of bytes and integers, so that what arrives as bytes need never be anything else. All that can
be done before these are known is done when a draft is made: outside the store's lock.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.layout import (
    ANY_HOST_V6,
    CHECKSUM_DIGITS,
    CHECKSUM_NAME,
    CHECKSUM_SIZE,
    FOOT_STRUCT,
    HEAD_STRUCT,
    HEADER_V4_SIZE,
    HOST_V4_SIZE,
    HOST_V6_SIZE,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES,
    MAX_TOPIC_V1,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    SysFlag,
)
from rocketpy.broker_core.codec.sys_flags import is_queued
from rocketpy.broker_core.errors import MessageRefusedError

CHECKSUM_HEAD = CHECKSUM_NAME + bytes([NAME_VALUE_SEPARATOR])
_CHECKSUM = CHECKSUM_HEAD + b"%s" + bytes([PROPERTY_SEPARATOR])
_DIGITS = b"%%0%dd" % CHECKSUM_DIGITS
_POSITIVE = 0x7FFFFFFF

_OFFSETS = struct.Struct(">qq")  # queue offset, physical offset
_OFFSETS_AT = struct.calcsize(">iIIii")  # after size, magic, CRC of the body, queue id, flag
_STORED = struct.Struct(">q")  # store timestamp


def _header(born_host_size: int, store_host_size: int) -> struct.Struct:
    layout = f"{HEAD_STRUCT.format}{born_host_size}sq{store_host_size}s{FOOT_STRUCT.format[1:]}"
    return struct.Struct(layout)


# By the sizes of the two hosts: the whole header, and what the sysFlag says of them.
_HEADERS = {
    (born, store): (
        _header(born, store),
        (int(SysFlag.BORN_HOST_V6) if born == HOST_V6_SIZE else 0)
        | (int(SysFlag.STORE_HOST_V6) if store == HOST_V6_SIZE else 0),
    )
    for born in (HOST_V4_SIZE, HOST_V6_SIZE)
    for store in (HOST_V4_SIZE, HOST_V6_SIZE)
}
assert _HEADERS[HOST_V4_SIZE, HOST_V4_SIZE][0].size == HEADER_V4_SIZE


@lru_cache(maxsize=1024)
def _topic_field(topic: str) -> tuple[int, bytes]:
    """Return the magic of records of a topic, and its name with the length before it."""
    name = topic.encode()
    if len(name) <= MAX_TOPIC_V1:
        return MAGIC_V1, len(name).to_bytes(1, "big") + name
    return MAGIC_V2, len(name).to_bytes(2, "big") + name


def body_crc(body: bytes | memoryview) -> int:
    """Return the CRC that a record keeps of its stored body."""
    return crc32(body) & _POSITIVE


def checksum_property(record: bytes | bytearray | memoryview) -> bytes:
    """Return the record check sum of all bytes before it, as the 20 bytes that are appended."""
    digits = _DIGITS % (crc32(record) & _POSITIVE)
    return _CHECKSUM % digits[::-1]


class RecordDraft:
    """A record without its offsets and its store time. Its size is known."""

    count = 1  # of records
    __slots__ = (
        *("queue", "is_queued", "tag_code", "delay_ms", "size"),
        *("_record", "_stored_at", "_has_checksum"),
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        properties: bytes,
        *,
        born_host: bytes,
        store_host: bytes,
        born_ms: int,
        flag: int = 0,
        sys_flag: int = 0,
        reconsume_times: int = 0,
        prepared_offset: int = 0,
        has_checksum: bool = False,
        tag_code: int = 0,
        delay_ms: int = 0,
    ) -> None:
        """Take the fields of a record.

        `properties` is the whole property string, closed by a separator if a check sum follows.
        `tag_code` is what its queue keeps of it; with a `delay_ms` that is when it is due.

        Raises:
            MessageRefusedError: the properties are too long for a record.
        """
        length = len(properties) + (CHECKSUM_SIZE if has_checksum else 0)
        if length > MAX_PROPERTIES:
            reason = f"{length} bytes in all, a record holds {MAX_PROPERTIES}"
            raise MessageRefusedError("properties", reason)
        magic, name = _topic_field(topic)
        layout, host_flags = _HEADERS[len(born_host), len(store_host)]
        sys_flag = sys_flag & ~ANY_HOST_V6 | host_flags
        self.size = size = layout.size + len(body) + len(name) + 2 + length
        header = layout.pack(
            size,
            magic,
            crc32(body) & _POSITIVE,
            queue_id,
            flag,
            0,
            0,
            sys_flag,
            born_ms,
            born_host,
            0,
            store_host,
            reconsume_times,
            prepared_offset,
            len(body),
        )
        # All but its offsets, its store time and its check sum.
        parts = (header, body, name, length.to_bytes(2, "big"), properties)
        self._record = bytearray(b"".join(parts))
        self._stored_at = HEAD_STRUCT.size + len(born_host)
        self._has_checksum = has_checksum
        self.queue = topic, queue_id
        self.is_queued = not sys_flag or is_queued(sys_flag)
        self.tag_code, self.delay_ms = tag_code, delay_ms

    def at(self, queue_offset: int, physical_offset: int, stored_ms: int) -> bytes:
        """Return the record with its offsets in queue and log, and its store time."""
        record = self._record
        _OFFSETS.pack_into(record, _OFFSETS_AT, queue_offset, physical_offset)
        _STORED.pack_into(record, self._stored_at, stored_ms)
        if not self._has_checksum:
            return bytes(record)
        # As checksum_property(), without a call in Python: for each message.
        digits = _DIGITS % (crc32(record) & _POSITIVE)
        return bytes(record) + _CHECKSUM % digits[::-1]

    def code_at(self, stored_ms: int) -> int:
        """Return the tag code of its queue entry."""
        return stored_ms + self.delay_ms if self.delay_ms else self.tag_code


class BatchDraft:
    """Several records of one queue, to be stored side by side: cheaper than as many drafts.

    Their messages were sent together, and share all that is given here.
    """

    __slots__ = (
        *("queue", "count", "size", "starts", "sizes", "tag_codes"),
        *("_magic", "_between", "_fixed", "_layout", "_records", "_has_checksum"),
    )
    is_queued, delay_ms = True, 0

    def __init__(
        self,
        topic: str,
        queue_id: int,
        *,
        born_host: bytes,
        store_host: bytes,
        born_ms: int,
        sys_flag: int,
        reconsume_times: int,
        has_checksum: bool,
    ) -> None:
        """Begin without records: see add()."""
        self._magic, self._between = _topic_field(topic)
        self._layout, host_flags = _HEADERS[len(born_host), len(store_host)]
        sys_flag = sys_flag & ~ANY_HOST_V6 | host_flags
        self._fixed = sys_flag, born_ms, born_host, store_host, reconsume_times
        self._has_checksum = has_checksum
        self.queue, self.count, self.size = (topic, queue_id), 0, 0
        self.starts: list[int] = []  # of each record, from the first one on
        self.sizes: list[int] = []
        self.tag_codes: list[int] = []
        # Of each its flag, the CRC and length of its body, and what follows its header.
        self._records: list[tuple[int, int, int, bytes]] = []

    def add(self, body: bytes, properties: bytes, *, flag: int, tag_code: int) -> None:
        """Add a record; its properties are closed by a separator.

        Raises:
            MessageRefusedError: the properties are too long for a record.
        """
        length = len(properties) + (CHECKSUM_SIZE if self._has_checksum else 0)
        if length > MAX_PROPERTIES:
            reason = f"{length} bytes in all, a record holds {MAX_PROPERTIES}"
            raise MessageRefusedError("properties", reason)
        rest = b"%b%b%b%b" % (body, self._between, length.to_bytes(2, "big"), properties)
        size = self._layout.size + len(rest) + length - len(properties)
        self._records.append((flag, crc32(body) & _POSITIVE, len(body), rest))
        self.starts.append(self.size)
        self.sizes.append(size)
        self.tag_codes.append(tag_code)
        self.size += size
        self.count += 1

    def at(self, queue_offset: int, physical_offset: int, stored_ms: int) -> bytes:
        """Return the records; the offsets are those of the first."""
        pack, magic, queue_id = self._layout.pack, self._magic, self.queue[1]
        sys_flag, born_ms, born_host, store_host, reconsume_times = self._fixed
        has_checksum = self._has_checksum
        parts: list[bytes] = []
        for (flag, crc, length, rest), size in zip(self._records, self.sizes, strict=True):
            header = pack(
                *(size, magic, crc, queue_id, flag, queue_offset, physical_offset, sys_flag),
                *(born_ms, born_host, stored_ms, store_host, reconsume_times, 0, length),
            )
            parts += (header, rest)
            if has_checksum:
                digits = _DIGITS % (crc32(rest, crc32(header)) & _POSITIVE)
                parts.append(_CHECKSUM % digits[::-1])
            queue_offset += 1
            physical_offset += size
        return b"".join(parts)
