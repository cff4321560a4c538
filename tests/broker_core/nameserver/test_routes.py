from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import pytest

from rocketpy.broker_core.nameserver.routes import (
    EXPIRES_AFTER_MS,
    UNIT,
    UNIT_SUBSCRIPTION,
    BrokerKey,
    RouteTable,
)
from rocketpy.broker_core.protocol.bodies.registration import RegisterBrokerBody
from rocketpy.broker_core.protocol.bodies.routes import QueueData
from rocketpy.broker_core.protocol.bodies.topics import (
    DataVersion,
    TopicSettings,
    TopicSettingsTable,
)
from rocketpy.broker_core.protocol.requests.routes import RegisterBroker, RegisterBrokerAnswer

MASTER = RegisterBroker(
    broker_name="a",
    broker_addr="127.0.0.1:10911",
    cluster_name="c1",
    ha_server_addr="127.0.0.1:10912",
    broker_id=0,
    enable_acting_master=False,
)
SLAVE = replace(
    MASTER, broker_addr="127.0.0.1:10921", ha_server_addr="127.0.0.1:10922", broker_id=1
)
OTHER = replace(MASTER, broker_name="b", broker_addr="127.0.0.1:10931", cluster_name="c2")
KEY = BrokerKey("c1", MASTER.broker_addr)


def body(*topics: str, counter: int = 1, queues: int = 4, state: int = 0) -> RegisterBrokerBody:
    version = DataVersion(counter=counter, state_version=state, timestamp=5)
    settings = [
        TopicSettings(name=each, read_queues=queues, write_queues=queues) for each in topics
    ]
    table = TopicSettingsTable(data_version=version, topics={each.name: each for each in settings})
    return RegisterBrokerBody(topic_table=table)


def register(
    table: RouteTable,
    broker: RegisterBroker = MASTER,
    said: RegisterBrokerBody | None = None,
    *,
    connection: Hashable = 1,
    now_ms: int = 0,
    forgets_topics: bool = False,
) -> RegisterBrokerAnswer | None:
    said = body("orders", "bills") if said is None else said
    return table.register(
        broker, said, connection=connection, now_ms=now_ms, forgets_topics=forgets_topics
    )


def queues(table: RouteTable, topic: str) -> list[tuple[str, int, int]]:
    """Name of the broker, queues and permissions."""
    route = table.route(topic)
    assert route is not None
    return [(each.broker_name, each.write_queue_nums, each.perm) for each in route.queue_datas]


def addresses(table: RouteTable, topic: str = "orders") -> dict[str, dict[int, str]]:
    route = table.route(topic)
    assert route is not None
    return {each.broker_name: dict(each.broker_addrs) for each in route.broker_datas}


@pytest.fixture
def table() -> RouteTable:
    table = RouteTable()
    register(table)
    return table


def test_a_topic_is_where_its_broker_is(table: RouteTable) -> None:
    assert addresses(table) == {"a": {0: "127.0.0.1:10911"}}
    assert queues(table, "orders") == [("a", 4, 6)]
    assert table.route("nosuch") is None


def test_a_topic_of_two_brokers_has_both(table: RouteTable) -> None:
    register(table, OTHER, body("orders", "more", queues=8))
    assert queues(table, "orders") == [("a", 4, 6), ("b", 8, 6)]
    assert addresses(table) == {"a": {0: "127.0.0.1:10911"}, "b": {0: "127.0.0.1:10931"}}
    assert addresses(table, "more") == {"b": {0: "127.0.0.1:10931"}}


def test_settings_are_taken_over_when_the_version_has_changed(table: RouteTable) -> None:
    register(table, said=body("orders", "bills", queues=8))
    assert queues(table, "orders") == [("a", 4, 6)]  # the same version: not looked at
    register(table, said=body("orders", "bills", queues=8, counter=2))
    assert queues(table, "orders") == [("a", 8, 6)]


def test_a_topic_that_is_missing_is_added_though_the_version_is_the_same(
    table: RouteTable,
) -> None:
    table.delete_topic("orders")
    register(table)
    assert queues(table, "orders") == [("a", 4, 6)]


def test_a_registration_of_one_topic_leaves_the_others(table: RouteTable) -> None:
    register(table, said=body("new", counter=2))
    assert table.topics() == ("orders", "bills", "new")


def test_topics_that_are_not_named_go_where_that_is_wanted(table: RouteTable) -> None:
    register(table, said=body("orders", "new", counter=2), forgets_topics=True)
    assert table.topics() == ("orders", "new")


def test_one_topic_is_no_registration_of_an_unknown_broker() -> None:
    table = RouteTable()
    assert register(table, said=body("orders")) is None
    assert table.cluster_info().broker_addr_table == {}


def test_a_slave_is_told_its_master_and_is_in_the_route(table: RouteTable) -> None:
    answer = register(table, SLAVE, body("orders", "bills", "slaves"))
    assert answer == RegisterBrokerAnswer(
        master_addr="127.0.0.1:10911", ha_server_addr="127.0.0.1:10912"
    )
    assert addresses(table) == {"a": {0: "127.0.0.1:10911", 1: "127.0.0.1:10921"}}
    assert table.route("slaves") is None  # the topics of a slave do not count beside a master


@pytest.mark.parametrize(("is_of_5x", "counts"), [(True, True), (False, False)])
def test_the_topics_of_a_slave_without_a_master_count_from_5_0_on(
    is_of_5x: bool, counts: bool
) -> None:
    table = RouteTable()
    slave = replace(SLAVE, enable_acting_master=False if is_of_5x else None)
    assert register(table, slave) == RegisterBrokerAnswer()
    assert (table.route("orders") is not None) == counts


def test_a_slave_that_becomes_the_master_has_one_id(table: RouteTable) -> None:
    register(table, SLAVE)
    table.unregister(KEY, "a")
    register(table, replace(SLAVE, broker_id=0), body("orders", "bills", counter=2))
    assert addresses(table) == {"a": {0: "127.0.0.1:10921"}}


def test_the_topics_of_a_slave_count_once_it_is_the_master_though_their_version_is_the_same(
    table: RouteTable,
) -> None:
    said = body("orders", "bills", queues=8)
    register(table, SLAVE, said)
    table.unregister(KEY, "a")
    register(table, replace(SLAVE, broker_id=0), said)
    assert queues(table, "orders") == [("a", 8, 6)]


def test_a_second_broker_of_a_name_and_id_takes_over_unless_its_state_is_older() -> None:
    table = RouteTable()
    register(table, said=body("orders", "bills", state=2))
    moved = replace(MASTER, broker_addr="127.0.0.1:10999")
    assert register(table, moved, body("orders", "bills", state=1)) == RegisterBrokerAnswer()
    assert addresses(table) == {"a": {0: "127.0.0.1:10911"}}
    register(table, moved, body("orders", "bills", state=2))
    assert addresses(table) == {"a": {0: "127.0.0.1:10999"}}


def test_a_broker_that_unregisters_takes_its_topics_along(table: RouteTable) -> None:
    register(table, OTHER, body("orders", "more"))
    assert table.unregister(KEY, "a")
    assert table.topics() == ("orders", "more")
    assert queues(table, "orders") == [("b", 4, 6)]
    assert table.cluster_info().cluster_addr_table == {"c2": ("b",)}
    assert not table.unregister(KEY, "a")


def test_a_slave_stays_when_its_master_goes(table: RouteTable) -> None:
    register(table, SLAVE)
    table.unregister(KEY, "a")
    assert addresses(table) == {"a": {1: "127.0.0.1:10921"}}


def test_a_closed_connection_takes_its_brokers_along(table: RouteTable) -> None:
    register(table, OTHER, connection=2)
    assert table.drop(1) == [KEY]
    assert addresses(table) == {"b": {0: "127.0.0.1:10931"}}


def test_a_broker_that_came_again_outlives_its_old_connection(table: RouteTable) -> None:
    register(table, connection=2)
    assert table.drop(1) == []
    assert addresses(table) == {"a": {0: "127.0.0.1:10911"}}


def test_a_silent_broker_expires_and_its_connection_is_named(table: RouteTable) -> None:
    register(table, OTHER, connection=2, now_ms=1)
    assert table.expire(EXPIRES_AFTER_MS) == []
    assert table.expire(EXPIRES_AFTER_MS + 1) == [1]
    assert addresses(table) == {"b": {0: "127.0.0.1:10931"}}


def test_a_heartbeat_keeps_a_broker(table: RouteTable) -> None:
    table.note_heartbeat(KEY, 10)
    table.note_heartbeat(BrokerKey("c1", "127.0.0.1:1"), 10)  # nobody's
    assert table.expire(EXPIRES_AFTER_MS + 10) == []
    assert table.expire(EXPIRES_AFTER_MS + 11) == [1]


def test_a_broker_says_how_long_it_may_be_silent() -> None:
    table = RouteTable()
    register(table, replace(MASTER, heartbeat_timeout_millis=1_000))
    assert table.expire(1_000) == []
    assert table.expire(1_001) == [1]


def test_the_version_of_a_broker_is_that_of_its_last_registration(table: RouteTable) -> None:
    register(table, said=body("orders", "bills", counter=7))
    assert table.version(KEY) == DataVersion(counter=7, timestamp=5)
    assert table.version(BrokerKey("c1", "127.0.0.1:1")) is None


def test_write_permission_goes_and_comes_back_for_all_topics_of_a_broker(
    table: RouteTable,
) -> None:
    register(table, OTHER)
    assert table.set_writable("a", is_writable=False) == 2
    register(table)  # the same version: what was wiped stays so
    assert queues(table, "orders") == [("a", 4, 4), ("b", 4, 6)]
    assert table.set_writable("a", is_writable=True) == 2
    assert queues(table, "orders") == [("a", 4, 6), ("b", 4, 6)]
    assert table.set_writable("nosuch", is_writable=False) == 0


def test_a_topic_is_deleted_in_a_cluster_or_everywhere(table: RouteTable) -> None:
    register(table, OTHER)
    table.delete_topic("orders", "c1")
    assert queues(table, "orders") == [("b", 4, 6)]
    table.delete_topic("orders", "nosuch")
    table.delete_topic("bills")
    assert table.topics() == ("orders",)
    table.delete_topic("orders", "c2")
    assert table.topics() == ()


def test_topics_are_listed_by_cluster(table: RouteTable) -> None:
    register(table, OTHER, body("orders", "more"))
    assert table.topics("c1") == ("orders", "bills")
    assert table.topics("c2") == ("orders", "more")
    assert table.topics("c3") == ()


def test_clusters_and_brokers_name_system_topics(table: RouteTable) -> None:
    register(table, OTHER)
    assert table.system_topics() == (("c1", "a", "c2", "b"), "127.0.0.1:10911")
    assert RouteTable().system_topics() == ((), None)


def test_topics_are_listed_by_their_system_flag(table: RouteTable) -> None:
    flags = {"unit": UNIT, "sub": UNIT_SUBSCRIPTION, "both": UNIT | UNIT_SUBSCRIPTION}
    topics = {name: TopicSettings(name=name, sys_flag=flag) for name, flag in flags.items()}
    said = TopicSettingsTable(data_version=DataVersion(counter=9), topics=topics)
    register(table, said=RegisterBrokerBody(topic_table=said))
    assert table.topics_flagged(UNIT) == ("unit", "both")
    assert table.topics_flagged(UNIT_SUBSCRIPTION) == ("sub", "both")
    assert table.topics_flagged(UNIT_SUBSCRIPTION, UNIT) == ("sub",)


def test_a_single_topic_is_added_to_brokers_that_are_known(table: RouteTable) -> None:
    table.add_topic("new", [QueueData(broker_name="a", write_queue_nums=2, perm=6)])
    assert queues(table, "new") == [("a", 2, 6)]
    table.add_topic("nowhere", [QueueData(broker_name="nosuch")])
    table.add_topic("nothing", [])
    assert table.topics() == ("orders", "bills", "new")


def test_members_are_the_brokers_of_a_name(table: RouteTable) -> None:
    register(table, SLAVE)
    assert dict(table.members("c1", "a").broker_addrs) == {
        0: "127.0.0.1:10911",
        1: "127.0.0.1:10921",
    }
    assert dict(table.members("c1", "nosuch").broker_addrs) == {}


def test_filter_servers_are_in_the_route() -> None:
    table = RouteTable()
    register(table, said=replace(body("orders", "bills"), filter_servers=("127.0.0.1:1",)))
    route = table.route("orders")
    assert route is not None
    assert route.filter_server_table == {"127.0.0.1:10911": ("127.0.0.1:1",)}
