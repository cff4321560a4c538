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


# By the sizes of the two packed hosts: the whole header, and what the sysFlag says of them.
HEADER_STRUCTS = {
    (born, store): (
        _header(born, store),
        (int(SysFlag.BORN_HOST_V6) if born == HOST_V6_SIZE else 0)
        | (int(SysFlag.STORE_HOST_V6) if store == HOST_V6_SIZE else 0),
    )
    for born in (HOST_V4_SIZE, HOST_V6_SIZE)
    for store in (HOST_V4_SIZE, HOST_V6_SIZE)
}
assert HEADER_STRUCTS[HOST_V4_SIZE, HOST_V4_SIZE][0].size == HEADER_V4_SIZE


@lru_cache(maxsize=1024)
def topic_field(topic: str) -> tuple[int, bytes]:
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
        magic, name = topic_field(topic)
        layout, host_flags = HEADER_STRUCTS[len(born_host), len(store_host)]
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
