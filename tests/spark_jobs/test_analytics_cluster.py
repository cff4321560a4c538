"""What a cluster tells is what the folder of its broker tells; the rest is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.spark_jobs import analytics, cli
from rocketpy.spark_jobs.backfill import JobRefusedError
from rocketpy.spark_jobs.redelivery import Redelivery

pytestmark = pytest.mark.further

assert cli.job_app is not None  # adds its commands

Answer = Callable[[SparkSession, str], DataFrame]
ANSWERS: dict[str, Answer] = {
    "throughput": analytics.throughput,
    "message_sizes": analytics.message_sizes,
    "size_histogram": lambda spark, at: analytics.size_histogram(spark, at, "orders"),
    "hot_tags": analytics.hot_tags,
    "hot_keys": lambda spark, at: analytics.hot_keys(spark, at, 2, topics=["orders"]),
    "queue_skew": analytics.queue_skew,
    # Of keys that as many messages have, any is the hottest.
    "key_skew": lambda spark, at: analytics.key_skew(spark, at, "orders").drop("hottest_key"),
    "lag": lambda spark, at: analytics.lag(spark, at).drop("age_seconds", "bytes"),
    "backlog": lambda spark, at: analytics.backlog(spark, at, "billing", topic="orders"),
    "retries": analytics.retries,
    "dead_letters": lambda spark, at: analytics.dead_letters(spark, at, "billing"),
    "producers": analytics.producers,
    "consumers": analytics.consumers,
}


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    """A broker with orders, half of them of one customer, and a group that gave one up."""
    with local_broker(topics={"orders": 4, "%DLQ%billing": 1}) as running:
        with running.store() as store:
            for number in range(40):
                customer = "c-1" if number % 2 else f"c-{10 + number}"
                store.send(
                    "orders",
                    f"order {number:02}",
                    tags="new" if number % 4 else None,
                    keys=[customer],
                    sharding_key=customer,
                )
            store.send_back(("orders", 0, 0), group="billing", delay_level=-1, cause="no price")
            store.commit("billing", "orders", dict.fromkeys(range(4), 2))
        yield running


def test_each_answer_is_that_of_the_brokers_folder(
    spark: SparkSession, servers: LocalBroker, tmp_path: Path
) -> None:
    address = f"rocketmq://{servers.namesrv_addr}"
    assert {*ANSWERS} | {*analytics.FOLDER_ONLY, "record_lag", "lag_over_time"} == {
        *analytics.READS
    }
    folder = str(servers.store_path)
    for name, answer in ANSWERS.items():
        # A folder is not told which name its broker has.
        found, expected = (
            answer(spark, at).drop("broker", "largest_broker") for at in (address, folder)
        )
        assert found.columns == expected.columns, name
        assert sorted(found.collect(), key=repr) == sorted(expected.collect(), key=repr), name
    analytics.record_lag(spark, address, str(tmp_path / "samples"))
    samples = spark.read.parquet(str(tmp_path / "samples")).collect()
    assert [(row["consumer_group"], row["committed_offset"]) for row in samples] == [
        ("billing", 2)
    ] * 4
    estimated, counted = (analytics.lag(spark, at).collect()[0] for at in (address, folder))
    assert estimated["bytes"] == pytest.approx(counted["bytes"], rel=0.1)


def test_what_a_cluster_cannot_tell_is_refused_by_name(
    spark: SparkSession, servers: LocalBroker, tmp_path: Path
) -> None:
    address = f"rocketmq://{servers.namesrv_addr}"
    with pytest.raises(JobRefusedError, match="due times are in the entries of queues"):
        analytics.delay_accuracy(spark, address)
    with pytest.raises(JobRefusedError, match="a restore needs the folder of a store; write the"):
        rocketpy.restore(spark, tmp_path / "table", address)
    with pytest.raises(JobRefusedError, match="deliver delayed messages and retries by themselves"):
        Redelivery(spark=spark, path=address, once=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["job", "redeliver", "{}"], "deliver delayed messages and retries by themselves"),
        (["job", "restore", "{}", "table"], "it notes each batch in the store's ledger"),
        (["doctor", "{}"], "run it where a broker keeps its store"),
        (["store", "stat", "{}"], "run it where a broker keeps its store"),
        (["report", "{}"], "127.0.0.1:1 does not answer"),
        (["--credentials", "none.yml", "report", "{}"], "none.yml: the file cannot be read"),
        (["job", "backfill", "{}", "table", "--topic", "orders"], "127.0.0.1:1 does not answer"),
        (["job", "backfill", "{}", "table"], "name topics, or give topic_pattern"),
    ],
)
def test_what_cannot_be_done_is_said_before_spark_starts(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("rocketpy.connector.session.SparkSession")
    ended = CliRunner().invoke(app, [word.format("rocketmq://127.0.0.1:1") for word in words])
    assert ended.exit_code == 2
    assert said in " ".join(ended.output.replace("│", " ").split())


@pytest.mark.usefixtures("spark")
def test_the_report_reads_messages_of_named_topics_only(servers: LocalBroker) -> None:
    address = f"rocketmq://{servers.namesrv_addr}"
    ended = CliRunner().invoke(app, ["report", address, "--json"])
    assert ended.exit_code == 0, ended.output
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    assert {"queue_skew", "lag", "dead_letters", "consumers"} <= told.keys()
    assert "give --topic" in told["left_out"]["hot_keys"]
    assert "folder of a store" in told["left_out"]["delay_accuracy"]
    shown = CliRunner().invoke(app, ["report", address, "--topic", "orders", "--top", "1"])
    assert shown.exit_code == 0, shown.output
    assert "Hottest keys" in shown.output
    assert "give --topic" not in shown.output
