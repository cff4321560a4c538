"""Columns of property strings: maps, and single properties out of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rocketpy.broker_core.codec.properties import PropertyColumn
from rocketpy.broker_core.message import split_properties


def column(*texts: bytes) -> PropertyColumn:
    return PropertyColumn(pa.array(texts, pa.binary()))


def maps(properties: PropertyColumn) -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = properties.as_map().to_pylist()
    return found


def test_entries_stay_in_stored_order() -> None:
    assert maps(column(b"b\x011\x02a\x012\x02")) == [[("b", "1"), ("a", "2")]]


def test_rows_of_different_width_are_told_apart() -> None:
    texts = [b"a\x011\x02", b"", b"a\x011\x02b\x012\x02", b"", b"c\x01\x02"]
    expected = [list(split_properties(text).items()) for text in texts]
    assert maps(column(*texts)) == expected


@pytest.mark.parametrize(
    "second",
    [
        b"ab\x011\x02cd\x0122\x02",
        b"ab\x01\x02cd\x01\x02",
        b"xy\x011\x02zz\x012\x02",
        b"a\x011\x02bcd\x012\x02",
        b"ab\x011\x01\x02cd\x02",
        b"ab\x0112\x02cd3\x02\x014\x02",
        b"ab\x011\x02",
        b"a\x02b\x01",
        b"ab\x011\x02\x02cd\x012",
    ],
)
def test_rows_are_read_alike_whether_like_the_first_one_or_not(second: bytes) -> None:
    texts = [b"ab\x015\x02cd\x0167\x02", second, b"ab\x018\x02cd\x019\x02"]
    found = column(*texts)
    expected = [split_properties(text) for text in texts]
    assert maps(found) == [list(row.items()) for row in expected]
    assert found.get("cd").to_pylist() == [row.get("cd") for row in expected]


def test_no_rows_and_empty_rows_have_no_entries() -> None:
    assert maps(column()) == []
    assert maps(column(b"", b"")) == [[], []]
    assert column(b"", b"").get("a").to_pylist() == [None, None]


def test_one_property_is_taken_out_of_rows_alike() -> None:
    found = column(b"a\x011\x02b\x012\x02", b"a\x013\x02b\x014\x02")
    assert found.get("b").to_pylist() == ["2", "4"]
    assert found.get("c").to_pylist() == [None, None]


def test_one_property_is_taken_out_of_rows_that_differ() -> None:
    found = column(b"b\x012\x02a\x011\x02", b"", b"a\x013\x02", b"aa\x014\x02")
    assert found.get("a").to_pylist() == ["1", None, "3", None]


def test_of_repeated_names_the_last_one_counts() -> None:
    assert column(b"a\x011\x02a\x012\x02").get("a").to_pylist() == ["2"]
    assert column(b"a\x011\x02a\x012\x02", b"b\x011\x02").get("a").to_pylist() == ["2", None]


def test_a_name_at_the_same_place_but_not_in_every_row_is_not_taken_for_it() -> None:
    assert column(b"ab\x011\x02", b"ac\x012\x02").get("ab").to_pylist() == ["1", None]


def test_a_missing_last_separator_is_made_up_for() -> None:
    found = column(b"a\x011", b"a\x012\x02", b"")
    assert found.get("a").to_pylist() == ["1", "2", None]


@pytest.mark.parametrize(
    "text", [b"alone\x02a\x011\x02", b"\x01x\x02a\x011\x02", b"a\x011\x02\x02"]
)
def test_entries_without_name_or_value_are_left_out(text: bytes) -> None:
    found = column(text, b"a\x012\x02")
    assert maps(found) == [[("a", "1")], [("a", "2")]]


def test_a_zero_byte_is_an_ordinary_one() -> None:
    assert maps(column(b"a\0\x01\0\x02")) == [[("a\0", "\0")]]


def test_bytes_that_are_no_text_become_a_sign_of_it() -> None:
    assert maps(column(b"a\x01\xff\x02", "é\x01🚀\x02".encode())) == [[("a", "�")], [("é", "🚀")]]


def test_a_slice_of_a_column_gives_its_own_rows() -> None:
    texts = pa.array([b"a\x011\x02", b"a\x012\x02b\x01x\x02", b"a\x013\x02"], pa.binary())
    found = PropertyColumn(texts.slice(1, 2))
    assert found.get("a").to_pylist() == ["2", "3"]
    assert maps(found) == [[("a", "2"), ("b", "x")], [("a", "3")]]
