"""Pictures of analytics: titles, units, colours; and the report on a terminal."""

from __future__ import annotations

import builtins
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import matplotlib
import pyarrow as pa
import pytest
from matplotlib import pyplot
from pyspark.sql import SparkSession
from tests.spark_jobs.shop import ORDERS, fail, shop
from typer.testing import CliRunner

from rocketpy.broker_core.cli import app
from rocketpy.connector import session
from rocketpy.spark_jobs import (
    analytics,
    cli,  # noqa: F401  # adds its commands
)
from rocketpy.spark_jobs.analytics import drawing, plots
from rocketpy.spark_jobs.commands import report
from rocketpy.spark_jobs.commands.report import SECTIONS

matplotlib.use("Agg")

START = datetime(2026, 1, 31, 8, tzinfo=timezone.utc)


def window(number: int, **values: Any) -> dict[str, Any]:
    start = START + timedelta(minutes=number)
    return {"start": start, "end": start + timedelta(minutes=1), **values}


def hot(name: str) -> list[dict[str, Any]]:
    return [
        {"topic": "a", name: "x", "share": 0.6, "cumulative_share": 0.6},
        {"topic": "b", name: None, "share": 0.4, "cumulative_share": 1.0},
    ]


CAUSES: list[dict[str, Any]] = [
    {"consumer_group": "g", "cause": "[boom]", "messages": 3},
    {"consumer_group": "h", "cause": None, "messages": 1},
]
ROWS: dict[str, list[dict[str, Any]]] = {
    "throughput": [
        window(number, topic=topic, messages=number, messages_per_s=number / 60)
        for number in (1, 2, 9)
        for topic in ("a", "b")
    ],
    "size_histogram": [{"topic": "a", "from_bytes": 256, "messages": 5}],
    "message_sizes": [{"topic": "a", "p50": 200, "p95": 400, "p99": 900, "max": 5000}],
    "hot_tags": hot("tag"),
    "hot_keys": hot("key"),
    "key_skew": [
        {"broker": "a", "queue_id": 0, "messages": 5, "hottest_messages": 4},
        {"broker": "b", "queue_id": 0, "messages": 0, "hottest_messages": 0},
    ],
    "lag": [
        {"consumer_group": "g", "topic": "a", "messages": 5, "age_seconds": 90.0},
        {"consumer_group": "h", "topic": "gone", "messages": None, "age_seconds": None},
    ],
    "backlog": [window(1, backlog=4), window(2, backlog=6)],
    "lag_over_time": [window(1, topic="a", messages=4), window(5, topic="a", messages=0)],
    "retries": CAUSES,
    "dead_letters": CAUSES,
    "delay_accuracy": [
        {"kind": "level", "level": 3, "messages": 9, "p50_ms": 5, "p99_ms": 900, "max_ms": 1000},
        {"kind": "time", "level": None, "messages": 1, "p50_ms": 5, "p99_ms": 5, "max_ms": 5},
    ],
    "producers": [
        {"topic": f"topic-{number}", "host": "10.0.0.1", "messages": number + 1}
        for number in range(9)  # more than there are colours
    ],
}


def table(name: str) -> pa.Table:
    return pa.Table.from_pylist(ROWS[name])


@pytest.mark.parametrize("name", ROWS)
def test_each_picture_has_a_title_and_units_and_nothing_is_cut_off(name: str) -> None:
    ax = getattr(plots, name)(table(name))
    figure = ax.figure
    figure.canvas.draw()
    assert ax.get_title(loc="left")
    assert any(word in ax.get_xlabel() + ax.get_ylabel() for word in ("messages", "second", "size"))
    drawn, whole = ax.get_tightbbox(figure.canvas.get_renderer()), figure.bbox
    assert -1 <= drawn.x0 < drawn.x1 <= whole.width + 1
    assert -1 <= drawn.y0 < drawn.y1 <= whole.height + 1
    pyplot.close(figure)


def test_every_answer_with_a_picture_is_known() -> None:
    assert ROWS.keys() <= analytics.READS.keys()
    drawn = {name for name in vars(plots) if name in analytics.READS}
    assert drawn == ROWS.keys()


def test_a_window_without_messages_is_drawn_as_zero() -> None:
    ax = plots.throughput(table("throughput"))
    first: Any = ax.lines[0]
    values = dict(zip(first.get_xdata(), first.get_ydata(), strict=True))
    gaps = {START + timedelta(minutes=minute) for minute in (3, 8)}
    assert {at for at, value in values.items() if value == 0} == gaps
    pyplot.close("all")


def test_no_rows_make_no_picture() -> None:
    with pytest.raises(drawing.PlotError, match=r"nothing to draw: lag\(\) found no rows"):
        plots.lag(table("lag").slice(0, 0))


def test_without_matplotlib_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(drawing.PlotError, match=r"pip install 'rocketpy-spark\[plot\]'"):
        plots.lag(table("lag"))


def test_the_report_shows_tables_and_gives_json(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    with shop(path) as (store, clock):
        fail(store, clock)
    monkeypatch.setattr(session, "local_spark", lambda: spark)
    monkeypatch.setenv("COLUMNS", "80")
    # All answers have tests of their own: some are enough here.
    few = [each for each in SECTIONS if each.name in ("message_sizes", "dead_letters", "lag")]
    monkeypatch.setattr(report, "SECTIONS", few)
    shown = CliRunner().invoke(app, ["report", str(path), "--top", "3"])
    assert shown.exit_code == 0, shown.output
    assert "Sizes in bytes, by topic" in shown.output
    assert "no price at all" in shown.output
    assert "Behind, by group: none" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80
    few = [each for each in SECTIONS if each.name in ("message_sizes", "throughput", "retries")]
    monkeypatch.setattr(report, "SECTIONS", few)
    (log,) = (path / "commitlog").iterdir()
    with log.open("r+b") as file:
        file.write(bytes(200))  # the first order is gone
    told = CliRunner().invoke(app, ["report", str(path), "--json", "--every", "1 day"])
    assert told.exit_code == 1, told.output
    found = json.loads(told.stdout)
    assert found["message_sizes"][0]["messages"] == ORDERS
    assert found["retries"][0]["oldest"].endswith("Z")
    assert "is corrupt at offset 0" in found["errors"].pop("throughput")
    assert found["errors"] == {}


@pytest.mark.parametrize(
    ("arguments", "words"), [([], "is not a store"), (["--every", "often"], "'every' is 'often'")]
)
def test_a_report_that_cannot_be_is_refused_before_spark_starts(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    if arguments:
        (tmp_path / "commitlog").mkdir()
    ended = CliRunner().invoke(app, ["report", str(tmp_path), *arguments])
    assert ended.exit_code == 2
    assert words in ended.output
