"""A Spark on this machine, set up so that what is in the README runs: for notebooks and trials."""

from __future__ import annotations

import importlib.util
import os
import sys

from pyspark.sql import SparkSession

from rocketpy.connector.registration import register

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Its tables are small here: the default of 50 makes each commit wait for 50 tasks.
    "spark.databricks.delta.snapshotPartitions": "2",
}


def local_spark(cores: int | str = "*", **config: str) -> SparkSession:
    """Return a local Spark session, with Delta Lake if `delta-spark` is installed.

    Workers run this Python: by itself Spark starts the first `python3` of the path. Nothing
    listens beyond this machine. Further settings are given with `_` for each dot:
    `spark_driver_memory="4g"`.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    has_delta = importlib.util.find_spec("delta") is not None
    if has_delta:
        settings |= DELTA_SETTINGS
    settings |= {name.replace("_", "."): value for name, value in config.items()}
    builder = SparkSession.builder.master(f"local[{cores}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    if has_delta:
        from delta import configure_spark_with_delta_pip

        builder = configure_spark_with_delta_pip(builder)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    return session
