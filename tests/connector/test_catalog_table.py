"""Options of tables: taken out of what the catalog says, carried by the columns, given back."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from rocketpy.connector.catalog_table import options_of_new_table, options_of_read, with_options
from rocketpy.connector.options import OptionError

COLUMNS = StructType([StructField("topic", StringType(), False), StructField("body", BinaryType())])
OF_CATALOG = {"provider": "rocketpy", "owner": "ann", "location": "file:/a", "comment": "orders"}


def test_of_all_that_the_catalog_says_the_options_are_taken() -> None:
    said = {**OF_CATALOG, "path": "file:/a%20b/store", "topic": "orders", "option.topic": "orders"}
    assert options_of_new_table(said) == {"path": "/a b/store", "topic": "orders"}


def test_a_relative_path_is_that_of_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert options_of_new_table({**OF_CATALOG, "path": "s"}) == {"path": str(tmp_path / "s")}


def test_options_of_a_read_are_not_those_of_a_table() -> None:
    assert options_of_new_table({"path": "a", "topic": "orders"}) is None


def test_what_the_columns_carry_comes_back_under_the_options_of_the_query() -> None:
    carried = with_options(COLUMNS, {"path": "/store", "topic": "orders", "tags": "new"})
    assert [field.name for field in carried] == ["topic", "body"]
    found = options_of_read({"Tags": "paid"}, carried)
    assert found == {"path": "/store", "topic": "orders", "tags": "paid"}


def test_a_read_with_a_path_of_its_own_takes_nothing_from_the_columns() -> None:
    carried = with_options(COLUMNS, {"path": "/store", "topic": "orders"})
    assert options_of_read({"path": "/other", "topic": "a"}, carried) == {
        "path": "/other",
        "topic": "a",
    }


def test_columns_that_carry_nothing_are_of_a_table_with_a_list() -> None:
    with pytest.raises(OptionError, match="make it without the list"):
        options_of_read({}, COLUMNS)
