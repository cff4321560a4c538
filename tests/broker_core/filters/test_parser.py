"""The text of a filter: what binds to what, and where a mistake is."""

from __future__ import annotations

import pytest

from rocketpy.broker_core.errors import FilterSyntaxError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.parser import DEEPEST, parse


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("a = 1 OR b = 2 AND c = 3", "(a = 1) OR ((b = 2) AND (c = 3))"),
        ("a = b > 1", "a = (b > 1)"),
        ("NOT a = 1", "(NOT a) = 1"),
        ("NOT a IS NULL", "(NOT a) IS NULL"),
        ("a BETWEEN 1 AND 2 AND b", "(a BETWEEN 1 AND 2) AND b"),
        ("a BETWEEN 1 AND 2", "(a >= 1) AND (a <= 2)"),
        ("a NOT BETWEEN 1 AND 2", "(a < 1) OR (a > 2)"),
        ("a <> 1", "NOT (a = 1)"),
        ("a IS NOT NULL", "NOT (a IS NULL)"),
        ("a = +1 -- one\n and b", "(a = 1) AND b"),
        ("a\t=/* ' */'it''s'", "a = 'it''s'"),
    ],
)
def test_operators_bind_as_in_rocketmq(short: str, long: str) -> None:
    assert parse(short)[0] == parse(long)[0]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "region = 'eu' AND amount >",
            "SQL filter, character 27: the filter ends here; wanted is a property, a constant, "
            "NOT, or (\n  region = 'eu' AND amount >\n                            ^",
        ),
        (
            "region = 'eu'\n\tAND amount == 3",
            "SQL filter, character 28: here is =; wanted is a property, a constant, NOT, or (\n"
            "  \tAND amount == 3\n  \t            ^",
        ),
        (
            "a IN ('x', 5)",
            "SQL filter, character 12: here is 5; wanted is a text in single quotes\n"
            "  a IN ('x', 5)\n             ^",
        ),
    ],
)
def test_a_mistake_is_shown_with_a_caret_below_it(sql: str, message: str) -> None:
    with pytest.raises(FilterSyntaxError) as refusal:
        SqlFilter(sql)
    assert str(refusal.value) == message


def test_of_a_long_filter_the_place_of_the_mistake_is_shown() -> None:
    sql = "a IN (" + ", ".join(f"'{number}'" for number in range(5000)) + ", 5, 'x')"
    with pytest.raises(FilterSyntaxError) as refusal:
        SqlFilter(sql)
    _, line, caret = str(refusal.value).splitlines()
    assert line.endswith("'4998', '4999', 5, 'x')")
    assert line[caret.index("^")] == "5"
    assert len(line) < 100


@pytest.mark.parametrize(
    ("sql", "at", "words"),
    [
        ("", 0, "the filter ends here"),
        ("a != 1", 2, "write <>"),
        ('a = "x"', 4, "single quotes"),
        ("a = 'x", 4, "no closing quote"),
        ("a /* = 1", 2, "has no \\*/"),
        ("größe > 1", 2, "'ö' does not belong here"),
        ("a > 'x'", 4, "> compares numbers, this is a text"),
        ("1 > (a = 2)", 5, "this is true or false"),
        ("a = '\ud800'", 4, "not valid Unicode"),
        ("a = NULL", 4, "IS NULL"),
        ("TRUE = 1", 7, "compared with a whole number"),
        ("a BETWEEN 5 AND 1", 16, "less than 5"),
        ("'x' IN ('x')", 0, "IN asks for a property"),
        ("a = 0.0", 4, "write 0"),
        ("a = 1e999", 4, "larger than any double"),
        ("a = 9223372036854775808", 4, "9223372036854775807"),
        ("a = " + "9" * 5000, 4, "9223372036854775807"),
        ("a AND 1", 6, "a condition is wanted, this is a whole number"),
        ("a NOT x", 6, "BETWEEN, IN, CONTAINS"),
        ("a IS 5", 5, "NULL or NOT NULL"),
        ("a BETWEEN 1 OR 2", 12, "wanted is AND"),
        ("(a = 1", 6, "or \\)"),
    ],
)
def test_a_mistake_is_named_with_its_place(sql: str, at: int, words: str) -> None:
    with pytest.raises(FilterSyntaxError, match=words) as refusal:
        SqlFilter(sql)
    assert refusal.value.at == at


@pytest.mark.parametrize("sql", ["a = 1 ADN b = 2", "a LIKE 'x%'", "a + 1 > 2", "a = 1)"])
def test_what_apache_ignores_behind_an_expression_is_refused_of_who_types_it(sql: str) -> None:
    assert SqlFilter(sql).ignored
    with pytest.raises(FilterSyntaxError, match="Apache would ignore what follows"):
        SqlFilter.of(sql)


@pytest.mark.parametrize("sql", ["a = 1 ", "a = 1 -- all", "a = 1 /* all */\n"])
def test_a_comment_may_follow(sql: str) -> None:
    assert SqlFilter.of(sql).names == {"a"}


@pytest.mark.parametrize(
    "sql",
    [
        "(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1),
        "NOT " * 5000 + "a",
        "a" + " IS NULL" * 5000,
        "(" * 100_000,
    ],
)
def test_a_filter_that_is_too_deep_is_refused_before_the_stack_ends(sql: str) -> None:
    with pytest.raises(FilterSyntaxError, match=f"more than {DEEPEST}"):
        SqlFilter(sql)


def test_a_filter_may_be_as_long_as_one_likes() -> None:
    sql = " OR ".join(f"a = '{number}'" for number in range(5000))
    assert SqlFilter.of(sql).names == {"a"}
