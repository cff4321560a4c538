"""What passes an SQL filter. tests/interop asks Apache the same; here are the rules to remember."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from rocketpy.broker_core.filters import SqlFilter, in_maps
from rocketpy.broker_core.filters.evaluation import Columns


def columns_of(*messages: dict[str, str]) -> Columns:
    return lambda name: pa.array([each.get(name) for each in messages], pa.string())


def passes(sql: str, **properties: str) -> bool:
    found: bool = SqlFilter(sql).passes(columns_of(properties), 1)[0].as_py()
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "region = 'eu' AND amount > 10",
        "region IN ('us', 'eu') AND amount BETWEEN 12 AND 12",
        "region <> 'us' AND amount = 12.0",
        "region CONTAINS 'u' AND region STARTSWITH 'e' AND region NOT ENDSWITH 'e'",
        "region NOT IN ('us') OR amount = 'nothing'",
        "missing IS NULL AND region IS NOT NULL",
        "paid = TRUE AND NOT (paid = FALSE)",
    ],
)
def test_a_message_passes_when_the_filter_is_true(sql: str) -> None:
    assert passes(sql, region="eu", amount="12", paid="true")


@pytest.mark.parametrize(
    "sql",
    [
        "missing = 'x'",
        "missing <> 'x'",
        "NOT (missing = 'x')",
        "missing NOT IN ('x')",
        "missing NOT CONTAINS 'x'",
        "missing > 1 OR FALSE",
        "a",
        "NULL",
    ],
)
def test_what_is_unknown_does_not_pass(sql: str) -> None:
    assert not passes(sql, a="true")


@pytest.mark.parametrize("sql", ["a > 1", "NOT (a > 1)", "a <> 1", "a > b", "a = 'x' OR a > 1"])
def test_a_text_that_is_no_number_passes_no_comparison_with_one(sql: str) -> None:
    assert not passes(sql, a="many", b="2")


def test_a_failure_does_not_count_behind_what_decides() -> None:
    assert passes("a = 'many' OR a > 1", a="many")
    assert not passes("a > 1 OR a = 'many'", a="many")
    assert passes("NOT (a = 'few' AND a > 1)", a="many")


@pytest.mark.parametrize(
    ("text", "integer", "double"),
    [
        ("2147483647", True, True),
        ("2147483648", False, True),  # 1 is an int to Apache, and so must be what it meets
        ("5.0", False, True),
        ("+5", True, True),
        ("\u0665", True, False),
        (" 5 ", False, True),
        ("5d", False, True),
        ("0x1p9", False, True),
        ("NaN", False, True),  # larger than all numbers
    ],
)
def test_the_constant_decides_how_a_text_is_read(text: str, integer: bool, double: bool) -> None:
    assert passes("a > 1", a=text) is integer
    assert passes("a > 1.5", a=text) is double


def test_an_empty_property_is_none() -> None:
    assert passes("a IS NULL AND b IS NOT NULL", a="", b="x")


def test_properties_are_found_in_a_column_of_maps() -> None:
    maps = pa.array(
        [[("a", "1")], [("b", "1"), ("a", "2")], [("a", "2"), ("a", "1")], [], None],
        pa.map_(pa.string(), pa.string()),
    )
    assert SqlFilter("a = 1").passes(in_maps(maps), 5).to_pylist() == [
        *(True, False, True, False, False)
    ]


def test_a_constant_filter_answers_for_every_message() -> None:
    assert SqlFilter("1 = 1").passes(columns_of(), 3).to_pylist() == [True] * 3
    assert SqlFilter("1 = 2 OR NULL").passes(columns_of(), 2).to_pylist() == [False] * 2


def test_only_named_properties_are_asked_for_and_each_once() -> None:
    asked = []

    def column(name: str) -> pa.Array:
        asked.append(name)
        return pa.array(["1"], pa.string())

    SqlFilter("a = 1 AND (a = 2 OR b > a)").passes(column, 1)
    assert asked == ["a", "b"]


def test_a_filter_is_a_value_that_can_travel() -> None:
    found = SqlFilter("a = 1")
    assert pickle.loads(pickle.dumps(found)) == found
    assert {found, SqlFilter("a = 1")} == {found}
    assert found != SqlFilter("a = 2")
