"""Keys of rows: equal for a task that is run again, different for equal rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.connector.cluster.row_keys import (
    EqualValues,
    RowKeys,
    batch_token,
    contents_of,
    partitions_of,
)

BATCH = batch_token("query q topic t", 7)
CHUNKS = st.lists(st.lists(st.sampled_from([b"", b"a", b"b", b"\x00", b"\x00\x00"]), max_size=9))


def keys_of(chunks: list[list[bytes]], partition: int = 0, batch: bytes = BATCH) -> list[bytes]:
    made = RowKeys(batch, partition)
    return [key for chunk in chunks for key in made.of(pa.array(chunk, pa.binary())).tolist()]


@given(CHUNKS)
def test_keys_are_the_same_however_rows_are_ordered_and_cut(
    chunks: list[list[bytes]],
) -> None:
    rows = [row for chunk in chunks for row in chunk]
    keys = keys_of(chunks)
    assert len({*keys}) == len(rows)
    assert {*keys} == {*keys_of([rows[::-1]])}
    assert all(len(key) == 50 for key in keys)


@given(CHUNKS)
def test_partitions_and_batches_have_keys_of_their_own(chunks: list[list[bytes]]) -> None:
    here = keys_of(chunks)
    assert not {*here} & {*keys_of(chunks, partition=1)}
    assert not {*here} & {*keys_of(chunks, batch=batch_token("query q topic t", 8))}


def test_a_content_is_known_in_any_partition() -> None:
    (key,) = keys_of([[b"a"]], partition=3)
    (other,) = keys_of([[b"a"]], partition=0xABCDEF)
    keys = np.array([key, other])
    assert len({*contents_of(keys).tolist()}) == 1
    assert partitions_of(keys).tolist() == [3, 0xABCDEF]


@given(st.lists(st.lists(st.integers(-2, 2), max_size=20)))
def test_equal_values_are_counted_over_all_calls(chunks: list[list[int]]) -> None:
    counted, seen = EqualValues(), Counter[int]()
    for chunk in chunks:
        expected = []
        for value in chunk:
            expected.append(seen[value])
            seen[value] += 1
        assert counted.before(np.array(chunk, np.int64)).tolist() == expected
