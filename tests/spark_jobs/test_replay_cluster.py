"""Dead letters of a cluster brought back: once, with brokers that have staging and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.connector.cluster.sinks import stored, without_staging
from typer.testing import CliRunner

from rocketpy.broker_core.cli import app
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.errors import (
    MessageRefusedError,
    ReplayRunningError,
    TopicNotFoundError,
)
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.spark_jobs import cli, cluster_replay
from rocketpy.spark_jobs.cluster_journal import ClusterJournal
from rocketpy.spark_jobs.dead_letters import DeadLetters
from rocketpy.spark_jobs.replay import ReplayResult, replay

assert cli.job_app is not None  # adds its commands


@pytest.fixture(scope="module")
def running() -> Iterator[LocalBroker]:
    with local_broker(brokers=2) as servers:
        yield servers


@pytest.fixture
def servers(running: LocalBroker) -> LocalBroker:
    """Ten dead letters of two topics, five at each of two brokers, with two causes."""
    running.reset()
    with Cluster(running.namesrv_addr) as cluster:
        for topic, queues in (("orders-0", 2), ("orders-1", 2), ("%DLQ%billing", 1)):
            ClusterTopics(cluster).create(topic, queues=queues)
    for number in range(10):
        with running.store(number % 2) as store:
            receipt = store.send(
                f"orders-{number // 5}",
                str(number),
                tags="paid",
                keys=[f"o-{number}"],
                properties={"amount": str(number)},
                sharding_key="customer",
            )
            why = "time-out" if number < 5 else "bad field"
            store.send_back(receipt, group="billing", delay_level=-1, cause=why)
    return running


def letters(servers: LocalBroker, **selection: Any) -> DeadLetters:
    place = f"rocketmq://{servers.namesrv_addr}"
    return DeadLetters(path=place, group="billing", **selection)


def back(servers: LocalBroker) -> Counter[str]:
    """Bodies of messages that came back, and how often each."""
    rows = [*stored(servers, "orders-0"), *stored(servers, "orders-1")]
    copies = [row for row in rows if "ROCKETPY_REPLAYED_FROM" in dict(row["properties"])]
    return Counter(row["body"].decode() for row in copies)


def numbers(*wanted: int) -> Counter[str]:
    return Counter(str(number) for number in wanted)


def run(spark: SparkSession, servers: LocalBroker, tmp_path: Path, **given: Any) -> ReplayResult:
    choice = {name: given.pop(name) for name in ("cause", "keys") if name in given}
    return replay(spark, letters(servers, **choice), audit=str(tmp_path / "audit"), **given)


@pytest.mark.further
def test_what_is_chosen_comes_back_once_and_the_audit_has_it(
    spark: SparkSession, servers: LocalBroker, tmp_path: Path
) -> None:
    dry = run(spark, servers, tmp_path, dry_run=True)
    assert (dry.selected, dry.topics) == (10, {"orders-0": 5, "orders-1": 5})
    assert dry.causes == {"time-out": 5, "bad field": 5}
    assert len(dry.sample) == 10
    assert not (tmp_path / "audit").exists()

    first = run(spark, servers, tmp_path, cause="time-out", limit=3)
    assert (first.replayed, first.topics) == (3, {"orders-0": 3})
    rest = run(spark, servers, tmp_path)
    assert (rest.replayed, rest.topics) == (7, {"orders-0": 2, "orders-1": 5})
    assert run(spark, servers, tmp_path).replayed == 0
    assert back(servers) == numbers(*range(10))

    copies = [row for row in stored(servers, "orders-0") if row["keys"] == "o-0"]
    (copy,) = (row for row in copies if "ROCKETPY_REPLAY_RUN" in dict(row["properties"]))
    properties = dict(copy["properties"])
    assert (copy["tags"], properties["amount"]) == ("paid", "0")
    assert properties["ROCKETPY_REPLAYED_FROM"] == "%DLQ%billing/broker-a:0/0"
    assert not {"RETRY_TOPIC", "ROCKETPY_CAUSE", "DELAY"} & properties.keys()

    audit = spark.read.format("delta").load(str(tmp_path / "audit")).collect()
    assert sorted((row["keys"], row["cause"], row["to_topic"]) for row in audit) == sorted(
        (f"o-{n}", "time-out" if n < 5 else "bad field", f"orders-{n // 5}") for n in range(10)
    )
    assert {row["run_id"] for row in audit} == {first.run_id, rest.run_id}


@pytest.mark.parametrize("has_staging", [pytest.param(True, marks=pytest.mark.further), False])
def test_a_run_that_died_is_finished_by_the_next_and_doubles_nothing(
    spark: SparkSession,
    servers: LocalBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_staging: bool,
) -> None:
    if not has_staging:
        without_staging(servers)
    monkeypatch.setattr(cluster_replay, "CHUNK_ROWS", 4)
    monkeypatch.setattr(ClusterJournal, "done", _dies)  # all was sent, and is not noted
    with pytest.raises(InterruptedError):
        run(spark, servers, tmp_path, to="orders-1")
    monkeypatch.undo()
    assert back(servers) == numbers(*range(4))
    send = cluster_replay._ClusterReplay._send
    monkeypatch.setattr(cluster_replay._ClusterReplay, "_send", _dies)  # nothing is sent yet
    with pytest.raises(InterruptedError):
        run(spark, servers, tmp_path)
    monkeypatch.setattr(cluster_replay._ClusterReplay, "_send", send)
    result = run(spark, servers, tmp_path)
    assert (result.finished, result.replayed) == (4, 6)
    assert back(servers) == numbers(*range(10))
    assert spark.read.format("delta").load(str(tmp_path / "audit")).count() == 10


def _dies(*_: object) -> None:
    raise InterruptedError


@pytest.mark.further
def test_a_second_run_at_the_same_time_is_refused(
    spark: SparkSession, servers: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = ClusterJournal.begin

    def overtaken(self: ClusterJournal, chunk: Any) -> None:
        monkeypatch.setattr(ClusterJournal, "begin", begin)
        assert run(spark, servers, tmp_path).replayed == 10
        begin(self, chunk)

    monkeypatch.setattr(ClusterJournal, "begin", overtaken)
    with pytest.raises(ReplayRunningError):
        run(spark, servers, tmp_path)
    assert back(servers) == numbers(*range(10))


def test_what_cannot_be_is_told(spark: SparkSession, servers: LocalBroker, tmp_path: Path) -> None:
    with pytest.raises(MessageRefusedError, match="a cluster has no folder to keep the audit"):
        replay(spark, letters(servers))
    with pytest.raises(TopicNotFoundError, match="no topic 'order'"):
        run(spark, servers, tmp_path, to="order")
    address = f"rocketmq://{servers.namesrv_addr}"
    words = ["job", "replay", address, "biling", "--audit", str(tmp_path)]
    refused = CliRunner().invoke(app, words)
    assert (refused.exit_code, "no topic '%DLQ%biling'" in refused.output) == (2, True)
    words = ["job", "replay", address, "billing", "--audit", str(tmp_path / "audit"), "--dry-run"]
    shown = CliRunner().invoke(app, words)
    assert (shown.exit_code, "10 messages would be replayed" in shown.output) == (0, True)
