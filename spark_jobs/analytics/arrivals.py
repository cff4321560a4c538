"""How much came in, and when."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rocketpy.spark_jobs.analytics.arguments import Time, time_ms, window_text
from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews, Topics


def throughput(
    spark: SparkSession,
    store_path: StorePath,
    every: str = "1 minute",
    *,
    topics: Topics = None,
    start: Time | None = None,
    end: Time | None = None,
) -> DataFrame:
    """Return messages and bytes of each topic in each window of store time.

    Columns: topic, start, end, messages, bytes, messages_per_s, bytes_per_s. Windows begin at whole
    multiples of `every` since 1970 (UTC); one without a message has no row. `start` is included,
    `end` is not. Bytes are those of whole records.

    Reads `messages` (topic, store_timestamp, store_size): queue entries have no times, and the
    index has them only of messages with keys, to the second.
    """
    length = window_text(every)
    views = StoreViews.of(spark, store_path)
    bounds = {"startingTimestamp": time_ms("start", start), "endingTimestamp": time_ms("end", end)}
    options = {name: str(value) for name, value in bounds.items() if value is not None}
    rows = views.counted(
        "messages",
        "topic,store_timestamp",
        ("store_size:sum",),
        **views.chosen(topics),
        **options,
    )
    seconds = F.unix_timestamp("window.end") - F.unix_timestamp("window.start")
    return (
        rows.groupBy("topic", F.window("store_timestamp", length))
        .agg(F.sum("messages").alias("messages"), F.sum("store_size_sum").alias("bytes"))
        .select(
            "topic",
            F.col("window.start").alias("start"),
            F.col("window.end").alias("end"),
            "messages",
            "bytes",
            (F.col("messages") / seconds).alias("messages_per_s"),
            (F.col("bytes") / seconds).alias("bytes_per_s"),
        )
        .orderBy("start", "topic")
    )
