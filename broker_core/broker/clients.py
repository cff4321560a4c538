"""The clients of a broker: who sends and who consumes, by group, as their heartbeats say.

C1  A client is in a group from its heartbeat until it leaves, its connection closes, or it was
    silent for too long.
C2  Whenever the members of a consumer group or its subscriptions change, all members are told.
C3  The subscriptions of a group are those of the heartbeat that came last, so its clients should
    agree; of one topic the newest version counts.
All of it belongs to the loop's thread; times are steady milliseconds. Reads no files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    BROADCASTING,
    ConsumerData,
    SubscriptionData,
)
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.groups import NotifyConsumersChanged

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Client:
    """A client in a group, by its connection."""

    client_id: str
    connection: Connection
    language: str
    version: int
    heard_ms: int  # steady: when its last heartbeat came
    heard_at_ms: int  # the same by the time of day


@dataclass(slots=True)
class ConsumerGroup:
    """The consumers of a group, and what they consume."""

    name: str
    consume_type: str
    message_model: str
    consume_from_where: str
    members: dict[Connection, Client] = field(default_factory=dict)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    fingerprint: int | None = None  # of the last heartbeat that had one

    def subscription(self, topic: str) -> SubscriptionData | None:
        """Return what the group wants of a topic; None if nothing."""
        return self.subscriptions.get(topic)

    def client_ids(self) -> list[str]:
        """Return the ids of the members; a client that came back on a new connection once."""
        return list(dict.fromkeys(each.client_id for each in self.members.values()))

    def find(self, client_id: str) -> Client | None:
        """Return a member by its id; of several connections the one that was heard last."""
        found = [each for each in self.members.values() if each.client_id == client_id]
        return max(found, key=lambda client: client.heard_ms) if found else None

    def take_subscriptions(self, wanted: Iterable[SubscriptionData]) -> bool:
        """Have these subscriptions and no others; return whether topics came or went."""
        given = {each.topic: each for each in wanted}
        has_changed = given.keys() != self.subscriptions.keys()
        for topic, each in given.items():
            known = self.subscriptions.get(topic)
            if known is not None and known.sub_version >= each.sub_version:
                given[topic] = known
        self.subscriptions = given
        return has_changed


class Clients:
    """All clients of a broker. Used in the loop."""

    def __init__(self, *, steady_ms: Callable[[], int], notifies: Callable[[str], bool]) -> None:
        """Begin without clients; `notifies` says whether a group's members are told of changes."""
        self._steady_ms, self._notifies = steady_ms, notifies
        self._consumers: dict[str, ConsumerGroup] = {}
        self._producers: dict[str, dict[Connection, Client]] = {}
        self._groups_of: dict[Connection, set[tuple[bool, str]]] = {}  # whether consumers, name
        self._turns: dict[str, int] = {}  # of producers that were asked

    # --- reading ----------------------------------------------------------------------------------

    def consumers(self, group: str) -> ConsumerGroup | None:
        """Return the consumers of a group; None if it has no members."""
        return self._consumers.get(group)

    def consumer_groups(self) -> list[ConsumerGroup]:
        """Return the groups that have consumers."""
        return list(self._consumers.values())

    def consumer_ids(self, group: str) -> list[str]:
        """Return the ids of a group's consumers."""
        known = self._consumers.get(group)
        return [] if known is None else known.client_ids()

    def producers(self, group: str) -> list[Client]:
        """Return the clients that send for a group."""
        return list(self._producers.get(group, {}).values())

    def producer_groups(self) -> dict[str, list[Client]]:
        """Return all clients that send, by group."""
        return {group: list(members.values()) for group, members in self._producers.items()}

    def some_producer(self, group: str) -> Connection | None:
        """Return the connection of a client that sends for a group, each in its turn."""
        live = [each for each in self._producers.get(group, {}) if not each.is_closed]
        if not live:
            return None
        turn = self._turns.get(group, 0)
        self._turns[group] = turn + 1
        return live[turn % len(live)]

    def connection_of(self, client_id: str) -> Connection | None:
        """Return the connection of a client that sends, by its id; None if it is not here."""
        for members in self._producers.values():
            for client in members.values():
                if client.client_id == client_id and not client.connection.is_closed:
                    return client.connection
        return None

    # --- who comes --------------------------------------------------------------------------------

    def register_producer(self, group: str, client: Client) -> None:
        """Take up a client that sends for a group, or note that it lives."""
        members = self._producers.setdefault(group, {})
        if client.connection not in members:
            self._watch(client.connection, is_consumer=False, group=group)
            log.info("%s sends for %s", client.client_id, group)
        members[client.connection] = client

    def register_consumer(
        self, data: ConsumerData, client: Client, *, with_subscriptions: bool = True
    ) -> bool:
        """Take up a consumer of a group, or note that it lives; return whether something changed.

        Without subscriptions those of the group stay.
        """
        name = data.group_name
        group = self._consumers.get(name)
        if group is None:
            kinds = data.consume_type, data.message_model, data.consume_from_where
            group = self._consumers[name] = ConsumerGroup(name, *kinds)
        group.consume_type, group.message_model = data.consume_type, data.message_model
        group.consume_from_where = data.consume_from_where
        known = group.members.get(client.connection)
        has_changed = known is None or known.client_id != client.client_id
        group.members[client.connection] = client
        if known is None:
            self._watch(client.connection, is_consumer=True, group=name)
        if with_subscriptions:
            has_changed |= group.take_subscriptions(data.subscriptions)
        if has_changed:
            log.info("group %s: %s consumes %s", name, client.client_id, [*group.subscriptions])
            self._tell_members(group)
        return has_changed

    def note_fingerprint(self, group: str, fingerprint: int, *, without_sub: bool) -> bool:
        """Note what a heartbeat's subscriptions hash to; return whether the client is to send them.

        That is so if the group has others, or none yet. Call after the client was registered.
        """
        known = self._consumers[group]
        before = known.fingerprint
        if without_sub:
            return before != fingerprint
        known.fingerprint = fingerprint
        return before not in (None, fingerprint)

    # --- who goes ---------------------------------------------------------------------------------

    def unregister(self, group: str, connection: Connection, *, is_consumer: bool) -> None:
        """Take a client out of a group."""
        self._groups_of.get(connection, set()).discard((is_consumer, group))
        self._leave(group, connection, is_consumer=is_consumer)

    def close_silent(self, timeout_ms: int) -> None:
        """Close the connections of clients whose last heartbeat is too long ago."""
        limit_ms = self._steady_ms() - timeout_ms
        tables = [*self._producers.values(), *(each.members for each in self._consumers.values())]
        silent = {
            client.connection: client.client_id
            for members in tables
            for client in members.values()
            if client.heard_ms < limit_ms
        }
        for connection, client_id in silent.items():
            log.warning("%s was silent for %d ms: closed", client_id, timeout_ms)
            connection.close()
            self._forget(connection)

    def _watch(self, connection: Connection, *, is_consumer: bool, group: str) -> None:
        if connection not in self._groups_of:
            self._groups_of[connection] = set()
            connection.when_closed(self._forget)
        self._groups_of[connection].add((is_consumer, group))

    def _forget(self, connection: Connection) -> None:
        """Take a client whose connection is closed out of all its groups."""
        for is_consumer, group in sorted(self._groups_of.pop(connection, set())):
            self._leave(group, connection, is_consumer=is_consumer)

    def _leave(self, name: str, connection: Connection, *, is_consumer: bool) -> None:
        if not is_consumer:
            senders = self._producers.get(name, {})
            senders.pop(connection, None)
            if not senders:
                self._producers.pop(name, None)
                self._turns.pop(name, None)
            return
        group = self._consumers.get(name)
        client = group.members.pop(connection, None) if group is not None else None
        if group is None or client is None:
            return
        log.info("group %s: %s left", name, client.client_id)
        if not group.members:
            del self._consumers[name]
        self._tell_members(group)

    def _tell_members(self, group: ConsumerGroup) -> None:
        # As ConsumerManager: consumers that get all messages anyway share nothing.
        if group.message_model == BROADCASTING or not self._notifies(group.name):
            return
        fields = NotifyConsumersChanged(consumer_group=group.name).encode()
        for connection in group.members:
            connection.send(RemotingCommand(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields))
