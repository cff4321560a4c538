"""docs/backfill.md names every setting, and the options of the command line that set them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from rocketpy.spark_jobs import cli
from rocketpy.spark_jobs.backfill.bodies import FORMATS
from rocketpy.spark_jobs.backfill.selection import BackfillSelection
from rocketpy.spark_jobs.backfill.settings import BackfillSettings
from rocketpy.spark_jobs.restore import RestoreSettings

TEXT = (Path(__file__).parents[2] / "docs" / "backfill.md").read_text("utf-8")


def table(title: str, number: int = 0) -> list[list[str]]:
    section = TEXT.partition(f"\n## {title}\n")[2].split("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    rows = tables[number].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def names(rows: list[list[str]]) -> list[str]:
    return [row[0].strip("`") for row in rows]


def test_every_setting_is_documented() -> None:
    assert names(table("Which messages")) == [each.name for each in fields(BackfillSelection)]
    others = [each.name for each in fields(BackfillSettings) if each.name != "selection"]
    assert names(table("How it is done")) == others
    assert names(table("How it is done", 1)) == list(FORMATS)
    restored = [each.name for each in fields(RestoreSettings)]
    assert names(table("Back into topics")) == restored


@pytest.mark.parametrize(
    ("command", "titles"),
    [("backfill", ("Which messages", "How it is done")), ("restore", ("Back into topics",))],
)
def test_the_options_are_those_of_the_command(command: str, titles: tuple[str, ...]) -> None:
    found = next(
        each.callback
        for each in cli.job_app.registered_commands
        if each.callback is not None and each.callback.__name__ == command
    )
    parameters = {name.replace("_", "-") for name in found.__annotations__}
    told = {
        option.strip("` -")
        for title in titles
        for row in table(title)
        for option in row[1].split(",")
        if option
    }
    assert told <= parameters
    common = {"path", "table", "catalog", "dry-run", "as-json", "cores", "return"}
    assert parameters - told - common <= {"job-name", "version"}
