"""A record but for what the log decides: its numbers, its place and its time.

Made of bytes and integers, so that what arrives as bytes need never be anything else. All that can
be done before the place is known is done when a draft is made: outside the store's lock.
"""

from __future__ import annotations

import struct

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.layout import (
    ANY_HOST_V6,
    CHECKSUM_DIGITS,
    CHECKSUM_NAME,
    CHECKSUM_SIZE,
    HEAD_STRUCT,
    HOST_V4_SIZE,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES,
    MAX_TOPIC_V1,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    STORE_TIMESTAMP,
    TAIL_STRUCT,
    SysFlag,
)
from rocketpy.broker_core.codec.sys_flags import is_queued
from rocketpy.broker_core.errors import MessageRefusedError

CHECKSUM_HEAD = CHECKSUM_NAME + bytes([NAME_VALUE_SEPARATOR])
_CHECKSUM = CHECKSUM_HEAD + b"%s" + bytes([PROPERTY_SEPARATOR])
_DIGITS = b"%%0%dd" % CHECKSUM_DIGITS
_POSITIVE = 0x7FFFFFFF
_BORN_HOST_V6, _STORE_HOST_V6 = int(SysFlag.BORN_HOST_V6), int(SysFlag.STORE_HOST_V6)

# The head in three parts: what is known before, what the log decides, what is known before.
_FIRST = struct.Struct(">iIIii")  # size, magic, CRC of the body, queue id, flag
_PLACE = struct.Struct(">qq")  # queue offset, physical offset
_MIDDLE = struct.Struct(">iq")  # sysFlag, born timestamp
_STORED = struct.Struct(">q")  # store timestamp

assert _FIRST.size + _PLACE.size + _MIDDLE.size == HEAD_STRUCT.size
assert _STORED.size == STORE_TIMESTAMP.itemsize


def body_crc(body: bytes | memoryview) -> int:
    """Return the CRC that a record keeps of its stored body."""
    return crc32(body) & _POSITIVE


def checksum_property(record: bytes | memoryview) -> bytes:
    """Return the record check sum of all bytes before it, as the 20 bytes that are appended."""
    digits = _DIGITS % (crc32(record) & _POSITIVE)
    return _CHECKSUM % digits[::-1]


class RecordDraft:
    """A record without its place. Its size is known."""

    __slots__ = (
        *("queue", "is_queued", "tag_code", "delay_ms", "size"),
        *("_first", "_middle", "_rest", "_has_checksum"),
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
        name = topic.encode()
        length = len(properties) + (CHECKSUM_SIZE if has_checksum else 0)
        if length > MAX_PROPERTIES:
            reason = f"{length} bytes in all, a record holds {MAX_PROPERTIES}"
            raise MessageRefusedError("properties", reason)
        if len(name) <= MAX_TOPIC_V1:
            magic, length_of_name = MAGIC_V1, len(name).to_bytes(1, "big")
        else:
            magic, length_of_name = MAGIC_V2, len(name).to_bytes(2, "big")
        sys_flag &= ~ANY_HOST_V6
        if len(born_host) > HOST_V4_SIZE:
            sys_flag |= _BORN_HOST_V6
        if len(store_host) > HOST_V4_SIZE:
            sys_flag |= _STORE_HOST_V6
        tail = TAIL_STRUCT.pack(reconsume_times, prepared_offset, len(body))
        self.queue = topic, queue_id
        self.is_queued = is_queued(sys_flag)
        self.tag_code, self.delay_ms, self._has_checksum = tag_code, delay_ms, has_checksum
        self._rest = b"".join(
            (store_host, tail, body, length_of_name, name, length.to_bytes(2, "big"), properties)
        )
        self._middle = _MIDDLE.pack(sys_flag, born_ms) + born_host
        self.size = (
            _FIRST.size
            + _PLACE.size
            + len(self._middle)
            + _STORED.size
            + len(self._rest)
            + (CHECKSUM_SIZE if has_checksum else 0)
        )
        self._first = _FIRST.pack(self.size, magic, body_crc(body) if body else 0, queue_id, flag)

    def at(self, queue_offset: int, physical_offset: int, stored_ms: int) -> bytes:
        """Return the record for a place in a queue and in the log."""
        place, time = _PLACE.pack(queue_offset, physical_offset), _STORED.pack(stored_ms)
        record = b"".join((self._first, place, self._middle, time, self._rest))
        return record + checksum_property(record) if self._has_checksum else record

    def code_at(self, stored_ms: int) -> int:
        """Return the tag code of its queue entry."""
        return stored_ms + self.delay_ms if self.delay_ms else self.tag_code
