"""Who sends, and who consumes, as far as a store or a cluster knows."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rocketpy.spark_jobs.analytics.views import StorePath, StoreViews, Topics


def producers(spark: SparkSession, store_path: StorePath, topics: Topics = None) -> DataFrame:
    """Return which hosts sent to each topic.

    Columns: topic, host (address), clients (how many ports of it), messages, bytes, oldest, newest
    (store times). What came over no network, such as by an embedded store or by Spark, has the host
    127.0.0.1 with port 0. A retried, delayed or replayed message keeps its first host.

    Reads `messages` (topic, born_host, store_size, store_timestamp).
    """
    views = StoreViews.of(spark, store_path)
    of_each = ("store_size:sum", "store_timestamp:min", "store_timestamp:max")
    rows = views.counted("messages", "topic,born_host", of_each, **views.chosen(topics))
    host = F.regexp_replace("born_host", r":\d+$", "").alias("host")
    return (
        rows.groupBy("topic", host)
        .agg(
            F.count_distinct("born_host").alias("clients"),
            F.sum("messages").alias("messages"),
            F.sum("store_size_sum").alias("bytes"),
            F.min("store_timestamp_min").alias("oldest"),
            F.max("store_timestamp_max").alias("newest"),
        )
        .orderBy("topic", F.desc("messages"), "host")
    )


def consumers(spark: SparkSession, store_path: StorePath) -> DataFrame:
    """Return which groups consume each topic, and which members of them live.

    Columns: consumer_group, topic, queues (committed so far), messages_behind, members (names). A
    store knows no hosts of consumers: a member's name is the one that its query gave. Clients of an
    Apache broker are known to the broker alone: of a cluster, members are the ids of the clients
    that are connected, which begin with their address.

    Reads `groups`, and the members' files of the store or what brokers know of their clients, as
    they are at the moment of the call.
    """
    views = StoreViews.of(spark, store_path)
    names = views.members()
    committed = views.frame(views.groups()).groupBy("consumer_group", "topic")
    positions = committed.agg(F.count("*").alias("queues"), F.sum("lag").alias("messages_behind"))
    members = (
        views.frame(names)
        .groupBy("consumer_group", "topic")
        .agg(F.array_sort(F.collect_set("member")).alias("members"))
    )
    return (
        positions.join(members, ["consumer_group", "topic"], "full")
        .select(
            "consumer_group",
            "topic",
            F.coalesce("queues", F.lit(0)).alias("queues"),
            "messages_behind",
            F.coalesce("members", F.array().cast("array<string>")).alias("members"),
        )
        .orderBy("consumer_group", "topic")
    )
