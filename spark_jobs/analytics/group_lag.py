"""The lag of groups: now, over time, and since when.

A store keeps where groups are, not where they were. So lag over time is of samples that somebody
takes (`record_lag`); what can be known without them is how much of what waits now waited already
at a time in the past (`backlog`).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from rocketpy.broker_core.clock import Clock, SystemClock
from rocketpy.broker_core.errors import GroupNotFoundError, TopicNotFoundError
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.tables import table_of
from rocketpy.spark_jobs.analytics.arguments import ArgumentError, Time, time_ms, window_text
from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews
from rocketpy.spark_jobs.queue_ranges import range_options

_QUEUE = ["topic", "broker", "queue_id"]
_SIZES = pa.schema(
    {
        "consumer_group": pa.string(),
        "topic": pa.string(),
        "broker": pa.string(),
        "queue_id": pa.int32(),
        "size": pa.int64(),
    }
)
_SAMPLE = ("consumer_group", *_QUEUE, "committed_offset", "end_offset", "lag", "lag_seconds")


def lag(spark: SparkSession, store_path: StorePath, now: Time | None = None) -> DataFrame:
    """Return the lag of each group in each topic, at the moment of the call.

    Columns: consumer_group, topic, queues (committed so far), messages, bytes, age_seconds (how
    long the oldest message that was not consumed has been waiting). Null if the topic is gone.
    `now` is what ages are counted to: give the time of the copy for a copy of a store.

    Reads `groups`, and `queues` from the committed offsets on (topic, broker, queue_id,
    queue_offset, store_size). Of a cluster bytes are estimated, by the first messages that wait in
    each queue.
    """
    views = StoreViews.of(spark, store_path)
    batch = views.groups(time_ms("now", now))
    positions = views.frame(batch)
    rows = [row for row in batch.to_pylist() if row["lag"]]
    if rows and views.is_cluster:
        positions = positions.join(
            _estimated_sizes(views, rows), ["consumer_group", *_QUEUE], "left"
        )
    elif rows:
        columns = ",".join([*_QUEUE, "queue_offset", "store_size"])
        waiting = views.queues(columns, **_ranges(rows))
        sizes = waiting.join(F.broadcast(positions), _QUEUE)
        sizes = sizes.where("queue_offset >= committed_offset AND queue_offset < end_offset")
        of_group = ["consumer_group", *_QUEUE]
        sizes = sizes.groupBy(*of_group).agg(F.sum("store_size").alias("size"))
        positions = positions.join(F.broadcast(sizes), of_group, "left")
    else:
        positions = positions.withColumn("size", F.lit(0).cast("long"))
    known = F.when(F.col("lag").isNotNull(), F.coalesce("size", F.lit(0)))
    return (
        positions.groupBy("consumer_group", "topic")
        .agg(
            F.count("*").alias("queues"),
            F.sum("lag").alias("messages"),
            F.sum(known).alias("bytes"),
            F.max("lag_seconds").alias("age_seconds"),
        )
        .orderBy(F.desc("messages"), "consumer_group", "topic")
    )


def _ranges(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the options that read what some group has not consumed."""
    ranges: dict[MessageQueue, tuple[int, int]] = {}
    for row in rows:
        queue, first = _waiting(row)
        before, _ = ranges.get(queue, (first, 0))
        ranges[queue] = min(first, before), row["end_offset"]
    return range_options(ranges)


def _waiting(row: dict[str, Any]) -> tuple[MessageQueue, int]:
    """Return a queue, and the first offset of it that a group has not consumed."""
    queue = MessageQueue(row["topic"], row["broker"], row["queue_id"])
    return queue, max(row["committed_offset"], row["min_offset"])


def _estimated_sizes(views: StoreViews, rows: list[dict[str, Any]]) -> DataFrame:
    """Return about how many bytes wait in each queue of a group."""
    found = []
    with views.opened() as backend:
        for row in rows:
            queue, first = _waiting(row)
            sizes = backend.sizes(queue, first, row["end_offset"])
            mean = float(sizes.mean()) if sizes.size else 0.0
            found.append((row["consumer_group"], *queue, round(mean * row["lag"])))
    return views.frame(table_of(found, _SIZES))


def backlog(
    spark: SparkSession,
    store_path: StorePath,
    group: str,
    *,
    topic: str,
    every: str = "1 minute",
) -> DataFrame:
    """Return when the messages came in that a group has not consumed yet.

    Columns: start, end, messages, bytes (that came in the window and wait now), backlog (those and
    all before). The group consumes forward only, so `backlog` is the least lag that it had at the
    end of a window; nobody noted how much more it was. It is also the lag that there would have
    been had it stopped where it is now.

    Reads `messages` of the topic from the group's offsets on (store_timestamp, store_size).

    Raises:
        TopicNotFoundError, GroupNotFoundError: the store does not know it; names the nearest.
    """
    length = window_text(every)
    views = StoreViews.of(spark, store_path)
    chosen = views.chosen(topic)
    _check_committed(views, group, topic)
    rows = views.messages("store_timestamp,store_size", consumerGroup=group, **chosen)
    return (
        rows.groupBy(F.window("store_timestamp", length))
        .agg(F.count("*").alias("messages"), F.sum("store_size").alias("bytes"))
        .select(
            F.col("window.start").alias("start"),
            F.col("window.end").alias("end"),
            *("messages", "bytes"),
        )
        .withColumn(
            "backlog", F.sum("messages").over(Window.partitionBy(F.lit(0)).orderBy("start"))
        )
        .orderBy("start")
    )


def _check_committed(views: StoreViews, group: str, topic: str) -> None:
    known = views.groups_of(topic)
    if group not in known:
        raise GroupNotFoundError(group, known)


def record_lag(
    spark: SparkSession,
    store_path: StorePath,
    samples: str,
    *,
    format: str = "parquet",
    clock: Clock | None = None,
) -> None:
    """Append to a table the lag of every group now, queue by queue.

    Call it as often as you want to know it, from a scheduler or from `foreachBatch`. Columns:
    sampled_at, consumer_group, topic, broker, queue_id, committed_offset, end_offset, lag,
    lag_seconds. With `format="delta"` an append is seen whole or not at all.

    Reads `groups`.
    """
    views = StoreViews.of(spark, store_path)
    now_ms = (clock or SystemClock()).now_ms()
    batch = views.groups(now_ms).select(_SAMPLE)
    time = pa.repeat(pa.scalar(now_ms * 1000, pa.timestamp("us", tz="UTC")), batch.num_rows)
    field = pa.field("sampled_at", time.type, nullable=False)
    sample = pa.RecordBatch.from_arrays(
        [time, *batch.columns], schema=pa.schema([field, *batch.schema])
    )
    views.frame(sample).coalesce(1).write.format(format).mode("append").save(samples)


def lag_over_time(
    spark: SparkSession,
    samples: str,
    group: str,
    *,
    topic: str | None = None,
    every: str = "1 minute",
    format: str = "parquet",
) -> DataFrame:
    """Return the lag of a group over time, from the samples that `record_lag` has taken.

    Columns: topic, start, end, messages, age_seconds, samples (how many there are in the window).
    A window has the values of its last sample; one without a sample has no row: what was between
    samples is not known.

    Reads the table of samples alone.

    Raises:
        ArgumentError: there is no such table.
        GroupNotFoundError, TopicNotFoundError: it has no sample of it; names the nearest.
    """
    length = window_text(every)
    try:
        table = spark.read.format(format).load(samples)
    except AnalysisException as cause:
        reason = f"is {samples!r}, which is no table of {format}; take samples with record_lag()"
        raise ArgumentError("samples", reason) from cause
    pairs = [tuple(row) for row in table.select("consumer_group", "topic").distinct().collect()]
    topics = {of for name, of in pairs if name == group}
    if not topics:
        raise GroupNotFoundError(group, {name for name, _ in pairs})
    if topic is not None and topic not in topics:
        raise TopicNotFoundError(topic, topics)
    rows = table.where(F.col("consumer_group") == group)
    if topic is not None:
        rows = rows.where(F.col("topic") == topic)
    return _last_of_windows(rows, length)


def _last_of_windows(rows: DataFrame, length: str) -> DataFrame:
    last = F.max_by(F.struct("lag", "lag_seconds"), "sampled_at").alias("last")
    by_queue = rows.groupBy(*_QUEUE, F.window("sampled_at", length)).agg(
        last, F.count_distinct("sampled_at").alias("samples")
    )
    return (
        by_queue.groupBy("topic", "window")
        .agg(
            F.sum("last.lag").alias("messages"),
            F.max("last.lag_seconds").alias("age_seconds"),
            F.max("samples").alias("samples"),
        )
        .select(
            "topic",
            F.col("window.start").alias("start"),
            F.col("window.end").alias("end"),
            *("messages", "age_seconds", "samples"),
        )
        .orderBy("start", "topic")
    )
