"""Apache's files under `config/`: topics, groups, their offsets and filters, delays, timers."""

from rocketpy.broker_core.metadata.config_file import ConfigFile, Replaces
from rocketpy.broker_core.metadata.consumer_filters import ConsumerFilter, ConsumerFilterTable
from rocketpy.broker_core.metadata.consumer_offsets import CommittedOffset, OffsetTable
from rocketpy.broker_core.metadata.delay_offsets import DelayOffsets
from rocketpy.broker_core.metadata.groups import GroupConfig, GroupTable
from rocketpy.broker_core.metadata.names import (
    check_group_name,
    check_topic_name,
    dead_letter_topic,
    is_dead_letter_topic,
    is_reserved_topic,
    is_retry_topic,
    is_sending_forbidden,
    is_system_topic,
    retry_topic,
)
from rocketpy.broker_core.metadata.timer_check import TimerCheck, TimerCheckpoint
from rocketpy.broker_core.metadata.topics import TopicConfig, TopicTable

__all__ = [
    "CommittedOffset",
    "ConfigFile",
    "ConsumerFilter",
    "ConsumerFilterTable",
    "DelayOffsets",
    "GroupConfig",
    "GroupTable",
    "OffsetTable",
    "Replaces",
    "TimerCheck",
    "TimerCheckpoint",
    "TopicConfig",
    "TopicTable",
    "check_group_name",
    "check_topic_name",
    "dead_letter_topic",
    "is_dead_letter_topic",
    "is_reserved_topic",
    "is_retry_topic",
    "is_sending_forbidden",
    "is_system_topic",
    "retry_topic",
]
