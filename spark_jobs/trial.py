"""A whole way through Spark on a small store, for `rocketpy doctor --spark`."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.connector.environment import has_delta_jars
from rocketpy.spark_jobs.quiet_start import SparkLog, SparkStartError, stop_quietly

_MESSAGES = 100


def try_spark() -> Iterator[Finding]:
    """Start a Spark, write and read a store and, if it is installed, a Delta table."""
    has_delta = importlib.util.find_spec("delta") is not None
    is_there = SparkSession.getActiveSession() is not None  # of who called us: it goes on
    with SparkLog() as log:
        try:
            spark = log.start(1, delta=True)
        except SparkStartError as error:
            yield _no_start(error, has_delta=has_delta)
            return
        try:
            yield from _trials(spark, log, has_delta=has_delta)
        finally:
            if not is_there:
                stop_quietly(spark)


def _trials(spark: SparkSession, log: SparkLog, *, has_delta: bool) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory(prefix="rocketpy-doctor-") as folder:
        orders = _orders(spark, Path(folder) / "store")
        yield _tried("spark", "read a store in a task", orders.count, log)
        if has_delta:
            write = partial(_by_delta, orders, str(Path(folder) / "table"))
            yield _tried("delta", "wrote and read a table", write, log)


def _no_start(error: SparkStartError, *, has_delta: bool) -> Finding:
    if has_delta and not has_delta_jars():
        what = "Spark does not start: the JARs of delta-spark are out of reach"
        remedy = (
            "let this machine reach Maven Central, or name a mirror (spark.jars.ivySettings), or "
            "put the JARs into Spark's jars folder; or uninstall delta-spark"
        )
        return Finding("delta", "fault", what, remedy)
    what = f"it does not start: {error.reason}"
    return Finding("spark", "fault", what, "mend what is found above; Spark's own words help")


def _orders(spark: SparkSession, path: Path) -> DataFrame:
    with open_store(path) as store:
        store.create_topic("orders", 1)
        for number in range(_MESSAGES):
            store.send("orders", str(number))
    return spark.read.format("rocketpy").option("topic", "orders").load(str(path))


def _by_delta(frame: DataFrame, table: str) -> int:
    frame.write.format("delta").save(table)
    return frame.sparkSession.read.format("delta").load(table).count()


def _tried(check: str, what: str, count: Callable[[], int], log: SparkLog) -> Finding:
    try:
        rows = count()
    except Exception as error:
        log.show()
        return Finding(check, "fault", _first_line(error), "Spark's own words, above, tell more")
    if rows != _MESSAGES:
        what = f"{rows} of {_MESSAGES} messages came through"
        return Finding(check, "fault", what, "please report it: nothing here explains it")
    return Finding(check, "ok", what)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
