"""Telling Spark of the format by hand, where it does not find it by itself.

Spark imports every top-level module named `pyspark_*` when a format of Python's is first asked for.
If one of them fails, be it of another package, it finds none; and its error about an unknown format
does not say so.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from rocketpy.connector.source import RocketPyDataSource

# What each stream's start writes, with values of its own, into the one map of environment variables
# that all uses of a Python format share in a driver.
_WRITTEN_BY_STREAMS = (
    "SPARK_LOCAL_DIRS",
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_PYTHON_RUNTIME",
)


_DEFAULT_PYTHON = "python3"  # what Spark starts when PYSPARK_PYTHON is not set: the path's first


def register(spark: SparkSession) -> None:
    """Make `format("rocketpy")` known to a session. Doing so twice is fine.

    It also lets streams start at the same moment, which Spark does not for a format that it found
    by itself. In a local session that was not told which Python to start, it is this one from now
    on: in a virtual environment that is not activated Spark starts one that lacks the package.
    """
    _start_this_python(spark)
    spark.dataSource.register(RocketPyDataSource)
    _let_streams_start_together(spark)


def _start_this_python(spark: SparkSession) -> None:
    if getattr(spark, "_jsparkSession", None) is None:  # Spark Connect: the server has its own
        return
    context = spark.sparkContext
    if context.pythonExec == _DEFAULT_PYTHON and str(context.master).startswith("local"):
        context.pythonExec = sys.executable


def _let_streams_start_together(spark: SparkSession) -> None:
    """Put the names that streams are to write in place, before there are two threads to do so.

    The map is not made for threads. Two streams that add the same name at once can count it twice,
    and from then on no task of the format can be serialized: "Illegal size 5 of collection,
    expected 6". Names that are there are replaced, which is safe.
    """
    session = getattr(spark, "_jsparkSession", None)
    if session is None:  # Spark Connect: the map is in the server, out of reach
        return
    with suppress(Py4JError):  # no public API: a later Spark may have no such map, nor the need
        source = session.sessionState().dataSourceManager().lookupDataSource("rocketpy")
        variables = source.dataSourceCls().envVars()
        for name in _WRITTEN_BY_STREAMS:
            variables.putIfAbsent(name, "")
