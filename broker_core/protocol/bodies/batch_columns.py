"""The messages of a batch as columns: where the parts of each lie. See batches.py for the bytes.

Sizes are checked for all messages at once before anything is read by them: no bytes, however
hostile, lead outside the body.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints, rows_at
from rocketpy.broker_core.protocol.bodies.batches import HEAD, NAME, PROPERTIES, SMALLEST
from rocketpy.broker_core.protocol.errors import BodyError

_HEAD = np.dtype([("size", ">i4"), ("unread", "V8"), ("flag", ">i4"), ("body_length", ">i4")])
_LENGTH = np.dtype(">i2")
_size_at = struct.Struct(">i").unpack_from
assert _HEAD.itemsize == HEAD.size
assert _LENGTH.itemsize == PROPERTIES.size


class BatchColumns(NamedTuple):
    """The messages of a batch, in their order."""

    data: bytes
    flags: npt.NDArray[np.int32]
    body_starts: Ints
    body_ends: Ints
    properties_starts: Ints
    properties_ends: Ints

    @property
    def size(self) -> int:
        """How many messages there are."""
        return len(self.flags)

    def bodies(self) -> list[bytes]:
        """Return the body of each message."""
        return _pieces(self.data, self.body_starts, self.body_ends)

    def properties(self) -> list[bytes]:
        """Return the property string of each message."""
        return _pieces(self.data, self.properties_starts, self.properties_ends)


def batch_columns(body: bytes | memoryview) -> BatchColumns:
    """Return the messages of a request's body.

    Raises:
        BodyError: sizes are negative, or say more than there is.
    """
    data = bytes(body)
    octets, starts = np.frombuffer(data, np.uint8), np.array(_starts(data), np.int64)
    heads = rows_at(octets, starts, _HEAD)
    lengths, ends = heads["body_length"].astype(np.int64), starts + heads["size"]
    body_starts = starts + HEAD.size
    body_ends = body_starts + lengths
    fits = (lengths >= 0) & (body_ends + PROPERTIES.size <= ends)
    if not fits.all():
        row = int(fits.argmin())
        size, length = int(ends[row] - starts[row]), int(lengths[row])
        reason = f"a message of {size} bytes at {starts[row]}, its body of {length}"
        raise BodyError(NAME, f"{reason}, in {len(data)}")
    properties_starts = body_ends + PROPERTIES.size
    fits = properties_starts + rows_at(octets, body_ends, _LENGTH) == ends
    if not fits.all():
        row = int(fits.argmin())
        (length,) = PROPERTIES.unpack_from(data, body_ends[row])
        raise BodyError(NAME, f"properties of {length} bytes at {body_ends[row]}")
    flags = heads["flag"].astype(np.int32)
    return BatchColumns(data, flags, body_starts, body_ends, properties_starts, ends)


def _starts(data: bytes) -> list[int]:
    """Return where messages begin. Sequential by nature: each size tells where the next one is."""
    starts: list[int] = []
    at, size, last = 0, 0, len(data) - SMALLEST
    while at <= last:
        starts.append(at)
        (size,) = _size_at(data, at)
        if size < SMALLEST:
            raise BodyError(NAME, f"a message of {size} bytes at {at}, {SMALLEST} is the least")
        at += size
    if at > len(data):
        reason = f"a message of {size} bytes at {starts[-1]}, in {len(data)}"
        raise BodyError(NAME, reason)
    if at < len(data):
        raise BodyError(NAME, f"{len(data) - at} bytes at {at}, too few for a message")
    return starts


def _pieces(data: bytes, starts: Ints, ends: Ints) -> list[bytes]:
    bounds = zip(starts.tolist(), ends.tolist(), strict=True)
    return [data[start:end] for start, end in bounds]
