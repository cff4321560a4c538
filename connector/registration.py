"""Telling Spark of the format by hand, where it does not find it by itself.

Spark imports every top-level module named `pyspark_*` when a format of Python's is first asked for.
If one of them fails, be it of another package, it finds none; and its error about an unknown format
does not say so.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from rocketpy.connector.source import RocketPyDataSource


def register(spark: SparkSession) -> None:
    """Make `format("rocketpy")` known to a session. Doing so twice is fine."""
    spark.dataSource.register(RocketPyDataSource)
