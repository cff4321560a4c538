"""Slices of a buffer as columns, at every length around what an Arrow view holds in itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rocketpy.broker_core.codec.gather import as_text, equal, packed, rows_at, slices

DATA = np.frombuffer(bytes(range(65, 91)) * 4, np.uint8)
TEXT = DATA.tobytes()


@pytest.mark.parametrize("length", range(18))
def test_slices_of_one_length_are_gathered(length: int) -> None:
    starts = np.array([0, 3, len(TEXT) - length], np.int64)
    found = slices(DATA, starts, np.full(3, length, np.int64))
    assert found.to_pylist() == [TEXT[at : at + length] for at in starts]


def test_slices_of_mixed_lengths_are_gathered() -> None:
    lengths = np.array([0, 1, 4, 11, 12, 13, 20, 0], np.int64)
    starts = np.array([104, 103, 100, 93, 92, 91, 84, 0], np.int64)
    found = slices(DATA, starts, lengths)
    expected = [TEXT[a : a + n] for a, n in zip(starts, lengths, strict=True)]
    assert found.to_pylist() == expected


def test_slices_of_a_tiny_buffer_are_gathered() -> None:
    data = np.frombuffer(b"abc", np.uint8)
    found = slices(data, np.array([1, 3]), np.array([2, 0]))
    assert found.to_pylist() == [b"bc", b""]


def test_no_slices_are_an_empty_column() -> None:
    none = np.zeros(0, np.int64)
    found = slices(DATA, none, none)
    assert (found.type, found.to_pylist()) == (pa.binary(), [])


def test_text_that_is_no_utf8_gets_a_sign_of_it() -> None:
    assert as_text(pa.array([b"a", b"\xff"])).to_pylist() == ["a", "\ufffd"]
    assert as_text(pa.array(["é".encode()])).to_pylist() == ["é"]


def test_values_are_read_from_any_place() -> None:
    found = rows_at(DATA, np.array([0, 1, 100]), np.dtype(">u4"))
    assert found.tobytes() == b"ABCDBCDEWXYZ"


@pytest.mark.parametrize("length", range(1, 20))
def test_places_that_hold_a_text_are_found(length: int) -> None:
    text = TEXT[5 : 5 + length]
    places = np.arange(0, len(TEXT) - length + 1)
    expected = [TEXT[at : at + length] == text for at in places]
    assert equal(DATA, places, text).tolist() == expected


def test_every_place_holds_the_empty_text() -> None:
    assert equal(DATA, np.array([0, 104]), b"").all()


@pytest.mark.parametrize("type_", [pa.string(), pa.binary()])
def test_a_slice_of_a_column_is_packed_from_its_own_start(type_: pa.DataType) -> None:
    column = pa.array(["a", "bc", "", "def"], type_).slice(1, 3)
    data, offsets = packed(column)
    assert data.tobytes() == b"bcdef"
    assert offsets.tolist() == [0, 2, 2, 5]


def test_an_empty_column_is_packed_as_nothing() -> None:
    data, offsets = packed(pa.array([], pa.string()))
    assert (data.size, offsets.tolist()) == (0, [0])
