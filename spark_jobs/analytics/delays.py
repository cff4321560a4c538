"""How late delayed messages were delivered.

A delivered message is a new record that does not say when it was due. That is known of the record
in which it waited: its queue entry holds the due time. The two are matched by what both have:
topic and queue that it is for, born time, check sum of the body, keys, unique key, and tries; of
several that are equal in all of that, by their order, as a level is delivered in order. Messages
with a delivery time of their own carry it along, and need no match.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, TIMER_TOPIC
from rocketpy.broker_core.property_names import DELAY, REAL_QUEUE, REAL_TOPIC, TIMER_DELIVER_MS
from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews, Topics

_ANY_TOPIC = {"topicPattern": "(?!%DLQ%).*"}  # retries are delivered messages, too
_DELIVERED = f"({DELAY} IS NOT NULL AND {DELAY} <> '0') OR {TIMER_DELIVER_MS} IS NOT NULL"
_SAME = "born_timestamp", "body_crc", "keys", "uniq_key", "reconsume_times"
_MATCH = [*_SAME, "level", "real_topic", "real_queue", "turn"]
_COLUMNS = (
    f"topic,queue_id,queue_offset,properties,store_timestamp,commit_log_offset,{','.join(_SAME)}"
)


def delay_accuracy(spark: SparkSession, store_path: StorePath, topics: Topics = None) -> DataFrame:
    """Return how long after their due time delayed messages were stored in their topics.

    Columns: kind (`level`, or `time` for those with a delivery time of their own), level (null for
    a time), messages, early (how many came before they were due: must be 0), min_ms, p50_ms,
    p99_ms, max_ms. Retries count with their levels. Messages whose waiting record retention has
    deleted cannot be matched, and are left out. A cluster is refused: its brokers keep due times
    to themselves.

    Reads `messages` of the topics and of the schedule topic (its queue, times, check sum of the
    body, keys, properties), and `queues` of the latter (queue_id, queue_offset, tag_code).
    """
    views = StoreViews.of_folder(spark, store_path, "due times are in the entries of queues")
    chosen = _ANY_TOPIC if topics is None else views.chosen(topics)
    delivered = views.messages(_COLUMNS, sql=_DELIVERED, **chosen).select(
        "*",
        F.col("properties")[TIMER_DELIVER_MS].cast("long").alias("wanted_ms"),
        _milliseconds("store_timestamp").alias("stored_ms"),
    )
    timed = delivered.where("wanted_ms IS NOT NULL").select(
        F.lit("time").alias("kind"),
        F.lit(None).cast("int").alias("level"),
        (F.col("stored_ms") - F.col("wanted_ms")).alias("late_ms"),
    )
    with views.opened() as backend:
        topics_there = backend.topics()
    # Nothing was delivered late where nothing ever waited: then no message is read.
    late = timed.where(F.lit(TIMER_TOPIC in topics_there))
    if SCHEDULE_TOPIC in topics_there:
        late = late.unionByName(_of_levels(views, delivered.where("wanted_ms IS NULL")))
    return _summary(late)


def _of_levels(views: StoreViews, delivered: DataFrame) -> DataFrame:
    """Return how late each message of a level was."""
    entries = views.queues("queue_id,queue_offset,tag_code", topic=SCHEDULE_TOPIC)
    waiting = views.messages(_COLUMNS, topic=SCHEDULE_TOPIC).join(
        entries.withColumnRenamed("tag_code", "due_ms"), ["queue_id", "queue_offset"]
    )
    came = _with_turn(delivered).where(F.col("topic") == F.col("real_topic"))
    matched = _with_turn(waiting).select(*_MATCH, "due_ms").alias("waiting")
    same = [F.col(f"came.{name}").eqNullSafe(F.col(f"waiting.{name}")) for name in _MATCH]
    return (
        came.alias("came")
        .join(matched, same)
        .select(
            F.lit("level").alias("kind"),
            F.col("came.level").alias("level"),
            (F.col("stored_ms") - F.col("due_ms")).alias("late_ms"),
        )
    )


def _with_turn(rows: DataFrame) -> DataFrame:
    """Add what a waiting and a delivered record agree in; of equal ones, which of them it is."""
    properties = F.col("properties")
    named = rows.select(
        "*",
        properties[DELAY].cast("int").alias("level"),
        properties[REAL_TOPIC].alias("real_topic"),
        properties[REAL_QUEUE].alias("real_queue"),
    )
    equal = Window.partitionBy(*_MATCH[:-1]).orderBy("commit_log_offset")
    return named.withColumn("turn", F.row_number().over(equal))


def _summary(late: DataFrame) -> DataFrame:
    at = F.percentile_approx("late_ms", [0.5, 0.99], 10_000)
    return (
        late.groupBy("kind", "level")
        .agg(
            F.count("*").alias("messages"),
            F.count_if(F.col("late_ms") < 0).alias("early"),
            F.min("late_ms").alias("min_ms"),
            at.alias("at"),
            F.max("late_ms").alias("max_ms"),
        )
        .select(
            *("kind", "level", "messages", "early", "min_ms"),
            F.col("at")[0].alias("p50_ms"),
            F.col("at")[1].alias("p99_ms"),
            "max_ms",
        )
        .orderBy("kind", "level")
    )


def _milliseconds(column: str) -> Column:
    return F.unix_millis(column)
