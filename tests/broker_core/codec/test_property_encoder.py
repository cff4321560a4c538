from __future__ import annotations

import pyarrow as pa
import pytest

from rocketpy.broker_core.codec.property_encoder import join_property_columns
from rocketpy.broker_core.errors import ColumnError
from rocketpy.broker_core.message import join_properties

SAME = [{"a": "1", "bc": "2"}, {"a": "", "bc": "44"}, {"a": "555", "bc": "6"}]


def _joined(rows: list[dict[str, str]], **named: pa.Array) -> list[bytes]:
    properties = pa.array([list(row.items()) for row in rows], pa.map_(pa.string(), pa.string()))
    strings: list[bytes] = join_property_columns(named, properties, len(rows)).to_pylist()
    return strings


@pytest.mark.parametrize(
    "rows",
    [
        SAME,
        SAME[:1],
        [{}, *SAME],
        [*SAME, {"bc": "1", "a": "2"}],
        [*SAME, {"ab": "1", "c": "2"}],
        [*SAME, {"a": "1"}],
        [{}, {}],
        [],
    ],
    ids=[
        "same names", "one row", "an empty row", "another order", "names of the same bytes",
        "fewer names", "empty rows", "no rows",
    ],
)  # fmt: skip
def test_rows_of_same_and_of_other_names_are_joined_alike(rows: list[dict[str, str]]) -> None:
    assert _joined(rows) == [join_properties(row) for row in rows]


def test_named_columns_stand_before_the_map() -> None:
    tags = pa.array(["x", "y", "z"])
    expected = [join_properties({"TAGS": t, **row}) for t, row in zip("xyz", SAME, strict=True)]
    assert _joined(SAME, TAGS=tags) == expected


@pytest.mark.parametrize("name", ["__CRC32#", "", "a\x01", "a\x02"])
def test_a_name_that_every_row_has_is_refused_as_any_other(name: str) -> None:
    with pytest.raises(ColumnError):
        _joined([{"a": "1", name: "2"}] * 3)
