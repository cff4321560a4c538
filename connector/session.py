"""A Spark session on this machine in which the README's programs run: for notebooks and trials."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from rocketpy.connector.registration import register
from rocketpy.connector.spark_home import quick_home
from rocketpy.connector.user_settings import is_submitted, user_settings

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Its tables are small here: the default of 50 makes each commit wait for 50 tasks.
    "spark.databricks.delta.snapshotPartitions": "2",
}

# In a report the JVM's second compiler takes a quarter of all CPU time, and pays off too late.
# Without it the JVM keeps only 48 MiB of compiled code; a notebook of analytics filled 44 of them.
_SHORT_LIFE = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m"
}
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def local_spark(cores: int | str = "*", **config: str) -> SparkSession:
    """Return a local Spark session, with Delta Lake if `delta-spark` is installed.

    Workers run this Python: by itself Spark starts the first `python3` of the path. Nothing
    listens beyond this machine. Further settings are given with `_` for each dot:
    `spark_driver_memory="4g"`. What the user has set for Spark elsewhere wins over what is set
    here, the master included: `spark-defaults.conf`, `PYSPARK_SUBMIT_ARGS`, `spark-submit`.
    """
    return start_spark(cores, config, delta=True)


def start_spark(
    cores: int | str, config: Mapping[str, str], *, delta: bool = False, is_short: bool = False
) -> SparkSession:
    """Return what local_spark() does; without Delta it starts some seconds sooner.

    `is_short` is for one that ends after a few queries.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    asked = {name.replace("_", "."): value for name, value in config.items()}
    builder = SparkSession.builder
    if is_submitted(os.environ):
        session = _with(builder, asked).getOrCreate()
    else:
        has_delta = delta and importlib.util.find_spec("delta") is not None
        more = (DELTA_SETTINGS if has_delta else {}) | (_SHORT_LIFE if is_short else {})
        users = user_settings(os.environ, _find_spark_home())
        settings = _settings({"spark.master": f"local[{cores}]", **more}, users, asked)
        builder = _with(builder, settings)
        if has_delta:
            builder = _with_delta(builder, {**users, **settings})
        with quick_home({**users, **settings}):
            session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    return session


def _with(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _settings(
    more: Mapping[str, str], users: Mapping[str, str], asked: Mapping[str, str]
) -> dict[str, str]:
    """Return what to set: what is asked for, and of our own what the user has not set."""
    ours = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        **more,
    }
    master = asked.get("spark.master") or users.get("spark.master") or "local"
    if master.startswith("local"):  # executors elsewhere have to reach the driver
        ours |= _LOOPBACK
    return {name: value for name, value in ours.items() if name not in users} | dict(asked)


def _with_delta(builder: SparkSession.Builder, known: Mapping[str, str]) -> SparkSession.Builder:
    from delta import configure_spark_with_delta_pip

    packages = known.get("spark.jars.packages", "")
    return configure_spark_with_delta_pip(builder, [name for name in packages.split(",") if name])
