"""docs/filters.md says what the code does: each oddity, what is refused, how a mistake looks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.broker_core.filters.test_sql import passes

from rocketpy.broker_core.errors import FilterSyntaxError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.parser import DEEPEST
from rocketpy.broker_core.filters.tokens import WORDS

TEXT = (Path(__file__).parents[3] / "docs" / "filters.md").read_text("utf-8")


def rows(title: str) -> list[list[str]]:
    section = TEXT.partition(f"# {title}\n")[2].split("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


ODDITIES = rows("Oddities, all of them Apache's")


@pytest.mark.parametrize(("sql", "properties", "expected", "why"), ODDITIES)
def test_an_oddity_is_one(sql: str, properties: str, expected: str, why: str) -> None:  # noqa: ARG001
    message = dict(each.split("=") for each in properties.split(", "))
    assert passes(sql, **message) is (expected == "yes")


def test_all_oddities_are_found() -> None:
    assert len(ODDITIES) > 15


def test_what_is_said_to_be_refused_is_refused() -> None:
    line = next(line for line in TEXT.splitlines() if line.startswith("`a = 0.0` is refused"))
    refused, taken, *others = re.findall("`([^`]+)`", line)
    SqlFilter(taken)
    for sql in (refused, *others):
        with pytest.raises(FilterSyntaxError):
            SqlFilter(sql)


def test_the_mistake_is_told_as_it_is_shown() -> None:
    shown = TEXT.partition("Option 'sql' of format 'rocketpy': ")[2].partition("\n```")[0]
    with pytest.raises(FilterSyntaxError) as refusal:
        SqlFilter(shown.splitlines()[1].strip())
    assert str(refusal.value) == shown


def test_every_reserved_word_is_mentioned() -> None:
    table = " ".join(cell for row in rows("SQL92") for cell in row)
    assert {word for word in WORDS if word not in table} == set()
    assert f"more than {DEEPEST} levels deep" in TEXT
