"""Topics of a cluster into a Delta table: each message once, whatever happens on the way."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from tests.connector.cluster.places import OurPlace
from tests.connector.cluster.test_cluster_losses import COUNT as LOST_COUNT
from tests.connector.cluster.test_cluster_losses import delete_oldest, fill
from tests.crash.test_spark_kill import kill_session
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.spark_jobs import cli
from rocketpy.spark_jobs.backfill import JobRefusedError, backfill, body_format, estimate
from rocketpy.spark_jobs.backfill.copying import DAY, ChunkCopy
from rocketpy.spark_jobs.backfill.queue_chunks import cut
from rocketpy.spark_jobs.backfill.settings import COLUMNS, BackfillSettings

assert cli.job_app is not None  # adds its commands

COUNT = 40  # at each of two brokers


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    with local_broker(brokers=2) as running:
        yield running


@pytest.fixture
def cluster(servers: LocalBroker) -> str:
    """Eighty orders at two brokers, and a topic that is nobody's."""
    servers.reset()
    with Cluster(servers.namesrv_addr) as asked:
        ClusterTopics(asked).create("orders", queues=2)
        ClusterTopics(asked).create("parcels", queues=1)
    send(servers, 0, COUNT)
    return f"rocketmq://{servers.namesrv_addr}"


def send(servers: LocalBroker, first: int, end: int) -> None:
    for number, _ in enumerate(servers.brokers):
        with servers.store(number) as store:
            bodies = [f'{{"id": {each}}}' for each in range(first, end)]
            keys = [f"{number}-{each}" for each in range(first, end)]
            store.append("orders", pa.table({"body": bodies, "keys": keys}))


def held(spark: SparkSession, cluster: str) -> DataFrame:
    """What the source itself reads, as rows of a table."""
    given = {"namesrvAddr": cluster, "topic": "orders", "columns": ",".join(COLUMNS)}
    frame = spark.read.format("rocketpy").options(**given).load()
    return frame.selectExpr("*", f"{DAY} AS day")


def copied(spark: SparkSession, table: Path) -> DataFrame:
    return spark.read.format("delta").load(str(table))


def assert_same(spark: SparkSession, table: Path, cluster: str) -> None:
    order = ("broker", "commit_log_offset")
    found = copied(spark, table).sort(*order)
    expected = held(spark, cluster).to(found.schema).sort(*order)
    assert_df_equality(found, expected, ignore_nullable=True)


def test_the_table_is_the_topic_of_all_brokers_and_grows_with_it(
    spark: SparkSession, servers: LocalBroker, cluster: str, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    planned = estimate(spark, cluster, table, topics="orders", chunk_bytes=6000)
    assert [(each.topic, each.rows) for each in planned.topics] == [("orders", 2 * COUNT)]
    assert planned.topics[0].first_day is not None
    seen: list[tuple[int, int, int]] = []
    first = backfill(
        spark,
        cluster,
        table,
        topics="orders",
        chunk_bytes=6000,
        progress=lambda *done: seen.append(done),
    )
    assert_same(spark, table, cluster)
    assert (first.rows, first.chunks) == (2 * COUNT, planned.chunks)
    assert first.chunks > 1
    assert [rows for _, _, rows in seen] == sorted(rows for _, _, rows in seen)
    assert {each.broker for each in first.queues} == {"broker-a", "broker-b"}
    assert sum(each.end - each.start for each in first.queues) == 2 * COUNT

    assert backfill(spark, cluster, table, topics="orders").rows == 0
    with Cluster(servers.namesrv_addr) as asked:
        ClusterTopics(asked).create("orders", queues=3)  # one more a broker
    with servers.store(1) as store:
        store.send("orders", '{"id": "new"}', queue_id=2)
    send(servers, COUNT, COUNT + 5)
    again = backfill(spark, cluster, table, topics="orders", compact=True)
    assert (again.rows, again.chunks) == (11, 1)
    assert_same(spark, table, cluster)


@pytest.mark.further
def test_bodies_are_typed_as_those_of_a_folder(
    spark: SparkSession, servers: LocalBroker, cluster: str, tmp_path: Path
) -> None:
    with servers.store(0) as store:
        store.send("orders", "no JSON")
    report = backfill(
        spark,
        cluster,
        tmp_path / "table",
        topic_pattern="orders",
        offsets={"orders": {"broker-a:0": [5, 100], "broker-a:1": [0, 100]}},
        body=body_format("json", "id BIGINT"),
    )
    assert (report.bad_rows, {each.broker for each in report.queues}) == (1, {"broker-a"})
    rows = copied(spark, tmp_path / "table").select("queue_id", "queue_offset", "value.id")
    from_zero = [row for row in rows.collect() if row["queue_id"] == 0]
    assert min(row["queue_offset"] for row in from_zero) == 5
    assert report.rows == rows.count() == COUNT + 1 - 5


@pytest.mark.further
def test_a_run_that_dies_around_a_commit_doubles_and_misses_nothing(
    spark: SparkSession, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, table = ChunkCopy.append, tmp_path / "table"

    def dying(*, after: bool) -> Any:
        def appended(self: ChunkCopy, chunk: Any, note: Any) -> Any:
            if chunk.start == 1 and not after:
                raise InterruptedError
            done = append(self, chunk, note)
            if chunk.start == 1:
                raise InterruptedError
            return done

        return appended

    for after in (False, True):
        monkeypatch.setattr(ChunkCopy, "append", dying(after=after))
        with pytest.raises(InterruptedError):
            backfill(spark, cluster, table, topics="orders", chunk_bytes=2500)
    monkeypatch.undo()
    left = backfill(spark, cluster, table, topics="orders", chunk_bytes=2500)
    assert 0 < left.rows < 2 * COUNT
    assert_same(spark, table, cluster)


def test_what_is_gone_is_told_and_a_topic_made_anew_is_refused(
    spark: SparkSession, servers: LocalBroker, cluster: str, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    assert backfill(spark, cluster, table, topics="orders").rows == 2 * COUNT
    with pytest.raises(JobRefusedError, match="selects other messages: since was None"):
        backfill(spark, cluster, table, topics="orders", since="2020-01-01")
    with pytest.raises(JobRefusedError, match=r"reads rocketmq://.*, and not "):
        backfill(spark, servers.store_path, table, topics="orders")
    servers.reset()
    with Cluster(servers.namesrv_addr) as asked:
        ClusterTopics(asked).create("orders", queues=2)
    with servers.store() as store:
        store.send("orders", "so that no message lies where one was")
    send(servers, 0, 2 * COUNT)
    with pytest.raises(JobRefusedError, match="its topic was made anew, or this is another"):
        backfill(spark, cluster, table, topics="orders")


@pytest.mark.further
def test_what_retention_deleted_between_two_runs_is_a_gap(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = {"mappedFileSizeCommitLog": "4096", "maxMessageSize": "3000"}
    with local_broker(settings=settings) as running, OurPlace(running).cluster as cluster:
        place, at = OurPlace(running), f"rocketmq://{running.namesrv_addr}"
        ClusterTopics(cluster).create("orders", queues=1)
        fill(place, 3)
        assert backfill(spark, at, tmp_path / "table", topics="orders").rows == 3
        fill(place, LOST_COUNT)
        first = delete_oldest(place)
        with pytest.raises(JobRefusedError, match=f"has deleted .* from 3 up to {first} before"):
            backfill(spark, at, tmp_path / "table", topics="orders")
        report = backfill(spark, at, tmp_path / "table", topics="orders", allow_gaps=True)
    assert [(gap.start, gap.end) for gap in report.gaps] == [(3, first)]
    assert report.rows == LOST_COUNT + 3 - first


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "topics: are not given: that means to walk through the log"),
        ({"log_start": 0}, "log_start: is a byte of a store's commit log"),
        ({"log_end": 9}, "give 'since' and 'until', or 'offsets' of queues"),
        ({"topics": "orders", "scan": "commitlog"}, "scan: is 'commitlog'"),
        ({"topics": "orders", "skip_damaged": True}, "skip_damaged: is about the files"),
        ({"topics": "orders", "offsets": {"orders": {"7": [0, 1]}}}, "there is no queue"),
    ],
)
def test_what_needs_the_log_is_refused_by_name(
    spark: SparkSession, cluster: str, tmp_path: Path, settings: Any, said: str
) -> None:
    with pytest.raises(JobRefusedError) as caught:
        backfill(spark, cluster, tmp_path / "table", **settings)
    assert said in str(caught.value)
    assert not (tmp_path / "table").exists()


@pytest.mark.further
@pytest.mark.usefixtures("spark")
def test_the_command_copies_and_tells(cluster: str, tmp_path: Path) -> None:
    words = ["job", "backfill", cluster, str(tmp_path / "table"), "--topic", "orders"]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 0, ended.output
    assert f"holds 4 queues up to where they ended; offsets add up to {2 * COUNT}" in ended.output
    refused = CliRunner().invoke(app, [*words[:5], "ordres"])
    assert (refused.exit_code, "did you mean 'orders'?" in refused.output) == (2, True)


def test_chunks_take_an_equal_share_of_each_queue_and_leave_nothing_out() -> None:
    few, many = (MessageQueue("orders", "a", number) for number in range(2))
    ranges = {few: (5, 8), many: (0, 1000)}
    chunks = [*cut(ranges, {few: 100.0, many: 50.0}, 10_000, start=7)]
    assert [(chunk.start, chunk.end) for chunk in chunks] == [
        (7 + number, 8 + number) for number in range(len(chunks))
    ]
    assert 5 <= len(chunks) <= 7
    for queue, bounds in ranges.items():
        parts = [chunk.ranges[queue] for chunk in chunks if queue in chunk.ranges]
        joined = [offset for part in parts for offset in range(*part)]
        assert joined == [*range(*bounds)]
    assert BackfillSettings().chunk_size(1) >= 1 << 30


@pytest.mark.crash
@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_a_table_that_the_next_run_completes(
    spark: SparkSession, servers: LocalBroker, cluster: str, tmp_path: Path
) -> None:
    send(servers, COUNT, 4000)
    table, log = tmp_path / "table", tmp_path / "driver.log"
    words = ["-m", "tests.spark_jobs.backfill_driver", cluster, str(table), "60000", "orders"]
    with log.open("ab") as output:
        driver = subprocess.Popen(
            [sys.executable, *words],
            cwd=Path(__file__).parents[2],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while len([*table.glob("_delta_log/*.json")]) < 3:  # made, and two chunks
            assert driver.poll() is None, log.read_text()[-4000:]
            time.sleep(0.01)
        time.sleep(random.Random(4).random())
    finally:
        kill_session(driver)
    left = rocketpy.backfill(spark, cluster, table, topics="orders")
    assert 0 < left.rows < 8000
    assert_same(spark, table, cluster)
