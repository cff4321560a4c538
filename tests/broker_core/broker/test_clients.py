from __future__ import annotations

from collections.abc import Callable
from typing import cast

from rocketpy.broker_core.broker.clients import Client, Clients
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    BROADCASTING,
    CLUSTERING,
    ConsumerData,
    SubscriptionData,
)
from rocketpy.broker_core.protocol.command import RemotingCommand


class FakeConnection:
    """Keeps what it is to send, and closes when it is told to."""

    def __init__(self) -> None:
        self.told: list[tuple[int, dict[str, str]]] = []
        self.is_closed = False
        self._callbacks: list[Callable[[Connection], None]] = []

    def send(self, command: RemotingCommand, body: bytes = b"") -> None:
        del body
        self.told.append((command.code, dict(command.fields)))

    def when_closed(self, callback: Callable[[Connection], None]) -> None:
        self._callbacks.append(callback)

    def close(self) -> None:
        self.is_closed = True
        for callback in self._callbacks:
            callback(cast(Connection, self))


class Group:
    """Clients of a broker, and the changes that a test makes."""

    def __init__(self, *, notifies: bool = True) -> None:
        self.clock = ManualClock()
        self.clients = Clients(steady_ms=self.clock.steady_ms, notifies=lambda _: notifies)

    def client(self, client_id: str, connection: FakeConnection) -> Client:
        times = self.clock.steady_ms(), self.clock.now_ms()
        return Client(client_id, cast(Connection, connection), "JAVA", 513, *times)

    def beat(
        self,
        client_id: str,
        connection: FakeConnection,
        *subscriptions: SubscriptionData,
        model: str = CLUSTERING,
        with_subscriptions: bool = True,
    ) -> bool:
        data = ConsumerData(group_name="billing", subscriptions=subscriptions, message_model=model)
        return self.clients.register_consumer(
            data, self.client(client_id, connection), with_subscriptions=with_subscriptions
        )

    def topics(self) -> list[str]:
        group = self.clients.consumers("billing")
        return [] if group is None else sorted(group.subscriptions)


CHANGED = (40, {"consumerGroup": "billing"})
ORDERS = SubscriptionData(topic="orders", sub_version=1)


def test_all_members_are_told_when_one_joins() -> None:
    group, a, b = Group(), FakeConnection(), FakeConnection()
    assert group.beat("a", a, ORDERS)
    assert group.beat("b", b, ORDERS)
    assert (a.told, b.told) == ([CHANGED, CHANGED], [CHANGED])
    assert group.clients.consumer_ids("billing") == ["a", "b"]


def test_a_heartbeat_that_changes_nothing_tells_nobody() -> None:
    group, a = Group(), FakeConnection()
    group.beat("a", a, ORDERS)
    assert not group.beat("a", a, ORDERS)
    assert a.told == [CHANGED]


def test_members_are_told_when_topics_come_or_go_but_not_of_new_versions() -> None:
    group, a = Group(), FakeConnection()
    group.beat("a", a, ORDERS)
    assert group.beat("a", a, ORDERS, SubscriptionData(topic="bills"))
    assert group.topics() == ["bills", "orders"]
    assert group.beat("a", a, ORDERS)
    assert group.topics() == ["orders"]
    newer = SubscriptionData(topic="orders", sub_version=2, sub_string="paid")
    assert not group.beat("a", a, newer)
    found = group.clients.consumers("billing")
    assert found is not None
    assert found.subscription("orders") == newer
    group.beat("a", a, ORDERS)
    assert found.subscription("orders") == newer  # the older one does not count
    assert a.told == [CHANGED] * 3


def test_who_leaves_is_gone_and_the_others_are_told() -> None:
    group, a, b = Group(), FakeConnection(), FakeConnection()
    group.beat("a", a, ORDERS)
    group.beat("b", b, ORDERS)
    group.clients.unregister("billing", cast(Connection, a), is_consumer=True)
    assert group.clients.consumer_ids("billing") == ["b"]
    assert (len(a.told), len(b.told)) == (2, 2)


def test_a_closed_connection_takes_its_client_out_of_all_groups() -> None:
    group, a, b = Group(), FakeConnection(), FakeConnection()
    group.beat("a", a, ORDERS)
    group.beat("b", b, ORDERS)
    group.clients.register_producer("shop", group.client("a", a))
    a.close()
    assert group.clients.consumer_ids("billing") == ["b"]
    assert group.clients.producers("shop") == []
    assert b.told == [CHANGED, CHANGED]
    assert group.clients._groups_of.keys() == {cast(Connection, b)}


def test_subscriptions_are_forgotten_with_the_last_member() -> None:
    group, a = Group(), FakeConnection()
    group.beat("a", a, ORDERS)
    a.close()
    assert group.clients.consumers("billing") is None
    group.beat("a", FakeConnection(), with_subscriptions=False)
    assert group.topics() == []


def test_a_client_on_a_new_connection_is_listed_once_and_survives_the_end_of_the_old() -> None:
    group, old, new = Group(), FakeConnection(), FakeConnection()
    group.beat("a", old, ORDERS)
    group.clock.advance(5)
    group.beat("a", new, ORDERS)
    assert group.clients.consumer_ids("billing") == ["a"]
    found = group.clients.consumers("billing")
    assert found is not None
    client = found.find("a")
    assert client is not None
    assert client.connection is cast(Connection, new)
    old.close()
    assert group.clients.consumer_ids("billing") == ["a"]


def test_broadcasting_groups_and_groups_that_do_not_want_it_are_not_told() -> None:
    group, a = Group(), FakeConnection()
    group.beat("a", a, ORDERS, model=BROADCASTING)
    assert a.told == []
    quiet, b = Group(notifies=False), FakeConnection()
    quiet.beat("b", b, ORDERS)
    assert b.told == []


def test_silent_clients_are_closed_and_their_groups_told() -> None:
    group, silent, live = Group(), FakeConnection(), FakeConnection()
    group.beat("silent", silent, ORDERS)
    group.clients.register_producer("shop", group.client("silent", silent))
    group.clock.advance(60_000)
    group.beat("live", live, ORDERS)
    group.clock.advance(60_000)
    group.clients.close_silent(120_000)
    assert group.clients.consumer_ids("billing") == ["silent", "live"]  # not longer than that
    group.clock.advance(1)
    group.clients.close_silent(120_000)
    assert silent.is_closed
    assert group.clients.consumer_ids("billing") == ["live"]
    assert group.clients.producer_groups() == {}
    assert live.told == [CHANGED, CHANGED]


def test_producers_are_asked_in_turn_and_only_those_that_live() -> None:
    group = Group()
    connections = [FakeConnection() for _ in range(3)]
    for number, connection in enumerate(connections):
        group.clients.register_producer("shop", group.client(f"p{number}", connection))
    asked = [group.clients.some_producer("shop") for _ in range(4)]
    assert asked == [cast(Connection, connections[n]) for n in (0, 1, 2, 0)]
    connections[0].close()
    connections[1].close()
    assert group.clients.some_producer("shop") is cast(Connection, connections[2])
    connections[2].close()
    assert group.clients.some_producer("shop") is None
    assert group.clients.some_producer("nobody") is None


def test_subscriptions_are_asked_for_when_the_fingerprint_is_another() -> None:
    group, a = Group(), FakeConnection()
    note = group.clients.note_fingerprint
    group.beat("a", a, with_subscriptions=False)
    assert note("billing", 7, without_sub=True)  # none were ever sent
    assert note("billing", 7, without_sub=True)
    group.beat("a", a, ORDERS)
    assert not note("billing", 7, without_sub=False)
    assert not note("billing", 7, without_sub=True)
    assert group.topics() == ["orders"]
    assert note("billing", 8, without_sub=True)
    assert note("billing", 8, without_sub=False)
    assert not note("billing", 8, without_sub=True)
