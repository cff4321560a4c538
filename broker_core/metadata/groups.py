"""The consumer groups of a store: `config/subscriptionGroup.json`.

Reads see what any process saved last. The methods that change the table take no lock: call them
while holding the store lock. What they changed is durable when they return.
How far a group has read is in consumer_offsets.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from rocketpy.broker_core.metadata.config_file import ConfigFile
from rocketpy.broker_core.metadata.documents import (
    Bean,
    Document,
    data_version,
    next_data_version,
    with_members,
    without,
)
from rocketpy.broker_core.metadata.names import check_group_name

_TABLE = "subscriptionGroupTable"
_FORBIDDEN = "forbiddenTable"


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The settings of one consumer group; the defaults are Apache's (SubscriptionGroupConfig)."""

    name: str
    _: KW_ONLY
    consume_enabled: bool = True
    consume_from_min_enabled: bool = True
    consume_broadcast_enabled: bool = True
    consume_message_orderly: bool = False
    consume_timeout_minutes: int = 15
    retry_queues: int = 1
    retry_max_times: int = 16
    retry_policy: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "CUSTOMIZED"}, hash=False
    )
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enabled: bool = True
    sys_flag: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)


_DEFAULT = GroupConfig("")

# Each field but the name, with the member that Apache keeps it in.
_MEMBERS: Mapping[str, str] = {
    "attributes": "attributes",
    "broker_id": "brokerId",
    "consume_broadcast_enabled": "consumeBroadcastEnable",
    "consume_enabled": "consumeEnable",
    "consume_from_min_enabled": "consumeFromMinEnable",
    "consume_message_orderly": "consumeMessageOrderly",
    "consume_timeout_minutes": "consumeTimeoutMinute",
    "retry_policy": "groupRetryPolicy",
    "sys_flag": "groupSysFlag",
    "notify_consumer_ids_changed_enabled": "notifyConsumerIdsChangedEnable",
    "retry_max_times": "retryMaxTimes",
    "retry_queues": "retryQueueNums",
    "which_broker_when_consume_slowly": "whichBrokerWhenConsumeSlowly",
}


class GroupTable:
    """The consumer groups by name."""

    FILE_NAME: ClassVar[str] = "subscriptionGroup.json"

    def __init__(self, config_file: ConfigFile) -> None:
        self._file = config_file

    def get(self, name: str) -> GroupConfig | None:
        """Return the group's settings, None if there is no such group."""
        table = self._document(self._file.load()).bean(_TABLE)
        return _config(name, table.bean(name)) if name in table.members else None

    def all(self) -> dict[str, GroupConfig]:
        """Return all groups, those of the system included, by name."""
        table = self._document(self._file.load()).bean(_TABLE)
        return {name: _config(name, table.bean(name)) for name in table.members}

    def version(self) -> dict[str, Any]:
        """Return how often the table was changed, and when, as Apache's DataVersion has it."""
        return data_version(self._document(self._file.load()))

    def forbidden(self) -> dict[str, dict[str, int]]:
        """Return what groups may not do with topics, as bits, by group and topic."""
        table = self._document(self._file.load()).bean(_FORBIDDEN)
        return {group: dict(table.bean(group).members) for group in table.members}

    def put(self, config: GroupConfig, *, now_ms: int) -> None:
        """Make the group, or change it; members that we do not know are kept.

        Call while holding the store lock. Raises GroupNameError.
        """
        self.put_many([config], now_ms=now_ms)

    def put_many(self, configs: Iterable[GroupConfig], *, now_ms: int) -> None:
        """Make or change several groups with one write, as put() does one."""
        wanted = list(configs)
        for config in wanted:
            check_group_name(config.name)

        def edit(document: Document) -> Document:
            bean = self._document(document)
            table = bean.bean(_TABLE)
            groups = {
                config.name: with_members(table.bean(config.name).members, _members(config))
                for config in wanted
            }
            tables = {
                _FORBIDDEN: bean.bean(_FORBIDDEN).members,
                _TABLE: {**table.members, **groups},
            }
            return self._changed(document, tables, now_ms)

        if wanted:
            self._file.change(edit)

    def delete(self, name: str, *, now_ms: int) -> bool:
        """Take the group off the table and tell whether it was there; its offsets stay.

        Call while holding the store lock.
        """
        was_there = False

        def edit(document: Document) -> Document:
            nonlocal was_there
            bean = self._document(document)
            table = bean.bean(_TABLE).members
            was_there = name in table
            if not was_there:
                return document
            forbidden = without(bean.bean(_FORBIDDEN).members, name)
            return self._changed(
                document, {_FORBIDDEN: forbidden, _TABLE: without(table, name)}, now_ms
            )

        self._file.change(edit)
        return was_there

    def _document(self, document: Document) -> Bean:
        return Bean(document, self._file.path, "the file")

    def _changed(self, document: Document, tables: Mapping[str, Any], now_ms: int) -> Document:
        version = next_data_version(self._document(document), now_ms)
        return with_members(document, {"dataVersion": version, **tables})


def _config(name: str, group: Bean) -> GroupConfig:
    values = {
        attribute: group.get(member, getattr(_DEFAULT, attribute))
        for attribute, member in _MEMBERS.items()
    }
    return GroupConfig(name, **deepcopy(values))  # the file's maps stay the cache's alone


def _members(config: GroupConfig) -> dict[str, Any]:
    values = {member: getattr(config, attribute) for attribute, member in _MEMBERS.items()}
    return {**values, "groupName": config.name}
