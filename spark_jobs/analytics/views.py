"""The views of one store as DataFrames, each with only the columns that an answer needs.

The store is opened, read only, on the driver for its names and offsets; rows are read by tasks.
What retention deletes while they read is not counted. No body is ever asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rocketpy.broker_core.errors import (
    GroupNotFoundError,
    TopicNotFoundError,
)
from rocketpy.broker_core.metadata.names import (
    DEAD_LETTER_TOPIC_PREFIX,
    RETRY_TOPIC_PREFIX,
    check_group_name,
)
from rocketpy.broker_core.store_path import store_path as folder_of
from rocketpy.connector.backend import Backend, Views
from rocketpy.connector.backends import opened
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.view_partitions import opened_views
from rocketpy.spark_jobs.analytics.arguments import ArgumentError
from rocketpy.spark_jobs.analytics.counted import CountedSource
from rocketpy.spark_jobs.analytics.repeated import RepeatedSource
from rocketpy.spark_jobs.store_folder import require_store

StorePath = str | os.PathLike[str]
Topics = str | Sequence[str] | None  # a name, several, or None: all but RocketMQ's own

NORMAL_TOPICS = {"topicPattern": ".*"}


@dataclass(frozen=True, slots=True)
class StoreViews:
    """One store, to be read by one session."""

    spark: SparkSession
    path: str  # holds in every process

    @classmethod
    def of(cls, spark: SparkSession, store: StorePath) -> StoreViews:
        """Return the views of a store.

        Raises:
            StoreNotFoundError: it is none.
        """
        root = folder_of(store).absolute()
        require_store(root)
        return cls(spark, str(root))

    def opened(self) -> AbstractContextManager[Backend]:
        """Open the store on the driver."""
        return opened(self._options)

    def opened_views(self) -> AbstractContextManager[Views]:
        """Open what the store has besides messages, on the driver."""
        return opened_views(self._options)

    @property
    def _options(self) -> ReadOptions:
        return ReadOptions(path=self.path)

    def queues(self, columns: str, **options: str) -> DataFrame:
        """Return entries of consume queues: 20 bytes a message, the log is not looked at."""
        return self._load("queues", columns, failOnDataLoss="false", **options)

    def messages(self, columns: str, **options: str) -> DataFrame:
        """Return messages; the records are checked as whole, and only the columns decoded."""
        return self._load("messages", columns, failOnDataLoss="false", **options)

    def repeated_hashes(self) -> DataFrame:
        """Return hashes that several entries of the index have: see repeated.py."""
        self.spark.dataSource.register(RepeatedSource)
        reader = self.spark.read.format(RepeatedSource.name())
        return reader.options(view="index", columns="key_hash,commit_log_offset").load(self.path)

    def counted(
        self, view: str, group_by: str, aggregates: Sequence[str] = (), **options: str
    ) -> DataFrame:
        """Return a view with equal rows counted by the tasks that read them: see counted.py."""
        self.spark.dataSource.register(CountedSource)
        others = [each.partition(":")[0] for each in aggregates]
        columns = ",".join(dict.fromkeys([*group_by.split(","), *others]))
        reader = self.spark.read.format(CountedSource.name()).option("view", view)
        counting = {"groupBy": group_by, "aggregates": ",".join(aggregates)}
        asked = reader.options(columns=columns, failOnDataLoss="false", **counting, **options)
        return asked.load(self.path)

    def topics(self, columns: str) -> DataFrame:
        """Return the topics with what they hold."""
        return self._load("topics", columns)

    def groups(self, now_ms: int | None = None) -> pa.RecordBatch:
        """Return the view `groups` as it is at this moment: a row for each queue of a group."""
        with self.opened_views() as views:
            return views.table("groups", now_ms)

    def groups_of(self, topic: str | None = None) -> set[str]:
        """Return the groups that committed offsets, of a topic or of any."""
        with self.opened_views() as views:
            return views.group_names(topic)

    def frame(self, batch: pa.RecordBatch) -> DataFrame:
        """Return a small table of the driver's as a DataFrame."""
        return self.spark.createDataFrame(pa.Table.from_batches([batch]))

    def _load(self, view: str, columns: str, **options: str) -> DataFrame:
        reader = self.spark.read.format("rocketpy").option("view", view)
        return reader.options(columns=columns, **options).load(self.path)

    def chosen(self, topics: Topics) -> dict[str, str]:
        """Return the options that read some topics.

        Raises:
            TopicNotFoundError: one does not exist; names the nearest.
        """
        if topics is None:
            return NORMAL_TOPICS
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names:
            raise ArgumentError("topics", "names no topic; give one, or None for all")
        with self.opened() as backend:
            known = backend.topics()
        for name in names:
            if name not in known:
                raise TopicNotFoundError(name, known)
        return {"topic": ",".join(names)}

    def topics_of_groups(self, prefix: str, group: str | None) -> dict[str, str]:
        """Return the options that read the retry or dead-letter topics of all groups, or of one.

        Raises:
            GroupNotFoundError: the store knows no such group.
        """
        if group is None:
            return {"topicPattern": f"{prefix}.*"}
        self.check_group(group)
        return {"topicPattern": re.escape(prefix + group)}

    def check_group(self, group: str) -> None:
        """Accept a group that has committed offsets, or has retries or dead letters.

        Raises:
            GroupNotFoundError: there is none; names the nearest.
        """
        check_group_name(group)
        known = self.groups_of()
        with self.opened() as backend:
            for topic in backend.topics():
                for prefix in (RETRY_TOPIC_PREFIX, DEAD_LETTER_TOPIC_PREFIX):
                    if topic.startswith(prefix):
                        known.add(topic.removeprefix(prefix))
        if group not in known:
            raise GroupNotFoundError(group, known)
