"""Hashes of columns that the property tests do not make: long ones, slices, none at all."""

from __future__ import annotations

import sys
import threading

import pyarrow as pa
import pytest

from rocketpy.broker_core.java_hash import index_key_hash, string_hash, string_hashes


def test_the_hash_of_hello_is_javas() -> None:
    assert string_hash("hello") == 99162322


@pytest.mark.parametrize("length", [255, 256, 257, 3000])
def test_long_strings_hash_as_short_ones_do(length: int) -> None:
    expected = 0
    for _ in range(length):
        expected = (31 * expected + ord("z")) & 0xFFFFFFFF
    assert string_hash("z" * length) & 0xFFFFFFFF == expected
    assert string_hashes(pa.array(["z" * length]))[0] == string_hash("z" * length)


def test_a_column_of_no_rows_has_no_hashes() -> None:
    assert string_hashes(pa.array([], pa.string()), "prefix").tolist() == []


def test_empty_values_hash_to_the_prefix() -> None:
    column = pa.array(["", "a", ""])
    expected = [string_hash("p#"), string_hash("p#a"), string_hash("p#")]
    assert string_hashes(column, "p#").tolist() == expected


def test_an_index_key_is_hashed_without_its_sign() -> None:
    assert string_hash("zzzzzz") < 0
    assert index_key_hash("zzzzzz") == -string_hash("zzzzzz")


def test_threads_that_hash_long_texts_at_once_agree() -> None:
    """Each length is longer than any before, so that the table of powers grows all the time."""
    texts = ["x" * length for length in range(2_000, 12_000, 50)]
    expected = string_hashes(pa.array(texts)).tolist()
    switching, found = sys.getswitchinterval(), [list[int]() for _ in range(4)]

    def work(number: int) -> None:
        found[number] = [string_hash(text) for text in texts]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switching)
    assert found == [expected] * 4
