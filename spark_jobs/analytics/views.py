"""The views of one store or cluster as DataFrames, each with only the columns an answer needs.

The store is opened, read only, on the driver for its names and offsets; rows are read by tasks.
What retention deletes while they read is not counted. No body is ever asked for.

A cluster has no entries of queues and no index: what is in them is read from its messages, over the
network. What only files have is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
from rocketpy.broker_core.store_path import store_path as folder_at
from rocketpy.connector.backend import Backend
from rocketpy.connector.backends import opened
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.topics import stored_ranges
from rocketpy.connector.view_partitions import opened_views, tables_of
from rocketpy.spark_jobs.analytics.arguments import ArgumentError
from rocketpy.spark_jobs.analytics.counted import CountedSource
from rocketpy.spark_jobs.analytics.repeated import RepeatedSource
from rocketpy.spark_jobs.job_cluster import JobCluster, JobPlace, cluster_of, folder_of
from rocketpy.spark_jobs.store_folder import require_store

StorePath = JobPlace  # a folder, or a cluster
Topics = str | Sequence[str] | None  # a name, several, or None: all but RocketMQ's own

NORMAL_TOPICS = {"topicPattern": ".*"}


@dataclass(frozen=True, slots=True)
class StoreViews:
    """One store or cluster, to be read by one session."""

    spark: SparkSession
    place: Mapping[str, str]  # the options of format 'rocketpy' that mean it, in every process
    is_cluster: bool

    @classmethod
    def of(cls, spark: SparkSession, store: StorePath) -> StoreViews:
        """Return the views of a store or of a cluster.

        Raises:
            StoreNotFoundError: it is none.
        """
        cluster = cluster_of(store)
        if cluster is not None:
            return cls(spark, cluster.options(), is_cluster=True)
        assert not isinstance(store, JobCluster)
        root = folder_at(store).absolute()
        require_store(root)
        return cls(spark, {"path": str(root)}, is_cluster=False)

    @classmethod
    def of_folder(cls, spark: SparkSession, store: StorePath, why: str) -> StoreViews:
        """Return the views of a store, for an answer that no cluster can give.

        Raises:
            JobRefusedError: it is a cluster.
            StoreNotFoundError: it is no store.
        """
        instead = "run it where a broker keeps its store"
        return cls.of(spark, folder_of(store, needs=f"{why}, which needs", instead=instead))

    @property
    def path(self) -> str:
        """The folder of the store."""
        return self.place["path"]

    def opened(self) -> AbstractContextManager[Backend]:
        """Open it on the driver."""
        return opened(self._options)

    @property
    def _options(self) -> ReadOptions:
        return ReadOptions.parse({**self.place, "view": "topics"})

    @property
    def entries(self) -> str:
        """The view that has a small row for each message: `messages` where there is no other."""
        return "messages" if self.is_cluster else "queues"

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
        reader = reader.options(view="index", columns="key_hash,commit_log_offset")
        return reader.load(self.path)

    def counted(
        self, view: str, group_by: str, aggregates: Sequence[str] = (), **options: str
    ) -> DataFrame:
        """Return a view with equal rows counted by the tasks that read them: see counted.py."""
        self.spark.dataSource.register(CountedSource)
        others = [each.partition(":")[0] for each in aggregates]
        columns = ",".join(dict.fromkeys([*group_by.split(","), *others]))
        reader = self.spark.read.format(CountedSource.name()).option("view", view)
        counting = {"groupBy": group_by, "aggregates": ",".join(aggregates)}
        reader = reader.options(columns=columns, failOnDataLoss="false", **counting, **options)
        return reader.options(**self.place).load()

    def topics(self, columns: str) -> DataFrame:
        """Return the topics with what they hold."""
        return self._load("topics", columns)

    def groups(self, now_ms: int | None = None) -> pa.RecordBatch:
        """Return the view `groups` as it is at this moment: a row for each queue of a group."""
        with self.opened() as backend:
            return tables_of(self._options, backend).table("groups", now_ms)

    def members(self) -> pa.RecordBatch:
        """Return the members of groups that live, a row for each of their topics."""
        with self.opened() as backend:
            return tables_of(self._options, backend).table("members")

    def groups_of(self, topic: str | None = None) -> set[str]:
        """Return the groups that committed offsets, of a topic or of any."""
        if self.is_cluster:
            rows = self.groups().select(["consumer_group", "topic"]).to_pylist()
            return {row["consumer_group"] for row in rows if topic in (None, row["topic"])}
        with opened_views(self._options) as views:
            return views.group_names(topic)

    def ranges(self, chosen: Mapping[str, str]) -> dict[MessageQueue, tuple[int, int]]:
        """Return the range of offsets stored in each queue of topics, as chosen() has them.

        Raises:
            UnreachableError: a broker does not answer.
        """
        options = ReadOptions.parse({**self.place, **chosen})
        with opened(options) as backend:
            return stored_ranges(options, backend)

    def frame(self, batch: pa.RecordBatch) -> DataFrame:
        """Return a small table of the driver's as a DataFrame."""
        return self.spark.createDataFrame(pa.Table.from_batches([batch]))

    def _load(self, view: str, columns: str, **options: str) -> DataFrame:
        reader = self.spark.read.format("rocketpy").option("view", view)
        return reader.options(columns=columns, **options, **self.place).load()

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
