"""Tag expressions."""

from __future__ import annotations

import pytest

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.java_hash import string_hash


@pytest.mark.parametrize("expression", ["*", " * "])
def test_a_star_takes_all(expression: str) -> None:
    assert TagFilter.parse(expression).takes_all


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("a", {"a"}),
        ("a||b", {"a", "b"}),
        (" a  ||  b ", {"a", "b"}),
        ("a || a", {"a"}),
        ("a || ", {"a"}),
        ("a | b", {"a | b"}),
        ("ключ || 🚀", {"ключ", "🚀"}),
    ],
)
def test_names_stand_between_double_bars(expression: str, names: set[str]) -> None:
    assert TagFilter.parse(expression).names == names


@pytest.mark.parametrize("expression", ["", "  ", "||", " || "])
def test_an_expression_without_a_name_is_refused(expression: str) -> None:
    with pytest.raises(MessageRefusedError, match=r"names no tag; give 'a \|\| b', or '\*'"):
        TagFilter.parse(expression)


def test_codes_are_the_hashes_of_the_names() -> None:
    codes = TagFilter.parse("a || ключ").codes()
    assert codes.tolist() == sorted([string_hash("a"), string_hash("ключ")])


def test_names_of_one_hash_share_a_code() -> None:
    assert TagFilter.parse("Aa || BB").codes().tolist() == [2112]
