"""Java's String.hashCode, against its definition written out plainly."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.java_hash import index_key_hash, string_hash, string_hashes

MIN_VALUE = -(1 << 31)
ANY_TEXT = st.text(max_size=20)
ASCII = st.text(st.characters(codec="ascii"), max_size=40)
STORABLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def by_definition(text: str) -> int:
    """s[0]*31^(n-1) + s[1]*31^(n-2) + ... + s[n-1] over UTF-16 units, in 32 bits."""
    data = text.encode("utf-16-be", "surrogatepass")
    units = [data[at] * 256 + data[at + 1] for at in range(0, len(data), 2)]
    total = sum(unit * int(31 ** (len(units) - 1 - at)) for at, unit in enumerate(units))
    low = total % (1 << 32)
    return low - (1 << 32) if low >= 1 << 31 else low


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", MIN_VALUE),
        ("é", 233),
        ("🚀", 0xD83D * 31 + 0xDE80),  # two UTF-16 units
    ],
)
def test_known_values_are_javas(text: str, expected: int) -> None:
    assert by_definition(text) == expected
    assert string_hash(text) == expected


def test_the_hash_that_has_no_absolute_value_is_indexed_as_zero() -> None:
    assert index_key_hash("polygenelubricants") == 0


@given(ANY_TEXT)
def test_one_hash_is_as_defined(text: str) -> None:
    assert string_hash(text) == by_definition(text)


@given(ANY_TEXT)
def test_the_indexed_hash_is_never_negative(text: str) -> None:
    found, plain = index_key_hash(text), by_definition(text)
    assert found == (0 if plain == MIN_VALUE else abs(plain))


@given(st.lists(st.one_of(ASCII, STORABLE), max_size=12), STORABLE, st.integers(0, 4))
def test_hashes_of_a_column_are_those_of_its_values(
    texts: list[str], prefix: str, skipped: int
) -> None:
    column = pa.array(texts, pa.string()).slice(skipped)
    expected = [by_definition(prefix + text) for text in texts[skipped:]]
    assert string_hashes(column, prefix).tolist() == expected
