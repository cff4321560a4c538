"""`df.write` and `df.writeStream` to a cluster, by a real Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.connector.cluster.sinks import stored, without_staging
from tests.connector.test_sink_stream import Lines, forget_last_commit

import rocketpy
from rocketpy.broker_core.local import LocalBroker


@pytest.fixture(scope="module")
def running() -> Iterator[LocalBroker]:
    with rocketpy.local_broker(brokers=2, topics={"t": 2}) as broker:
        yield broker


@pytest.fixture
def broker(running: LocalBroker) -> LocalBroker:
    """Two brokers that have staging."""
    running.reset()
    return running


@pytest.fixture
def plain_broker(broker: LocalBroker) -> LocalBroker:
    """Two brokers that have none."""
    without_staging(broker)
    return broker


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> Lines:
    return Lines(spark, tmp_path / "lines")


def write(frame: DataFrame, broker: LocalBroker, **options: object) -> None:
    writer = frame.write.format("rocketpy").mode("append")
    writer = writer.option("namesrvAddr", broker.namesrv_addr).option("topic", "t")
    writer.options(**{name: str(value) for name, value in options.items()}).save()


def run(frame: DataFrame, broker: LocalBroker, checkpoint: Path) -> None:
    writer = frame.writeStream.format("rocketpy").option("checkpointLocation", str(checkpoint))
    writer = writer.option("namesrvAddr", broker.namesrv_addr).option("topic", "t")
    assert writer.trigger(availableNow=True).start().awaitTermination(120)


def found(broker: LocalBroker) -> list[str]:
    return sorted(row["body"].decode() for row in stored(broker, "t"))


@pytest.mark.parametrize("kind", ["broker", "plain_broker"])
def test_a_frame_is_appended(
    spark: SparkSession, kind: str, request: pytest.FixtureRequest
) -> None:
    broker: LocalBroker = request.getfixturevalue(kind)
    frame = spark.range(0, 5_000, 1, 3).selectExpr(
        "cast(id as string) as body", "concat('k', id) as keys", "'paid' as tags"
    )
    write(frame.where("id < 4000 or id > 4500"), broker)  # one partition has no rows
    rows = stored(broker, "t")
    assert sorted(int(row["body"]) for row in rows) == [*range(4000), *range(4501, 5000)]
    assert {row["tags"] for row in rows} == {"paid"}
    assert all(row["keys"] == f"k{row['body'].decode()}" for row in rows)
    assert {(row["broker"], row["queue_id"]) for row in rows} == {
        ("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1)
    }  # fmt: skip


def test_a_version_of_an_application_is_written_once(
    spark: SparkSession, broker: LocalBroker
) -> None:
    frame = spark.createDataFrame([("a",), ("a",), ("b",)], "body string")
    for _ in range(2):
        write(frame, broker, txnAppId="app", txnVersion=1)
    write(frame, broker, txnAppId="app", txnVersion=2)
    assert found(broker) == ["a", "a", "a", "a", "b", "b"]
    with pytest.raises(PySparkException, match="batch 1 of 'app app topic t'"):
        write(frame, broker, txnAppId="app", txnVersion=1)


@pytest.mark.parametrize("kind", ["broker", "plain_broker"])
def test_each_batch_is_stored_once_over_restarts(
    lines: Lines, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    broker: LocalBroker = request.getfixturevalue(kind)
    lines.add("a", "b")
    lines.add("a")
    run(lines.stream(), broker, tmp_path / "check")
    assert found(broker) == ["a", "a", "b"]
    forget_last_commit(tmp_path / "check")  # the driver died between our commit and Spark's
    lines.add("d")
    run(lines.stream(), broker, tmp_path / "check")
    assert found(broker) == ["a", "a", "b", "d"]


@pytest.mark.parametrize("kind", ["broker", "plain_broker"])
def test_a_failed_batch_is_completed_when_the_query_starts_again(
    lines: Lines, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    broker: LocalBroker = request.getfixturevalue(kind)
    rows = [f"row {number}" for number in range(40_000)]
    lines.add("first")
    run(lines.stream(), broker, tmp_path / "check")
    lines.add(*rows)
    failing = lines.stream().selectExpr("CASE WHEN body != 'row 39999' THEN body END AS body")
    with pytest.raises(PySparkException, match=r"row 39999 of partition 0: .*is null"):
        run(failing, broker, tmp_path / "check")
    left = len(found(broker)) - 1
    assert left == 0 if kind == "broker" else left >= 10_000  # of chunks that were sent
    run(lines.stream().repartition(3), broker, tmp_path / "check")
    assert found(broker) == sorted(["first", *rows])


def test_a_missing_topic_is_refused_before_anything_runs(
    spark: SparkSession, broker: LocalBroker
) -> None:
    frame = spark.createDataFrame([("a",)], "body string")
    with pytest.raises(PySparkException, match="'rocketpy topic create missing'"):
        write(frame, broker, topic="missing")
