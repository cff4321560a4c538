"""A broker that is down, or refuses a request, breaks its own cells and no page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.console.shop import until

from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.console.answers import MessageQuestion
from rocketpy.console.cluster import ClusterReader
from rocketpy.console.place import ListQuestion, WatchedPlace


@pytest.fixture
def servers() -> Iterator[LocalBroker]:
    with local_broker(brokers=2, topics={"orders": 1}) as running:
        with Cluster(running.namesrv_addr) as cluster:
            drafts = [MessageDraft(body=b"x", keys="k") for _ in range(4)]
            producer = Producer(cluster)  # a new one would begin with any queue
            for draft in drafts:
                producer.send("orders", draft)
        yield running


@pytest.fixture
def place(servers: LocalBroker) -> Iterator[WatchedPlace]:
    address = ClusterAddress.of_name_servers(servers.namesrv_addr)
    found = WatchedPlace(ClusterReader(ClusterAccess(address, timeout_s=5.0)))
    yield found
    found.close()


def test_what_a_killed_broker_had_is_unknown_and_the_rest_is_told(
    servers: LocalBroker, place: WatchedPlace
) -> None:
    place.watch.look()
    before = place.topic("orders")
    assert len(before.queues) == 2
    servers.kill_broker(1)
    place.watch.look()
    overview = place.overview()
    assert [each.is_up for each in overview.brokers] == [True, False]
    assert overview.findings[0].verdict == "fault"
    assert "broker-b" in overview.findings[0].what
    topics = place.topics(ListQuestion())
    assert [each.line.name for each in topics.topics] == ["orders"]
    assert {each.where for each in topics.troubles} == {"broker-b"}
    found = place.topic("orders")
    assert [each.broker for each in found.queues] == ["broker-a"]
    messages = place.newest(MessageQuestion(topic="orders"))
    assert {each.broker for each in messages.messages} == {"broker-a"}
    assert [each.where for each in messages.troubles] == ["broker-b"]
    assert place.group("nobody").troubles
    assert place.groups(ListQuestion()).troubles == (("broker-b", "does not answer"),)


def test_a_request_that_is_refused_is_told_beside_the_rest(
    servers: LocalBroker, place: WatchedPlace
) -> None:
    refused = "GET_TOPIC_STATS_INFO"
    servers.brokers[0].faults.refuse([refused], times=None)
    place.watch.look()
    overview = place.overview()
    assert [each.refused for each in overview.brokers] == [(refused,), ()]
    assert f"broker-a did not answer {refused}" in overview.findings[0].what
    found = place.topic("orders")
    assert [each.broker for each in found.queues] == ["broker-b"]
    ((where, what),) = found.troubles
    assert where == "broker-a"
    assert [each.messages for each in place.topics(ListQuestion()).topics] == [None]
    assert refused in what


def test_a_look_that_waits_for_a_silent_broker_is_ended(servers: LocalBroker) -> None:
    silence = servers.brokers[0].faults.lose_answer(["GET_BROKER_RUNTIME_INFO"])
    address = ClusterAddress.of_name_servers(servers.namesrv_addr)
    place = WatchedPlace(ClusterReader(ClusterAccess(address, timeout_s=3600.0)))
    place.watch.start()
    until(lambda: silence.happened)
    place.close()  # would wait for an hour
    assert place.watch.last is not None
    assert not place.watch.last.facts.brokers[0].is_up


def test_a_cluster_that_is_gone_is_told_and_looked_at_again(
    servers: LocalBroker, place: WatchedPlace
) -> None:
    place.watch.look()
    assert place.watch.last is not None
    servers.close()
    place.watch.look()
    wrong = [each.what for each in place.overview().findings]
    assert any("name server" in each for each in wrong)
    with pytest.raises(ServerUnreachableError):
        WatchedPlace(
            ClusterReader(ClusterAccess(ClusterAddress.of_name_servers("127.0.0.1:1")))
        ).topics(ListQuestion())
