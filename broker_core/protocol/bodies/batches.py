"""Messages in one body, one after the other: what SEND_BATCH_MESSAGE has.

Each message has its own length first: 4 bytes total size (these included), 4 magic, 4 CRC of the
body, 4 flag, 4 + n body, 2 + n properties. Magic and CRC are not looked at, as Apache's broker
does not; topic, times and hosts are the request's. Here batches are written; batch_columns.py reads
them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

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
_MOST_PROPERTIES = (1 << 15) - 1


def join_batch(messages: Iterable[tuple[int, bytes | memoryview, bytes | memoryview]]) -> bytes:
    """Return the body of a batch of messages: of each its flag, body and properties.

    Raises:
        BodyError: the properties of one are too long.
    """
    parts: list[bytes | memoryview] = []
    for flag, body, properties in messages:
        if len(properties) > _MOST_PROPERTIES:
            raise BodyError(NAME, f"properties of {len(properties)} bytes; {_MOST_PROPERTIES} fit")
        size = SMALLEST + len(body) + len(properties)
        parts += (HEAD.pack(size, 0, 0, flag, len(body)), body)
        parts += (PROPERTIES.pack(len(properties)), properties)
    return b"".join(parts)
