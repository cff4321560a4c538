"""Numbers about topics, groups and brokers, for tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.body import Body, empty, member
from rocketpy.broker_core.protocol.bodies.heartbeats import SubscriptionData


class TopicOffset(Body):
    """The ends of a queue, and when its last message was stored."""

    JAVA = "TopicOffset"

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


class TopicStats(Body):
    """The ends of a topic's queues."""

    JAVA = "TopicStatsTable"

    offset_table: Mapping[MessageQueue, TopicOffset] = empty()
    topic_put_tps: float | None = None  # of 5.x


class ConsumedOffset(Body):
    """How far a group has read a queue, and when its last message was stored."""

    JAVA = "OffsetWrapper"

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int | None = None  # of 5.x: what was handed out
    last_timestamp: int = 0


class ConsumeStats(Body):
    """How far a group has read its queues."""

    JAVA = "ConsumeStats"

    offset_table: Mapping[MessageQueue, ConsumedOffset] = empty()
    consume_tps: float = 0.0


class ConsumeStatsList(Body):
    """How far the groups of a broker have read their topics: one mapping for each group."""

    JAVA = "ConsumeStatsList"

    stats: tuple[Mapping[str, tuple[ConsumeStats, ...]], ...] = member(
        "consumeStatsList", default=()
    )
    broker_addr: str | None = None
    total_diff: int = 0
    total_inflight_diff: int | None = None  # of 5.x


class BrokerStatsItem(Body):
    """A sum over a time, its rate a second, and its mean."""

    JAVA = "BrokerStatsItem"

    sum: int = 0
    tps: float = 0.0
    mean: float = member("avgpt", default=0.0)


class BrokerStats(Body):
    """What a broker counted in the last minute, hour and day."""

    JAVA = "BrokerStatsData"

    stats_minute: BrokerStatsItem = field(default_factory=BrokerStatsItem)
    stats_hour: BrokerStatsItem = field(default_factory=BrokerStatsItem)
    stats_day: BrokerStatsItem = field(default_factory=BrokerStatsItem)


class ConsumeQueueEntry(Body):
    """An entry of a queue, and whether a group's filter takes it."""

    JAVA = "ConsumeQueueData"

    physical_offset: int = member("physicOffset", default=0)
    size_bytes: int = member("physicSize", default=0)
    tags_code: int = 0
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


class ConsumeQueueEntries(Body):
    """Some entries of a queue, with its ends."""

    JAVA = "QueryConsumeQueueResponseBody"

    entries: tuple[ConsumeQueueEntry, ...] = member("queueData", default=())
    max_queue_index: int = 0
    min_queue_index: int = 0
    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None


class ReplicaStatus(Body):
    """How far the slaves of a broker are behind, or how far it is itself."""

    JAVA = "HARuntimeInfo"

    master: bool = False
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    connections: tuple[Any, ...] = member("haConnectionInfo", default=())
    client: Mapping[str, Any] | None = member("haClientRuntimeInfo", default=None)


class TimedMessages(Body):
    """How many messages with a time of their own wait for a topic."""

    JAVA = "TimerMetrics$Metric"

    count: int = 0
    time_stamp: int = 0  # of the last change


class TimedTopics(Body):
    """How many messages with a time of their own wait, by the topic that they are for."""

    JAVA = "TimerMetrics$TimerMetricsSerializeWrapper"

    timing_count: Mapping[str, TimedMessages] = empty()
