"""What groups sent back, and what they gave up: how many, of which topic, why."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rocketpy.broker_core.metadata.names import DEAD_LETTER_TOPIC_PREFIX, RETRY_TOPIC_PREFIX
from rocketpy.broker_core.property_names import CAUSE, RETRY_TOPIC
from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews


def retries(spark: SparkSession, store_path: StorePath, group: str | None = None) -> DataFrame:
    """Return how many messages came to groups once more, by cause.

    Columns: consumer_group, first_topic, cause, attempts (which try it is, from 1), messages,
    oldest, newest (store times). A message that failed three times counts at attempts 1, 2 and 3;
    what still waits for its delay does not count yet. The cause is null where none was given, as by
    Apache's clients.

    Reads `messages` of the retry topics (topic, properties, reconsume_times, store_timestamp).

    Raises:
        GroupNotFoundError: the store knows no such group.
    """
    return _counted(spark, store_path, RETRY_TOPIC_PREFIX, group)


def dead_letters(spark: SparkSession, store_path: StorePath, group: str | None = None) -> DataFrame:
    """Return how many messages groups have given up, by cause.

    Columns as of `retries`; attempts is how often a message had been sent back. Those that were
    replayed since are still there, and count.

    Reads `messages` of the dead-letter topics (the same columns).

    Raises:
        GroupNotFoundError: the store knows no such group.
    """
    return _counted(spark, store_path, DEAD_LETTER_TOPIC_PREFIX, group)


def _counted(
    spark: SparkSession, store_path: StorePath, prefix: str, group: str | None
) -> DataFrame:
    views = StoreViews.of(spark, store_path)
    rows = views.messages(
        "topic,properties,reconsume_times,store_timestamp", **views.topics_of_groups(prefix, group)
    )
    return (
        rows.groupBy(
            F.substring("topic", len(prefix) + 1, 255).alias("consumer_group"),
            F.col("properties")[RETRY_TOPIC].alias("first_topic"),
            F.col("properties")[CAUSE].alias("cause"),
            F.col("reconsume_times").alias("attempts"),
        )
        .agg(
            F.count("*").alias("messages"),
            F.min("store_timestamp").alias("oldest"),
            F.max("store_timestamp").alias("newest"),
        )
        .orderBy("consumer_group", F.desc("messages"), "first_topic", "cause", "attempts")
    )
