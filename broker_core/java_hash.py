"""Java's `String.hashCode`, for one string and for a column of them.

RocketMQ stores it as the tag code of a consume queue and as the key hash of an index file.
It runs over UTF-16 units: one byte each for ASCII, which is the vectorised case.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_MASK = 0xFFFFFFFF
_powers = [pow(31, exponent, 1 << 32) for exponent in range(256)]  # replaced, never changed

assert sys.byteorder == "little"  # the codec reads Arrow's buffers, which are


def string_hash(text: str) -> int:
    """Return what `text.hashCode()` is in Java: a signed 32-bit number."""
    if text.isascii():
        units: Sequence[int] = text.encode()
    else:
        units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    powers = _powers  # looked at once: another thread may replace it
    if len(units) > len(powers):
        powers = _more_powers(len(units))
    value: int = sum(map(mul, reversed(units), powers)) & _MASK
    return value - (1 << 32) if value >= 1 << 31 else value


def _more_powers(count: int) -> list[int]:
    """Return so many powers of 31, or up to twice as many, and keep them.

    Threads may do so at the same time: each makes a table that is right, and one of them is kept.
    """
    global _powers
    found = [pow(31, exponent, 1 << 32) for exponent in range(1 << count.bit_length())]
    _powers = found
    return found


def index_key_hash(text: str) -> int:
    """Return the hash under which an index file keeps `text`: never negative."""
    value = abs(string_hash(text))
    return 0 if value == 1 << 31 else value  # Math.abs(Integer.MIN_VALUE) is negative in Java


@lru_cache(maxsize=4096)
def tag_hash(tag: str) -> int:
    """Return string_hash(tag), kept: tags are few and come again and again."""
    return string_hash(tag)


def string_hashes(column: pa.Array, prefix: str = "") -> npt.NDArray[np.int32]:
    """Return `hashCode(prefix + value)` for each value of a string column without nulls."""
    count = len(column)
    lengths = pc.binary_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths)
    first = _first_byte(column)
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)[first : first + int(lengths.sum())]
    powers = _powers_of_31(int(lengths.max(initial=0)))
    hashes = _sums_by_row(data, lengths, ends, powers)
    hashes += np.uint32(string_hash(prefix) & _MASK) * powers[lengths]
    if data.size and data.max() >= 0x80:
        for row in _rows_beyond_ascii(data, ends):
            hashes[row] = string_hash(prefix + column[int(row)].as_py()) & _MASK
    return hashes.view(np.int32)[:count]


def _first_byte(column: pa.Array) -> int:
    if not len(column):
        return 0
    return int(np.frombuffer(column.buffers()[1], np.int32)[column.offset])


def _powers_of_31(highest: int) -> npt.NDArray[np.uint32]:
    powers = np.full(highest + 1, 31, np.uint32)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint32)


def _sums_by_row(
    data: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    powers: npt.NDArray[np.uint32],
) -> npt.NDArray[np.uint32]:
    """Return the sum of byte x 31^(distance to the row's end) for each row."""
    hashes = np.zeros(len(lengths), np.uint32)
    if not data.size:
        return hashes
    width = int(lengths[0])
    if (lengths == width).all():  # keys of one form: one product with the powers
        return np.asarray(data.reshape(-1, width) @ powers[width - 1 :: -1])
    distance = np.repeat(ends, lengths) - np.arange(1, data.size + 1)
    terms = data * powers[distance]
    filled = np.flatnonzero(lengths)  # reduceat would give a neighbour's byte for an empty row
    hashes[filled] = np.add.reduceat(terms, (ends - lengths)[filled], dtype=np.uint32)
    return hashes


def _rows_beyond_ascii(
    data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    wide = np.flatnonzero(data >= 0x80)
    return np.unique(np.searchsorted(ends, wide, side="right"))
