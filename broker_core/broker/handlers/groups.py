"""Consumer groups: their settings, and which topics they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.connections import GroupSubscription
from rocketpy.broker_core.protocol.bodies.groups import (
    GroupList,
    GroupSettings,
    GroupSettingsList,
    GroupSettingsTable,
)
from rocketpy.broker_core.protocol.bodies.routes import TopicList
from rocketpy.broker_core.protocol.bodies.topics import DataVersion
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.errors import BodyError
from rocketpy.broker_core.protocol.requests.groups import (
    AllGroupsAnswer,
    DeleteGroup,
    GetAllGroups,
    GetGroup,
    QueryGroupsOfTopic,
    QuerySubscriptionOfGroup,
    QueryTopicsOfGroup,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_SETTINGS = [field.name for field in fields(GroupConfig)]


# --- settings; all of these read or write files ---------------------------------------------------


def update_group(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200)."""
    _put(broker, GroupSettings.decode(call.command.body))
    return Reply()


def update_groups(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225)."""
    for settings in GroupSettingsList.decode(call.command.body).groups:
        _put(broker, settings)
    return Reply()


def _put(broker: Broker, settings: GroupSettings) -> None:
    config = GroupConfig(**{name: getattr(settings, name) for name in _SETTINGS})
    known = broker.groups.all().get(config.name)
    before: Mapping[str, str] = {} if known is None else known.attributes
    broker.groups.put(replace(config, attributes=_altered(before, config.attributes)))


def _altered(before: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    """Return attributes after `+name` set some and `-name` took others away; a bare name sets."""
    after = dict(before)
    for name, value in changes.items():
        if name.startswith("-"):
            after.pop(name[1:], None)
        else:
            after[name.removeprefix("+")] = value
    return after


def all_groups(broker: Broker, request: GetAllGroups, call: Call) -> Reply:
    """Answer GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201): some at a time to clients that say how many.

    A client that goes on after the settings were changed gets them from the start again; it sees
    that by the version.
    """
    table = broker.store.groups
    version, forbidden = DataVersion.of_json(table.version()), table.forbidden()
    names, groups = sorted(table.all()), table.all()
    if request.group_seq is not None and request.max_group_num:
        is_same = _version(request.data_version) in (None, version)
        start = max(request.group_seq, 0) if is_same else 0
        some = names[start : start + max(request.max_group_num, 1)]
    else:
        some = names
    body = GroupSettingsTable(
        groups={name: _settings(groups[name]) for name in some if name in groups},
        forbidden_table={name: forbidden[name] for name in some if name in forbidden},
        data_version=version,
    )
    return Reply.of(AllGroupsAnswer(total_group_num=len(names)), body.encode())


def _version(text: str | None) -> DataVersion | None:
    try:
        return DataVersion.decode(text.encode()) if text else None
    except BodyError:
        return DataVersion(counter=-1)  # no version that we ever had


def get_group(broker: Broker, request: GetGroup, call: Call) -> Reply:
    """Answer GET_SUBSCRIPTIONGROUP_CONFIG (352)."""
    found = broker.groups.all().get(request.group)
    if found is None:
        remark = "No group in this broker"
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    return Reply(body=_settings(found).encode())


def delete_group(broker: Broker, request: DeleteGroup, call: Call) -> Reply:
    """Answer DELETE_SUBSCRIPTIONGROUP (207). A group that is not there is deleted all the same."""
    with_offsets = bool(request.clean_offset or request.remove_offset)
    broker.groups.delete(request.group_name, with_offsets=with_offsets)
    return Reply()


def _settings(config: GroupConfig) -> GroupSettings:
    return GroupSettings(**{name: getattr(config, name) for name in _SETTINGS})


# --- groups and topics ----------------------------------------------------------------------------


async def groups_of_topic(broker: Broker, request: QueryGroupsOfTopic, call: Call) -> Reply:
    """Answer QUERY_TOPIC_CONSUME_BY_WHO (300): who reads a topic now, or did."""
    online = [
        group.name
        for group in broker.clients.consumer_groups()
        if group.subscription(request.topic) is not None
    ]
    committed = await broker.in_pool(broker.offsets.groups_of, request.topic)
    return Reply(body=GroupList(group_list=tuple(sorted({*online, *committed}))).encode())


def topics_of_group(broker: Broker, request: QueryTopicsOfGroup, call: Call) -> Reply:
    """Answer QUERY_TOPICS_BY_CONSUMER (343). Reads files."""
    found = tuple(broker.offsets.topics_of(request.group))
    return Reply(body=TopicList(topic_list=found, broker_addr=str(broker.host)).encode())


def subscription_of_group(broker: Broker, request: QuerySubscriptionOfGroup, call: Call) -> Reply:
    """Answer QUERY_SUBSCRIPTION_BY_CONSUMER (345); without a subscription if nobody has one."""
    group, topic = broker.clients.consumers(request.group), request.topic or ""
    found = group.subscription(topic) if group is not None else None
    body = GroupSubscription(group=request.group, topic=topic, subscription_data=found)
    return Reply(body=body.encode())
