"""How large messages are: of whole records, as the consume queues have it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews, Topics


def message_sizes(spark: SparkSession, store_path: StorePath, topics: Topics = None) -> DataFrame:
    """Return how large the messages of each topic are, in bytes.

    Columns: topic, messages, bytes, mean, p50, p95, p99, max. A percentile is the size of a
    message that is there, off by at most one in 10,000 places of their order.

    Reads `queues` (topic, store_size).
    """
    views = StoreViews.of(spark, store_path)
    rows = views.queues("topic,store_size", **views.chosen(topics))
    at = F.percentile_approx("store_size", [0.5, 0.95, 0.99], 10_000)
    summary = rows.groupBy("topic").agg(
        F.count("*").alias("messages"),
        F.sum("store_size").alias("bytes"),
        F.avg("store_size").alias("mean"),
        at.alias("at"),
        F.max("store_size").alias("max"),
    )
    percentiles = [F.col("at")[row].alias(f"p{name}") for row, name in enumerate((50, 95, 99))]
    return summary.select("topic", "messages", "bytes", "mean", *percentiles, "max").orderBy(
        F.desc("bytes"), "topic"
    )


def size_histogram(spark: SparkSession, store_path: StorePath, topics: Topics = None) -> DataFrame:
    """Return how many messages of each topic there are of each size, in powers of two.

    Columns: topic, from_bytes (included), to_bytes (not included), messages, share (of the topic).
    Sizes that no message has are left out.

    Reads `queues` (topic, store_size).
    """
    views = StoreViews.of(spark, store_path)
    rows = views.queues("topic,store_size", **views.chosen(topics))
    # The digits of the binary number: a logarithm is not exact at the powers themselves.
    power = (F.length(F.bin("store_size")) - 1).alias("power")
    counts = rows.groupBy("topic", power).agg(F.count("*").alias("messages"))
    total = F.sum("messages").over(Window.partitionBy("topic"))
    return counts.select(
        "topic",
        F.expr("shiftleft(1L, power)").alias("from_bytes"),
        F.expr("shiftleft(2L, power)").alias("to_bytes"),
        "messages",
        (F.col("messages") / total).alias("share"),
    ).orderBy("topic", "from_bytes")
