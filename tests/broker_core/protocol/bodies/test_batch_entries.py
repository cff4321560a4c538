"""Batches from columns: byte for byte those that are joined message by message."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.protocol.bodies.batch_entries import BatchEntries, join_columns
from rocketpy.broker_core.protocol.bodies.batches import join_batch
from rocketpy.broker_core.protocol.errors import BodyError

MESSAGES = st.lists(
    st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), st.binary(max_size=40), st.binary(max_size=9))
)


def columns(messages: list[tuple[int, bytes, bytes]]) -> pa.Array:
    flags, bodies, properties = zip(*messages, strict=True) if messages else ((), (), ())
    halves = [[each[:3] for each in properties], [each[3:] for each in properties]]
    return join_columns(
        np.array(flags, np.int32),
        pa.array(bodies, pa.binary()),
        [pa.array(half, pa.binary()) for half in halves],
    )


@given(MESSAGES)
def test_columns_give_the_bytes_of_the_loop(messages: list[tuple[int, bytes, bytes]]) -> None:
    entries = BatchEntries.of_column(columns(messages))
    assert entries.body(0, len(entries)) == join_batch(messages)


@given(MESSAGES, st.integers(1, 200), st.integers(0, 5))
def test_any_run_is_a_batch_and_fits(
    messages: list[tuple[int, bytes, bytes]], most_bytes: int, first: int
) -> None:
    entries = BatchEntries.of_column(columns(messages))
    first = min(first, len(messages))
    at = first
    for begin, end in entries.cut(first, len(messages), most_bytes):
        assert begin == at
        body = entries.body(begin, end)
        assert body == join_batch(messages[begin:end])
        assert end == begin + 1 or len(body) <= most_bytes
        at = end
    assert at == len(messages)


def test_a_slice_of_a_column_is_read_where_it_begins() -> None:
    messages = [(0, b"a", b""), (1, b"bc", b"k\x01v\x02"), (2, b"", b"")]
    entries = BatchEntries.of_column(columns(messages).slice(1, 1))
    assert entries.body(0, 1) == join_batch(messages[1:2])


def test_properties_that_do_not_fit_are_refused_with_their_row() -> None:
    with pytest.raises(BodyError, match=r"40000 bytes in row 1; 32767 fit"):
        columns([(0, b"", b""), (0, b"", b"x" * 40_000)])
