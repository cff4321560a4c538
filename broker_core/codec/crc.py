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
_DIGITS = np.dtype([("low", "<u4"), ("middle", "<u4"), ("high", "<u2")])
_CHECKSUM = np.dtype([("head", f"V{len(CHECKSUM_HEAD)}"), *_DIGITS.descr, ("end", "u1")])
_VALUES_AT_ONCE = 1024  # bytes objects of so many stay in the processor's cache
# The property that ends a record, before its digits are known.
EMPTY_CHECKSUM = CHECKSUM_HEAD + bytes(_DIGITS.itemsize) + bytes([PROPERTY_SEPARATOR])
DIGITS_AT = len(CHECKSUM_HEAD)  # where in it these are


def value_crcs(column: pa.Array) -> Crcs:
    """Return the CRC of each value of a binary column: one call each."""
    crcs = np.empty(len(column), np.uint32)
    for first in range(0, len(column), _VALUES_AT_ONCE):
        values = column.slice(first, _VALUES_AT_ONCE).to_numpy(zero_copy_only=False)
        crcs[first : first + len(values)] = np.fromiter(map(crc32, values), np.uint32, len(values))
    return crcs


def changed_crcs(rows: npt.NDArray[Any], following: int) -> Crcs:
    """Return by how much each row changes a CRC if it is written over zeros.

    `following` bytes come after it; with them it has 255 bytes at most. Bytes that are the same in
    all rows cost nothing.
    """
    count, width = len(rows), rows.dtype.itemsize
    if not count:
        return np.zeros(0, np.uint32)
    zeros = bytes(following)
    changed = crc32(rows[:1].tobytes() + zeros) ^ crc32(bytes(width) + zeros)
    crcs = np.full(count, changed, np.uint32)
    word = math.gcd(width, 8)
    words = rows.view(f"<u{word}").reshape(count, -1)
    octets = rows.view(np.uint8).reshape(count, width)
    for at in range(0, width, word):
        column = words[:, at // word]
        differing = int(np.bitwise_or.reduce(column ^ column[0])).to_bytes(word, "little")
        for byte in (at + i for i in range(word) if differing[i]):
            added = _after_zeros(0)[width - byte + following, 0]
            crcs ^= added.take(octets[:, byte])
            crcs ^= added[octets[0, byte]]
    return crcs


def shortened_crcs(crcs: Crcs, ending: bytes) -> Crcs:
    """Return the CRCs of bytes without their ending, from those with it; all have the same one."""
    table = _before_zeros(len(ending))
    crcs = crcs ^ np.uint32(crc32(ending))
    return np.asarray(
        table[0].take(crcs & 0xFF)
        ^ table[1].take(crcs >> 8 & 0xFF)
        ^ table[2].take(crcs >> 16 & 0xFF)
        ^ table[3].take(crcs >> 24)
    )


def joined_crcs(first: Crcs, second: Crcs, second_lengths: Ints) -> Crcs:
    """Return the CRCs of bytes and the bytes after them, from the CRCs of both."""
    level = 0
    while second_lengths.any():
        first = _followed(first, level, second_lengths & 0xFF)
        second_lengths, level = second_lengths >> 8, level + 1
    return first ^ second


def checksum_properties(crcs: Crcs) -> npt.NDArray[np.void]:
    """Return the properties that end records of these CRCs, see record.checksum_property."""
    # As a plain type: numpy copies rows of a structured one field by field.
    text = np.frombuffer(EMPTY_CHECKSUM, f"V{len(EMPTY_CHECKSUM)}").repeat(len(crcs))
    _put_digits(text.view(_CHECKSUM), crcs)
    return text


def checksum_digits(crcs: Crcs) -> npt.NDArray[np.void]:
    """Return the digits of these properties alone."""
    text = np.empty(len(crcs), _DIGITS)
    _put_digits(text, crcs)
    return text.view(f"V{_DIGITS.itemsize}")


def _put_digits(text: npt.NDArray[np.void], crcs: Crcs) -> None:
    above, low = np.divmod(crcs & _POSITIVE, 10_000)
    high, middle = np.divmod(above, 10_000)
    text["low"] = _FOUR_DIGITS[low]
    text["middle"] = _FOUR_DIGITS[middle]
    text["high"] = _FOUR_DIGITS[high]  # of which two digits fit


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


@cache
def _before_zeros(count: int) -> Crcs:
    """Return what byte k of a CRC, if its value is v, was before `count` zeros, at [k, v]."""
    crcs = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    of_highest = np.argsort(_OF_BYTE >> 24).astype(np.uint32)  # the highest byte tells the lowest
    for _ in range(count):
        lowest = of_highest[crcs >> 24]
        crcs = (crcs ^ _OF_BYTE[lowest]) << 8 | lowest
    return crcs
