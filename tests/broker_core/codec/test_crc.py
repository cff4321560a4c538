from __future__ import annotations

import random
import zlib

import numpy as np
import pyarrow as pa
import pytest

from rocketpy.broker_core.codec.crc import joined_crcs, row_crcs, value_crcs


def test_values_have_the_crc_that_zlib_gives_them() -> None:
    values = [b"", b"a", bytes(300), b"\xff" * 7]
    assert value_crcs(pa.array(values, pa.binary())).tolist() == [zlib.crc32(v) for v in values]


@pytest.mark.parametrize("width", [1, 2, 9, 88, 255])
def test_rows_of_any_width_have_the_crc_that_zlib_gives_them(width: int) -> None:
    source = random.Random(width)
    rows = np.frombuffer(source.randbytes(50 * width), f"V{width}")
    assert row_crcs(rows).tolist() == [zlib.crc32(row.tobytes()) for row in rows]


def test_rows_that_differ_in_one_byte_have_different_crcs() -> None:
    rows = np.zeros(3, [("same", "V16"), ("number", ">u2")])
    rows["number"] = 1, 2, 1
    assert row_crcs(rows).tolist() == [zlib.crc32(row.tobytes()) for row in rows]


def test_no_rows_have_no_crcs() -> None:
    assert row_crcs(np.zeros(0, "V88")).tolist() == []


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
