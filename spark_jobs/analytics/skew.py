"""How evenly messages and keys are spread over the queues of a topic.

Two measures, both over all queues of a topic, the empty ones too: `max_over_mean` is the largest
queue's messages over the mean of all (1: all equal; as many as there are queues: all in one).
`gini` is the Gini coefficient of the messages per queue (0: all equal; (n-1)/n: all in one of n).
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.connector.tables import table_of
from rocketpy.spark_jobs.analytics.arguments import ArgumentError
from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews, Topics

_QUEUE = ["broker", "queue_id"]
_QUEUES = pa.schema({"broker": pa.string(), "queue_id": pa.int32()})
_COUNTS = pa.schema(
    {"topic": pa.string(), "broker": pa.string(), "queue_id": pa.int32(), "count": pa.int64()}
)
# Over the queues in ascending order, of which the first are those that have no entry at all.
_RANKED = """aggregate(
    transform(array_sort(counts), (count, rank) -> (rank + 1 + queues - size(counts)) * count),
    CAST(0 AS BIGINT), (total, each) -> total + each
)"""


def queue_skew(spark: SparkSession, store_path: StorePath, topics: Topics = None) -> DataFrame:
    """Return how evenly the messages of each topic are spread over its queues.

    Columns: topic, queues, messages, largest_queue (its id), largest_broker, largest_share,
    max_over_mean, gini; the measures are defined in this module. Topics without a message are left
    out.

    Reads `queues` (topic, broker, queue_id) and `topics` (topic, queues); of a cluster no message:
    its queues are counted by their offsets.
    """
    views = StoreViews.of(spark, store_path)
    queue_counts = _queue_counts(views, topics)
    by_topic = queue_counts.groupBy("topic").agg(
        F.sum("count").alias("messages"),
        F.max("count").alias("most"),
        F.max_by(F.struct("queue_id", "broker"), "count").alias("largest"),
        F.collect_list("count").alias("counts"),
    )
    ranked = 2 * F.expr(_RANKED) / (F.col("queues") * F.col("messages"))
    return (
        by_topic.join(F.broadcast(views.topics("topic,queues")), "topic")
        .select(
            *("topic", "queues", "messages"),
            F.col("largest.queue_id").alias("largest_queue"),
            F.col("largest.broker").alias("largest_broker"),
            (F.col("most") / F.col("messages")).alias("largest_share"),
            (F.col("most") * F.col("queues") / F.col("messages")).alias("max_over_mean"),
            (ranked - (F.col("queues") + 1) / F.col("queues")).alias("gini"),
        )
        .orderBy(F.desc("max_over_mean"), "topic")
    )


def _queue_counts(views: StoreViews, topics: Topics) -> DataFrame:
    """Return how many messages each queue has that has any."""
    chosen = views.chosen(topics)
    if not views.is_cluster:
        rows = views.counted("queues", "topic,broker,queue_id", **chosen)
        return rows.groupBy("topic", "broker", "queue_id").agg(F.sum("messages").alias("count"))
    ranges = views.ranges(chosen)
    filled = [(*queue, end - first) for queue, (first, end) in ranges.items() if first < end]
    return views.frame(table_of(filled, _COUNTS))


def key_skew(spark: SparkSession, store_path: StorePath, topic: str) -> DataFrame:
    """Return what each queue of a topic has: messages, and keys.

    Columns: broker, queue_id, messages, share (of the topic), over_mean (its messages over the mean
    of all queues: the greatest is `max_over_mean`), keys (different ones), hottest_key,
    hottest_messages (how many messages of the queue have it). A key in several queues counts in
    each.

    Reads `messages` of the topic (broker, queue_id, keys): in the index, keys cannot be told from
    the unique keys that producers add to each message.
    """
    if not isinstance(topic, str):
        raise ArgumentError("topic", f"is {topic!r}; give the name of one topic")
    views = StoreViews.of(spark, store_path)
    rows = views.messages("broker,queue_id,keys", **views.chosen(topic))
    words = F.filter(F.split("keys", KEY_SEPARATOR), lambda word: word != "")
    keyed = rows.select(*_QUEUE, F.explode_outer(F.array_distinct(words)).alias("key"))
    by_key = keyed.where("key IS NOT NULL").groupBy(*_QUEUE, "key").count()
    by_queue = by_key.groupBy(*_QUEUE).agg(
        F.count("*").alias("keys"),
        F.max_by("key", "count").alias("hottest_key"),
        F.max("count").alias("hottest_messages"),
    )
    queue_counts = rows.groupBy(*_QUEUE).agg(F.count("*").alias("messages"))
    everything = Window.partitionBy(F.lit(0))
    found = (
        _queues(views, topic).join(queue_counts, _QUEUE, "left").join(by_queue, _QUEUE, "left")
    ).fillna(0, ["messages", "keys", "hottest_messages"])
    total, mean = F.sum("messages").over(everything), F.avg("messages").over(everything)
    return found.select(
        *_QUEUE,
        "messages",
        F.when(total > 0, F.col("messages") / total).alias("share"),
        F.when(total > 0, F.col("messages") / mean).alias("over_mean"),
        *("keys", "hottest_key", "hottest_messages"),
    ).orderBy(*_QUEUE)


def _queues(views: StoreViews, topic: str) -> DataFrame:
    """Return all queues of a topic, those without an entry too."""
    queues = sorted(views.ranges({"topic": topic}))
    rows = [(queue.broker, queue.queue_id) for queue in queues]
    return views.frame(table_of(rows, _QUEUES))
