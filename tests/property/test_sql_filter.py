"""SQL filters over columns give what a plain evaluator gives message by message."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.broker_core.filters import expressions
from tests.broker_core.filters.plain_evaluator import answer

from rocketpy.broker_core.errors import FilterSyntaxError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.numbers import doubles, integers

# Digits, signs and what else makes a text nearly a number, besides any text at all.
nearly_numbers = st.text(st.sampled_from("0123456789+-.eEfdxpNaInfity \u0663\uff11"), max_size=12)
texts = st.one_of(nearly_numbers, st.integers().map(str), st.floats().map(str), st.text(max_size=5))


@given(st.randoms(use_true_random=False), st.lists(st.dictionaries(st.sampled_from("ab"), texts)))
def test_columns_answer_as_single_messages(random: Random, drawn: list[dict[str, str]]) -> None:
    sql = expressions.condition(random)
    messages = [*drawn, *(expressions.message(random) for _ in range(4))]
    try:
        found = SqlFilter(sql)
    except FilterSyntaxError:
        return

    def column(name: str) -> pa.Array:
        return pa.array([each.get(name) for each in messages], pa.string())

    expected = [answer(sql, each) is True for each in messages]
    assert found.passes(column, len(messages)).to_pylist() == expected


@given(st.lists(st.one_of(st.none(), texts)))
def test_numbers_of_a_column_are_those_of_its_texts_alone(column: list[str | None]) -> None:
    def alone(read: Any) -> list[str]:
        return [repr(read(pa.array([text], pa.string()))[0].as_py()) for text in column]

    def together(read: Any) -> list[str]:
        return [repr(value) for value in read(pa.array(column, pa.string())).to_pylist()]

    for read in (lambda texts: integers(texts, 32), lambda texts: integers(texts, 64), doubles):
        assert together(read) == alone(read)


@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_is_refused_with_a_place_in_it(text: str) -> None:
    refusal = None
    try:
        SqlFilter.of(text)
    except FilterSyntaxError as error:
        refusal = error
    assert refusal is None or (0 <= refusal.at <= len(text) and str(refusal).endswith("^"))
