"""The messages of batches as columns: where the parts of each lie. See batches.py for the bytes.

The bodies of several requests are looked at together: what costs the same however many messages
there are is paid once. Sizes are checked for all messages at once before anything is read by them:
no bytes, however hostile, lead outside their body.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints, pieces, rows_at
from rocketpy.broker_core.protocol.bodies.batches import HEAD, NAME, PROPERTIES, SMALLEST
from rocketpy.broker_core.protocol.errors import BodyError

_HEAD = np.dtype([("size", ">i4"), ("unread", "V8"), ("flag", ">i4"), ("body_length", ">i4")])
_LENGTH = np.dtype(">i2")
_SIZE = np.dtype(">i4")
_NO_STARTS: Ints = np.zeros(0, np.int64)
_size_at = struct.Struct(">i").unpack_from
assert _HEAD.itemsize == HEAD.size
assert _LENGTH.itemsize == PROPERTIES.size


class BatchColumns(NamedTuple):
    """The messages of one batch or several, in their order."""

    data: bytes  # all batches, one after the other
    counts: list[int]  # how many messages each batch has
    flags: npt.NDArray[np.int32]
    body_starts: Ints
    body_ends: Ints
    properties_starts: Ints
    properties_ends: Ints

    def bodies(self) -> list[bytes]:
        """Return the body of each message."""
        return pieces(self.data, self.body_starts, self.body_ends - self.body_starts)

    def properties(self) -> list[bytes]:
        """Return the property string of each message."""
        starts = self.properties_starts
        return pieces(self.data, starts, self.properties_ends - starts)


def batch_columns(bodies: Sequence[bytes | memoryview]) -> BatchColumns:
    """Return the messages of the bodies of requests.

    Raises:
        BodyError: in one of them sizes are negative, or say more than there is. What it says of
            places is true of a single body.
    """
    data = b"".join(bodies)
    starts, counts = _all_starts(data, bodies)
    octets = np.frombuffer(data, np.uint8)
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
    return BatchColumns(data, counts, flags, body_starts, body_ends, properties_starts, ends)


def _all_starts(data: bytes, bodies: Sequence[bytes | memoryview]) -> tuple[Ints, list[int]]:
    """Return where messages begin in `data`, the joined bodies, and how many each body has."""
    bounds = accumulate(map(len, bodies), initial=0)
    found = [_starts(data, begin, end) for begin, end in pairwise(bounds)]
    counts = [len(starts) for starts in found]
    return found[0] if len(found) == 1 else np.concatenate([_NO_STARTS, *found]), counts


def _starts(data: bytes, begin: int, end: int) -> Ints:
    """Return where the messages of one body begin: one size after the other tells the next."""
    if end - begin < SMALLEST:
        if begin < end:
            raise BodyError(NAME, f"{end - begin} bytes at {begin}, too few for a message")
        return _NO_STARTS
    (size,) = _size_at(data, begin)
    if size >= SMALLEST and (end - begin) % size == 0:
        # All may have the size of the first: then each of these steps ends at the next message.
        count = (end - begin) // size
        sizes = np.ndarray((count,), _SIZE, data, offset=begin, strides=(size,))
        if (sizes == size).all():
            return np.arange(begin, end, size)
    return np.array(_starts_of_any_size(data, begin, end), np.int64)


def _starts_of_any_size(data: bytes, begin: int, end: int) -> list[int]:
    starts: list[int] = []
    at, size, last = begin, 0, end - SMALLEST
    while at <= last:
        starts.append(at)
        (size,) = _size_at(data, at)
        if size < SMALLEST:
            raise BodyError(NAME, f"a message of {size} bytes at {at}, {SMALLEST} is the least")
        at += size
    if at > end:
        raise BodyError(NAME, f"a message of {size} bytes at {starts[-1]}, in {end - begin}")
    if at < end:
        raise BodyError(NAME, f"{end - at} bytes at {at}, too few for a message")
    return starts
