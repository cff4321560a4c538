"""The columns by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rocketpy.broker_core.codec.columns import ALL_COLUMNS, DEFAULT_COLUMNS, select
from rocketpy.broker_core.errors import ColumnError


def test_there_are_ten_default_columns() -> None:
    assert DEFAULT_COLUMNS == (
        "topic", "broker", "queue_id", "queue_offset", "tags", "keys", "body", "properties",
        "born_timestamp", "store_timestamp",
    )  # fmt: skip
    assert tuple(select(None).names) == DEFAULT_COLUMNS


def test_a_star_is_all_of_them() -> None:
    assert select("*") is ALL_COLUMNS
    assert len(ALL_COLUMNS) == 21


def test_names_may_stand_in_a_string_with_commas() -> None:
    assert select("body,tags").names == ["body", "tags"]


def test_blanks_around_the_names_of_a_string_do_not_matter() -> None:
    assert select("body, tags").names == ["body", "tags"]


def test_a_single_name_is_a_column() -> None:
    assert select("body") == pa.schema([pa.field("body", pa.binary())])


@pytest.mark.parametrize(("name", "near"), [("tag", "tags"), ("queue", "queue_id"), ("id", "id")])
def test_an_unknown_name_is_refused(name: str, near: str) -> None:
    with pytest.raises(ColumnError, match=f"no such column; .*{near}"):
        select([name])
