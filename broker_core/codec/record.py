"""The plain codec: one message to one record and back.

It is the readable statement of the format, used where messages come one by one. `block.py` and
`encoder.py` do the same for thousands at once; a property test holds them equal.
"""

from __future__ import annotations

from typing import NamedTuple

from rocketpy.broker_core.codec.compression import inflate
from rocketpy.broker_core.codec.draft import (
    CHECKSUM_HEAD,
    RecordDraft,
    body_crc,
    checksum_property,
)
from rocketpy.broker_core.codec.layout import (
    BLANK_SIZE,
    CHECKSUM_SIZE,
    FOOT_STRUCT,
    HEAD_STRUCT,
    HOST_V4_SIZE,
    HOST_V6_SIZE,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_SIZE,
    PROPERTY_SEPARATOR,
    SIZE_AND_MAGIC,
    SysFlag,
)
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.message import (
    Host,
    Message,
    PhysicalOffset,
    QueueOffset,
    join_properties,
    split_properties,
)

_BORN_HOST_V6, _STORE_HOST_V6 = int(SysFlag.BORN_HOST_V6), int(SysFlag.STORE_HOST_V6)


def looks_like_checksum(ending: bytes) -> bool:
    """Whether 20 bytes are, or were before a few bytes changed or were lost, a record check sum.

    A check sum with a damaged name must not pass as an ordinary property of an unchecked record;
    nor must the zeros that a crash leaves where the end of a record did not reach the disk.
    """
    if len(ending) != CHECKSUM_SIZE:
        return False
    agreeing = sum(a in (b, 0) for a, b in zip(ending, CHECKSUM_HEAD, strict=False))
    agreeing += sum(0x30 <= digit <= 0x39 or not digit for digit in ending[len(CHECKSUM_HEAD) : -1])
    return agreeing + (ending[-1] in (PROPERTY_SEPARATOR, 0)) >= CHECKSUM_SIZE - 4


def encode_record(message: Message) -> bytes:
    """Return the record of a message; the hosts decide on the sysFlag's IPv6 bits."""
    draft = draft_of(message)
    return draft.at(message.queue_offset, message.physical_offset, message.store_timestamp_ms)


def draft_of(message: Message, *, tag_code: int = 0, delay_ms: int = 0) -> RecordDraft:
    """Return the draft of a message's record.

    Raises:
        MessageRefusedError: the properties do not fit into a record.
    """
    return RecordDraft(
        message.topic,
        message.queue_id,
        message.stored_body,
        join_properties(message.properties),
        born_host=message.born_host.packed(),
        store_host=message.store_host.packed(),
        born_ms=message.born_timestamp_ms,
        flag=message.flag,
        sys_flag=message.sys_flag,
        reconsume_times=message.reconsume_times,
        prepared_offset=message.prepared_transaction_offset,
        has_checksum=message.has_checksum,
        tag_code=tag_code,
        delay_ms=delay_ms,
    )


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
    born_size = HOST_V6_SIZE if sys_flag & _BORN_HOST_V6 else HOST_V4_SIZE
    store_size = HOST_V6_SIZE if sys_flag & _STORE_HOST_V6 else HOST_V4_SIZE
    time_at = HEAD_STRUCT.size + born_size
    foot_at = time_at + 8 + store_size
    body_at = foot_at + FOOT_STRUCT.size
    if body_at > size:
        raise RecordError(at, "its size is smaller than its header")
    reconsume_times, prepared, body_length = FOOT_STRUCT.unpack_from(record, foot_at)
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
        store_host=Host.unpack(bytes(record[time_at + 8 : foot_at])),
        reconsume_times=reconsume_times,
        prepared_transaction_offset=PhysicalOffset(prepared),
        has_checksum=has_checksum,
    )


class Numbered(NamedTuple):
    """The fields of a record that say where it is in its queue."""

    size: int
    topic: str
    queue_id: int
    queue_offset: int
    sys_flag: int


def numbered(data: bytes, at: int) -> Numbered:
    """Return these fields of a record without checking it: for records that are published."""
    size, magic, _, queue_id, _, queue_offset, _, sys_flag, _ = HEAD_STRUCT.unpack_from(data, at)
    born_size = HOST_V6_SIZE if sys_flag & _BORN_HOST_V6 else HOST_V4_SIZE
    store_size = HOST_V6_SIZE if sys_flag & _STORE_HOST_V6 else HOST_V4_SIZE
    foot_at = at + HEAD_STRUCT.size + born_size + 8 + store_size
    length_at = foot_at + FOOT_STRUCT.size + FOOT_STRUCT.unpack_from(data, foot_at)[2]
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
    ending = properties[-CHECKSUM_SIZE:]
    digits = ending[len(CHECKSUM_HEAD) :]
    looks_like_one = looks_like_checksum(ending)
    if not looks_like_one and not digits[:-1].isdigit():
        return False
    actual = checksum_property(record[:-CHECKSUM_SIZE])
    if looks_like_one and actual != ending:
        raise RecordError(at, "the record does not match its check sum")
    if actual != ending and actual.endswith(digits):
        raise RecordError(at, "the name of its check sum was overwritten")
    return actual == ending
