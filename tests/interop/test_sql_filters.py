"""SQL filters and bloom bits: the same answers as Apache's own classes give, refusals included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from tests.broker_core.filters import expressions
from tests.broker_core.filters.plain_evaluator import answer as plain_answer
from tests.interop.sql_answers import ask_apache, question

from rocketpy.broker_core.errors import FilterSyntaxError
from rocketpy.broker_core.filters import BloomBits, SqlFilter
from rocketpy.broker_core.filters.bloom import map_size

MESSAGES: tuple[dict[str, str], ...] = (
    {},
    {"a": "1"},
    {"a": "x", "b": "x"},
    {"a": "5.5", "b": "6"},
    {"a": "3000000000", "b": "-1"},
    {"a": "true", "region": "eu"},
    {"a": "", "b": " 7 ", "region": "it's"},
    {"a": "NaN", "b": "Infinity"},
)
COUNT = 1_000  # of random filters
# Each is asked of all the messages above.
WRITTEN = (
    *("a = 1", "a <> 1", "a > 1", "a >= 1", "a < 1", "a <= 1", "1 = a", "1 < a", "1.5 < a"),
    *("a = b", "a <> b", "a > b", "a <= b", "'x' = a", "'x' <> a", "a = 'x'", "a <> 'x'"),
    *("a > 1.5", "a = 5.5", "a = 3000000000", "a > 3000000000", "a > 1L", "a = -1", "a > -1"),
    *(
        "- - 1 = a",
        "+a = 1",
        "a > -a",
        "-a IS NULL",
        "-(a = 1) IS NULL",
        "missing > -(a > 1)",
        "a = -2147483648",
    ),
    *("a IS NULL", "a IS NOT NULL", "NULL IS NULL", "(a = 1) IS NULL", "a = NULL", "NULL = a"),
    *("a BETWEEN 1 AND 5", "a NOT BETWEEN 1 AND 5", "a BETWEEN 5 AND 1", "a BETWEEN b AND 9"),
    *("a NOT BETWEEN 5 AND 1", "a BETWEEN -1 AND 1", "a BETWEEN 1 AND -1", "2 BETWEEN 1 AND 3"),
    *("a BETWEEN 1.5 AND 1", "a BETWEEN 'a' AND 'b'", "a BETWEEN NULL AND 1", "a IN ('x', '1')"),
    *("a NOT IN ('x', '1')", "a IN (1)", "a IN ()", "1 IN ('1')", "(a) IN ('x')", "+a IN ('x')"),
    *("a IN ('a','b','c','d','e','x')", "region = 'it''s'", "a CONTAINS 'x'", "a CONTAINS ''"),
    *("a NOT CONTAINS 'x'", "NOT (a CONTAINS 'x')", "a STARTSWITH '5'", "a NOT STARTSWITH '5'"),
    *("a ENDSWITH '5'", "a not endswith '5'", "a NOT ENDSWITH ''", "'abc' CONTAINS 'b'"),
    *("1 CONTAINS '1'", "1 NOT CONTAINS '2'", "a CONTAINS b", "a CONTAINS 1", "TRUE", "FALSE"),
    *("NULL", "NOT NULL", "NOT TRUE", "a", "NOT a", "NOT a = 1", "NOT (a = 1)", "NOT a IS NULL"),
    *("NOT a > 1", "NOT a IN ('x')", "a = TRUE", "a = FALSE", "TRUE = a", "FALSE = a", "1 = TRUE"),
    *("TRUE = 1", "TRUE = TRUE", "TRUE <> FALSE", "TRUE = -1", "a > TRUE", "TRUE > FALSE"),
    *("(a = 1) = TRUE", "(a = 1) = a", "a = (b = '6')", "(a = 1) = (b = '6')", "a = 1 = TRUE"),
    *("(a = 1) > 0", "a > 1 > 2", "a = b > 1", "a AND b", "a OR TRUE", "a AND 1", "TRUE OR 1"),
    *("NOT 1", "'x'", "1", "-1", "", "  ", "a = 1 AND b = 2 OR TRUE", "a = 1 OR b = 6 AND FALSE"),
    *("a > b OR TRUE", "TRUE OR a > b", "FALSE AND a > 1", "a > 1 AND FALSE", "a > 1 OR b > 1"),
    *("1 = 1", "1 > 2", "1 = 1.0", "1.0 = 1", "'1' = 1", "1 = '1'", "1 = 'x'", "1.5 = 'x'"),
    *("'a' = 'a'", "'a' > 'b'", "9007199254740993 = 9007199254740992.0", "2147483648 = '5'"),
    *(
        "a = 0.0",
        "a = 0",
        "a = 07",
        "a = 0x1F",
        "a = 0L",
        "a = 1e400",
        "a = 1e-400",
        "a = 4.9e-324",
    ),
    *("a = 9223372036854775807", "a = 9223372036854775808", "a = -9223372036854775808", "a=5."),
    *("a=.5", "a > 1e1", "a = .", "a = 1 garbage", "a = 1 ADN b = 2", "a = 1 #", "a = 1 x #"),
    *("a = 1 NOT x", "a NOT x", "a IS x", "a IS NOT x", "a LIKE 'x%'", "a + 1 > 2", "a-b = 1"),
    *("a == 1", "a != 1", "a = 1 AND", "a =", "= 1", "(a = 1", "a = 1)", "a = 'x", "a = 'x''"),
    *('a = "x"', "é = 1", "a.b = 1", "$x_1 = '1'", "_a IS NULL", "a < > 1", "a > = 1", "now > 1"),
    *("a = 1 -- end", "a = 1 -- end\nAND b = 6", "a = 1 /* */ AND b = '6'", "a = 1 /* open"),
    *("a = 1 --x\rAND b = 1", "a /***/ = /* ' */ 1", "a BETWEEN 1 OR 2", "a IN ('x' 'y')"),
    *("A = 1", "a iS nOt NuLl", "NOTa = 1", "TRUEa IS NULL", "a IN ('x'", "a\t=\f1\r\n", "a = 1;"),
    *("((((a = 1))))", "(a) = (1)", "(((a)))", "(NULL) = a", "a = (NULL)", "NOT NOT a IS NULL"),
    *("a = b = a", "a <> 1 <> TRUE", "a IS NULL IS NULL", "a CONTAINS 'x' CONTAINS 'y'"),
)


def our_answers(sql: str, messages: Sequence[dict[str, str]]) -> list[Any] | None:
    """Return true, false, None or "error" for each message; None if we refuse the filter."""
    try:
        found = SqlFilter(sql)
    except FilterSyntaxError:
        return None
    values, failed = found.outcome(
        lambda name: pa.array([each.get(name) for each in messages], pa.string())
    )
    return [
        "error" if is_failed else value
        for value, is_failed in zip(
            _spread(values, len(messages)), _spread(failed, len(messages)), strict=True
        )
    ]


def _spread(datum: Any, rows: int) -> list[Any]:
    return [datum.as_py()] * rows if isinstance(datum, pa.Scalar) else datum.to_pylist()


def differences(
    cases: Sequence[tuple[str, Sequence[dict[str, str]]]], home: Path
) -> list[tuple[Any, ...]]:
    apache = ask_apache([question(*case) for case in cases], home)
    found: list[tuple[Any, ...]] = []
    for (sql, messages), theirs in zip(cases, apache, strict=True):
        ours = our_answers(sql, messages)
        if ours != theirs.get("answers"):
            found.append((sql, messages, ours, theirs))
        elif ours is not None and ours != [plain_answer(sql, each) for each in messages]:
            found.append((sql, messages, ours, "the plain evaluator differs"))
    return found[:3]  # enough to see, and quick to print


def test_written_filters_are_answered_as_by_apache(tmp_path: Path) -> None:
    assert len(WRITTEN) * len(MESSAGES) >= 300
    assert differences([(sql, MESSAGES) for sql in WRITTEN], tmp_path) == []


def test_random_filters_are_answered_as_by_apache(tmp_path: Path) -> None:
    random = Random(92)
    cases = [
        (expressions.condition(random), [expressions.message(random) for _ in range(8)])
        for _ in range(COUNT)
    ]
    assert differences(cases, tmp_path) == []


def test_broken_filters_are_refused_by_both_or_by_none(tmp_path: Path) -> None:
    random = Random(29)
    cases = [
        (expressions.broken(random), [expressions.message(random) for _ in range(2)])
        for _ in range(COUNT)
    ]
    assert differences(cases, tmp_path) == []


def test_bloom_bits_are_those_of_apache(tmp_path: Path) -> None:
    names = [("g", "t"), ("billing", "orders"), ("grüppe", "标题"), ("x" * 120, "y" * 127)]
    settings = [(20, 32), (10, 128), (1, 5), (50, 7)]
    cases = [(group, topic, *each) for group, topic in names for each in settings]
    ours = []
    for group, topic, error_percent, groups in cases:
        map_bits, count = map_size(error_percent, groups)
        bits = BloomBits.of_group(group, topic, map_bits=map_bits, count=count)
        ours.append({"bitNum": bits.map_bits, "bitPos": [*bits.positions]})
    questions = [
        {"bloom": f"{group}#{topic}", "errorRate": error_percent, "groups": groups}
        for group, topic, error_percent, groups in cases
    ]
    assert ours == ask_apache(questions, tmp_path)
