"""Which dead letters of a group a job is about, as a DataFrame without their bodies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.metadata.names import check_group_name, dead_letter_topic
from rocketpy.broker_core.property_names import CAUSE, RETRY_TOPIC
from rocketpy.spark_jobs.job_cluster import JobCluster, JobPlace, cluster_of, folder_of

_POSITION = ("broker", "queue_id", "queue_offset")
_COLUMNS = f"{','.join(_POSITION)},msg_id,keys,tags,properties,store_timestamp"
_OPTIONS = {"since": "startingTimestamp", "until": "endingTimestamp", "tags": "tags", "sql": "sql"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """A selection of a group's dead letters; what is not given selects all.

    `path` is the folder of a store, or a cluster: rocketmq://ns1:9876;ns2:9876. Times are when
    messages were given up: milliseconds, or a text like 2026-01-31T08:00:00Z; `until` itself is
    left out. `tags` and `sql` are filters as consumers write them, `keys` names with commas.
    `cause` is a part of the cause, `cause_pattern` a regular expression found in it.

    Raises:
        GroupNameError: RocketMQ would not take the name.
        MessageRefusedError: the pattern is no regular expression.
    """

    path: JobPlace
    group: str
    since: str | int | None = None
    until: str | int | None = None
    tags: str | None = None
    keys: str | None = None
    sql: str | None = None
    cause: str | None = None
    cause_pattern: str | None = None

    def __post_init__(self) -> None:
        check_group_name(self.group)
        if self.cause_pattern is not None:
            try:
                re.compile(self.cause_pattern)
            except re.error as cause:
                what = f"cause_pattern={self.cause_pattern!r}"
                raise MessageRefusedError(what, f"no regular expression: {cause}") from cause

    @property
    def root(self) -> Path:
        """The store, by a path that holds in every process."""
        return folder_of(self.path, needs="this needs", instead="give the folder of a broker")

    @property
    def cluster(self) -> JobCluster | None:
        """The cluster; None if they are in a folder."""
        return cluster_of(self.path)

    def source_options(self) -> dict[str, str]:
        """Return the options of format 'rocketpy' that say where they are."""
        return {"path": str(self.root)} if self.cluster is None else self.cluster.options()

    @property
    def topic(self) -> str:
        """Where the group's dead letters are."""
        return dead_letter_topic(self.group)

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the selected ones: position, msg_id, keys, tags, died_at, cause, first_topic.

        Raises:
            OptionError: a filter is wrong.
        """
        given = {option: getattr(self, name) for name, option in _OPTIONS.items()}
        given |= {"keys": self.keys}
        reader = spark.read.format("rocketpy").options(**self.source_options())
        reader = reader.option("topic", self.topic).option("columns", _COLUMNS)
        for option, value in given.items():
            if value is not None:
                reader = reader.option(option, str(value))
        rows = reader.load().select(
            *_POSITION,
            *("msg_id", "keys", "tags"),
            F.col("store_timestamp").alias("died_at"),
            F.col("properties")[CAUSE].alias("cause"),
            F.col("properties")[RETRY_TOPIC].alias("first_topic"),
        )
        if self.cause is not None:
            rows = rows.where(F.col("cause").contains(self.cause))
        if self.cause_pattern is not None:
            rows = rows.where(F.col("cause").rlike(self.cause_pattern))
        return rows
