"""Backfill, replay and report on a cluster of Apache's, started once for all of them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.connector.cluster.conftest import require_apache
from tests.connector.cluster.places import ClusterPlace
from tests.connector.cluster.sinks import stored
from tests.interop.apache import BROKER_NAME, ApacheBroker
from typer.testing import CliRunner

from rocketpy.broker_core.cli import app
from rocketpy.spark_jobs import analytics, cli
from rocketpy.spark_jobs.backfill import backfill
from rocketpy.spark_jobs.cluster_journal import ClusterJournal
from rocketpy.spark_jobs.dead_letters import DeadLetters
from rocketpy.spark_jobs.replay import replay

pytestmark = [pytest.mark.interop, pytest.mark.further]

assert cli.job_app is not None  # adds its commands

COUNT = 100  # in each of two queues: a pull gives 32 of them
DEAD = "%DLQ%billing"


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheBroker]:
    """A broker with orders, of which the group billing gave three up."""
    require_apache()
    settings = {"mappedFileSizeCommitLog": 16 << 20}
    with ApacheBroker(tmp_path_factory.mktemp("apache") / "store", settings=settings) as broker:
        place = ClusterPlace(broker.namesrv_addr)
        with place.cluster:
            for queue in place.create("orders", 2):
                bodies = (f"{queue.key}-{number}" for number in range(COUNT))
                place.send(queue, *bodies, tag="paid")
            run("group", "create", address(broker), "billing")
            run("group", "reset", address(broker), "billing", "orders", "--to", "earliest")
            for row in run_json("tail", address(broker), "orders", "-n", "3"):
                at = int(row["commit_log_offset"])
                broker.tool.send_back("billing", "orders", at, level=-1)
            while DEAD not in place.cluster.topics() or len(stored(broker, DEAD)) < 3:
                time.sleep(0.1)
        yield broker


def address(broker: ApacheBroker) -> str:
    return f"rocketmq://{broker.namesrv_addr}"


def run(*words: str) -> str:
    ended = CliRunner().invoke(app, [*words])
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def run_json(*words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*words, "--json").splitlines()]


def test_topics_come_into_a_table_once(
    spark: SparkSession, apache: ApacheBroker, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    first = backfill(spark, address(apache), table, topics="orders", chunk_bytes=20_000)
    assert first.chunks > 1
    assert backfill(spark, address(apache), table, topics="orders").rows == 0
    rows = spark.read.format("delta").load(str(table)).collect()
    messages = stored(apache, "orders")
    assert Counter(bytes(row["body"]) for row in rows) == Counter(row["body"] for row in messages)
    assert first.rows == len(rows)
    assert {row["broker"] for row in rows} == {BROKER_NAME}
    by_id = {row["msg_id"] for row in rows}
    assert len(by_id) == len(rows)


def test_dead_letters_come_back_once_though_a_run_died(
    spark: SparkSession, apache: ApacheBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = DeadLetters(path=address(apache), group="billing")
    audit = str(tmp_path / "audit")

    def dies(*_: object) -> None:
        raise InterruptedError

    monkeypatch.setattr(ClusterJournal, "done", dies)  # all was sent, and is not noted
    with pytest.raises(InterruptedError):
        replay(spark, letters, audit=audit)
    monkeypatch.undo()
    result = replay(spark, letters, audit=audit)
    assert (result.finished, result.replayed) == (3, 0)
    assert replay(spark, letters, audit=audit).finished == 0
    rows = [row for row in stored(apache, "orders")]
    copies = [row for row in rows if "ROCKETPY_REPLAYED_FROM" in dict(row["properties"])]
    dead = Counter(row["body"] for row in stored(apache, DEAD))
    assert Counter(row["body"] for row in copies) == dead
    assert {row["tags"] for row in copies} == {"paid"}
    assert spark.read.format("delta").load(audit).count() == 3


def test_the_report_tells_what_a_cluster_knows(spark: SparkSession, apache: ApacheBroker) -> None:
    (told,) = run_json("report", address(apache), "--topic", "orders")
    assert told["errors"] == {}
    assert [*told["left_out"]] == ["delay_accuracy"]
    count = len(stored(apache, "orders"))
    assert [(each["topic"], each["messages"]) for each in told["message_sizes"]] == [
        ("orders", count)
    ]
    assert [(each["tag"], each["messages"]) for each in told["hot_tags"]] == [("paid", count)]
    (lag,) = (each for each in told["lag"] if each["consumer_group"] == "billing")
    assert (lag["messages"], lag["bytes"] > 0) == (count, True)
    (given_up,) = told["dead_letters"]
    assert (given_up["consumer_group"], given_up["messages"]) == ("billing", 3)
    skew = analytics.queue_skew(spark, address(apache), "orders").collect()
    assert [(row["messages"], row["queues"]) for row in skew] == [(count, 2)]
