from __future__ import annotations

import random
import zlib

import numpy as np
import pyarrow as pa
import pytest

from rocketpy.broker_core.codec.crc import (
    changed_crcs,
    joined_crcs,
    shortened_crcs,
    value_crcs,
)


def test_values_have_the_crc_that_zlib_gives_them() -> None:
    values = [b"", b"a", bytes(300), b"\xff" * 7]
    assert value_crcs(pa.array(values, pa.binary())).tolist() == [zlib.crc32(v) for v in values]


def test_many_values_of_a_slice_have_each_their_own_crc() -> None:
    values = [b"%d" % number for number in range(3_000)]
    column = pa.array(values, pa.binary()).slice(7)
    assert value_crcs(column).tolist() == [zlib.crc32(value) for value in values[7:]]


@pytest.mark.parametrize(("width", "following"), [(1, 0), (2, 7), (9, 56), (16, 52), (88, 167)])
def test_what_is_written_over_zeros_changes_a_crc_by_what_zlib_says(
    width: int, following: int
) -> None:
    source = random.Random(width)
    before, after = source.randbytes(30), source.randbytes(following)
    rows = np.frombuffer(source.randbytes(50 * width), f"V{width}")
    old = zlib.crc32(before + bytes(width) + after)
    new = [zlib.crc32(before + row.tobytes() + after) for row in rows]
    assert (changed_crcs(rows, following) ^ np.uint32(old)).tolist() == new


def test_rows_that_differ_in_one_byte_change_a_crc_each_by_its_own_amount() -> None:
    rows = np.zeros(3, [("same", "V16"), ("number", ">u2")])
    rows["number"] = 1, 2, 1
    old = np.uint32(zlib.crc32(bytes(18)))
    found = (changed_crcs(rows, 0) ^ old).tolist()
    assert found == [zlib.crc32(row.tobytes()) for row in rows]


def test_no_rows_change_nothing() -> None:
    assert changed_crcs(np.zeros(0, "V16"), 52).tolist() == []


@pytest.mark.parametrize("ending", [b"", b"\0", b"__CRC32#\1\0\0\2", bytes(300)])
def test_without_its_ending_a_value_has_the_crc_that_zlib_gives_it(ending: bytes) -> None:
    values = [b"", b"a", bytes(300), b"\xff" * 7]
    whole = np.array([zlib.crc32(value + ending) for value in values], np.uint32)
    assert shortened_crcs(whole, ending).tolist() == [zlib.crc32(value) for value in values]


@pytest.mark.parametrize("longest", [0, 1, 255, 256, 70_000, 17_000_000])
def test_parts_of_any_length_side_by_side_have_the_crc_of_the_whole(longest: int) -> None:
    source = random.Random(longest)
    lengths = [0, 1, longest, longest // 2]
    first = [source.randbytes(5) for _ in lengths]
    second = [source.randbytes(length) for length in lengths]
    joined = joined_crcs(
        value_crcs(pa.array(first, pa.binary())),
        value_crcs(pa.array(second, pa.binary())),
        np.array(lengths, np.int64),
    )
    assert joined.tolist() == [zlib.crc32(a + b) for a, b in zip(first, second, strict=True)]
