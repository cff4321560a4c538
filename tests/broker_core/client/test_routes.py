from __future__ import annotations

import pytest

from rocketpy.broker_core.client.routes import TopicRoute, first_address, master_address
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.routes import TopicRouteData

# As name servers of 5.x and of 4.x write it: ids of brokers quoted, or bare.
QUOTED = (
    b'{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911","1":"127.0.0.1:10921"},'
    b'"brokerName":"b","cluster":"c","enableActingMaster":false}],"filterServerTable":{},'
    b'"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":2,"topicSysFlag":0,'
    b'"writeQueueNums":1}]}'
)
BARE = QUOTED.replace(b'"0":', b"0:").replace(b'"1":', b"1:")


@pytest.mark.parametrize("body", [QUOTED, BARE])
def test_routes_of_all_versions_are_read(body: bytes) -> None:
    route = TopicRoute.of("orders", TopicRouteData.decode(body))
    assert route.readable() == [MessageQueue("orders", "b", 0), MessageQueue("orders", "b", 1)]
    assert route.writable() == [MessageQueue("orders", "b", 0)]
    assert first_address(route.brokers["b"]) == "127.0.0.1:10911"


def test_without_a_master_a_slave_is_read_and_nothing_is_sent() -> None:
    body = QUOTED.replace(b'"0":"127.0.0.1:10911",', b"")
    route = TopicRoute.of("orders", TopicRouteData.decode(body))
    assert first_address(route.brokers["b"]) == "127.0.0.1:10921"
    assert master_address(route.brokers["b"]) is None
    assert len(route.readable()) == 2
    assert route.writable() == []


def test_a_broker_without_an_address_has_no_queues() -> None:
    body = QUOTED.replace(b'"0":"127.0.0.1:10911","1":"127.0.0.1:10921"', b"")
    assert TopicRoute.of("orders", TopicRouteData.decode(body)).readable() == []


@pytest.mark.parametrize(("perm", "reads", "writes"), [(4, 2, 0), (2, 0, 1), (0, 0, 0)])
def test_closed_queues_are_left_out(perm: int, reads: int, writes: int) -> None:
    body = QUOTED.replace(b'"perm":6', b'"perm":%d' % perm)
    route = TopicRoute.of("orders", TopicRouteData.decode(body))
    assert (len(route.readable()), len(route.writable())) == (reads, writes)
