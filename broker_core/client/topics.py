"""Topics of a cluster: their settings on each broker, their queues, and changes of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.errors import RocketPyError, TopicNameError, TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import (
    AUTO_CREATE_TOPIC,
    check_topic_name,
    is_reserved_topic,
)
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.bodies.statistics import TopicStats
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings, TopicSettingsTable
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.routes import DeleteTopicRoute
from rocketpy.broker_core.protocol.requests.topics import (
    CreateTopic,
    DeleteTopic,
    GetTopic,
    GetTopicStats,
)

log = logging.getLogger(__name__)

DEFAULT_QUEUES = 4  # on each broker; as a store of ours, and as Apache's client
_ROUTE_WAIT_S = 10.0
_ROUTE_LOOK_S = 0.05

SettingsByBroker = Mapping[str, TopicSettings]


class QueueSpan(NamedTuple):
    """The messages that a queue holds, and when the last one was stored, in ms."""

    queue: MessageQueue
    first: int
    end: int
    last_stored_ms: int | None

    @property
    def messages(self) -> int:
        """How many there are."""
        return self.end - self.first


class ClusterTopics:
    """The topics of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # --- what there is ----------------------------------------------------------------------------

    def all(self) -> dict[str, dict[str, TopicSettings]]:
        """Return the settings of all topics, RocketMQ's own included, by topic and broker."""
        found: dict[str, dict[str, TopicSettings]] = {}
        asked = [
            (name, RemotingCommand(RequestCode.GET_ALL_TOPIC_CONFIG))
            for name in self._cluster.masters()
        ]
        for broker, answer in self._cluster.ask_brokers(asked):
            table = TopicSettingsTable.decode(self._cluster.check(broker, answer).body)
            for topic, settings in table.topics.items():
                found.setdefault(topic, {})[broker] = settings
        return dict(sorted(found.items()))

    def settings(self, topic: str) -> dict[str, TopicSettings]:
        """Return a topic's settings on each of its brokers.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        found = {}
        for broker in self._cluster.route(topic, fresh=True).broker_names:
            answer = self._cluster.try_broker(broker, command_of(GetTopic(topic=topic)))
            if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:  # of 4.x
                command = RemotingCommand(RequestCode.GET_ALL_TOPIC_CONFIG)
                body = self._cluster.ask_broker(broker, command).body
                known = TopicSettingsTable.decode(body).topics.get(topic)
            elif answer.code == ResponseCode.TOPIC_NOT_EXIST:  # deleted since it registered
                known = None
            else:
                known = TopicSettings.decode(self._cluster.check(broker, answer).body)
            if known is not None:
                found[broker] = known
        if not found:
            raise TopicNotFoundError(topic, self._cluster.topics())
        return found

    def queues(self, topic: str) -> list[QueueSpan]:
        """Return the queues of a topic on all its brokers, by broker and number.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        route = self._cluster.route(topic)
        return self.spans([(broker, topic) for broker in route.broker_names])[topic]

    def spans(self, topics: Iterable[tuple[str, str]]) -> dict[str, list[QueueSpan]]:
        """Return the queues of topics, each of which is named with its brokers: broker, topic."""
        asked = [*topics]
        found: dict[str, list[QueueSpan]] = {topic: [] for _, topic in asked}
        commands = [(broker, command_of(GetTopicStats(topic=topic))) for broker, topic in asked]
        answers = self._cluster.ask_brokers(commands)
        for (_, topic), (broker, answer) in zip(asked, answers, strict=True):
            if answer.code == ResponseCode.TOPIC_NOT_EXIST:  # deleted meanwhile
                continue
            table = TopicStats.decode(self._cluster.check(broker, answer).body).offset_table
            found[topic] += [
                QueueSpan(
                    queue, each.min_offset, each.max_offset, each.last_update_timestamp or None
                )
                for queue, each in sorted(table.items())
            ]
        return found

    def of_brokers(self) -> set[str]:
        """Return the topics that brokers make for themselves, named after them and clusters."""
        info = self._cluster.info()
        names = {*info.broker_addr_table, *info.cluster_addr_table}
        return names | {f"{name}_REPLY_TOPIC" for name in info.cluster_addr_table}

    # --- changes ----------------------------------------------------------------------------------

    def create(
        self, topic: str, queues: int | None = None, *, cluster: str | None = None
    ) -> dict[str, TopicSettings]:
        """Make a topic on all brokers; one that exists keeps its queues, or gets more.

        `queues` is how many each broker has. Returns when the name servers know it.

        Raises:
            TopicNameError: RocketMQ would not take the name.
            NoBrokerError: there is no broker, or there are several clusters and none is named.
        """
        self.check_name(topic)
        try:
            before = self.settings(topic)
        except TopicNotFoundError:
            before = {}
        if before:
            wanted = {
                broker: replace(
                    each,
                    write_queues=max(each.write_queues, queues or 0),
                    read_queues=max(each.read_queues, queues or 0),
                )
                for broker, each in before.items()
            }
        else:
            count = queues or DEFAULT_QUEUES
            new = TopicSettings(name=topic, read_queues=count, write_queues=count)
            wanted = {broker: new for broker in self._brokers(cluster)}
        return self._put(before, wanted)

    def update(
        self,
        topic: str,
        *,
        write_queues: int | None = None,
        read_queues: int | None = None,
        perm: int | None = None,
    ) -> dict[str, TopicSettings]:
        """Change a topic on all its brokers: what is not given stays.

        Raises:
            TopicNotFoundError: there is no such topic.
            TopicNameError: it is RocketMQ's own.
        """
        self.check_name(topic)
        given = {"write_queues": write_queues, "read_queues": read_queues, "perm": perm}
        changes: dict[str, Any] = {name: each for name, each in given.items() if each is not None}
        before = self.settings(topic)
        wanted = {broker: replace(each, **changes) for broker, each in before.items()}
        return self._put(before, wanted)

    def put_each(self, topic: str, wanted: SettingsByBroker) -> dict[str, RocketPyError | None]:
        """Give some brokers settings of a topic; return by broker why it could not be done, if so.

        Returns when the name servers tell of what was done.

        Raises:
            TopicNameError: RocketMQ would not take the name.
        """
        self.check_name(topic)
        told = {
            broker: self._tried(broker, create_command(each)) for broker, each in wanted.items()
        }
        done = {broker: each for broker, each in wanted.items() if told[broker] is None}
        if done:
            self._wait_for_route(done)
        return told

    def delete(self, topic: str) -> None:
        """Delete a topic from its brokers, and its route from all name servers that answer.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        for error in self.delete_each(topic).values():
            if error is not None:
                raise error

    def delete_each(self, topic: str) -> dict[str, RocketPyError | None]:
        """Delete a topic from its brokers; return by broker why it could not be done, if so.

        Its route goes from all name servers that answer, unless a broker still has it.

        Raises:
            TopicNameError: it is RocketMQ's own.
            TopicNotFoundError: there is no such topic.
        """
        self.check_name(topic)
        brokers = self._cluster.route(topic, fresh=True).broker_names
        told = {each: self._tried(each, command_of(DeleteTopic(topic=topic))) for each in brokers}
        if not any(told.values()):
            self._delete_route(topic)
        return told

    def _delete_route(self, topic: str) -> None:
        for server in self._cluster.address.name_servers:
            try:
                self._cluster.ask(server, command_of(DeleteTopicRoute(topic=topic)))
            except ServerUnreachableError as error:
                log.warning("the route of %s stays there: %s", topic, error)

    def _brokers(self, cluster: str | None) -> list[str]:
        if cluster is None:
            clusters = [*self._cluster.info(fresh=True).cluster_addr_table]
            if len(clusters) > 1:
                raise NoBrokerError(
                    str(self._cluster.address),
                    f"it knows the clusters {', '.join(sorted(clusters))}; say in which one",
                )
        return self._cluster.masters(cluster)

    def _tried(self, broker: str, command: RemotingCommand) -> RocketPyError | None:
        """Ask a broker; return why it did not do it, if so."""
        try:
            self._cluster.ask_broker(broker, command)
        except RocketPyError as error:
            return error
        return None

    def _put(self, before: SettingsByBroker, wanted: SettingsByBroker) -> dict[str, TopicSettings]:
        for broker, each in wanted.items():
            if each == before.get(broker):
                continue
            self._cluster.ask_broker(broker, create_command(each))
        self._wait_for_route(wanted)
        return dict(sorted(wanted.items()))

    def _wait_for_route(self, wanted: SettingsByBroker) -> None:
        """Return when the name servers tell what the brokers were told."""
        (topic,) = {each.name for each in wanted.values()}
        deadline_s = time.monotonic() + _ROUTE_WAIT_S
        expected = {
            (name, each.read_queues, each.write_queues, each.perm) for name, each in wanted.items()
        }
        while True:
            try:
                queues = self._cluster.route(topic, fresh=True).queues
            except TopicNotFoundError:
                queues = ()
            known = {
                (each.broker_name, each.read_queue_nums, each.write_queue_nums, each.perm)
                for each in queues
            }
            if expected <= known:
                return
            if time.monotonic() > deadline_s:
                log.warning("the name servers do not know the change of %s yet", topic)
                return
            time.sleep(_ROUTE_LOOK_S)

    def check_name(self, topic: str) -> None:
        """Raise unless a topic of this name can be made, changed and deleted.

        Raises:
            TopicNameError: RocketMQ would not take the name, or it is its own.
        """
        check_topic_name(topic)
        if is_reserved_topic(topic):
            raise TopicNameError(topic, "it is RocketMQ's own, and stays as it is")


def create_command(settings: TopicSettings) -> RemotingCommand:
    """Return the request that makes a topic at a broker, or changes it there."""
    return command_of(
        CreateTopic(
            topic=settings.name,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=settings.read_queues,
            write_queue_nums=settings.write_queues,
            perm=settings.perm,
            topic_filter_type=settings.topic_filter_type,
            topic_sys_flag=settings.sys_flag,
            order=settings.order,
        )
    )
