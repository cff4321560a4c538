"""Whether records that lie side by side match their check sums, asked of two at a time.

A call for each record would take longer than its bytes do. So two records are given to one call,
and what it returns is compared with what their check sums say of it: CRCs are linear, see crc.py.

A check sum lacks the highest bit of its CRC: so each of the two is tried with either bit. One wrong
bit is always found: with both highest bits it makes three, and a CRC finds any three in so few
bytes. Other damage passes in one of 2**30 cases; with four records in a call it would be 2**28, and
one wrong bit might pass as well. The names and separators of check sums are compared as they are: a
bit there could stand for a highest bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.crc import Crcs, joined_crcs, value_crcs
from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.draft import CHECKSUM_HEAD
from rocketpy.broker_core.codec.gather import Bytes, Ints, rows_at
from rocketpy.broker_core.codec.layout import (
    CHECKSUM_DIGITS,
    CHECKSUM_SIZE,
    PROPERTY_SEPARATOR,
)

_Number = TypeVar("_Number", bound=np.generic)

_TOGETHER = 2
_MOST_BYTES = 8_192  # of records in one call: CRCs find any three wrong bits in so many
_HIGHEST_BIT = np.uint32(1 << 31)
_PAIRS = CHECKSUM_DIGITS // 2
_NO_DIGITS = 255
_HEAD = np.frombuffer(CHECKSUM_HEAD, np.uint8)


def match(records: Bytes, bounds: Ints) -> bool:
    """Whether all records match their check sums; False means that one may not.

    `bounds` say where each of them begins, and where the last one ends.
    """
    said = _closed_crcs(_endings(records, bounds[1:]))
    if said is None:
        return False
    sizes = np.diff(bounds)
    each = _TOGETHER if int(sizes.max()) * _TOGETHER <= _MOST_BYTES else 1
    difference = _crcs(records, bounds, each)
    said, sizes = _filled_up(said, each), _filled_up(sizes, each)
    follows = np.zeros(len(difference), np.int64)  # bytes of the same call
    highest_bits = list[Crcs]()
    for number in reversed(range(each)):
        difference ^= joined_crcs(said[number::each], np.zeros(1, np.uint32), follows)
        highest_bits.append(_highest_bits().take(follows))
        follows = follows + sizes[number::each]
    return bool(_is_sum_of(difference, highest_bits).all())


def _endings(records: Bytes, ends: Ints) -> Bytes:
    endings = rows_at(records, ends - CHECKSUM_SIZE, np.dtype(f"V{CHECKSUM_SIZE}"))
    return endings.view(np.uint8).reshape(len(ends), CHECKSUM_SIZE)


def _closed_crcs(endings: Bytes) -> Crcs | None:
    """Return the CRCs of whole records, check sums included; None if one has another form."""
    heads, ends = endings[:, : _HEAD.size], endings[:, -1]
    if (ends != PROPERTY_SEPARATOR).any() or (heads != _HEAD).any():
        return None
    pairs = np.ascontiguousarray(endings[:, _HEAD.size : -1]).view("<u2")
    texts = np.full(len(endings), _of_text(), np.uint32)
    numbers = np.zeros(len(endings), np.int64)
    for at in range(_PAIRS):
        values = _pair_values().take(pairs[:, at])
        if (values == _NO_DIGITS).any():
            return None
        texts ^= _pair_crcs()[at].take(values)
        numbers += values.astype(np.int64) * 100**at
    if int(numbers.max()) >= _HIGHEST_BIT:
        return None
    lengths = np.full(1, CHECKSUM_SIZE)
    return joined_crcs(numbers.astype(np.uint32), texts, lengths)


def _filled_up(values: npt.NDArray[_Number], each: int) -> npt.NDArray[_Number]:
    """Return the values with zeros after them, up to a multiple."""
    return np.append(values, np.zeros(-len(values) % each, values.dtype))


def _crcs(records: Bytes, bounds: Ints, each: int) -> Crcs:
    """Return the CRCs of so many records together, in the last call of fewer."""
    ends = np.append(bounds[:-1:each], bounds[-1])
    run = records[ends[0] : ends[-1]]
    buffers = [None, pa.py_buffer((ends - ends[0]).astype(np.int32)), pa.py_buffer(run)]
    return value_crcs(pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers))


def _is_sum_of(values: Crcs, parts: Sequence[Crcs]) -> npt.NDArray[np.bool_]:
    """Return which values are zero, or the sum of some parts in their row."""
    sums = [values]
    for part in parts:
        sums += [each ^ part for each in sums]
    found = sums[0] == 0
    for each in sums[1:]:
        found |= each == 0
    return np.asarray(found)


@cache
def _highest_bits() -> Crcs:
    """Return what a highest bit adds to a CRC if a check sum and n more bytes follow."""
    lengths = np.arange(_MOST_BYTES) + CHECKSUM_SIZE
    return joined_crcs(np.full(_MOST_BYTES, _HIGHEST_BIT), np.zeros(1, np.uint32), lengths)


@cache
def _pair_values() -> npt.NDArray[np.uint8]:
    """Return what two digits mean, the lower one first, at the number that their bytes make."""
    values = np.full(1 << 16, _NO_DIGITS, np.uint8)
    values[[int.from_bytes(_pair(value), "little") for value in range(100)]] = np.arange(100)
    return values


@cache
def _pair_crcs() -> Crcs:
    """Return what a pair of digits adds to the CRC of a check sum, at [which pair, its value]."""
    crcs = [
        [crc32(_text(at, _pair(value))) ^ _of_text() for value in range(100)]
        for at in range(_PAIRS)
    ]
    return np.array(crcs, np.uint32)


@cache
def _of_text() -> int:
    return crc32(_text(0, b"00"))


def _text(at: int, pair: bytes) -> bytes:
    """Return a check sum of zeros with one other pair."""
    digits = b"00" * at + pair + b"00" * (_PAIRS - at - 1)
    return CHECKSUM_HEAD + digits + bytes([PROPERTY_SEPARATOR])


def _pair(value: int) -> bytes:
    return f"{value:02d}"[::-1].encode()
