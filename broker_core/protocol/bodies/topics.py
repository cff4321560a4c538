"""The settings of topics, as brokers have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from rocketpy.broker_core.protocol.bodies.body import Body, empty, member


class DataVersion(Body):
    """How often settings were changed, and when; the counter grows by one each time."""

    JAVA = "DataVersion"

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0


class TopicSettings(Body):
    """The settings of a topic; attributes have the names that TopicConfig of metadata/ has."""

    JAVA = "TopicConfig"

    name: str = member("topicName")
    read_queues: int = member("readQueueNums", default=16)
    write_queues: int = member("writeQueueNums", default=16)
    perm: int = 6
    order: bool = False
    topic_filter_type: str = "SINGLE_TAG"
    sys_flag: int = member("topicSysFlag", default=0)
    attributes: Mapping[str, str] = empty()


class TopicSettingsTable(Body):
    """The topics of a broker, with the version of their settings."""

    JAVA = "TopicConfigAndMappingSerializeWrapper"

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Mapping[str, TopicSettings] = member("topicConfigTable", default_factory=dict)
    # Static topics, which are kept as they came.
    mapping_data_version: DataVersion | None = None
    topic_queue_mapping_detail_map: Mapping[str, Any] | None = None
    topic_queue_mapping_info_map: Mapping[str, Any] | None = None


class TopicSettingsList(Body):
    """Several topics to be made at once."""

    JAVA = "CreateTopicListRequestBody"

    topics: tuple[TopicSettings, ...] = member("topicConfigList", default=())
