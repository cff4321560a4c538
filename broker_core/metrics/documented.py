"""Every metric that RocketMQ documents, and from what it is told here, or why it is not.

The table in docs/metrics.md is made of this: `python -m rocketpy.broker_core.metrics.documented`
prints it, and a test holds the page, this table and what is served to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Told(NamedTuple):
    """From what a metric is told."""

    how: str


class Missing(NamedTuple):
    """Why a metric is not told."""

    why: str


class Documented(NamedTuple):
    """A metric of 5.x: as our broker tells it itself, and as it is told of a cluster."""

    name: str
    of_broker: Told | Missing
    of_cluster: Told | Missing


_RUNTIME = "GET_BROKER_RUNTIME_INFO"
_STATS = "GET_BROKER_CONSUME_STATS"
_COST = Missing("not counted: it would cost each request")
_NO_OTHERS = Missing("brokers tell it to nobody else")
_POP = Missing("ours knows no POP consumers")
_ROCKSDB = Missing("ours has no RocksDB")
_CLIENTS = Missing("clients tell it, not brokers")
_NO_WHEEL = Missing("ours has no timer wheel: due messages are found in their queue")


def _figure(name: str) -> Told:
    return Told(f"`{name}` of {_RUNTIME}")


DOCUMENTED: Sequence[Documented] = (
    Documented(
        "rocketmq_processor_watermark",
        Told("0: it has no such queues"),
        Told(f"`…QueueSize` of {_RUNTIME}; six processors"),
    ),
    Documented("rocketmq_broker_permission", Told("`brokerPermission`"), Told("GET_BROKER_CONFIG")),
    Documented("rocketmq_topic_number", Told("its topics"), Told("GET_ALL_TOPIC_CONFIG")),
    Documented(
        "rocketmq_consumer_group_number",
        *(Told("its groups"), Told("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")),
    ),
    Documented(
        "rocketmq_messages_in_total",
        Told("counted since its start, by topic; without `message_type`"),
        Told("ends of queues, by topic: all that was ever stored; without `message_type`"),
    ),
    Documented(
        "rocketmq_throughput_in_total",
        Told("counted since its start, by topic; without `message_type`"),
        Told(f"`putMessageSizeTotal` of {_RUNTIME}: of all topics together"),
    ),
    Documented(
        "rocketmq_messages_out_total",
        Told("counted since its start, by group and topic"),
        Told(f"`msgGetTotalTodayNow` of {_RUNTIME}: of all groups together"),
    ),
    Documented(
        "rocketmq_throughput_out_total",
        *(Told("counted since its start, by group and topic"), _NO_OTHERS),
    ),
    Documented("rocketmq_message_size", _COST, _NO_OTHERS),
    Documented("rocketmq_rpc_latency", _COST, _NO_OTHERS),
    Documented("rocketmq_topic_create_execution_time", _COST, _NO_OTHERS),
    Documented("rocketmq_consumer_group_create_execution_time", _COST, _NO_OTHERS),
    Documented(
        "rocketmq_producer_connections",
        *(Told("heartbeats"), Told("GET_ALL_PRODUCER_INFO, which not all of 4.x know")),
    ),
    Documented(
        "rocketmq_consumer_connections",
        *(Told("heartbeats"), Told("GET_CONSUMER_CONNECTION_LIST")),
    ),
    Documented(
        "rocketmq_consumer_lag_messages",
        Told("ends of queues and committed offsets, as `mqadmin consumerProgress` has it"),
        Told(_STATS),
    ),
    Documented(
        "rocketmq_consumer_lag_latency",
        *(Told("the store time of the next message to read"), Told("QUERY_CONSUME_TIME_SPAN")),
    ),
    Documented(
        "rocketmq_consumer_inflight_messages",
        *(Told("last pulls and committed offsets"), Told(f"{_STATS} of 5.x")),
    ),
    Documented(
        "rocketmq_consumer_ready_messages",
        *(Told("ends of queues and last pulls"), Told(f"{_STATS} of 5.x")),
    ),
    Documented(
        "rocketmq_consumer_queueing_latency",
        *(Told("the store time of the next message to pull"), _NO_OTHERS),
    ),
    Documented(
        "rocketmq_send_to_dlq_messages_total",
        Told("the end of `%DLQ%<group>`: all there ever were; without `topic`"),
        Told("the same"),
    ),
    Documented("rocketmq_commit_messages_total", _COST, _NO_OTHERS),
    Documented("rocketmq_rollback_messages_total", _COST, _NO_OTHERS),
    Documented("rocketmq_finish_message_latency", _COST, _NO_OTHERS),
    Documented(
        "rocketmq_half_messages",
        *(Missing("open transactions are not counted by topic"), _NO_OTHERS),
    ),
    Documented(
        "rocketmq_storage_size",
        *(Told("blocks on the disk; Apache's counts holes as well"), _NO_OTHERS),
    ),
    Documented(
        "rocketmq_storage_flush_behind_bytes",
        *(Told("the end of the log, and what is durable"), _figure("remainHowManyDataToFlush")),
    ),
    Documented(
        "rocketmq_storage_dispatch_behind_bytes",
        *(Told("0: queues are written with the log"), _figure("dispatchBehindBytes")),
    ),
    Documented(
        "rocketmq_storage_message_reserve_time",
        Told("the store time of the oldest message"),
        _figure("earliestMessageTimeStamp"),
    ),
    Documented(
        "rocketmq_timer_enqueue_lag",
        *(Told("0: there is no second step"), _figure("timerOffsetBehind")),
    ),
    Documented("rocketmq_timer_enqueue_latency", _NO_WHEEL, _NO_OTHERS),
    Documented("rocketmq_timer_dequeue_lag", _NO_WHEEL, _NO_OTHERS),
    Documented("rocketmq_timer_dequeue_latency", _NO_WHEEL, _figure("timerReadBehind")),
    Documented("rocketmq_timing_messages", Told("the timer topic"), Told("GET_TIMER_METRICS")),
    Documented("rocketmq_timer_enqueue_total", _NO_WHEEL, _NO_OTHERS),
    Documented("rocketmq_timer_dequeue_total", _NO_WHEEL, _NO_OTHERS),
    Documented("rocketmq_timer_message_snapshot", _NO_WHEEL, _NO_OTHERS),
    Documented("rocketmq_delay_message_latency", _COST, _NO_OTHERS),
    Documented(
        "rocketmq_thread_pool_wartermark",
        Missing("documented so; brokers tell it as `rocketmq_processor_watermark`"),
        Missing("the same"),
    ),
    *(
        Documented(f"rocketmq_pop_{name}", _POP, _NO_OTHERS)
        for name in (
            *("buffer_scan_time_consume", "revive_in_message_total", "revive_out_message_total"),
            *("revive_retry_messages_total", "revive_lag", "revive_latency"),
            *("offset_buffer_size", "checkpoint_buffer_size"),
        )
    ),
    *(
        Documented(f"rocketmq_rocksdb_{name}", _ROCKSDB, _NO_OTHERS)
        for name in (
            *("bytes_written", "bytes_read", "times_written_self", "times_written_other"),
            *("rate_cache_hit", "times_compressed", "read_amplification_bytes", "times_read"),
        )
    ),
    *(
        Documented(f"rocketmq_{name}", _CLIENTS, _CLIENTS)
        for name in (
            *("send_cost_time", "process_time", "await_time"),
            *("consumer_cached_messages", "consumer_cached_bytes"),
        )
    ),
)


def table() -> Iterator[str]:
    """Yield the lines of the table in the docs."""
    yield "| metric | our broker itself | `rocketpy metrics` of a cluster |"
    yield "| --- | --- | --- |"
    for each in DOCUMENTED:
        yield f"| `{each.name}` | {_cell(each.of_broker)} | {_cell(each.of_cluster)} |"


def _cell(each: Told | Missing) -> str:
    return each.how if isinstance(each, Told) else f"**no**: {each.why}"


if __name__ == "__main__":
    print(*table(), sep="\n")
