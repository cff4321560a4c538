"""CRC-32 (zlib's) of many records out of what is known of their parts.

A CRC is linear: what a byte adds to it depends on that byte and its distance from the end alone,
and zero bytes that follow change it by a table look-up. So CRCs of rows of one width are sums over
their columns, and the CRC of two parts side by side comes from the CRCs of the parts.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.draft import CHECKSUM_HEAD
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import PROPERTY_SEPARATOR

Crcs = npt.NDArray[np.uint32]

_ALL_ONES = 0xFFFFFFFF
_OF_BYTE = np.array([crc32(bytes([byte]), _ALL_ONES) ^ _ALL_ONES for byte in range(256)], np.uint32)
_POSITIVE = 0x7FFFFFFF
# "0000", "1000", "2000", ...: each number below 10,000 with its digits reversed, as one word
_FOUR_DIGITS = np.array([f"{n:04d}"[::-1].encode() for n in range(10_000)], "S4").view("<u4")
_POWERS_OF_TEN = (10 ** np.arange(10)).astype(np.uint32)
_CHECKSUM = np.dtype(
    [
        ("head", f"V{len(CHECKSUM_HEAD)}"),
        ("low", "<u4"),
        ("middle", "<u4"),
        ("high", "<u2"),
        ("end", "u1"),
    ]
)
# As a plain type: numpy copies rows of a structured one field by field.
_EMPTY_CHECKSUM = np.frombuffer(
    CHECKSUM_HEAD + bytes(10) + bytes([PROPERTY_SEPARATOR]), f"V{_CHECKSUM.itemsize}"
)


def value_crcs(column: pa.Array) -> Crcs:
    """Return the CRC of each value of a binary column: one call each."""
    values = column.to_numpy(zero_copy_only=False)
    return np.fromiter(map(crc32, values), np.uint32, len(column))


def row_crcs(rows: npt.NDArray[Any]) -> Crcs:
    """Return the CRC of each row's bytes, of 255 at most. Bytes that are all alike cost nothing."""
    count, width = len(rows), rows.dtype.itemsize
    crcs = np.full(count, crc32(rows[:1].tobytes()), np.uint32)
    if not count:
        return crcs
    word = math.gcd(width, 8)
    words = rows.view(f"<u{word}").reshape(count, -1)
    octets = rows.view(np.uint8).reshape(count, width)
    for at in range(0, width, word):
        column = words[:, at // word]
        changed = int(np.bitwise_or.reduce(column ^ column[0])).to_bytes(word, "little")
        for byte in (at + i for i in range(word) if changed[i]):
            added = _after_zeros(0)[width - byte, 0]
            crcs ^= added.take(octets[:, byte])
            crcs ^= added[octets[0, byte]]
    return crcs


def joined_crcs(first: Crcs, second: Crcs, second_lengths: Ints) -> Crcs:
    """Return the CRCs of bytes and the bytes after them, from the CRCs of both."""
    level = 0
    while second_lengths.any():
        first = _followed(first, level, second_lengths & 0xFF)
        second_lengths, level = second_lengths >> 8, level + 1
    return first ^ second


def checksum_properties(crcs: Crcs) -> npt.NDArray[np.void]:
    """Return the properties that end records of these CRCs, see record.checksum_property."""
    numbers = crcs & _POSITIVE
    text = _EMPTY_CHECKSUM.repeat(len(numbers)).view(_CHECKSUM)
    above, low = np.divmod(numbers, 10_000)
    high, middle = np.divmod(above, 10_000)
    text["low"] = _FOUR_DIGITS[low]
    text["middle"] = _FOUR_DIGITS[middle]
    text["high"] = _FOUR_DIGITS[high]  # of which two digits fit
    return text


def checksum_numbers(texts: npt.NDArray[np.uint8]) -> Crcs:
    """Return what such properties say, given as rows of bytes; nonsense for other bytes."""
    digits = texts[:, len(CHECKSUM_HEAD) : -1] - np.uint8(0x30)
    return np.asarray(digits @ _POWERS_OF_TEN)


def _followed(crcs: Crcs, level: int, count: Ints | int) -> Crcs:
    """Return the CRCs when `count` x 256^level zeros follow; `count` is below 256."""
    table, at = _after_zeros(level).ravel(), count << 10
    return np.asarray(
        table[at | crcs & 0xFF]
        ^ table[at | 0x100 | crcs >> 8 & 0xFF]
        ^ table[at | 0x200 | crcs >> 16 & 0xFF]
        ^ table[at | 0x300 | crcs >> 24]
    )


@cache
def _after_zeros(level: int) -> Crcs:
    """Return what n x 256^level zeros make of byte k of a CRC, if its value is v, at [n, k, v].

    A megabyte, made in milliseconds: level 0 serves lengths below 256, level 1 those below 64 KiB.
    """
    table = np.empty((256, 4, 256), np.uint32)
    table[0] = np.arange(256) << 8 * np.arange(4)[:, None]
    for n in range(1, 256):
        table[n] = _one_more(table[n - 1], level)
    return table


def _one_more(crcs: Crcs, level: int) -> Crcs:
    """Return the CRCs when 256^level zeros follow."""
    if not level:
        return np.asarray(crcs >> 8 ^ _OF_BYTE[crcs & 0xFF])
    return _followed(_followed(crcs, level - 1, 255), level - 1, 1)
