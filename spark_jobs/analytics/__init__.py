"""What a store or a cluster tells, as DataFrames: made from its views, without touching a body.

Each function takes a session and the path of a store, checks its arguments at once, and returns a
DataFrame that is worked out by Spark when it is asked for rows. None needs a broker, a lock, or a
registered view; none writes, but `record_lag`, to a table of its own. `READS` says which views of
the store each of them reads. Instead of a path they take a cluster, rocketmq://ns1:9876, and read
its messages where a store has smaller files; `FOLDER_ONLY` are those that no cluster can answer.
"""

from __future__ import annotations

from rocketpy.spark_jobs.analytics import plots
from rocketpy.spark_jobs.analytics.arguments import ArgumentError
from rocketpy.spark_jobs.analytics.arrivals import throughput
from rocketpy.spark_jobs.analytics.delays import delay_accuracy
from rocketpy.spark_jobs.analytics.failures import dead_letters, retries
from rocketpy.spark_jobs.analytics.group_lag import backlog, lag, lag_over_time, record_lag
from rocketpy.spark_jobs.analytics.hosts import consumers, producers
from rocketpy.spark_jobs.analytics.hot import hot_keys, hot_tags
from rocketpy.spark_jobs.analytics.sizes import message_sizes, size_histogram
from rocketpy.spark_jobs.analytics.skew import key_skew, queue_skew

__all__ = [
    "FOLDER_ONLY",
    "READS",
    "READS_MESSAGES",
    "ArgumentError",
    "backlog",
    "consumers",
    "dead_letters",
    "delay_accuracy",
    "hot_keys",
    "hot_tags",
    "key_skew",
    "lag",
    "lag_over_time",
    "message_sizes",
    "plots",
    "producers",
    "queue_skew",
    "record_lag",
    "retries",
    "size_histogram",
    "throughput",
]

FOLDER_ONLY = ("delay_accuracy",)
# Which of a cluster read all messages of their topics, over the network.
READS_MESSAGES = (
    "throughput",
    "message_sizes",
    "size_histogram",
    "hot_tags",
    "hot_keys",
    "key_skew",
    "producers",
)
# Which views an answer reads whole; tests compare it with docs/analytics.md and with the plans.
READS: dict[str, tuple[str, ...]] = {
    "throughput": ("messages",),
    "message_sizes": ("queues",),
    "size_histogram": ("queues",),
    "hot_tags": ("queues",),
    "hot_keys": ("index", "queues"),
    "queue_skew": ("queues", "topics"),
    "key_skew": ("messages",),
    "lag": ("groups", "queues"),
    "backlog": ("messages",),
    "record_lag": ("groups",),
    "lag_over_time": (),
    "retries": ("messages",),
    "dead_letters": ("messages",),
    "delay_accuracy": ("messages", "queues"),
    "producers": ("messages",),
    "consumers": ("groups",),
}
