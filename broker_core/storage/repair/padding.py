"""What replaces damaged bytes, so that the log can be walked past them.

A padding record is whole and sound, in a topic of the system's, of a transaction that was rolled
back: Apache's broker and ours step over it and dispatch it nowhere. Where the damage reaches to the
end of a file, the blank record does the same.

A placeholder is a message without a body that stands where one was lost, with the property
`ROCKETPY_LOST`. After it all messages of its queue keep their numbers, whoever rebuilds the queue
from the log.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocketpy.broker_core.codec.layout import CHECKSUM_SIZE, MIN_RECORD_SIZE, SysFlag
from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.message import Host, Message, PhysicalOffset, QueueOffset
from rocketpy.broker_core.property_names import LOST

PADDING_TOPIC = "rmq_sys_rocketpy_padding"
MIN_PADDING = MIN_RECORD_SIZE + 1  # a topic has at least one character
_LARGEST = 1 << 20  # below any broker's limit for one message


def is_padding_topic(topic: str) -> bool:
    """Whether it is the topic of padding; the smallest records have only room for a part of it."""
    return PADDING_TOPIC.startswith(topic)


def padding_records(
    start: int, end: int, *, stored_ms: int, store_host: Host
) -> Iterator[tuple[int, bytes]]:
    """Yield (physical offset, record) so that the records fill a range of one file exactly."""
    assert end - start >= MIN_PADDING
    while start < end:
        left = end - start
        size = left if left < _LARGEST + MIN_PADDING else _LARGEST
        yield start, _record(start, size, stored_ms, store_host)
        start += size


def _record(at: int, size: int, stored_ms: int, store_host: Host) -> bytes:
    topic = PADDING_TOPIC[: size - MIN_RECORD_SIZE]
    room = size - MIN_RECORD_SIZE - len(topic)
    has_checksum = room >= CHECKSUM_SIZE
    return encode_record(
        Message(
            topic=topic,
            stored_body=bytes(room - CHECKSUM_SIZE * has_checksum),
            physical_offset=PhysicalOffset(at),
            sys_flag=int(SysFlag.TRANSACTION_ROLLBACK),
            born_timestamp_ms=stored_ms,
            store_timestamp_ms=stored_ms,
            store_host=store_host,
            has_checksum=has_checksum,
        )
    )


def placeholder(
    topic: str,
    queue_id: int,
    queue_offset: int,
    *,
    at: int,
    stored_ms: int,
    store_host: Host,
    extra: int = 0,
) -> bytes:
    """Return the record of a message that was lost, by `extra` bytes larger than it must be."""
    return encode_record(
        Message(
            topic=topic,
            stored_body=b"",
            properties={LOST: "-" * (1 + extra)},
            queue_id=queue_id,
            queue_offset=QueueOffset(queue_offset),
            physical_offset=PhysicalOffset(at),
            born_timestamp_ms=stored_ms,
            store_timestamp_ms=stored_ms,
            store_host=store_host,
            has_checksum=True,
        )
    )
