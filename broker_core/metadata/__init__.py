"""Apache's files under `config/`: topics, groups, their offsets and filters, delays, timers."""

from typing import TYPE_CHECKING

from rocketpy.broker_core.lazy import lazy_names

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # or checkers would take any name for one that is there
    __getattr__ = lazy_names(
        __name__,
        {
            "config_file": "ConfigFile Replaces",
            "consumer_filters": "ConsumerFilter ConsumerFilterTable",
            "consumer_offsets": "CommittedOffset OffsetTable",
            "delay_offsets": "DelayOffsets",
            "groups": "GroupConfig GroupTable",
            "names": """
                check_group_name check_topic_name dead_letter_topic retry_topic
                is_dead_letter_topic is_reserved_topic is_retry_topic is_sending_forbidden
                is_system_topic
            """,
            "timer_check": "TimerCheck TimerCheckpoint",
            "topics": "TopicConfig TopicTable",
        },
    )
