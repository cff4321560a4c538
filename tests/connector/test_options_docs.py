"""docs/options.md says what the code says: options, and the columns of each view."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from rocketpy.broker_core.codec.columns import DEFAULT_COLUMNS
from rocketpy.connector.option_tables import READ_OPTIONS, WRITE_OPTIONS
from rocketpy.connector.options import Option
from rocketpy.connector.schema import VIEW_COLUMNS, spark_schema
from rocketpy.connector.write_columns import COLUMNS

TEXT = (Path(__file__).parents[2] / "docs" / "options.md").read_text("utf-8")


def table(title: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its two head lines."""
    _, found, rest = TEXT.partition(f"\n## {title}\n")
    assert found, title
    section = rest.split("\n## ")[0]
    rows = [line.strip("| ") for line in section.splitlines() if line.startswith("|")]
    cells = [re.split(r"\s*(?<!\\)\|\s*", row) for row in rows[2:]]
    return [[cell.replace("\\|", "|").strip() for cell in row] for row in cells]


def documented(options: Iterable[Option]) -> list[list[str]]:
    return [[f"`{each.name}`", each.values, each.default, each.meaning] for each in options]


def test_the_options_of_reading_are_documented() -> None:
    assert table("Reading") == documented(READ_OPTIONS)


def test_the_options_of_writing_are_documented() -> None:
    assert table("Writing") == documented(WRITE_OPTIONS)


def test_the_columns_of_writing_are_documented() -> None:
    found = [(row[0].strip("`"), row[1]) for row in table("Columns to write")]
    assert found == [(name, types) for name, (types, _) in COLUMNS.items()]


@pytest.mark.parametrize("view", VIEW_COLUMNS)
def test_the_columns_of_each_view_are_documented(view: str) -> None:
    expected = [
        (f"`{field.name}`", field.dataType.simpleString()) for field in spark_schema(view, "*")
    ]
    assert [(row[0], row[1]) for row in table(f"View `{view}`")] == expected


def test_the_default_columns_are_the_first_ten() -> None:
    first = [row[0].strip("`") for row in table("View `messages`")[:10]]
    assert tuple(first) == DEFAULT_COLUMNS
