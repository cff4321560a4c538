"""A callable as a filter: what it gets, and what it may answer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rocketpy.broker_core.filters import ClassFilter, ClassFilterError

BATCH = pa.RecordBatch.from_pydict({"body": [b"a", b"b", b"c"], "tags": ["x", None, "x"]})


def test_rows_pass_where_the_answer_is_true() -> None:
    tagged = ClassFilter(lambda batch: pc.equal(batch.column("tags"), "x"), ("tags",))
    assert tagged.passing(BATCH).column("body").to_pylist() == [b"a", b"c"]


def test_it_gets_the_columns_that_it_asked_for() -> None:
    seen = []

    def look(batch: pa.RecordBatch) -> pa.BooleanArray:
        seen.append(batch.schema.names)
        return pa.repeat(pa.scalar(True), batch.num_rows)

    ClassFilter(look, ("tags",)).passing(BATCH)
    assert seen == [["tags"]]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (True, "returned bool;"),
        (None, "returned NoneType;"),
        ([True, False, True], "returned list;"),
        (pa.array([1, 0, 1]), "returned int64;"),
        (pa.array([True]), "returned 1 values for 3 rows"),
    ],
)
def test_an_answer_of_another_kind_is_refused(answer: Any, words: str) -> None:
    def odd(_: pa.RecordBatch) -> Any:
        return answer

    with pytest.raises(ClassFilterError, match=f"where=.*odd: {words}"):
        ClassFilter(odd, ("body",)).passing(BATCH)
