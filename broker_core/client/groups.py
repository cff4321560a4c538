"""Consumer groups of a cluster: their settings, who is in them, how far they are, setting that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.topics import ClusterTopics, QueueSpan, create_command
from rocketpy.broker_core.errors import GroupNotFoundError, RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import check_group_name, is_notes_group, retry_topic
from rocketpy.broker_core.protocol.bodies.connections import ConsumerConnection
from rocketpy.broker_core.protocol.bodies.groups import GroupList, GroupSettings, GroupSettingsTable
from rocketpy.broker_core.protocol.bodies.offsets import ConsumeTimeSpans
from rocketpy.broker_core.protocol.bodies.statistics import (
    ConsumedOffset,
    ConsumeStats,
    ConsumeStatsList,
)
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.groups import (
    DeleteGroup,
    GetBrokerConsumeStats,
    GetConsumerConnections,
    GetConsumeStats,
    QueryGroupsOfTopic,
)
from rocketpy.broker_core.protocol.requests.offsets import QueryConsumeTimeSpan, ResetOffset

LATEST_MS = -1  # the time that means a queue's end to a broker


class GroupOnlineError(RocketPyError):
    """Is raised when a group's consumers, which go by offsets of their own, are in the way."""

    def __init__(self, group: str, members: int) -> None:
        super().__init__(group, members)
        self.group, self.members = group, members

    def __str__(self) -> str:
        return (
            f"group {self.group!r} has {self.members} consumers online, which would commit their "
            "own offsets over it; stop them, or set all queues to earliest, latest or a time"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueProgress:
    """How far a group has read a queue; `behind_ms` is the age of the oldest unread message."""

    group: str
    queue: MessageQueue
    committed: int
    end: int
    behind_ms: int | None

    @property
    def behind(self) -> int:
        """How many messages it has not read."""
        return max(self.end - self.committed, 0)


_Consumed = Mapping[tuple[str, MessageQueue], ConsumedOffset]


class ClusterGroups:
    """The consumer groups of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._topics, self._offsets = ClusterTopics(cluster), ClusterOffsets(cluster)

    # --- settings ---------------------------------------------------------------------------------

    def settings(self) -> dict[str, dict[str, GroupSettings]]:
        """Return the settings of all groups, RocketMQ's own included, by group and broker."""
        code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
        asked = [(name, RemotingCommand(code)) for name in self._cluster.masters()]
        found: dict[str, dict[str, GroupSettings]] = {}
        for broker, answer in self._cluster.ask_brokers(asked):
            table = GroupSettingsTable.decode(self._cluster.check(broker, answer).body)
            for group, settings in table.groups.items():
                found.setdefault(group, {})[broker] = settings
        return dict(sorted(found.items()))

    def create(
        self,
        group: str,
        *,
        retry_max_times: int | None = None,
        retry_queues: int | None = None,
        consume_enabled: bool | None = None,
    ) -> GroupSettings:
        """Make a group on all brokers, or change it there: what is not given stays.

        Raises:
            GroupNameError: RocketMQ would not take the name.
        """
        check_group_name(group)
        given = {
            "retry_max_times": retry_max_times,
            "retry_queues": retry_queues,
            "consume_enabled": consume_enabled,
        }
        changes: dict[str, Any] = {name: each for name, each in given.items() if each is not None}
        before = self.settings().get(group, {})
        settings = GroupSettings(name=group)
        for broker in self._cluster.masters():
            settings = replace(before.get(broker, GroupSettings(name=group)), **changes)
            if settings != before.get(broker):
                code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
                self._cluster.ask_broker(broker, RemotingCommand(code, body=settings.encode()))
        return settings

    def delete(self, group: str, *, with_offsets: bool = True) -> None:
        """Delete a group on all brokers, with how far it has read unless that is to stay.

        Its retries and dead letters stay. Consumers that run make it again, where brokers do that.
        """
        request = DeleteGroup(
            group_name=group, clean_offset=with_offsets, remove_offset=with_offsets
        )
        for broker in self._cluster.masters():
            self._cluster.ask_broker(broker, command_of(request))

    def make_retry_topic(self, group: str) -> None:
        """Make the topic for messages that are sent back, as a first consumer's heartbeat does.

        Apache's tools find a group by it.
        """
        settings = TopicSettings(name=retry_topic(group), read_queues=1, write_queues=1)
        for broker in self._cluster.masters():
            self._cluster.ask_broker(broker, create_command(settings))

    # --- who reads what ---------------------------------------------------------------------------

    def connections(self, groups: Iterable[str]) -> dict[str, dict[str, ConsumerConnection]]:
        """Return who consumes for groups now, and what, by group and broker."""
        asked = [(group, broker) for group in groups for broker in self._cluster.masters()]
        commands = [
            (broker, command_of(GetConsumerConnections(consumer_group=group)))
            for group, broker in asked
        ]
        found: dict[str, dict[str, ConsumerConnection]] = {group: {} for group, _ in asked}
        for (group, _), (broker, answer) in zip(
            asked, self._cluster.ask_brokers(commands), strict=True
        ):
            if answer.code != ResponseCode.CONSUMER_NOT_ONLINE:
                body = self._cluster.check(broker, answer).body
                found[group][broker] = ConsumerConnection.decode(body)
        return found

    def members(self, groups: Iterable[str]) -> dict[str, set[str]]:
        """Return the ids of the clients that consume for groups now."""
        return {
            group: {client.client_id for each in by_broker.values() for client in each.connections}
            for group, by_broker in self.connections(groups).items()
        }

    def of_topic(self, topic: str, broker: str | None = None) -> list[str]:
        """Return the groups that read a topic, or did: on all its brokers, or on one."""
        brokers = self._cluster.route(topic).broker_names if broker is None else [broker]
        command = QueryGroupsOfTopic(topic=topic)
        answers = self._cluster.ask_brokers((broker, command_of(command)) for broker in brokers)
        return sorted(
            {
                group
                for broker, answer in answers
                for group in GroupList.decode(self._cluster.check(broker, answer).body).group_list
            }
        )

    # --- how far ----------------------------------------------------------------------------------

    def progress(self, group: str | None = None, topic: str | None = None) -> list[QueueProgress]:
        """Return how far groups have read their queues: all groups, or one; all topics, or one.

        Raises:
            GroupNotFoundError: a group is named that has committed nothing.
        """
        consumed = self._consumed_by_all() if group is None else self._consumed_by(group)
        if group is not None and not consumed:
            raise GroupNotFoundError(group, {name for name, _ in self._consumed_by_all()})
        wanted = {key: each for key, each in consumed.items() if topic in (None, key[1].topic)}
        pairs = sorted({(queue.broker, queue.topic) for _, queue in wanted})
        spans = {span.queue: span for found in self._topics.spans(pairs).values() for span in found}
        found = [
            _progress(name, queue, each, spans.get(queue))
            for (name, queue), each in sorted(wanted.items())
        ]
        ages = self._ages({(each.group, each.queue) for each in found if each.behind})
        return [
            replace(each, behind_ms=ages.get((each.group, each.queue)) if each.behind else None)
            for each in found
        ]

    def _consumed_by_all(self) -> _Consumed:
        command = GetBrokerConsumeStats(is_order=False)
        brokers = self._cluster.masters()
        answers = self._cluster.ask_brokers((broker, command_of(command)) for broker in brokers)
        return {
            (group, queue): each
            for broker, answer in answers
            for by_group in ConsumeStatsList.decode(self._cluster.check(broker, answer).body).stats
            for group, of_topics in by_group.items()
            if not is_notes_group(group)
            for stats in of_topics
            for queue, each in stats.offset_table.items()
        }

    def _consumed_by(self, group: str) -> _Consumed:
        command = GetConsumeStats(consumer_group=group, topic="")
        brokers = self._cluster.masters()
        answers = self._cluster.ask_brokers((broker, command_of(command)) for broker in brokers)
        return {
            (group, queue): each
            for broker, answer in answers
            for queue, each in ConsumeStats.decode(
                self._cluster.check(broker, answer).body
            ).offset_table.items()
        }

    def _ages(
        self, unread: Iterable[tuple[str, MessageQueue]]
    ) -> dict[tuple[str, MessageQueue], int]:
        """Return how long ago the oldest unread message was stored, in ms."""
        asked = sorted({(queue.broker, queue.topic, group) for group, queue in unread})
        commands = [
            (broker, command_of(QueryConsumeTimeSpan(topic=topic, group=group)))
            for broker, topic, group in asked
        ]
        found = {}
        answers = self._cluster.ask_brokers(commands)
        for (_, _, group), (_, answer) in zip(asked, answers, strict=True):
            if answer.code != ResponseCode.SUCCESS:  # the topic went, or it is not known there
                continue
            for span in ConsumeTimeSpans.decode(answer.body).spans:
                found[group, span.message_queue] = max(span.delay_time, 0)
        return found

    # --- elsewhere --------------------------------------------------------------------------------

    def move(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Have a group read on at offsets; a group that is missing is made.

        Raises:
            GroupOnlineError: consumers of the group run, and would commit over it.
        """
        members = self.members([group])[group]
        if members:
            raise GroupOnlineError(group, len(members))
        if offsets:
            if group not in self.settings():
                self.create(group)
            self._offsets.commit(group, offsets)

    def move_to_time(self, group: str, topic: str, time_ms: int) -> None:
        """Have a group whose consumers run read on at a time; its brokers tell them.

        LATEST_MS means the ends of the queues.
        """
        request = ResetOffset(topic=topic, group=group, timestamp=time_ms, is_force=True)
        request = replace(request, queue_id=-1)
        for broker in self._cluster.route(topic).broker_names:
            self._cluster.ask_broker(broker, command_of(request))


def _progress(
    group: str, queue: MessageQueue, consumed: ConsumedOffset, span: QueueSpan | None
) -> QueueProgress:
    """Return how far a group is; what expired before it was read counts no more."""
    first = span.first if span is not None else 0
    return QueueProgress(
        group=group,
        queue=queue,
        committed=max(consumed.consumer_offset, first),
        end=consumed.broker_offset,
        behind_ms=None,
    )
