"""docs/retry.md says what the code says: levels, properties, options, columns."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import pytest

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.metadata import GroupConfig
from rocketpy.broker_core.property_names import (
    CAUSE,
    ORIGIN_MESSAGE_ID,
    REPLAY_RUN,
    REPLAYED_FROM,
    RETRY_TOPIC,
)
from rocketpy.broker_core.retry.rules import CAUSE_LIMIT, RetryRule

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "retry.md").read_text("utf-8")

needs_spark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None, reason="make unit installs no Spark"
)


def table(head: str) -> list[list[str]]:
    """Return the cells of the table whose first column is called so."""
    lines = TEXT.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {head} |")) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        cells = line.strip("|").replace("\\|", "\0").split("|")
        rows.append([cell.strip().replace("\0", "|") for cell in cells])
    return rows


def test_the_guarantee_is_one_sentence_at_the_top() -> None:
    guarantee = TEXT.split("**")[1]
    assert guarantee.count(".") == 1
    assert TEXT.index("**") < 100


def test_levels_and_delays_are_those_of_the_rule() -> None:
    config = StoreConfig()
    rule = RetryRule(group=GroupConfig("g"), config=config)
    words = config.delay_levels.split()
    for tries, level, delay in table("tries so far"):
        assert rule.level(int(tries)) == int(level)
        assert words[int(level) - 1] == delay
    assert f"{GroupConfig('g').retry_max_times} if nobody says otherwise" in TEXT
    assert f"up to {CAUSE_LIMIT:,} characters" in TEXT


def test_properties_are_those_that_messages_get() -> None:
    named = RETRY_TOPIC, ORIGIN_MESSAGE_ID, CAUSE, REPLAYED_FROM, REPLAY_RUN
    assert [row[0] for row in table("property")] == [f"`{name}`" for name in named]


@needs_spark
def test_options_are_those_of_the_command() -> None:
    from rocketpy.spark_jobs.commands.replay import replay

    parameters = inspect.get_annotations(replay, eval_str=True)
    options = {
        f"`--{name.removeprefix('as_').replace('_', '-')}`": hint.__metadata__[0].help
        for name, hint in parameters.items()
        if hasattr(hint, "__metadata__") and name not in ("path", "group")
    }
    assert dict(table("option")) == options


@needs_spark
def test_columns_are_those_of_the_audit_trail() -> None:
    from rocketpy.spark_jobs.replay_audit import COLUMNS
    from rocketpy.spark_jobs.replay_run import CHUNK_ROWS

    assert table("column") == [[f"`{name}`", meaning] for name, _, meaning in COLUMNS]
    assert f"up to {CHUNK_ROWS:,} messages" in TEXT
