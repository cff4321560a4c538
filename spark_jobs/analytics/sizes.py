"""How large messages are: of whole records, as the consume queues have it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews, Topics


def message_sizes(spark: SparkSession, store_path: StorePath, topics: Topics = None) -> DataFrame:
    """Return how large the messages of each topic are, in bytes.

    Columns: topic, messages, bytes, mean, p50, p95, p99, max. A percentile is the size of a
    message that is there.

    Reads `queues` (topic, store_size).
    """
    views = StoreViews.of(spark, store_path)
    sizes = _sizes(views, topics)
    by_topic = Window.partitionBy("topic")
    running = F.sum("messages").over(by_topic.orderBy("store_size"))
    ranked = sizes.select(
        "*", running.alias("running"), F.sum("messages").over(by_topic).alias("all_messages")
    )
    percentiles = [
        F.min(F.expr(f"CASE WHEN running * 100 >= {at} * all_messages THEN store_size END")).alias(
            f"p{at}"
        )
        for at in (50, 95, 99)
    ]
    size, messages = F.sum(F.col("store_size") * F.col("messages")), F.sum("messages")
    return (
        ranked.groupBy("topic")
        .agg(
            messages.alias("messages"),
            size.alias("bytes"),
            (size / messages).alias("mean"),
            *percentiles,
            F.max("store_size").alias("max"),
        )
        .orderBy(F.desc("bytes"), "topic")
    )


def size_histogram(spark: SparkSession, store_path: StorePath, topics: Topics = None) -> DataFrame:
    """Return how many messages of each topic there are of each size, in powers of two.

    Columns: topic, from_bytes (included), to_bytes (not included), messages, share (of the topic).
    Sizes that no message has are left out.

    Reads `queues` (topic, store_size).
    """
    views = StoreViews.of(spark, store_path)
    rows = _sizes(views, topics)
    # The digits of the binary number: a logarithm is not exact at the powers themselves.
    power = (F.length(F.bin("store_size")) - 1).alias("power")
    counts = rows.groupBy("topic", power).agg(F.sum("messages").alias("messages"))
    total = F.sum("messages").over(Window.partitionBy("topic"))
    return counts.select(
        "topic",
        F.expr("shiftleft(1L, power)").alias("from_bytes"),
        F.expr("shiftleft(2L, power)").alias("to_bytes"),
        "messages",
        (F.col("messages") / total).alias("share"),
    ).orderBy("topic", "from_bytes")


def _sizes(views: StoreViews, topics: Topics) -> DataFrame:
    """Return how many messages of each topic have each size."""
    rows = views.counted(views.entries, "topic,store_size", **views.chosen(topics))
    return rows.groupBy("topic", "store_size").agg(F.sum("messages").alias("messages"))
