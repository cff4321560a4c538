"""Which tags and keys have most of the messages."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.spark_jobs.analytics.arguments import ArgumentError, check_count
from rocketpy.spark_jobs.analytics.names import key_names, tag_entries, tag_names, topic_names
from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews, Topics


def hot_tags(
    spark: SparkSession, store_path: StorePath, n: int = 10, *, topics: Topics = None
) -> DataFrame:
    """Return the `n` tags that most messages have.

    Columns: topic, tag (null: no tag), tag_code, messages, bytes, share (of all messages of the
    topics asked for), cumulative_share. Tags of the same hash count as one, as they do for brokers.

    Reads `queues` (topic, commit_log_offset, store_size, tag_code), and the properties of one
    message for each row that it returns.
    """
    check_count("n", n)
    views = StoreViews.of(spark, store_path)
    chosen = views.chosen(topics)
    if SCHEDULE_TOPIC in chosen.get("topic", "").split(","):
        reason = f"names {SCHEDULE_TOPIC}, whose queues have due times in place of tags; leave it"
        raise ArgumentError("topics", f"{reason} out")
    of_each = ("store_size:sum", "commit_log_offset:max")
    rows = views.counted("queues", "topic,tag_code", of_each, **chosen)
    counts = rows.groupBy("topic", "tag_code").agg(
        F.sum("messages").alias("messages"),
        F.sum("store_size_sum").alias("bytes"),
        F.max("commit_log_offset_max").alias("physical_offset"),
    )
    shared = counts.withColumn("all_messages", F.sum("messages").over(_all()))
    order = F.desc("messages"), F.asc("topic"), F.asc("tag_code")
    top = shared.orderBy(*order).limit(n)
    return top.select(
        "topic",
        tag_names(views.path)("physical_offset").alias("tag"),
        *("tag_code", "messages", "bytes"),
        *_shares(*order),
    ).orderBy(*order)


def hot_keys(
    spark: SparkSession, store_path: StorePath, n: int = 10, *, topics: Topics = None
) -> DataFrame:
    """Return the `n` keys that most messages have; a key that one message alone has is none.

    Columns: topic, key, key_hash, messages, share (of all messages of the topics asked for, those
    without keys included), cumulative_share. A message with several keys counts at each, so the
    shares of all keys may add up to more than 1. A unique key counts as a key: it comes here if
    messages were sent twice. Keys with the same hash, which includes the topic, count as one.

    Reads `index` (key_hash, commit_log_offset) and `queues` (topic, commit_log_offset, tag_code),
    and one message for each tag, as the index has tags too, and for each key of several messages.
    What was sent one by one is in the index a moment later.
    """
    check_count("n", n)
    views = StoreViews.of(spark, store_path)
    counts_by_tag = views.counted(
        "queues", "topic,tag_code", ("commit_log_offset:max",), **views.chosen(topics)
    )
    total = counts_by_tag.agg(F.coalesce(F.sum("messages"), F.lit(0)).alias("all_messages"))
    tags = (
        counts_by_tag.where("tag_code <> 0")
        .groupBy("topic", "tag_code")
        .agg(F.max("commit_log_offset_max").alias("physical_offset"))
        .select("topic", tag_entries(views.path)("physical_offset").alias("key_hash"))
    )
    of_topics = F.broadcast(counts_by_tag.select("topic").distinct())
    named = views.repeated_hashes().withColumn("topic", topic_names(views.path)("physical_offset"))
    counts = named.join(of_topics, "topic", "left_semi")
    order = F.desc("messages"), F.asc("topic"), F.asc("key_hash")
    top = counts.join(F.broadcast(tags), ["topic", "key_hash"], "left_anti").orderBy(*order)
    shared = top.limit(n).crossJoin(F.broadcast(total))
    return shared.select(
        "topic",
        key_names(views.path)("key_hash", "physical_offset").alias("key"),
        *("key_hash", "messages"),
        *_shares(*order),
    ).orderBy(*order)


def _all() -> WindowSpec:
    """Return a window over all rows, which are few by then."""
    return Window.partitionBy(F.lit(0))


def _shares(*order: Column) -> tuple[Column, Column]:
    running = F.sum("messages").over(_all().orderBy(*order))
    return (
        (F.col("messages") / F.col("all_messages")).alias("share"),
        (running / F.col("all_messages")).alias("cumulative_share"),
    )
