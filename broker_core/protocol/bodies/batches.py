"""Messages in one body, one after the other: what SEND_BATCH_MESSAGE has.

Each message has its own length first: 4 bytes total size (these included), 4 magic, 4 CRC of the
body, 4 flag, 4 + n body, 2 + n properties. Magic and CRC are not looked at, as Apache's broker
does not; topic, times and hosts are the request's. A broker reads batches as columns: see
batch_columns.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from rocketpy.broker_core.protocol.errors import BodyError

NAME = "a batch of messages"
HEAD = struct.Struct(
    ">"
    "i"  # the size of the message here, this number included
    "i"  # magic, 0
    "i"  # CRC of the body, 0
    "i"  # flag
    "i"  # length of the body
)
PROPERTIES = struct.Struct(">h")  # length of the properties
SMALLEST = HEAD.size + PROPERTIES.size
MOST_PROPERTIES = (1 << 15) - 1
_tuple = tuple.__new__  # makes a named tuple without a call in Python: for each message


class BatchedMessage(NamedTuple):
    """One message of a batch; both parts are views of the request."""

    flag: int
    body: memoryview
    properties: memoryview


def split_batch(data: bytes | memoryview) -> list[BatchedMessage]:
    """Return the messages of a body, in their order; nothing is copied.

    Raises:
        BodyError: sizes are negative, or say more than there is.
    """
    view = memoryview(data)
    found = []
    begin, end = 0, len(view)
    unpack_head, unpack_length = HEAD.unpack_from, PROPERTIES.unpack_from
    head_size, smallest = HEAD.size, SMALLEST
    while begin < end:
        if end - begin < smallest:
            raise BodyError(NAME, f"{end - begin} bytes at {begin}, too few for a message")
        size, _, _, flag, body_size = unpack_head(view, begin)
        next_begin = begin + size
        body_begin = begin + head_size
        body_end = body_begin + body_size
        if not (smallest <= size <= end - begin and 0 <= body_size <= size - smallest):
            reason = f"a message of {size} bytes at {begin}, its body of {body_size}, in {end}"
            raise BodyError(NAME, reason)
        (properties_size,) = unpack_length(view, body_end)
        properties_begin = body_end + smallest - head_size
        if properties_begin + properties_size != next_begin or properties_size < 0:
            raise BodyError(NAME, f"properties of {properties_size} bytes at {body_end}")
        body, properties = view[body_begin:body_end], view[properties_begin:next_begin]
        found.append(_tuple(BatchedMessage, (flag, body, properties)))
        begin = next_begin
    return found


def join_batch(messages: Iterable[tuple[int, bytes | memoryview, bytes | memoryview]]) -> bytes:
    """Return the body of a batch of messages: of each its flag, body and properties.

    Raises:
        BodyError: the properties of one are too long.
    """
    parts: list[bytes | memoryview] = []
    for flag, body, properties in messages:
        if len(properties) > MOST_PROPERTIES:
            raise BodyError(NAME, f"properties of {len(properties)} bytes; {MOST_PROPERTIES} fit")
        size = SMALLEST + len(body) + len(properties)
        head, length = HEAD.pack(size, 0, 0, flag, len(body)), PROPERTIES.pack(len(properties))
        parts += (head, body, length, properties)
    return b"".join(parts)
