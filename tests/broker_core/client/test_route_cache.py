from __future__ import annotations

from rocketpy.broker_core.client.route_cache import (
    FRESH_S,
    MISSING_S,
    SOON_S,
    SOUGHT_S,
    UNKNOWN_S,
    UNUSED_S,
    RouteCache,
)
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.protocol.bodies.routes import BrokerData, QueueData


def route(topic: str, broker: str = "a", *, port: int = 1, slave: int | None = None) -> TopicRoute:
    addresses = {0: f"{broker}:{port}"} | ({1: f"{broker}:{slave}"} if slave else {})
    queues = QueueData(broker_name=broker, read_queue_nums=1, write_queue_nums=1, perm=6)
    data = BrokerData(broker_name=broker, cluster="c", broker_addrs=addresses)
    return TopicRoute(topic, (queues,), {broker: data})


def joined(one: TopicRoute, other: TopicRoute) -> TopicRoute:
    return TopicRoute(one.topic, one.queues + other.queues, {**one.brokers, **other.brokers})


def test_a_route_is_used_as_long_as_it_is_not_suspected() -> None:
    table, told = RouteCache(), route("t")
    assert table.use("t", 0) is None
    table.put(told, 0)
    assert table.use("t", 1000) is told
    table.suspect("a")
    assert table.use("t", 1000) is None
    assert table.last_known("t") is told


def test_only_routes_with_a_suspected_broker_are_asked_for_again() -> None:
    table = RouteCache()
    table.put(route("t", "a"), 0)
    table.put(route("u", "b"), 0)
    table.suspect("b")
    assert table.use("t", 1) is not None
    assert table.use("u", 1) is None


def test_a_route_is_due_after_thirty_seconds() -> None:
    table = RouteCache()
    table.put(route("t"), 100)
    assert table.due((), 100 + FRESH_S - 0.1) == []
    assert table.due((), 100 + FRESH_S) == ["t"]


def test_a_new_route_is_due_sooner_for_a_while() -> None:
    table, found = RouteCache(), []
    for second in range(100, 175):
        if second == 100 or table.due((), second):
            found.append(second)
            table.put(route("t"), second)
    assert found == [100, 103, 106, 109, 139, 169]


def test_a_route_that_lost_a_broker_is_asked_for_often_until_it_is_back() -> None:
    one, both = route("t", "a"), joined(route("t", "a"), route("t", "b"))
    table = RouteCache()
    table.put(both, 0)
    table.put(one, 30)
    assert table.due((), 30 + SOON_S) == ["t"]
    table.put(one, 33)  # not yet
    assert table.due((), 33 + SOON_S - 0.1) == []
    assert table.due((), 33 + SOON_S) == ["t"]
    table.put(both, 36)
    assert table.due((), 36 + FRESH_S - 0.1) == []


def test_a_broker_that_stays_away_is_waited_for_two_minutes_only() -> None:
    table = RouteCache()
    table.put(joined(route("t", "a"), route("t", "b")), 0)
    table.put(route("t", "a"), 30)
    table.put(route("t", "a"), 30 + SOUGHT_S)
    assert table.due((), 30 + SOUGHT_S + FRESH_S - 0.1) == []


def test_a_topic_that_somebody_needs_is_due_at_once_and_never_forgotten() -> None:
    table = RouteCache()
    assert table.due(("t",), 0) == ["t"]
    table.put(route("t"), 0)
    assert table.due(("t",), 2 * UNUSED_S) == ["t"]
    assert table.last_known("t") is not None


def test_a_topic_that_nobody_knows_is_asked_for_now_and_then() -> None:
    table = RouteCache()
    table.note_missing("t", 10)
    assert table.due(("t",), 10 + UNKNOWN_S - 0.1) == []
    assert table.due(("t",), 10 + UNKNOWN_S) == ["t"]
    table.note_unanswered("t", 20)
    assert table.due(("t",), 20) == []
    assert table.due((), 20) == []


def test_a_topic_that_nobody_uses_is_forgotten_with_its_brokers() -> None:
    table = RouteCache()
    table.put(route("t"), 0)
    table.use("t", 100)
    assert table.due((), 100 + UNUSED_S) == []
    assert table.last_known("t") is None
    assert table.addresses("a") is None


def test_a_missing_topic_keeps_its_route_for_a_while() -> None:
    table, told = RouteCache(), route("t")
    assert table.note_missing("t", 0) is None
    table.put(told, 0)
    assert table.note_missing("t", MISSING_S - 1) is told
    assert table.due((), MISSING_S - 1) == []
    assert table.note_missing("t", MISSING_S) is None
    assert table.use("t", MISSING_S) is None


def test_without_name_servers_a_suspected_route_is_used_again() -> None:
    table, told = RouteCache(), route("t")
    table.put(told, 0)
    table.suspect("a")
    table.note_unanswered("t", 50)
    assert table.use("t", 50) is told
    assert table.due((), 50 + FRESH_S) == ["t"]


def test_the_newest_address_of_a_broker_counts() -> None:
    table = RouteCache()
    table.put(route("t", port=1), 0)
    table.put(route("u", port=2), 10)
    assert table.addresses("a") == {0: "a:2"}
    table.put(route("t", port=3), 20)
    assert table.addresses("a") == {0: "a:3"}


def test_slaves_are_servers_only_if_wanted() -> None:
    table = RouteCache()
    table.put(route("t", slave=9), 0)
    assert table.servers(with_slaves=False) == ["a:1"]
    assert table.servers(with_slaves=True) == ["a:1", "a:9"]
