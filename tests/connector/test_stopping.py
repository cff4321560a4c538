"""The end of a query: stopped by hand, or by another one on the same checkpoint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import rocketpy
from rocketpy.connector.hang_up import expect_hang_up

# What PySpark's planner does when the driver has closed the connection.
HUNG_UP_ON = """
import sys
from rocketpy.connector.schema import spark_schema
from rocketpy.connector.source import RocketPyDataSource

options = {"path": sys.argv[1], "topic": "orders"}
reader = RocketPyDataSource(options).streamReader(spark_schema("messages", None))
try:
    try:
        raise EOFError
    finally:
        reader.stop()
except BaseException:
    raise BrokenPipeError(32, "Broken pipe")
"""


@pytest.fixture
def orders(store: rocketpy.Store) -> rocketpy.Store:
    store.create_topic("orders", queues=1)
    store.send("orders", "1")
    return store


def test_a_planner_that_the_driver_hangs_up_on_prints_no_traceback(orders: rocketpy.Store) -> None:
    command = [sys.executable, "-c", HUNG_UP_ON, str(orders.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def test_any_other_end_of_the_planner_is_still_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    expect_hang_up()  # no EOFError on its way
    assert sys.excepthook is sys.__excepthook__
    try:
        raise EOFError
    except EOFError:
        expect_hang_up()
    sys.excepthook(BrokenPipeError, BrokenPipeError(32, "Broken pipe"), None)
    assert capsys.readouterr().err == ""
    sys.excepthook(ValueError, ValueError("other"), None)
    assert "ValueError: other" in capsys.readouterr().err


def start(spark: SparkSession, store: rocketpy.Store, checkpoint: Path) -> StreamingQuery:
    return (
        spark.readStream.format("rocketpy")
        .options(path=str(store.path), topic="orders", startingOffsets="earliest")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )


def test_a_second_query_on_a_checkpoint_stops_the_first_unless_spark_is_told_not_to(
    spark: SparkSession, orders: rocketpy.Store, tmp_path: Path
) -> None:
    """What docs/faq.md says of Spark: the first ends without an error."""
    first = start(spark, orders, tmp_path / "checkpoint")
    first.processAllAvailable()
    second = start(spark, orders, tmp_path / "checkpoint")
    assert (first.isActive, first.exception(), first.id) == (False, None, second.id)
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.stopActiveRunOnRestart", "false")
    with pytest.raises(Exception, match="another query with same id is already active"):
        start(session, orders, tmp_path / "checkpoint")
    second.processAllAvailable()
    second.stop()
