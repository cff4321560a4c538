"""Groups: which there are, their settings, who is in them and what they want; producers' groups.

A consumer group is made on all brokers, or changed there. Brokers that make groups by themselves
(`autoCreateSubscriptionGroup`) do so when its first consumer comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.denials import denial_of
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.namespaces import Namespace
from rocketpy.broker_core.errors import GroupNotFoundError
from rocketpy.broker_core.metadata.names import is_system_group
from rocketpy.broker_core.protocol.bodies.connections import (
    ClientConnection,
    ConsumerConnection,
    ProducerConnection,
)
from rocketpy.broker_core.protocol.bodies.groups import GroupSettings
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.groups import GetProducerConnections


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A consumer group, and its settings on each broker that has it."""

    name: str
    settings: Mapping[str, GroupSettings]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedClient:
    """A client of a group, and the brokers that know it; `version` is Apache's number of one."""

    client_id: str
    address: str
    language: str
    version: int
    brokers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSubscription:
    """What a group wants of a topic; `kind` is TAG or SQL92."""

    topic: str
    expression: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConnections:
    """Who consumes for a group now, what, and how; all is empty while nobody does.

    `consume_type` is CONSUME_PASSIVELY of push consumers, CONSUME_ACTIVELY of those that pull;
    `message_model` is CLUSTERING or BROADCASTING; `start` is where a new group begins.
    """

    group: str
    members: tuple[ConnectedClient, ...]
    subscriptions: tuple[TopicSubscription, ...]
    consume_type: str | None
    message_model: str | None
    start: str | None


class GroupAdmin:
    """The groups of one cluster. Used by one thread at a time."""

    def __init__(self, cluster: Cluster, names: Namespace) -> None:
        self._cluster, self._names, self._groups = cluster, names, ClusterGroups(cluster)

    # --- what there is ----------------------------------------------------------------------------

    def all(self, *, everything: bool = False) -> list[Group]:
        """Return the consumer groups by name; with `everything`, RocketMQ's own as well."""
        return [
            self._group(name, by_broker)
            for name, by_broker in self._groups.settings().items()
            if self._names.has(name) and (everything or not is_system_group(name))
        ]

    def get(self, group: str) -> Group:
        """Return a consumer group.

        Raises:
            GroupNotFoundError: no broker has it.
        """
        name, known = self._names.wrap(group), self._groups.settings()
        if name not in known:
            raise GroupNotFoundError(name, known)
        return self._group(name, known[name])

    def of_topic(self, topic: str) -> list[str]:
        """Return the names of the groups that read a topic, or did.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        return [self._names.show(each) for each in self._groups.of_topic(self._names.wrap(topic))]

    def connections(self, group: str) -> GroupConnections:
        """Return who consumes for a group now, and what."""
        name = self._names.wrap(group)
        by_broker = self._groups.connections([name]).get(name, {})
        subscriptions = {
            topic: TopicSubscription(
                topic=self._names.show(topic), expression=each.sub_string, kind=each.expression_type
            )
            for found in by_broker.values()
            for topic, each in found.subscription_table.items()
        }
        said = next(iter(by_broker.values()), ConsumerConnection())
        return GroupConnections(
            group=group,
            members=_members({name: each.connections for name, each in by_broker.items()}),
            subscriptions=tuple(subscriptions[topic] for topic in sorted(subscriptions)),
            consume_type=said.consume_type,
            message_model=said.message_model,
            start=said.consume_from_where,
        )

    def producers(self, group: str) -> tuple[ConnectedClient, ...]:
        """Return the clients that send for a producer group now; brokers hear of it by heartbeats.

        A client is known to the brokers to whose topics it sends.
        """
        request = GetProducerConnections(producer_group=self._names.wrap(group))
        asked = ((broker, command_of(request)) for broker in self._cluster.masters())
        found = {}
        for broker, answer in self._cluster.ask_brokers(asked):
            # It knows nobody of the group, and has no code of its own for that.
            if answer.code == ResponseCode.SYSTEM_ERROR and not denial_of(
                answer.code, answer.remark or ""
            ):
                continue
            body = self._cluster.check(broker, answer).body
            found[broker] = ProducerConnection.decode(body).connections
        return _members(found)

    # --- changes ----------------------------------------------------------------------------------

    def create(
        self,
        group: str,
        *,
        retry_max_times: int | None = None,
        retry_queues: int | None = None,
        consume_enabled: bool | None = None,
    ) -> Group:
        """Make a group on all brokers, or change it there: what is not given stays.

        Raises:
            GroupNameError: RocketMQ would not take the name.
        """
        self._groups.create(
            self._names.wrap(group),
            retry_max_times=retry_max_times,
            retry_queues=retry_queues,
            consume_enabled=consume_enabled,
        )
        return self.get(group)

    def delete(self, group: str, *, with_offsets: bool = True) -> None:
        """Delete a group on all brokers, with how far it has read unless that is to stay.

        Its retries and dead letters stay. Consumers that run make it again, where brokers do that.

        Raises:
            GroupNotFoundError: no broker has it.
        """
        self.get(group)
        self._groups.delete(self._names.wrap(group), with_offsets=with_offsets)

    def _group(self, name: str, by_broker: Mapping[str, GroupSettings]) -> Group:
        shown = self._names.show(name)
        settings = {broker: replace(each, name=shown) for broker, each in by_broker.items()}
        return Group(name=shown, settings=settings)


def _members(by_broker: Mapping[str, tuple[ClientConnection, ...]]) -> tuple[ConnectedClient, ...]:
    """Return each client once, with all brokers that know it."""
    clients = {each.client_id: each for connections in by_broker.values() for each in connections}
    return tuple(
        ConnectedClient(
            client_id=client_id,
            address=clients[client_id].client_addr,
            language=clients[client_id].language,
            version=clients[client_id].version,
            brokers=tuple(
                sorted(
                    broker
                    for broker, connections in by_broker.items()
                    if client_id in {each.client_id for each in connections}
                )
            ),
        )
        for client_id in sorted(clients)
    )
