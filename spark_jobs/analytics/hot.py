"""Which tags and keys have most of the messages."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.spark_jobs.analytics.arguments import ArgumentError, check_count
from rocketpy.spark_jobs.analytics.names import (
    hash_of_key,
    hash_of_tag,
    key_names,
    tag_entries,
    tag_names,
    topic_names,
)
from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews, Topics


def hot_tags(
    spark: SparkSession, store_path: StorePath, n: int = 10, *, topics: Topics = None
) -> DataFrame:
    """Return the `n` tags that most messages have.

    Columns: topic, tag (null: no tag), tag_code, messages, bytes, share (of all messages of the
    topics asked for), cumulative_share. Tags of the same hash count as one, as they do for brokers.

    Reads `queues` (topic, commit_log_offset, store_size, tag_code), and the properties of one
    message for each row that it returns; of a cluster `messages` (topic, tags, store_size).
    """
    check_count("n", n)
    views = StoreViews.of(spark, store_path)
    chosen = views.chosen(topics)
    if SCHEDULE_TOPIC in chosen.get("topic", "").split(","):
        reason = f"names {SCHEDULE_TOPIC}, whose queues have due times in place of tags; leave it"
        raise ArgumentError("topics", f"{reason} out")
    counts = _tag_counts(views, chosen)
    tag = F.col("tag") if views.is_cluster else tag_names(views.path)("physical_offset")
    shared = counts.withColumn("all_messages", F.sum("messages").over(_all()))
    order = F.desc("messages"), F.asc("topic"), F.asc("tag_code")
    top = shared.orderBy(*order).limit(n)
    return top.select(
        "topic",
        tag.alias("tag"),
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
    What was sent one by one is in the index a moment later. Of a cluster it reads `messages`
    (topic, keys, uniq_key), and Spark counts each key.
    """
    check_count("n", n)
    views = StoreViews.of(spark, store_path)
    if views.is_cluster:
        return _hot_keys_of_messages(views, n, topics)
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


def _tag_counts(views: StoreViews, chosen: dict[str, str]) -> DataFrame:
    """Return how many messages have each tag, with their bytes."""
    if views.is_cluster:
        rows = views.counted("messages", "topic,tags", ("store_size:sum",), **chosen)
        code = F.coalesce(hash_of_tag("tags"), F.lit(0)).cast("long")
        rows = rows.select("topic", "messages", "store_size_sum", "tags", code.alias("tag_code"))
        picked = F.max("tags").alias("tag")
    else:
        of_each = ("store_size:sum", "commit_log_offset:max")
        rows = views.counted("queues", "topic,tag_code", of_each, **chosen)
        picked = F.max("commit_log_offset_max").alias("physical_offset")
    return rows.groupBy("topic", "tag_code").agg(
        F.sum("messages").alias("messages"), F.sum("store_size_sum").alias("bytes"), picked
    )


def _hot_keys_of_messages(views: StoreViews, n: int, topics: Topics) -> DataFrame:
    """Return the keys that most messages have, as messages tell them."""
    rows = views.messages("topic,keys,uniq_key", **views.chosen(topics))
    words = F.array_append(F.split(F.coalesce("keys", F.lit("")), KEY_SEPARATOR), F.col("uniq_key"))
    named = F.array_distinct(F.filter(words, lambda word: word.isNotNull() & (word != "")))
    keyed = rows.select("topic", F.explode(named).alias("key"))
    counts = keyed.groupBy("topic", "key").agg(F.count("*").alias("messages")).where("messages > 1")
    counted = counts.withColumn("key_hash", hash_of_key("topic", "key"))
    order = F.desc("messages"), F.asc("topic"), F.asc("key_hash")
    total = rows.agg(F.count("*").alias("all_messages"))
    shared = counted.orderBy(*order).limit(n).crossJoin(F.broadcast(total))
    return shared.select(*("topic", "key", "key_hash", "messages"), *_shares(*order)).orderBy(
        *order
    )


def _all() -> WindowSpec:
    """Return a window over all rows, which are few by then."""
    return Window.partitionBy(F.lit(0))


def _shares(*order: Column) -> tuple[Column, Column]:
    running = F.sum("messages").over(_all().orderBy(*order))
    return (
        (F.col("messages") / F.col("all_messages")).alias("share"),
        (running / F.col("all_messages")).alias("cumulative_share"),
    )
