"""A Delta table back into topics: each row once, in order, as it was."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.spark_jobs import cli
from rocketpy.spark_jobs.backfill import JobRefusedError, backfill, body_format
from rocketpy.spark_jobs.restore import restore
from rocketpy.spark_jobs.restore_settings import settings_of

ROWS = 300


@pytest.fixture
def table(spark: SparkSession, store: rocketpy.Store, tmp_path: Path) -> Path:
    """A table of two topics, by a backfill."""
    for topic, queues in (("orders", 3), ("parcels", 1)):
        store.create_topic(topic, queues)
    for first in range(0, ROWS, 100):
        numbers = range(first, first + 100)
        messages = pa.table(
            {
                "body": [f"{number}" for number in numbers],
                "tags": [["paid", None][number % 2] for number in numbers],
                "keys": [f"k{number}" for number in numbers],
                "properties": pa.array(
                    [[("region", "eu"), ("n", f"{number}")] for number in numbers],
                    pa.map_(pa.string(), pa.string()),
                ),
                "queue_id": pa.array([number % 3 for number in numbers], pa.int32()),
            }
        )
        store.append("orders", messages)
        store.append("parcels", pa.table({"body": [f"p{first}"]}))
    backfill(spark, store.path, tmp_path / "table", columns=(*COLUMNS, "flag"))
    return tmp_path / "table"


COLUMNS = (
    "topic", "queue_id", "queue_offset", "tags", "keys", "body", "properties", "commit_log_offset",
)  # fmt: skip


def messages(path: Path, topic: str) -> list[dict[str, Any]]:
    """All of a topic but for where and when it was stored."""
    with rocketpy.open(path, read_only=True) as store:
        columns = "queue_id,queue_offset,tags,keys,body,properties"
        rows = store.read(topic, columns=columns).read_all().to_pylist()
    for row in rows:
        row["properties"] = {k: v for k, v in row["properties"] if k != "__CRC32#"}
    return sorted(rows, key=lambda row: (row["queue_id"], row["queue_offset"]))


def test_a_store_that_went_through_a_table_is_the_same(
    spark: SparkSession, store: rocketpy.Store, table: Path, tmp_path: Path
) -> None:
    told = restore(spark, table, tmp_path / "new", dry_run=True)
    assert (told.topics, told.is_dry) == ({"orders": ROWS, "parcels": 3}, True)
    assert not (tmp_path / "new").exists()
    report = restore(spark, table, tmp_path / "new", batch_rows=120)
    assert (report.rows, report.topics) == (ROWS + 3, told.topics)
    assert report.batches > 1
    for topic in ("orders", "parcels"):
        assert messages(tmp_path / "new", topic) == messages(store.path, topic)
    # The same again: nothing; after more came into the table, that.
    assert restore(spark, table, tmp_path / "new").rows == 0
    store.send("orders", "late", queue_id=1)
    backfill(spark, store.path, table, columns=(*COLUMNS, "flag"))
    assert restore(spark, table, tmp_path / "new").rows == 1
    assert messages(tmp_path / "new", "orders") == messages(store.path, "orders")


def test_a_run_that_fails_anywhere_is_gone_on_with(
    spark: SparkSession, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fault(Exception):
        pass

    from pyspark.sql import DataFrameWriter

    save, steps = DataFrameWriter.save, 0

    def failing(self: Any, *arguments: Any, **named: Any) -> None:
        nonlocal steps
        steps += 1
        if steps % 2 == 0:  # once before, once after each commit
            save(self, *arguments, **named)
        raise Fault

    monkeypatch.setattr(DataFrameWriter, "save", failing)
    for _ in range(20):
        try:
            restore(
                spark, table, tmp_path / "new", to_topic="again", where="topic = 'orders'",
                batch_rows=120,
            )  # fmt: skip
            break
        except Fault:
            continue
    assert steps > 3
    rows = messages(tmp_path / "new", "again")
    assert sorted(int(row["body"]) for row in rows) == list(range(ROWS))
    for queue in range(3):
        numbers = [int(row["body"]) for row in rows if row["queue_id"] == queue]
        assert numbers == sorted(numbers)
        assert {number % 3 for number in numbers} == {queue}


@pytest.mark.further
def test_fewer_queues_and_a_rate_keep_the_order(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    with rocketpy.open(tmp_path / "new") as new:
        new.create_topic("few", 2)
    pauses: list[int] = []
    began = time.monotonic()
    restore(
        spark, table, tmp_path / "new", to_topic="few", where="topic = 'orders'", rate=40,
        progress=lambda done, _: pauses.append(done),
    )  # fmt: skip
    assert time.monotonic() - began > (pauses[-2]) / 40  # what is limited takes its time
    assert len(pauses) == 3
    rows = messages(tmp_path / "new", "few")
    assert len(rows) == ROWS
    for old in range(3):
        mine = [int(row["body"]) for row in rows if int(row["body"]) % 3 == old]
        assert mine == sorted(mine)


@pytest.mark.further
def test_what_cannot_be_restored_is_refused(
    spark: SparkSession, store: rocketpy.Store, table: Path, tmp_path: Path
) -> None:
    def refused(words: str, where: Path = table, **asked: Any) -> None:
        with pytest.raises(JobRefusedError, match=words):
            restore(spark, where, tmp_path / "new", **asked)

    refused("there is no such table", tmp_path / "nothing")
    refused("order_by: 'tags' has no whole numbers", order_by="tags")
    refused("has no column 'number'", order_by="number")
    with pytest.raises(JobRefusedError, match="where: 'colour = 1'"):
        restore(spark, table, tmp_path / "new", where="colour = 1")
    store.create_topic("typed", 1)
    store.send("typed", '{"id": 1}')
    typed = tmp_path / "typed"
    backfill(spark, store.path, typed, topics="typed", body=body_format("json", "id INT"))
    refused("1 rows have no body: it was typed without keep_body", typed)
    assert not (tmp_path / "new").exists()


@pytest.mark.further
@pytest.mark.usefixtures("spark")
def test_the_command_line_restores(table: Path, tmp_path: Path) -> None:
    assert cli.job_app is not None

    def run(*more: str) -> str:
        ended = CliRunner().invoke(
            app, ["job", "restore", str(tmp_path / "new"), str(table), *more]
        )
        assert ended.exit_code == 0, ended.output
        return str(ended.output)

    assert "303 rows in 1 batch of version" in run("--dry-run")
    assert json.loads(run("--where", "topic = 'parcels'", "--json"))["topics"] == {"parcels": 3}


def test_a_setting_that_is_none_names_the_nearest() -> None:
    with pytest.raises(JobRefusedError, match="there is no such setting; did you mean 'to_topic'"):
        settings_of({"to_topik": "orders"})  # type: ignore[typeddict-unknown-key]
