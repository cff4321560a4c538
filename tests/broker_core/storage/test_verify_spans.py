"""Stretches of numbers: as a set of them, in fewer bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.storage.verify.spans import Spans

STRETCHES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


@given(STRETCHES, st.integers(0, 60), st.integers(0, 60))
def test_spans_are_a_set_of_numbers(stretches: list[tuple[int, int]], low: int, high: int) -> None:
    spans, numbers = Spans(), set[int]()
    for first, end in stretches:
        spans.add(first, end)
        numbers.update(range(first, end))
    parts = list(spans.parts(low, high))
    assert [n for first, end, _ in parts for n in range(first, end)] == list(range(low, high))
    found = {n for first, end, is_in in parts if is_in for n in range(first, end)}
    assert found == numbers & set(range(low, high))


@given(STRETCHES)
def test_stretches_that_touch_are_one(stretches: list[tuple[int, int]]) -> None:
    spans = Spans()
    for first, end in stretches:
        spans.add(first, end)
    kinds = [is_in for _, _, is_in in spans.parts(0, 100)]
    assert all(kind != following for kind, following in pairwise(kinds))
