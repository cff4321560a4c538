"""Consumer groups: their settings, and who they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from rocketpy.broker_core.protocol.bodies.body import Body, empty, member
from rocketpy.broker_core.protocol.bodies.topics import DataVersion


class GroupSettings(Body):
    """The settings of a group; attributes have the names that GroupConfig of metadata/ has."""

    JAVA = "SubscriptionGroupConfig"

    name: str = member("groupName")
    consume_enabled: bool = member("consumeEnable", default=True)
    consume_from_min_enabled: bool = member("consumeFromMinEnable", default=True)
    consume_broadcast_enabled: bool = member("consumeBroadcastEnable", default=True)
    consume_message_orderly: bool = False
    consume_timeout_minutes: int = member("consumeTimeoutMinute", default=15)
    retry_queues: int = member("retryQueueNums", default=1)
    retry_max_times: int = 16
    retry_policy: Mapping[str, Any] = member(
        "groupRetryPolicy", default_factory=lambda: {"type": "CUSTOMIZED"}
    )
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enabled: bool = member(
        "notifyConsumerIdsChangedEnable", default=True
    )
    sys_flag: int = member("groupSysFlag", default=0)
    attributes: Mapping[str, str] = empty()
    subscription_data_set: tuple[Any, ...] | None = None  # of 5.x, as it came


class GroupSettingsTable(Body):
    """The groups of a broker, with the version of their settings."""

    JAVA = "SubscriptionGroupWrapper"

    groups: Mapping[str, GroupSettings] = member("subscriptionGroupTable", default_factory=dict)
    # By group and topic: bit 2 is set where the group may not read the topic. Not of all of 4.x.
    forbidden_table: Mapping[str, Mapping[str, int]] | None = None
    data_version: DataVersion = field(default_factory=DataVersion)


class GroupSettingsList(Body):
    """Several groups to be made at once."""

    JAVA = "SubscriptionGroupList"

    groups: tuple[GroupSettings, ...] = member("groupConfigList", default=())


class GroupList(Body):
    """The names of groups."""

    JAVA = "GroupList"

    group_list: tuple[str, ...] = ()
