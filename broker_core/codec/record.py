"""The plain codec: one message to one record and back.

It is the readable statement of the format, used where messages come one by one. `block.py` and
`encoder.py` do the same for thousands at once; a property test holds them equal.
"""

from __future__ import annotations

from typing import NamedTuple

from rocketpy.broker_core.codec.compression import inflate
from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.layout import (
    ANY_HOST_V6,
    BLANK_SIZE,
    CHECKSUM_DIGITS,
    CHECKSUM_NAME,
    CHECKSUM_SIZE,
    HEAD_STRUCT,
    HOST_V4_SIZE,
    HOST_V6_SIZE,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES,
    MAX_TOPIC_V1,
    MIN_RECORD_SIZE,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    SIZE_AND_MAGIC,
    TAIL_STRUCT,
    SysFlag,
)
from rocketpy.broker_core.errors import MessageRefusedError, RecordError
from rocketpy.broker_core.message import (
    Host,
    Message,
    PhysicalOffset,
    QueueOffset,
    join_properties,
    split_properties,
)

CHECKSUM_HEAD = CHECKSUM_NAME + bytes([NAME_VALUE_SEPARATOR])
_POSITIVE = 0x7FFFFFFF
_BORN_HOST_V6, _STORE_HOST_V6 = int(SysFlag.BORN_HOST_V6), int(SysFlag.STORE_HOST_V6)


def body_crc(body: bytes | memoryview) -> int:
    """Return the CRC that a record keeps of its stored body."""
    return crc32(body) & _POSITIVE


def checksum_property(record: bytes | memoryview) -> bytes:
    """Return the record check sum of all bytes before it, as the 20 bytes that are appended."""
    digits = f"{crc32(record) & _POSITIVE:0{CHECKSUM_DIGITS}d}"[::-1]
    return CHECKSUM_HEAD + digits.encode() + bytes([PROPERTY_SEPARATOR])


def looks_like_checksum(tail: bytes) -> bool:
    """Whether 20 bytes are, or were before a few bytes changed or were lost, a record check sum.

    A check sum with a damaged name must not pass as an ordinary property of an unchecked record;
    nor must the zeros that a crash leaves where the end of a record did not reach the disk.
    """
    if len(tail) != CHECKSUM_SIZE:
        return False
    agreeing = sum(a in (b, 0) for a, b in zip(tail, CHECKSUM_HEAD, strict=False))
    agreeing += sum(0x30 <= digit <= 0x39 or not digit for digit in tail[len(CHECKSUM_HEAD) : -1])
    return agreeing + (tail[-1] in (PROPERTY_SEPARATOR, 0)) >= CHECKSUM_SIZE - 4


def encode_record(message: Message) -> bytes:
    """Return the record of a message; the hosts decide on the sysFlag's IPv6 bits."""
    place = message.queue_offset, message.physical_offset, message.store_timestamp_ms
    return RecordDraft(message).at(*place)


class RecordDraft:
    """A message encoded but for what the log decides: its size is known before its place is."""

    __slots__ = ("_magic", "_message", "_parts", "size")

    def __init__(self, message: Message) -> None:
        topic = message.topic.encode()
        properties = join_properties(message.properties)
        born, store = message.born_host.packed(), message.store_host.packed()
        length = len(properties) + (CHECKSUM_SIZE if message.has_checksum else 0)
        if length > MAX_PROPERTIES:
            reason = f"{length} bytes in all, a record holds {MAX_PROPERTIES}"
            raise MessageRefusedError("properties", reason)
        is_v1 = len(topic) <= MAX_TOPIC_V1
        length_of_topic = len(topic).to_bytes(1 if is_v1 else 2, "big")
        self._message, self._magic = message, MAGIC_V1 if is_v1 else MAGIC_V2
        self._parts = born, store, length_of_topic + topic + length.to_bytes(2, "big") + properties
        self.size = (
            HEAD_STRUCT.size
            + len(born)
            + 8
            + len(store)
            + TAIL_STRUCT.size
            + len(message.stored_body)
            + len(self._parts[2])
            + length
            - len(properties)
        )

    def at(self, queue_offset: int, physical_offset: int, stored_ms: int) -> bytes:
        """Return the record for a place in a queue and in the log."""
        message, body = self._message, self._message.stored_body
        born, store, rest = self._parts
        sys_flag = message.sys_flag & ~ANY_HOST_V6
        if len(born) > HOST_V4_SIZE:
            sys_flag |= _BORN_HOST_V6
        if len(store) > HOST_V4_SIZE:
            sys_flag |= _STORE_HOST_V6
        head = HEAD_STRUCT.pack(
            self.size,
            self._magic,
            body_crc(body) if body else 0,
            message.queue_id,
            message.flag,
            queue_offset,
            physical_offset,
            sys_flag,
            message.born_timestamp_ms,
        )
        tail = TAIL_STRUCT.pack(
            message.reconsume_times, message.prepared_transaction_offset, len(body)
        )
        record = b"".join(
            (head, born, stored_ms.to_bytes(8, "big", signed=True), store, tail, body, rest)
        )
        return record + checksum_property(record) if message.has_checksum else record


def decode_record(data: bytes | memoryview, at: int = 0) -> Message:
    """Read the record at `at`; its size, check sums and inner lengths must all hold.

    Raises:
        RecordError: the bytes there are not a whole, sound record.
    """
    view = memoryview(data)[at:]
    size, magic = _size_and_magic(view, at)
    record = view[:size]
    head = HEAD_STRUCT.unpack_from(record)
    sys_flag = head[7]
    born_size = HOST_V6_SIZE if sys_flag & SysFlag.BORN_HOST_V6 else HOST_V4_SIZE
    store_size = HOST_V6_SIZE if sys_flag & SysFlag.STORE_HOST_V6 else HOST_V4_SIZE
    time_at = HEAD_STRUCT.size + born_size
    tail_at = time_at + 8 + store_size
    body_at = tail_at + TAIL_STRUCT.size
    if body_at > size:
        raise RecordError(at, "its size is smaller than its header")
    reconsume_times, prepared, body_length = TAIL_STRUCT.unpack_from(record, tail_at)
    topic_at = body_at + body_length + (1 if magic == MAGIC_V1 else 2)
    topic_length = int.from_bytes(record[body_at + body_length : topic_at], "big")
    properties_at = topic_at + topic_length + 2
    properties_length = int.from_bytes(record[properties_at - 2 : properties_at], "big")
    if body_length < 0 or properties_at + properties_length != size:
        raise RecordError(at, "its inner lengths do not add up to its size")
    properties = bytes(record[properties_at:])
    has_checksum = _check(record, properties, at)
    body = bytes(record[body_at : body_at + body_length])
    if (body_crc(body) if body else 0) != head[2]:
        raise RecordError(at, "the body does not match its CRC")
    return Message(
        topic=bytes(record[topic_at : topic_at + topic_length]).decode("utf-8", "replace"),
        stored_body=body,
        properties=split_properties(properties[: -CHECKSUM_SIZE if has_checksum else None]),
        queue_id=head[3],
        flag=head[4],
        queue_offset=QueueOffset(head[5]),
        physical_offset=PhysicalOffset(head[6]),
        sys_flag=sys_flag,
        born_timestamp_ms=head[8],
        born_host=Host.unpack(bytes(record[HEAD_STRUCT.size : time_at])),
        store_timestamp_ms=int.from_bytes(record[time_at : time_at + 8], "big", signed=True),
        store_host=Host.unpack(bytes(record[time_at + 8 : tail_at])),
        reconsume_times=reconsume_times,
        prepared_transaction_offset=PhysicalOffset(prepared),
        has_checksum=has_checksum,
    )


class Numbered(NamedTuple):
    """What of a record says where in its queue it is."""

    size: int
    topic: str
    queue_id: int
    queue_offset: int
    sys_flag: int


def numbered(data: bytes, at: int) -> Numbered:
    """Return the number of a record, of which nothing is checked: for those that are published."""
    size, magic, _, queue_id, _, queue_offset, _, sys_flag, _ = HEAD_STRUCT.unpack_from(data, at)
    born_size = HOST_V6_SIZE if sys_flag & _BORN_HOST_V6 else HOST_V4_SIZE
    store_size = HOST_V6_SIZE if sys_flag & _STORE_HOST_V6 else HOST_V4_SIZE
    tail_at = at + HEAD_STRUCT.size + born_size + 8 + store_size
    length_at = tail_at + TAIL_STRUCT.size + TAIL_STRUCT.unpack_from(data, tail_at)[2]
    topic_at = length_at + (1 if magic == MAGIC_V1 else 2)
    topic_end = topic_at + int.from_bytes(data[length_at:topic_at], "big")
    topic = data[topic_at:topic_end].decode("utf-8", "replace")
    return Numbered(size, topic, queue_id, queue_offset, sys_flag)


def message_body(message: Message) -> bytes:
    """Return the body as it was sent, unfolded if it is stored compressed."""
    return inflate(message.stored_body, message.sys_flag)


def blank_record(remaining: int) -> bytes:
    """Return the eight bytes that end a file with `remaining` bytes left in it."""
    assert remaining >= BLANK_SIZE
    return SIZE_AND_MAGIC.pack(remaining, MAGIC_BLANK)


def _size_and_magic(view: memoryview, at: int) -> tuple[int, int]:
    if len(view) < MIN_RECORD_SIZE:
        raise RecordError(at, f"{len(view)} bytes are too few for a record")
    size, magic = SIZE_AND_MAGIC.unpack_from(view)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise RecordError(at, f"the magic number {magic:#010x} is not a record's")
    if not MIN_RECORD_SIZE <= size <= len(view):
        raise RecordError(at, f"its size {size} does not fit into {len(view)} bytes")
    return size, magic


def _check(record: memoryview, properties: bytes, at: int) -> bool:
    """Hold the record check sum, if there is one, against the bytes before it."""
    if len(properties) < CHECKSUM_SIZE:
        return False
    tail = properties[-CHECKSUM_SIZE:]
    digits = tail[len(CHECKSUM_HEAD) :]
    if not looks_like_checksum(tail) and not digits[:-1].isdigit():
        return False
    actual = checksum_property(record[:-CHECKSUM_SIZE])
    if looks_like_checksum(tail) and actual != tail:
        raise RecordError(at, "the record does not match its check sum")
    if actual != tail and actual.endswith(digits):
        raise RecordError(at, "the name of its check sum was overwritten")
    return actual == tail
