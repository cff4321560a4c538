from __future__ import annotations

import pytest

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import MissingThereError, NoBrokerError
from rocketpy.broker_core.client.groups import LATEST_MS, ClusterGroups, GroupOnlineError
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.errors import GroupNotFoundError, TopicNameError, TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand

A0, A1, B0, B1 = (
    MessageQueue("orders", broker, queue_id)
    for broker in ("broker-a", "broker-b")
    for queue_id in (0, 1)
)


def send(cluster: Cluster, queue_id: int, count: int) -> list[MessageQueue]:
    producer = Producer(cluster)
    draft = MessageDraft(body=b"x", queue_id=queue_id)
    return [producer.send("orders", draft).queue for _ in range(count)]


def test_a_topic_is_made_on_every_broker_and_gets_more_queues(cluster: Cluster) -> None:
    topics = ClusterTopics(cluster)
    made = topics.create("orders", 2)
    assert {name: each.write_queues for name, each in made.items()} == {
        "broker-a": 2,
        "broker-b": 2,
    }
    assert topics.create("orders", 1) == made
    assert {each.read_queues for each in topics.create("orders", 3).values()} == {3}
    assert len(topics.all()["orders"]) == 2


def test_an_update_changes_what_is_given(cluster: Cluster) -> None:
    topics = ClusterTopics(cluster)
    topics.create("orders", 2)
    topics.update("orders", perm=4, write_queues=1)
    for each in topics.settings("orders").values():
        assert (each.perm, each.write_queues, each.read_queues) == (4, 1, 2)
    with pytest.raises(NoBrokerError, match="see its access"):
        Producer(cluster).send("orders", MessageDraft(body=b"x"))


def test_a_deleted_topic_is_gone_from_brokers_and_name_servers(cluster: Cluster) -> None:
    topics = ClusterTopics(cluster)
    topics.create("orders", 2)
    topics.delete("orders")
    assert "orders" not in topics.all()
    with pytest.raises(TopicNotFoundError):
        cluster.route("orders", fresh=True)


@pytest.mark.parametrize("name", ["SCHEDULE_TOPIC_XXXX", "or ders", "x" * 128])
def test_names_that_rocketmq_would_not_take_are_refused(cluster: Cluster, name: str) -> None:
    with pytest.raises(TopicNameError):
        ClusterTopics(cluster).create(name)


def test_queues_tell_what_they_hold(cluster: Cluster) -> None:
    topics = ClusterTopics(cluster)
    topics.create("orders", 2)
    sent = send(cluster, 1, 4)
    assert sorted(sent) == [A1, A1, B1, B1]  # the queue of that number on each broker, in turn
    spans = {span.queue: span for span in topics.queues("orders")}
    assert {queue: (span.first, span.end) for queue, span in spans.items()} == {
        A0: (0, 0),
        A1: (0, 2),
        B0: (0, 0),
        B1: (0, 2),
    }
    assert spans[A0].last_stored_ms is None
    assert spans[A1].last_stored_ms


def test_offsets_by_end_and_by_time(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 1)
    send(cluster, 0, 6)
    offsets = ClusterOffsets(cluster)
    assert offsets.ranges([A0, B0]) == {A0: (0, 3), B0: (0, 3)}
    assert offsets.by_time([A0, B0], 0) == {A0: 0, B0: 0}
    assert offsets.by_time([A0], 4_000_000_000_000) == {A0: 3}


def test_a_commit_of_a_group_that_is_missing_is_refused_with_its_remedy(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 1)
    with pytest.raises(MissingThereError, match="rocketpy group create"):
        ClusterOffsets(cluster).commit("billing", {A0: 0})


def test_a_group_is_made_on_every_broker_and_changed_there(cluster: Cluster) -> None:
    groups = ClusterGroups(cluster)
    assert groups.create("billing", retry_max_times=3).retry_max_times == 3
    assert groups.create("billing", consume_enabled=False).retry_max_times == 3
    made = groups.settings()["billing"]
    assert {name: each.consume_enabled for name, each in made.items()} == {
        "broker-a": False,
        "broker-b": False,
    }


def test_progress_tells_brokers_apart(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 2)
    send(cluster, 0, 6)
    groups = ClusterGroups(cluster)
    groups.move("billing", {A0: 3, B0: 1})
    found = {each.queue: each for each in groups.progress("billing")}
    assert {queue: (each.committed, each.end) for queue, each in found.items()} == {
        A0: (3, 3),
        A1: (0, 0),
        B0: (1, 3),
        B1: (0, 0),
    }
    assert found[A0].behind_ms is None
    assert found[B0].behind == 2
    assert found[B0].behind_ms is not None
    of_all = {(each.group, each.queue): each.behind for each in groups.progress()}
    assert of_all == {("billing", queue): each.behind for queue, each in found.items()}
    assert groups.progress("billing", "payments") == []
    assert groups.of_topic("orders") == ["billing"]
    assert ClusterOffsets(cluster).committed("billing", [A0, A1, B0]) == {A0: 3, B0: 1}


def test_a_group_that_committed_nothing_is_told_with_the_nearest(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 1)
    groups = ClusterGroups(cluster)
    groups.move("billing", {A0: 0})
    with pytest.raises(GroupNotFoundError, match="did you mean 'billing'"):
        groups.progress("biling")


def test_a_group_whose_consumers_run_is_set_by_time_only(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 1)
    send(cluster, 0, 4)
    groups = ClusterGroups(cluster)
    groups.move("billing", {A0: 2, B0: 2})
    subscription = SubscriptionData(topic="orders")
    consumer = ConsumerData(group_name="billing", subscriptions=(subscription,))
    heartbeat = HeartbeatData(client_id="shop@1", consumers=(consumer,)).encode()
    for broker in cluster.masters():
        cluster.ask_broker(broker, RemotingCommand(RequestCode.HEART_BEAT, body=heartbeat))
    assert groups.members(["billing", "nobody"]) == {"billing": {"shop@1"}, "nobody": set()}
    with pytest.raises(GroupOnlineError, match="1 consumers online"):
        groups.move("billing", {A0: 1})
    groups.move_to_time("billing", "orders", 0)
    assert ClusterOffsets(cluster).committed("billing", [A0, B0]) == {A0: 0, B0: 0}
    groups.move_to_time("billing", "orders", LATEST_MS)
    assert ClusterOffsets(cluster).committed("billing", [A0, B0]) == {A0: 2, B0: 2}
