"""Batch reads in few columns, and counts: what a query needs is said before Spark plans it.

Spark tells a Python source nothing of the columns that a query needs, so `.select("body")` and
`.count()` have all columns made and drop them. Here they are asked for by an option.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from rocketpy.connector.cluster_options import name_servers_of

_COUNTED = "queue_offset"  # for it nothing of a message is decoded
_OF_MESSAGES = {"tags", "sql", "keys", "scan", "decompress"}  # options that need more than queues


def read(
    spark: SparkSession,
    place: str | os.PathLike[str],
    *,
    columns: Iterable[str] | str | None = None,
    **options: object,
) -> DataFrame:
    """Return the messages of a batch read, with these columns alone; without any, the usual ten.

    `place` is the folder of a store, or a cluster: rocketmq://ns1:9876;ns2:9876. Options have the
    names of the format's: `topic="orders"`, `tags="paid"`. What they name wrongly is refused here.

    Raises:
        AnalysisException: an option is wrong, or a column is none; Spark says so for the source.
    """
    given = {name: _text(value) for name, value in options.items() if value is not None}
    if columns is not None:
        given["columns"] = columns if isinstance(columns, str) else ",".join(columns)
    servers = name_servers_of(os.fspath(place))
    given |= {"path": os.fspath(place)} if servers is None else {"namesrvAddr": servers}
    return spark.read.format("rocketpy").options(**given).load()


def count(spark: SparkSession, place: str | os.PathLike[str], **options: object) -> int:
    """Return how many messages read() would return, at a part of the CPU of reading them.

    In a folder the entries of the queues are counted, and no message is looked at, unless an option
    such as `tags` or `sql` needs the messages.
    """
    given = {name: value for name, value in options.items() if name.lower() != "columns"}
    names = {name.lower() for name, value in given.items() if value is not None}
    if "view" in names:
        return read(spark, place, columns=None, **given).count()
    if name_servers_of(os.fspath(place)) is None and not names & _OF_MESSAGES:
        given["view"] = "queues"
    return read(spark, place, columns=_COUNTED, **given).count()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
